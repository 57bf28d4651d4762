// The process's beginning and end.
#include <stdlib.h>
#include <string.h>

#include "malloc/interpose.hpp"
#include "malloc/leaks.hpp"
#include "malloc/serve.hpp"
#include "os/log.hpp"
#include "os/modules.hpp"
#include "os/symbols.hpp"
#include "os/thread.hpp"

namespace jd::serve {
namespace {

// Where the report would be. The runtime does not start, and so has not read its options.
void tell_that_leaks_are_not_looked_for() {
  const char* mode = getenv("JACKDAW_MALLOC");
  if (mode == nullptr || strcmp(mode, "leak-check") != 0) return;
  const char* path = getenv("GC_LOG_FILE");
  if (path != nullptr && !os::open_log_and_report(path)) return;
  os::log("leak check of process ", os::process_id(),
          ": it has a malloc of its own; leaks are not looked for");
}

// Before the program's first thread; libc was initialised before.
[[gnu::constructor]] void on_load() {
  const os::ObjectBounds own = os::bounds_of_object(&bypassed);
  const auto* malloc_of_all = static_cast<const char*>(os::global_function("malloc"));
  bypassed = malloc_of_all != nullptr && (malloc_of_all < own.low || malloc_of_all >= own.high);
  if (bypassed) {
    tell_that_leaks_are_not_looked_for();
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
