// The process's beginning and end.
#include "malloc/interpose.hpp"
#include "malloc/leaks.hpp"
#include "malloc/serve.hpp"

namespace jd::serve {
namespace {

// Before the program's constructors, but not before those of libraries that it is linked with; libc
// was initialised before.
[[gnu::constructor]] void on_load() {
  if (!start()) return;
  find_libc_functions();
  look_for_other_collector();
  if (mode() == base::MallocMode::LeakCheck) leaks::begin();
}

// After the program's own functions for its end, since the libraries it is linked with are
// finished after it; they may go on allocating.
[[gnu::destructor]] void on_end() {
  if (start() && mode() == base::MallocMode::LeakCheck) leaks::report();
}

}  // namespace
}  // namespace jd::serve
