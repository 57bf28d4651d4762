#include "cycle/settings.hpp"

#include <cstdio>

#include "os/context.hpp"
#include "os/log.hpp"

namespace jd::cycle {

base::Options options;
Settings settings;

void warn(const char* format, GC_word argument) {
  // The program's function may allocate, and where there is no memory would be called for that. It
  // may leave by longjmp or an exception, too: a call that is not deeper on the stack finds it
  // gone.
  static thread_local const char* telling_at = nullptr;
  const char* const here = os::frame_address();
  const bool is_telling = telling_at != nullptr && here < telling_at;
  if (settings.warn == nullptr || is_telling) return print_warning(format, argument);
  telling_at = here;
  // The type wants a writable string; nobody writes.
  settings.warn(const_cast<char*>(format), argument);
  telling_at = nullptr;
}

// The format may be the program's.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
void print_warning(const char* format, GC_word argument) {
  char text[900];
  std::snprintf(text, sizeof text, format, argument);
  base::Text line;
  line.add("jackdaw: ");
  for (const char* c = text; *c != '\0'; ++c) {
    if (*c != '\n') line.add(*c);
  }
  os::warn_text(line);
}
#pragma GCC diagnostic pop

}  // namespace jd::cycle
