#include "cycle/settings.hpp"

#include <cstdio>

#include "os/context.hpp"
#include "os/log.hpp"

namespace jd::cycle {

base::Options options;
Settings settings;

void warn(const char* format, GC_word argument) {
  // The program's function may allocate, and where there is no memory would be called for that, and
  // so on. It may leave by longjmp or an exception, too: a call is over when another comes that is
  // no deeper on the stack.
  constexpr unsigned kDeepest = 8;
  static thread_local const char* calls[kDeepest];
  static thread_local unsigned depth = 0;
  const char* const here = os::frame_address();
  while (depth != 0 && calls[depth - 1] <= here) --depth;
  if (settings.warn == nullptr || depth == kDeepest) return print_warning(format, argument);
  const unsigned outer = depth;
  calls[depth++] = here;
  // The type wants a writable string; nobody writes.
  settings.warn(const_cast<char*>(format), argument);
  depth = outer;
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
