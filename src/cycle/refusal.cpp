#include "cycle/refusal.hpp"

#include "alloc/totals.hpp"
#include "cycle/due.hpp"
#include "cycle/settings.hpp"

namespace jd::cycle::refusal {
namespace {

// It is tried again when such a part of what makes a collection due was allocated. And when so many
// times that was since the last collection, nobody is asked any more: bdwgc asks before few of the
// collections that allocation starts, so a heap stays small whose function says no often. (Not
// since the first refusal: that comes when the free blocks are used up, and so the heap would grow
// by as much again each time.) Guesses.
constexpr std::size_t kRetryShare = 8;
constexpr std::size_t kMostRefused = 3;
constexpr std::size_t kLeastOverdue = 4 * base::kMiB;  // a small heap grows by a MiB at a time

std::size_t allocated_since_gc() { return alloc::totals_unsynchronised().allocated_since_gc; }

// Under the heap's lock. Was any refused since the last collection?
bool some_were_refused = false;
// What was allocated between that and the last refusal, unless another try has followed it; then 0.
std::size_t allocated_before_last = 0;

}  // namespace

void note() {
  some_were_refused = true;
  allocated_before_last = base::max_of(allocated_since_gc(), std::size_t{1});
}

bool asks_no_more() {
  return some_were_refused &&
         allocated_since_gc() > base::max_of(kMostRefused * due_after(), kLeastOverdue);
}

bool waits() {
  if (allocated_before_last == 0) return false;
  const std::size_t now = allocated_since_gc();
  return now - base::min_of(now, allocated_before_last) < due_after() / kRetryShare;
}

void forget_last() { allocated_before_last = 0; }
void forget_all() {
  some_were_refused = false;
  forget_last();
}

int (*stop_function())() { return asks_no_more() ? nullptr : settings.stop_function; }

}  // namespace jd::cycle::refusal
