// The process's beginning and end.
#include <stdlib.h>
#include <string.h>

#include "malloc/interpose.hpp"
#include "malloc/leaks.hpp"
#include "malloc/serve.hpp"
#include "os/log.hpp"
#include "os/modules.hpp"
#include "os/symbols.hpp"

namespace jd::serve {
namespace {

// Before the program's first thread; libc was initialised before.
[[gnu::constructor]] void on_load() {
  const os::ObjectBounds own = os::bounds_of_object(&bypassed);
  const auto* malloc_of_all = static_cast<const char*>(os::global_function("malloc"));
  bypassed = malloc_of_all != nullptr && (malloc_of_all < own.low || malloc_of_all >= own.high);
  if (bypassed) {
    // The options are not read: nothing begins.
    const char* wanted = getenv("JACKDAW_MALLOC");
    if (wanted != nullptr && strcmp(wanted, "leak-check") == 0) {
      os::warn("the program has a malloc of its own; leaks are not looked for");
    }
    return;
  }
  static_cast<void>(start());
  find_libc_functions();
  if (mode() == base::MallocMode::LeakCheck) leaks::begin();
}

// After the program's own functions for its end, since the libraries it is linked with are
// finished after it; they may go on allocating.
[[gnu::destructor]] void on_end() {
  if (!bypassed && mode() == base::MallocMode::LeakCheck && start()) leaks::report();
}

}  // namespace
}  // namespace jd::serve
