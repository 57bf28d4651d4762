#include "cycle/settings.hpp"

#include "os/log.hpp"

namespace jd::cycle {

base::Options options;
Settings settings;

void warn(const char* format, GC_word argument) {
  if (settings.warn != nullptr) {
    // The type wants a writable string; nobody writes.
    settings.warn(const_cast<char*>(format), argument);
  } else {
    print_warning(format, argument);
  }
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
