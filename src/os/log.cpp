#include "os/log.hpp"

#include <errno.h>
#include <stdlib.h>

#include <atomic>

#include "os/files.hpp"

namespace jd::os {
namespace {

constexpr int kNowhere = -1;
constexpr int kStandardError = 2;
// Where lines of each sort go. Set while the runtime starts, and at the end; log_target by
// GC_set_log_fd, too, at any time: a word, of which a reader sees the old number or the new one.
// Constant-initialised, since another library's constructor may have lines written before ours run.
constinit int error_target = kStandardError;
constinit int log_target = kStandardError;
constinit int report_target = 1;
// Called once. Written by whoever sets it and by whoever ends the program; each reads what is there
// (relaxed).
constinit std::atomic<void (*)(const char* message)> before_abort{nullptr};

// The number that this library opened, if any, and what it was then: before the program's first
// thread, and at its end. Programs close all numbers, and open files of theirs there.
constinit int own_number = kNowhere;
constinit FileIdentity own_file;

// The target, if it is still what it was. Standard error may be the same file.
int checked(int* target) {
  if (*target != own_number || *target == kNowhere) return *target;
  if (identity_of(own_number) == own_file) return *target;
  *target = identity_of(kStandardError) == own_file ? kStandardError : kNowhere;
  return *target;
}

void note_own(int number) {
  own_number = number;
  own_file = identity_of(number);
}

}  // namespace

void set_log_file(int file) { log_target = file; }
int log_file() { return checked(&log_target); }

const char* open_log_and_report(const char* path) {
  const KeptErrno kept;
  const int number = open_log(path);
  if (number < 0) return describe_error(errno);
  note_own(number);
  log_target = report_target = number;
  return nullptr;
}

void keep_log() {
  if (log_target != kStandardError) return;
  const int copy = duplicate_high(log_target);
  if (copy < 0) return;
  note_own(copy);
  // Both, or warnings would be written twice.
  log_target = error_target = copy;
}

void regain_log(const char* path) {
  const bool both = error_target == log_target;
  if (checked(&log_target) == kNowhere && path != nullptr && path[0] == '/') {
    log_target = open_log(path);
    note_own(log_target);
  }
  if (both) error_target = log_target;
}

int report_file() { return checked(&report_target); }

void look_for_standard_error() {
  if (is_open(error_target)) return;
  if (log_target == error_target) log_target = kNowhere;
  error_target = kNowhere;
}
int standard_error() { return checked(&error_target); }

void log_text(base::Text& line) {
  line.end_line();
  write_all(log_file(), line.data(), line.size());
}

void warn_text(base::Text& line) {
  line.end_line();
  const int error = standard_error();
  const int log = log_file();
  write_all(error, line.data(), line.size());
  if (log != error) write_all(log, line.data(), line.size());
}

void set_before_abort(void (*function)(const char* message)) {
  before_abort.store(function, std::memory_order_relaxed);
}

void fatal_text(base::Text& line) {
  base::Text message = line;  // without the line's end
  warn_text(line);
  auto* const function = before_abort.exchange(nullptr, std::memory_order_relaxed);
  if (function != nullptr) function(message.c_str());
  abort();
}

}  // namespace jd::os
