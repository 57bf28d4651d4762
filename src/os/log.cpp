#include "os/log.hpp"

#include <stdlib.h>

#include "os/files.hpp"

namespace jd::os {
namespace {

constexpr int kStandardError = 2;
// Set while the runtime starts or through GC_set_log_fd; a plain word, torn by nobody.
int log_target = kStandardError;

}  // namespace

void set_log_file(int file) { log_target = file; }
int log_file() { return log_target; }

void log_text(base::Text& line) {
  line.add('\n');
  write_all(log_target, line.data(), line.size());
}

void warn_text(base::Text& line) {
  line.add('\n');
  write_all(kStandardError, line.data(), line.size());
  if (log_target != kStandardError) write_all(log_target, line.data(), line.size());
}

void fatal_text(base::Text& line) {
  warn_text(line);
  abort();
}

}  // namespace jd::os
