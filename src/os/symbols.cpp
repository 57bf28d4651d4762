#include "os/symbols.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <unistd.h>

#include "base/bits.hpp"

namespace jd::os {

void* next_function(const char* name) { return dlsym(RTLD_NEXT, name); }
void* global_function(const char* name) { return dlsym(RTLD_DEFAULT, name); }

bool is_libcs(const void* function) {
  Dl_info libc{};
  Dl_info other{};
  return dladdr(reinterpret_cast<const void*>(&gnu_get_libc_version), &libc) != 0 &&
         dladdr(function, &other) != 0 && libc.dli_fbase == other.dli_fbase;
}

// Written once, before the program begins: it may leave the folder, or the file be replaced.
static char program_path[4096];

const void* prepare_backtraces() {
  const ssize_t length = readlink("/proc/self/exe", program_path, sizeof program_path - 1);
  program_path[length > 0 ? length : 0] = '\0';
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
  link_map* object = nullptr;
  if (dladdr1(address, &info, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) == 0 ||
      info.dli_fname == nullptr) {
    text->add(address);
    return;
  }
  const base::Word at = base::as_word(address);
  // The place as the file has it: a program that is always loaded where it was linked for has its
  // addresses. libc knows the program by the name that it was called by.
  const bool is_program = object->l_name[0] == '\0' && program_path[0] != '\0';
  text->add(is_program ? program_path : info.dli_fname, "+", base::Hex{at - object->l_addr});
  if (info.dli_sname == nullptr) return;
  text->add(" (", info.dli_sname, "+", base::Hex{at - base::as_word(info.dli_saddr)}, ")");
}

}  // namespace jd::os
