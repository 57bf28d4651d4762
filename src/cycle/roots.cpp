#include "cycle/roots.hpp"

#include "copy/holders.hpp"
#include "cycle/finalization.hpp"
#include "cycle/links.hpp"
#include "cycle/settings.hpp"
#include "world/thread.hpp"

namespace jd::cycle {
namespace {

// Whoever receives root ranges now; null unless the program is being asked for its own. Under the
// heap's lock.
world::RootVisitor* root_receiver = nullptr;

}  // namespace

// The program's function comes before the stacks: Crystal changes stack ends in it.
void visit_ambiguous_roots(world::RootVisitor* visitor, char* stack_top) {
  root_receiver = visitor;
  if (GC_push_other_roots != nullptr) GC_push_other_roots();
  root_receiver = nullptr;
  visit_finalization_roots(visitor);
  world::visit_static_roots(visitor);
  world::visit_thread_roots(visitor, stack_top);
}

void visit_all_roots(world::RootVisitor* visitor, char* stack_top) {
  visit_ambiguous_roots(visitor, stack_top);
  copy::visit_held(visitor);
}

void push_client_roots(const void* low, const void* high) {
  if (root_receiver != nullptr) root_receiver->range(low, high);
}

void push_client_stack(const void* low, const void* high) {
  if (root_receiver != nullptr) root_receiver->stack(low, high);
}

}  // namespace jd::cycle

// Later they would be other threads' words, or no memory at all.
void (*const jd::world::stacks_are_gone)(const jd::os::Extent* stacks, std::size_t count) =
    [](const jd::os::Extent* stacks, std::size_t count) {
      jd::copy::forget_precise_roots_on(stacks, count);
      jd::cycle::forget_links_on(stacks, count);
    };
