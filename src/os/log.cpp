#include "os/log.hpp"

#include <stdlib.h>

#include "os/files.hpp"

namespace jd::os {
namespace {

constexpr int kNowhere = -1;
// Set while the runtime starts; the second through GC_set_log_fd, too. Plain words, torn by nobody.
// Not to be initialised when the library is loaded: some library's constructor may run before.
constexpr int kStandardError = 2;
constinit int error_target = kStandardError;
constinit int log_target = kStandardError;
constinit int report_target = 1;
// What the log was when keep_log was called: before the program's first thread; read at its end.
constinit FileIdentity kept;

}  // namespace

void set_log_file(int file) { log_target = file; }
int log_file() { return log_target; }

void keep_log() {
  if (log_target == kStandardError) {
    const int copy = duplicate_high(log_target);
    // Both, or warnings would be written twice.
    if (copy >= 0) log_target = error_target = copy;
  }
  kept = identity_of(log_target);
}

void regain_log(const char* path) {
  if (identity_of(log_target) == kept) return;
  const bool both = error_target == log_target;
  log_target = path != nullptr && path[0] == '/' ? open_log(path) : kNowhere;
  if (both) error_target = log_target;
}

void set_report_file(int file) { report_target = file; }
int report_file() { return report_target; }

void look_for_standard_error() {
  if (is_open(error_target)) return;
  if (log_target == error_target) log_target = kNowhere;
  error_target = kNowhere;
}
int standard_error() { return error_target; }

void log_text(base::Text& line) {
  line.add('\n');
  write_all(log_target, line.data(), line.size());
}

void warn_text(base::Text& line) {
  line.add('\n');
  write_all(error_target, line.data(), line.size());
  if (log_target != error_target) write_all(log_target, line.data(), line.size());
}

void fatal_text(base::Text& line) {
  warn_text(line);
  abort();
}

}  // namespace jd::os
