#include "mark/team.hpp"

#include "base/bits.hpp"
#include "heap/space.hpp"
#include "mark/marker.hpp"
#include "os/context.hpp"
#include "os/log.hpp"
#include "os/signals.hpp"
#include "os/thread.hpp"

namespace jd::mark {
namespace {

using os::LockGuard;

// Client's mark procedures run on these stacks, too.
constexpr std::size_t kHelperStack = base::kMiB;

Marker helper_markers[Team::kMostMarkers];
Marker guest_markers[Team::kMostMarkers];

}  // namespace

constinit Team team;
Team::TheExchange::Packet Team::packets[kMostMarkers];

bool Team::mark(Marker* first) {
  const unsigned guests = guests_at_hand();
  if (!no_more_.load(std::memory_order_relaxed) &&
      this->helpers() + guests + 1 < settings_.markers) {
    wants_more_ = true;
    want_more_if_worth_it();
  }
  const unsigned helpers = base::min_of(this->helpers(), settings_.markers - 1 - guests);
  if (helpers + guests == 0) return false;
  if (alone_) {
    had_choice_ = true;
    return false;
  }
  if (!first->prepare_own_marks()) return false;
  const auto for_each_other = [=](auto visit) {
    for (unsigned i = 0; i < helpers; ++i) visit(&helper_markers[i]);
    for (unsigned i = 0; i < guests; ++i) visit(&guest_markers[i]);
  };
  bool prepared = true;
  for_each_other([&](Marker* other) {
    prepared &= other->prepare_own_marks();
    other->set_strategy(first->strategy());
  });
  if (!prepared) return false;
  had_choice_ = true;
  exchange_.lead(
      helpers, guests,
      [=](const Entry* entries, unsigned count) { first->receive(entries, count); },
      [=] { first->run_in_team(); },
      [=, this] {
        if (guests != 0) pool_.wake(guests);
      });
  const bool some_are_lost = some_are_lost_;
  some_are_lost_ = false;
  if (some_are_lost) for_each_other([](Marker* other) { other->forget_queued(); });
  for_each_other([=](Marker* other) { first->adopt_overflow(other); });
  first->merge_own_marks();
  for_each_other([](Marker* other) { other->merge_own_marks(); });
  if (some_are_lost) first->abandon();
  return true;
}

void Team::note_collection(std::size_t objects, std::size_t bytes, std::uint64_t ns) {
  had_few_ = objects < kFew && bytes < kFewBytes;
  if (!wants_more_) return;
  wants_more_ = false;
  wanting_ns_ += ns;
  want_more_if_worth_it();
}

void Team::want_more_if_worth_it() {
  if (wanting_ns_ >= settings_.worth_threads) demand_.store(true, std::memory_order_relaxed);
}

void Team::prepare_guests(const Pool& pool, unsigned count) {
  pool_ = pool;
  count = base::min_of(count, settings_.markers - 1);
  while (guests_ < count && guest_markers[guests_].initialise_as_helper(settings_.stack_entries)) {
    ++guests_;
  }
}

void Team::help_as_guest() {
  // As in a thread that is stopped: no handler of the client's writes to the heap meanwhile.
  const os::SignalsBlocked blocked;
  exchange_.help_as_guest([](unsigned number, const Entry* entries,
                             unsigned count) { guest_markers[number].receive(entries, count); },
                          [](unsigned number) { guest_markers[number].run_in_team(); });
  os::clear_vector_registers();
}

void Team::discard_tables() const {
  for (unsigned i = 0; i < helpers(); ++i) helper_markers[i].discard_tables();
  for (unsigned i = 0; i < guests_; ++i) guest_markers[i].discard_tables();
}

void* Team::run_helper(void* self) {
  auto* marker = static_cast<Marker*>(self);
  team.exchange_.help(
      static_cast<unsigned>(marker - helper_markers),
      [=](const Entry* entries, unsigned count) { marker->receive(entries, count); },
      [=] { marker->run_in_team(); });
}

void Team::publish(unsigned helpers) {
  if (settings_.published == nullptr) return;
  __atomic_store_n(settings_.published, static_cast<int>(helpers), __ATOMIC_RELAXED);
}

unsigned Team::start_helpers() {
  // Making a thread may allocate, and so lead here again.
  if (starting_.exchange(true, std::memory_order_acquire))
    return helpers_.load(std::memory_order_relaxed);
  unsigned helpers = helpers_.load(std::memory_order_relaxed);
  while (helpers + 1 < settings_.markers) {
    Marker* marker = &helper_markers[helpers];
    bool ready = false;
    {
      // Under the lock nobody is stopped, and nobody forks, while holding a lock of os's.
      LockGuard guard(heap::heap_lock);
      ready = marker->initialise_as_helper(settings_.stack_entries);
    }
    if (!ready || !os::start_thread(run_helper, marker, kHelperStack, "gc-marker")) {
      // As many as there are will do.
      no_more_.store(true, std::memory_order_relaxed);
      break;
    }
    ++helpers;
    helpers_.store(helpers, std::memory_order_relaxed);
  }
  publish(helpers);
  demand_.store(false, std::memory_order_relaxed);
  starting_.store(false, std::memory_order_release);
  return helpers;
}

void Team::forget_helpers_in_child() {
  // It stays so in that child's children, until the phase ends.
  if (exchange_.forget_helpers_in_child()) some_are_lost_ = true;
  helpers_.store(0, std::memory_order_relaxed);
  no_more_.store(false, std::memory_order_relaxed);
  wants_more_ = false;
  wanting_ns_ = 0;
  publish(0);
  demand_.store(false, std::memory_order_relaxed);
  starting_.store(false, std::memory_order_relaxed);
}

}  // namespace jd::mark
