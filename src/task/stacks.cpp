#include "task/stacks.hpp"

#include <new>

#include "base/bits.hpp"
#include "cycle/settings.hpp"
#include "heap/space.hpp"
#include "os/memory.hpp"
#include "os/safe_reading.hpp"
#include "task/worker.hpp"
#include "world/roots.hpp"
#include "world/thread.hpp"

namespace jd::task {
namespace {

os::Lock pool_lock;
// Under the lock.
Stack* free_stacks = nullptr;
std::uint64_t in_use = 0;
// Written under the lock, read without it (relaxed): in a stopped world its holder may stand.
std::atomic<std::uint64_t> in_use_peak{0};
std::atomic<std::uint64_t> made{0};
// Every stack ever made, newest first. Changed under the lock by one store (release), so that a
// collector reads it in a stopped world without one.
std::atomic<Stack*> all_stacks{nullptr};

// task.req.stack-roots: a suspended stack is scanned from the stack pointer that it was left with;
// the callee-saved registers lie just above. One that a thread runs on is among that thread's
// roots. In between it is both.
void visit_suspended(world::RootVisitor* visitor) {
  for (Stack* s = all_stacks.load(std::memory_order_acquire); s != nullptr; s = s->next_made) {
    auto* const sp = static_cast<char*>(s->saved_sp);
    if (sp == nullptr) continue;
    if (sp >= s->low && sp < s->high) {
      visitor->stack(sp, s->high);
      continue;
    }
    // The task was on a stack of the program's own, whose mapping's end is the furthest it can
    // reach.
    if (void* end = os::end_of_mapping(sp); end != nullptr) visitor->stack(sp, end);
    visitor->stack(s->low, s->high);
  }
  // Of a worker that is on one of them, its thread's own stack is not scanned; but libc keeps what
  // is the thread's above the frames there (pthread_setspecific).
  for (const std::atomic<Worker*>& entry : runtime.workers) {
    const Worker* worker = entry.load(std::memory_order_relaxed);
    if (worker == nullptr) break;
    const bool on_another = worker->stack.load(std::memory_order_relaxed) != nullptr;
    if (!on_another || worker->control_block == nullptr) continue;
    visitor->range(worker->control_block, worker->own_stack.high);
  }
}

Stack* make_stack() {
  const std::size_t page = os::page_size();
  const std::size_t size = base::align_up(cycle::options.task_stack, page);
  // The record lies in a page of its own, where no overflow reaches it.
  auto* record = static_cast<Stack*>(os::map(page));
  if (record == nullptr) return nullptr;
  const std::size_t guard = base::align_up(kStackGuard, page);
  auto* memory = static_cast<char*>(os::reserve(size + guard, page));
  if (memory == nullptr || !os::commit(memory + guard, size)) {
    if (memory != nullptr) os::unreserve(memory, size + guard);
    os::release(record, page);
    return nullptr;
  }
  auto* stack = new (record) Stack;
  stack->low = memory + guard;
  stack->high = memory + guard + size;
  return stack;
}

}  // namespace

void prepare_stacks() { world::set_other_stacks(visit_suspended); }

Stack* take_stack() {
  os::LockGuard guard(pool_lock);
  Stack* stack = free_stacks;
  if (stack != nullptr) {
    free_stacks = stack->next_free;
  } else {
    stack = make_stack();
    if (stack == nullptr) return nullptr;
    made.fetch_add(1, std::memory_order_relaxed);
    stack->next_made = all_stacks.load(std::memory_order_relaxed);
    all_stacks.store(stack, std::memory_order_release);
  }
  ++in_use;
  in_use_peak.store(base::max_of(in_use_peak.load(std::memory_order_relaxed), in_use),
                    std::memory_order_relaxed);
  return stack;
}

void give_stack(Stack* stack) {
  os::LockGuard guard(pool_lock);
  stack->next_free = free_stacks;
  free_stacks = stack;
  --in_use;
}

StackCounts stack_counts() {
  return {made.load(std::memory_order_relaxed), in_use_peak.load(std::memory_order_relaxed)};
}

os::Lock& stack_pool_lock() { return pool_lock; }

void reset_stacks_in_child(const Stack* kept) {
  pool_lock.reset_in_child();
  for (Stack* s = all_stacks.load(std::memory_order_relaxed); s != nullptr; s = s->next_made) {
    s->lock.reset_in_child();
  }
  if (kept == nullptr) {
    // No task is left, nor what the program registered of its frames. (Where the program sees to
    // the collector's forks itself, and did not, another thread may have held the lock.)
    const bool knows_heap = heap::heap_lock.try_acquire();
    if (knows_heap) {
      for (Stack* s = all_stacks.load(std::memory_order_relaxed); s != nullptr; s = s->next_made) {
        world::add_gone_stack({s->low, s->high});
      }
      world::forget_gone_stacks();
      heap::heap_lock.release();
    }
    free_stacks = nullptr;
    in_use = 0;
    for (Stack* s = all_stacks.load(std::memory_order_relaxed); s != nullptr; s = s->next_made) {
      s->saved_sp = nullptr;
      s->top.store(nullptr, std::memory_order_relaxed);
      s->oldest.store(nullptr, std::memory_order_relaxed);
      s->next_free = free_stacks;
      free_stacks = s;
    }
    return;
  }
  // The task that called fork() may use what lies in its ancestors' frames, wherever these are. The
  // threads that ran on other stacks have left no stack pointer behind.
  for (Stack* s = all_stacks.load(std::memory_order_relaxed); s != nullptr; s = s->next_made) {
    if (s == kept || s->saved_sp != nullptr) continue;
    bool is_free = false;
    for (const Stack* f = free_stacks; f != nullptr; f = f->next_free) is_free |= f == s;
    if (!is_free) s->saved_sp = s->low;
  }
}

}  // namespace jd::task
