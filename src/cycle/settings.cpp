#include "cycle/settings.hpp"

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

void print_warning(const char* format, GC_word argument) {
  // The conversions that our own formats use are %p and %lu.
  base::Text line;
  line.add("jackdaw: ");
  for (const char* c = format; *c != '\0'; ++c) {
    if (c[0] == '%' && c[1] == 'p') {
      line.add(base::Hex{argument});
      ++c;
    } else if (c[0] == '%' && c[1] == 'l' && c[2] == 'u') {
      line.add(std::uint64_t{argument});
      c += 2;
    } else if (*c != '\n') {
      line.add(*c);
    }
  }
  os::warn_text(line);
}

}  // namespace jd::cycle
