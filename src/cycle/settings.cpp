#include "cycle/settings.hpp"

#include <cstdio>

#include "os/log.hpp"

namespace jd::cycle {

base::Options options;
Settings settings;

void warn(const char* format, GC_word argument) {
  // The program's function may allocate, and where there is no memory would be called for that.
  // (One that leaves by longjmp has its thread's later warnings on standard error.)
  static thread_local bool is_telling = false;
  if (settings.warn == nullptr || is_telling) return print_warning(format, argument);
  is_telling = true;
  // The type wants a writable string; nobody writes.
  settings.warn(const_cast<char*>(format), argument);
  is_telling = false;
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
