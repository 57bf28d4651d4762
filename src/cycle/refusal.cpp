#include "cycle/refusal.hpp"

#include "alloc/totals.hpp"
#include "cycle/due.hpp"
#include "cycle/settings.hpp"

namespace jd::cycle::refusal {
namespace {

// It is tried again when such a part of what makes a collection due was allocated. And when so many
// times that was since the first refusal, nobody is asked any more: bdwgc asks before few of the
// collections that allocation starts, so a heap stays small whose function says no often. Guesses.
constexpr std::size_t kRetryShare = 8;
constexpr std::size_t kMostRefused = 2;
constexpr std::size_t kLeastOverdue = 4 * base::kMiB;  // a small heap grows by a MiB at a time

std::size_t allocated_since_gc() { return alloc::totals_unsynchronised().allocated_since_gc; }

struct Refusal {
  bool happened = false;
  std::size_t allocated = 0;  // since the last collection, until then

  [[nodiscard]] std::size_t allocated_since() const {
    const std::size_t now = allocated_since_gc();
    return now - base::min_of(now, allocated);
  }
};

// Since the last collection. Under the heap's lock.
Refusal first;
Refusal last;  // that was not followed by another try

}  // namespace

void note() {
  last = {true, allocated_since_gc()};
  if (!first.happened) first = last;
}

bool waits() { return last.happened && last.allocated_since() < due_after() / kRetryShare; }

void forget_last() { last = {}; }
void forget_all() { first = last = {}; }

int (*stop_function())() {
  const std::size_t most = base::max_of(kMostRefused * due_after(), kLeastOverdue);
  const bool is_overdue = first.happened && first.allocated_since() > most;
  return is_overdue ? nullptr : settings.stop_function;
}

}  // namespace jd::cycle::refusal
