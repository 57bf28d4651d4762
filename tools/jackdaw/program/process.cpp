#include "program/process.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "failure.hpp"
#include "program/signals.hpp"

namespace jackdaw {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
}

// What the child says when it cannot execute the program (errno), or not where it should (a
// negative one). Async-signal-safe, for it is forked.
[[noreturn]] void report_exec_failure(int error_pipe) {
  const int error = errno;
  if (write(error_pipe, &error, sizeof error) < 0) _exit(kExitRefused);
  _exit(kExitNotExecutable);
}

// Why this is fork() and not posix_spawn(): a program's peak resident size starts from that of the
// memory it replaces, which for vfork() is all of ours and for fork() what of it is resident in the
// child: a megabyte or so, less than any program's with a libgc.
pid_t start(const Command& command, std::uint64_t* owner, const sigset_t& mask) {
  const std::vector<char*> argv = pointers(command.arguments);
  const std::vector<char*> envp = pointers(command.environment);
  std::array<int, 2> error_pipe{};
  if (pipe2(error_pipe.data(), O_CLOEXEC) != 0) {
    throw Failure(kExitRefused, fmt::format("pipe: {}", std::strerror(errno)));
  }
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw Failure(kExitRefused, fmt::format("fork: {}", std::strerror(errno)));
  if (child == 0) {
    if (!command.interactive) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(kExitRefused);
    }
    if ((command.in != 0 && dup2(command.in, 0) < 0) ||
        (command.out != 1 && dup2(command.out, 1) < 0) ||
        (command.err != 2 && dup2(command.err, 2) < 0)) {
      report_exec_failure(error_pipe[1]);
    }
    if (command.processor) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(static_cast<unsigned>(*command.processor), &set);
      if (sched_setaffinity(0, sizeof set, &set) != 0) {
        errno = -errno;
        report_exec_failure(error_pipe[1]);
      }
    }
    if (owner != nullptr) {
      __atomic_store_n(owner, static_cast<std::uint64_t>(getpid()), __ATOMIC_RELAXED);
    }
    restore_signals();
    sigprocmask(SIG_SETMASK, &mask, nullptr);
    execve(command.file.c_str(), argv.data(), envp.data());
    report_exec_failure(error_pipe[1]);
  }
  close(error_pipe[1]);
  int error = 0;
  const ssize_t n = read(error_pipe[0], &error, sizeof error);
  close(error_pipe[0]);
  if (n == static_cast<ssize_t>(sizeof error)) {
    waitpid(child, nullptr, 0);
    if (error < 0) {
      throw Failure(kExitRefused,
                    fmt::format("processor {} is not to be had: {}", command.processor.value_or(-1),
                                std::strerror(-error)));
    }
    throw Failure(kExitNotExecutable, fmt::format("cannot execute {}: {}", command.file.string(),
                                                  std::strerror(error)));
  }
  return child;
}

// The terminal sends its signals to the whole foreground group, the child included. But of a
// hangup it tells the session's leader alone, and wakes it. What else the kernel sends, as SIGALRM
// of an alarm that was set before this process was executed, is for this process alone.
bool child_has_it(const siginfo_t& info) {
  if (info.si_code != SI_KERNEL) return false;
  switch (info.si_signo) {
    case SIGINT:
    case SIGQUIT:
    case SIGTSTP:
    case SIGWINCH:
      return true;
    case SIGHUP:
    case SIGCONT:
      return getsid(0) != getpid();
    default:
      return false;
  }
}

// Gives the child a signal that came, if it is meant for it.
void pass_on(const siginfo_t& info, pid_t child) {
  if (info.si_signo == SIGCHLD || child_has_it(info)) return;
  if (info.si_code == SI_QUEUE) {
    sigqueue(child, info.si_signo, info.si_value);
  } else {
    kill(child, info.si_signo);
  }
}

// Not the program's business: the whole series of runs stops. Nobody here sets an alarm; whoever
// started this process did.
bool ends_series(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT ||
         signal == SIGALRM;
}

// True once the child has ended.
bool poll_child(pid_t child, const Command& command, Outcome* outcome, rusage* usage) {
  for (;;) {
    const int flags = WNOHANG | (command.interactive ? WUNTRACED : 0);
    const pid_t got = wait4(child, &outcome->status, flags, usage);
    if (got == 0) return false;
    if (got < 0) {
      if (errno == EINTR) continue;
      throw Failure(kExitRefused, fmt::format("wait4: {}", std::strerror(errno)));
    }
    if (!WIFSTOPPED(outcome->status)) return true;
    // The shell that started us must see us stop; when it continues us, the child follows.
    raise(SIGSTOP);
    kill(child, SIGCONT);
  }
}

}  // namespace

File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) close(fd_);
    fd_ = other.release();
  }
  return *this;
}

File::~File() {
  if (fd_ >= 0) close(fd_);
}

int File::release() {
  const int fd = fd_;
  fd_ = -1;
  return fd;
}

