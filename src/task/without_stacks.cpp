// What the modes with stacks consist of, where there is deque mode alone.
#include "task/machine.hpp"
#include "task/published.hpp"
#include "task/steal.hpp"
#include "task/switch.hpp"
#include "task/victim.hpp"

#if !JD_TASK_STACKS

namespace jd::task {
bool has_signal_to_steal() { return false; }
bool prepare_stealing() { return false; }
void prepare_victim() {}
void publish_own(Worker*, bool) {}
jd_task* steal_from_stack(Worker*, Worker*, jd_task_time*) { return nullptr; }
void begin_to_wait(Stack*) {}
void end_waiting(Stack*) {}
jd_task* steal_from_waiting() { return nullptr; }
}  // namespace jd::task

extern "C" {
void jd_task_answer(void) {}
void jd_task_switch(void**, void*) { __builtin_trap(); }
void* jd_task_prepare(char*, jd::task::Stack*) { __builtin_trap(); }
void jd_task_call_at_site(jd_task*, void (*)(void*), void*) { __builtin_trap(); }
}

#endif
