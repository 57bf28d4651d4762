#include "os/symbols.hpp"

#include <dlfcn.h>
#include <execinfo.h>

#include "base/bits.hpp"

namespace jd::os {

void* next_function(const char* name) { return dlsym(RTLD_NEXT, name); }

const void* prepare_backtraces() {
  void* one = nullptr;
  backtrace(&one, 1);
  // What glibc's backtrace() has loaded.
  void* unwinder = dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (unwinder == nullptr) return nullptr;
  const void* function = dlsym(unwinder, "_Unwind_Backtrace");
  dlclose(unwinder);
  return function;
}

int take_backtrace(void** addresses, int most) { return backtrace(addresses, most); }

void describe_code(const void* address, base::Text* text) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) {
    text->add(address);
    return;
  }
  const base::Word at = base::as_word(address);
  text->add(info.dli_fname, "+", base::Hex{at - base::as_word(info.dli_fbase)});
  if (info.dli_sname == nullptr) return;
  text->add(" (", info.dli_sname, "+", base::Hex{at - base::as_word(info.dli_saddr)}, ")");
}

}  // namespace jd::os
