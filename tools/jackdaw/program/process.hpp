// Starting a program on a chosen libgc, and waiting for its end.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace jackdaw {

// An open file that closes itself.
class File {
 public:
  File() = default;
  explicit File(int fd) : fd_(fd) {}
  File(File&& other) noexcept : fd_(other.release()) {}
  File& operator=(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File();
  [[nodiscard]] int fd() const { return fd_; }
  int release();

 private:
  int fd_ = -1;
};

// An unnamed file in memory, and what was written to a file from its beginning.
File make_memory_file(const char* name);
std::string contents(const File& file);

struct Command {
  std::filesystem::path file;
  std::vector<std::string> arguments;    // argv, the name included
  std::vector<std::string> environment;  // NAME=VALUE
  int in = 0;
  int out = 1;
  int err = 2;
  // Pass on the signals this process gets, and stop and continue with the program.
  bool interactive = true;
  // Kill the program after that long, or when this process ends. Only if not interactive.
  std::optional<std::chrono::seconds> limit;
  // Run on that processor alone.
  std::optional<int> processor;
};

// How a program ended, and what the kernel counted for it.
struct Outcome {
  int status = 0;  // of wait()
  bool timed_out = false;
  double wall_seconds = 0;
  double user_seconds = 0;
  double system_seconds = 0;
  long resident_peak_kib = 0;  // of the program or the largest child it waited for

  [[nodiscard]] bool succeeded() const;
  [[nodiscard]] int exit_status() const;       // as a shell shows it: 128 + n for a signal
  [[nodiscard]] std::string describe() const;  // "exit status 3", "signal 11 (SIGSEGV)"
};

// This process's environment with more variables set (of two for the same name, the latter), and
// with these libraries in LD_PRELOAD before what it would hold.
std::vector<std::string> environment_with(const std::vector<std::filesystem::path>& preload,
                                          const std::vector<std::string>& more);

// Becomes the program. Returns only by throwing Failure.
[[noreturn]] void execute(const Command& command);

// Thrown by run() when this process was told to end (Ctrl-C, SIGTERM, an alarm) during a run that
// is one of a series: the program is dead then, and whoever holds files removes them on the way
// out.
struct Interrupted {
  int signal;
};

// Runs the program to its end. `owner`, if not null, is shared memory that receives the child's
// process id before it executes the program. Throws Interrupted if not interactive.
//
// Meanwhile the calling thread has the passed signals (program/signals.hpp) blocked, and waits for
// those that are sent to the process. Where several threads run programs at a time, or one that
// does not stands by, each signal comes to one of them, and not to all: Ctrl-C may be taken by a
// thread that does not block it, and then ends the process, and the programs with it (the kernel
// kills those that are not interactive); or by one run, which throws Interrupted, while the others
// go on. Another thread may have the SIGCHLD, too: then the end of a program is seen up to a second
// late, which counts in wall_seconds.
Outcome run(const Command& command, std::uint64_t* owner);

// Ends this process the way that program ended: by the same status or the same signal.
[[noreturn]] void end_like(const Outcome& outcome);
// Ends this process by that signal, one that ends programs.
[[noreturn]] void end_by(int signal);

}  // namespace jackdaw
