// The command's own failures, as distinct from those of the programs it runs.
#pragma once

#include <stdexcept>
#include <string>

namespace jackdaw {

// Exit statuses, those of env(1), timeout(1) and the shells.
inline constexpr int kExitRefused = 125;        // jackdaw itself could not do what was asked
inline constexpr int kExitNotExecutable = 126;  // PROGRAM is there but cannot be executed
inline constexpr int kExitNotFound = 127;       // there is no PROGRAM
inline constexpr int kExitUsage = 2;            // a bad option (125 under `run`)
inline constexpr int kExitFailed = 1;           // a benchmark failed, or two libraries differ

// Ends the command with a message and a status. main() prints it as "jackdaw: MESSAGE".
class Failure : public std::runtime_error {
 public:
  Failure(int exit_status, const std::string& message)
      : std::runtime_error(message), exit_status_(exit_status) {}
  [[nodiscard]] int exit_status() const { return exit_status_; }

 private:
  int exit_status_;
};

// For an answer that is "no" because the program does not use libgc; the user may insist.
class NoLibgc : public Failure {
 public:
  explicit NoLibgc(const std::string& message) : Failure(kExitRefused, message) {}
};

}  // namespace jackdaw
