// The roots of threads, each found by what the rest of the room knows of it. Static ones are in
// static_roots.cpp.
#include "world/roots.hpp"

#include <atomic>

#include "os/context.hpp"
#include "os/safe_reading.hpp"
#include "os/signals.hpp"
#include "os/thread.hpp"
#include "world/mappings.hpp"
#include "world/stacks.hpp"
#include "world/static_roots.hpp"
#include "world/thread.hpp"
#include "world/thread_locals.hpp"

namespace jd::world {
namespace {

// Set once (release), read by collectors (acquire).
std::atomic<void (*)(RootVisitor*)> other_stacks{nullptr};

std::size_t bytes_between(const void* low, const void* high) {
  return static_cast<std::size_t>(static_cast<const char*>(high) - static_cast<const char*>(low));
}

}  // namespace

void RootVisitor::range(const void* low, const void* high) {
  if (low >= high) return;
  bytes_ += bytes_between(low, high);
  visit_range(low, high);
}

void RootVisitor::stack(const void* low, const void* high) {
  if (low >= high) return;
  bytes_ += os::stack_bytes(low, high);
  visit_stack(low, high);
}

void RootVisitor::changing_range(const void* low, const void* high) {
  if (low >= high) return;
  bytes_ += bytes_between(low, high);
  visit_changing_range(low, high);
}

void visit_thread_roots(RootVisitor* visitor, char* own_stack_top) {
  const os::ManyReads reads;
  if (Thread* thread = self()) thread->alternate = os::active_alternate_stack();
  if (using_mappings()) {
    visit_thread_stacks(visitor, own_stack_top);
    return visit_mappings(visitor, own_stack_top);
  }
  for_each_thread([&](Thread* thread) {
    visitor->range(&thread->result, &thread->result + 1);
    // Its stack may not be there any more.
    if (thread->gone) return;
    const bool is_blocked = thread->blocked && thread != self();
    if (!is_blocked && thread != self()) visit_interrupted(visitor, *thread);
    const bool is_own = visit_stack(visitor, thread, stack_pointer(*thread, own_stack_top));
    if (is_blocked && is_own) {
      visit_blocked_thread_locals(visitor, thread);
    } else {
      visit_thread_locals(visitor, *thread);
    }
  });
  for (Thread* t = finished_threads; t != nullptr; t = t->in_list.next) {
    visitor->range(&t->result, &t->result + 1);
  }
  if (auto* visit = other_stacks.load(std::memory_order_acquire); visit != nullptr) visit(visitor);
}

void set_other_stacks(void (*visit)(RootVisitor* visitor)) {
  other_stacks.store(visit, std::memory_order_release);
}

bool may_be_root_address(const void* p) {
  if (is_static_root(p)) return true;
  for (const Thread* t = threads; t != nullptr; t = t->in_list.next) {
    // A stack of the client's own reaches nobody knows how far.
    if (t->stack.low == nullptr || stack_high(*t) > t->stack.high) return true;
    if (t->stack.contains(p) || is_thread_local(*t, p)) return true;
  }
  // This thread's, if it is none of those.
  return self() == nullptr || !self()->stack.contains(os::frame_address());
}

}  // namespace jd::world
