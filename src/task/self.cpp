// Thread-local state of the room, by itself: see current().
#include "task/worker.hpp"

extern "C" {
__thread int jd_task_direct = 0;
__thread int jd_task_wanted = 0;

void jd_task_set_direct(int direct) { jd_task_direct = direct; }
}

namespace jd::task {
namespace {

constinit thread_local Worker* self = nullptr;

}  // namespace

[[gnu::noinline]] Worker* current() {
  // The compiler is not to see that nothing but set_current() changes the result.
  asm volatile("" : : : "memory");
  return self;
}

[[gnu::noinline]] void set_current(Worker* worker) { self = worker; }

}  // namespace jd::task