File make_memory_file(const char* name) {
  File file(memfd_create(name, MFD_CLOEXEC));
  if (file.fd() < 0) {
    throw Failure(kExitRefused, fmt::format("memfd_create: {}", std::strerror(errno)));
  }
  return file;
}

std::string contents(const File& file) {
  std::string text;
  std::array<char, 65536> buffer{};
  off_t at = 0;
  for (;;) {
    const ssize_t n = pread(file.fd(), buffer.data(), buffer.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw Failure(kExitRefused, fmt::format("read: {}", std::strerror(errno)));
    if (n == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(n));
    at += n;
  }
}

bool Outcome::succeeded() const { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }

int Outcome::exit_status() const {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string Outcome::describe() const {
  if (timed_out) return "killed: over its time limit";
  if (WIFSIGNALED(status)) {
    const char* name = sigabbrev_np(WTERMSIG(status));
    return fmt::format("signal {} (SIG{})", WTERMSIG(status), name != nullptr ? name : "?");
  }
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

std::vector<std::string> environment_with(const std::vector<std::filesystem::path>& preload,
                                          const std::vector<std::string>& more) {
  std::vector<std::string> libraries;
  libraries.reserve(preload.size() + 1);
  for (const auto& path : preload) libraries.push_back(path.string());
  const char* inherited = std::getenv("LD_PRELOAD");
  std::string others = inherited != nullptr ? inherited : "";
  std::vector<std::string> set;
  for (const std::string& variable : more) {
    if (variable.starts_with("LD_PRELOAD=")) {
      others = variable.substr(variable.find('=') + 1);
      continue;
    }
    // The last word on each.
    const std::string name = variable.substr(0, variable.find('=') + 1);
    std::erase_if(set, [&name](const std::string& s) { return s.starts_with(name); });
    set.push_back(variable);
  }
  if (!others.empty()) libraries.push_back(others);
  if (!libraries.empty()) set.push_back(fmt::format("LD_PRELOAD={}", fmt::join(libraries, ":")));
  std::vector<std::string> environment;
  for (char** p = environ; *p != nullptr; ++p) {
    const std::string_view old = *p;
    const std::string_view name = old.substr(0, old.find('=') + 1);
    bool replaced = false;
    for (const std::string& s : set) replaced = replaced || std::string_view(s).starts_with(name);
    if (!replaced) environment.emplace_back(old);
  }
  environment.insert(environment.end(), set.begin(), set.end());
  return environment;
}

void execute(const Command& command) {
  const std::vector<char*> argv = pointers(command.arguments);
  const std::vector<char*> envp = pointers(command.environment);
  std::fflush(nullptr);
  restore_signals();
  execve(command.file.c_str(), argv.data(), envp.data());
  throw Failure(kExitNotExecutable,
                fmt::format("cannot execute {}: {}", command.file.string(), std::strerror(errno)));
}

Outcome run(const Command& command, std::uint64_t* owner) {
  std::fflush(nullptr);
  const sigset_t waited = passed_signals();
  sigset_t before;
  // Blocked before the fork, so that no signal falls between the child's start and our wait.
  pthread_sigmask(SIG_BLOCK, &waited, &before);
  Outcome outcome;
  rusage usage{};
  const Clock::time_point began = Clock::now();
  pid_t child = 0;
  try {
    child = start(command, owner, HeldSignals::mask_of_programs(before));
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  while (!poll_child(child, command, &outcome, &usage)) {
    timespec patience{1, 0};  // SIGCHLD ends the wait; the time is for the limit below.
    siginfo_t info;
    if (sigtimedwait(&waited, &info, &patience) > 0) {
      if (!command.interactive && is_ignored(info.si_signo)) continue;
      if (!command.interactive && ends_series(info.si_signo)) {
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw Interrupted{info.si_signo};
      }
      if (!command.interactive && info.si_signo == SIGTSTP) {
        // The series stops as a whole, whatever this program makes of the signal.
        kill(child, SIGSTOP);
        stop_by_terminal();
        kill(child, SIGCONT);
        continue;
      }
      pass_on(info, child);
    }
    if (command.limit && !outcome.timed_out && Clock::now() - began > *command.limit) {
      outcome.timed_out = true;
      kill(child, SIGKILL);
    }
  }
  outcome.wall_seconds = std::chrono::duration<double>(Clock::now() - began).count();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  outcome.user_seconds = seconds(usage.ru_utime);
  outcome.system_seconds = seconds(usage.ru_stime);
  outcome.resident_peak_kib = usage.ru_maxrss;
  return outcome;
}

void end_by(int signal) {
  // The program left a core file if one was wanted; ours would overwrite it.
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  std::signal(signal, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  kill(getpid(), signal);  // raise() refuses the C library's own
  std::_Exit(128 + signal);
}

void end_like(const Outcome& outcome) {
  std::fflush(nullptr);
  if (WIFSIGNALED(outcome.status)) end_by(WTERMSIG(outcome.status));
  std::exit(outcome.exit_status());
}

}  // namespace jackdaw
