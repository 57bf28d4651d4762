#include "task/overflow.hpp"

#include "cycle/settings.hpp"
#include "os/faults.hpp"
#include "os/log.hpp"
#include "os/memory.hpp"
#include "task/mode.hpp"
#include "task/stacks.hpp"

namespace jd::task {
namespace {

// Enough for what a program's own handlers may do there, those for other signals among them. Below
// lies a guard.
constexpr std::size_t kAlternateStack = 256 * 1024;

bool is_below(const char* address, const char* low, std::size_t guard) {
  return address != nullptr && address < low && address >= low - guard;
}

// In the handler.
void look(const os::Fault& fault) {
  // A signal's frame, which the kernel may have found no room for, is a few thousand bytes.
  constexpr std::size_t kFrame = 8192;
  const Worker* worker = current();
  if (worker == nullptr) return;
  const Stack* stack = worker->stack.load(std::memory_order_relaxed);
  // In deque mode tasks run on the thread's own.
  const char* low = stack != nullptr ? stack->low : worker->own_stack.low;
  if (low == nullptr) return;
  if (!is_below(fault.address, low, kStackGuard) &&
      !(fault.address_is_missing &&
        is_below(fault.stack_top, low + kFrame, kStackGuard + kFrame))) {
    return;
  }
  os::warn("stack overflow in a task: its stack of ", cycle::options.task_stack,
           " bytes is used up; JACKDAW_TASK_STACK sets the size");
}

}  // namespace

void watch_for_overflows() {
  // Sanitizers have handlers of their own, which tell more.
  if (is_sanitized()) return;
  if (!os::watch_faults(look)) os::warn("a stack overflow in a task will not be told as such");
}

void prepare_for_overflow(Worker* worker) {
  if (worker->alternate_stack != nullptr) return;
  auto* memory = static_cast<char*>(os::reserve(kStackGuard + kAlternateStack, os::page_size()));
  if (memory == nullptr) return;
  if (os::commit(memory + kStackGuard, kAlternateStack)) {
    worker->alternate_stack = memory + kStackGuard;
  } else {
    os::unreserve(memory, kStackGuard + kAlternateStack);
  }
}

void begin_to_watch(Worker* worker) {
  if (is_sanitized() || worker->alternate_stack == nullptr) return;
  os::use_alternate_stack(worker->alternate_stack, kAlternateStack);
}

void end_watching() {
  if (!is_sanitized()) os::use_alternate_stack(nullptr, 0);
}

}  // namespace jd::task
