// The process's beginning and end.
#include "malloc/interpose.hpp"
#include "malloc/leaks.hpp"
#include "malloc/serve.hpp"
#include "os/modules.hpp"

namespace jd::serve {
namespace {

// Before the program's first thread; libc was initialised before.
[[gnu::constructor]] void on_load() {
  if (!start()) return;
  find_libc_functions();
  // Nobody changes the list of libraries yet.
  has_other_collector = os::is_loaded("libgc.so") || os::is_loaded("libjackdaw.so");
  if (mode() == base::MallocMode::LeakCheck) leaks::begin();
}

// After the program's own functions for its end, since the libraries it is linked with are
// finished after it; they may go on allocating.
[[gnu::destructor]] void on_end() {
  if (start() && mode() == base::MallocMode::LeakCheck) leaks::report();
}

}  // namespace
}  // namespace jd::serve
