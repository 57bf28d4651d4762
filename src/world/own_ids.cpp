#include "world/own_ids.hpp"

#include <cstdint>

#include "os/memory.hpp"
#include "os/thread.hpp"
#include "world/fork.hpp"

namespace jd::world {
namespace {

// A thread's remembered ids are valid while the number that it noted with them still stands here.
// The page reads as zero in every child of a fork: so a child of which the handlers never heard (a
// system call of the program's, _Fork) remembers nothing. Null until a thread asks twice, and where
// the system has no such pages. All three under the heap's lock.
std::uint32_t* valid_number = nullptr;
std::uint32_t last_number = 0;
bool page_refused = false;

struct Known {
  OwnIds ids;
  std::uint32_t number = 0;  // 0: does not count
};
// The thread's own.
constinit thread_local Known known;

void begin_number() { *valid_number = ++last_number; }

void make_page() {
  if (valid_number != nullptr || page_refused) return;
  valid_number = static_cast<std::uint32_t*>(os::map_zero_in_children(os::page_size()));
  page_refused = valid_number == nullptr;
  if (!page_refused) begin_number();
}

}  // namespace

OwnIds own_ids() {
  if (known.number != 0 && known.number == *valid_number) return known.ids;
  const bool asks_again = known.ids.thread != 0;
  if (asks_again) make_page();
  // Before the questions: a handler that interrupts them may fork.
  const std::uint32_t number = valid_number != nullptr ? *valid_number : 0;
  known.ids = {os::thread_id(), os::process_id()};
  // A child of vfork() has this thread's variables, and the thread goes on with them later.
  const bool may_keep = asks_again && !is_borrowed_process(known.ids.process);
  known.number = may_keep ? number : 0;
  return known.ids;
}

void recognise_children_by_page() { make_page(); }

bool is_in_unnoticed_child() { return valid_number != nullptr && *valid_number == 0; }

void forget_own_ids_in_child() {
  if (valid_number != nullptr) begin_number();
}

}  // namespace jd::world
