#include "mark/team.hpp"

#include "base/bits.hpp"
#include "base/sharing.hpp"
#include "heap/space.hpp"
#include "heap/walk.hpp"
#include "mark/marker.hpp"
#include "os/cpu.hpp"
#include "os/futex.hpp"
#include "os/thread.hpp"

namespace jd::mark {
namespace {

using os::LockGuard;

// Looks for a packet before an idle marker goes to sleep: some tens of microseconds, about what
// sleeping and being woken costs. With one processor there is nobody to wait for.
constexpr unsigned kSpins = 500;

// Client's mark procedures run on these stacks, too.
constexpr std::size_t kHelperStack = base::kMiB;

Marker helper_markers[Team::kMostMarkers];

}  // namespace

constinit Team team;
Team::Packet Team::offered[kMostMarkers];

void Team::update_hungry() {
  const unsigned absent = invited_ + 1 - members_;
  hungry_.store(static_cast<int>(absent + idle_) -
                    static_cast<int>(packet_count_.load(std::memory_order_relaxed)),
                std::memory_order_relaxed);
}

bool Team::mark(Marker* first) {
  const unsigned helpers = helpers_.load(std::memory_order_relaxed);
  if (helpers == 0 || !first->prepare_own_marks()) return false;
  for (unsigned i = 0; i < helpers; ++i) {
    if (!helper_markers[i].prepare_own_marks()) return false;
    helper_markers[i].set_strategy(first->strategy());
  }
  std::uint32_t phase = 0;
  {
    LockGuard guard(lock_);
    invited_ = helpers;
    members_ = 1;
    idle_ = 0;
    packet_count_.store(0, std::memory_order_relaxed);
    phase = phase_.load(std::memory_order_relaxed) + 1;
    phase_.store(phase, std::memory_order_release);
    open_.store(true, std::memory_order_relaxed);
    update_hungry();
  }
  os::futex_wake(&phase_, os::kAllWaiters);
  do {
    first->run_in_team();
  } while (find_work(first, phase));
  // Nobody works any more, and the lock was taken since: what the helpers wrote can be read.
  for (unsigned i = 0; i < helpers; ++i) first->adopt_overflow(&helper_markers[i]);
  heap::for_each_block([=](heap::BlockNumber number, heap::Block& block) {
    if (block.state == heap::BlockState::Free) return;
    first->merge_own_marks(number, &block);
    for (unsigned i = 0; i < helpers; ++i) helper_markers[i].merge_own_marks(number, &block);
  });
  return true;
}

bool Team::join(const Marker* marker, std::uint32_t phase) {
  LockGuard guard(lock_);
  if (!open_.load(std::memory_order_relaxed) || phase_.load(std::memory_order_relaxed) != phase) {
    return false;
  }
  // A helper that was made meanwhile is not prepared for this phase.
  if (marker >= helper_markers + invited_) return false;
  ++members_;
  update_hungry();
  return true;
}

bool Team::take_packet(Marker* marker) {
  const unsigned count = packet_count_.load(std::memory_order_relaxed);
  if (count == 0) return false;
  const Packet& packet = offered[count - 1];
  marker->receive(packet.entries, packet.count);
  packet_count_.store(count - 1, std::memory_order_relaxed);
  ++counts_.packets;
  update_hungry();
  return true;
}

bool Team::give(const Range* entries, unsigned count) {
  bool wake = false;
  {
    LockGuard guard(lock_);
    const unsigned packets = packet_count_.load(std::memory_order_relaxed);
    if (packets == kMostMarkers) return false;
    offered[packets].count = count;
    base::copy_bytes(offered[packets].entries, entries, count * sizeof(Range));
    packet_count_.store(packets + 1, std::memory_order_relaxed);
    base::note_atomic(&change_);
    change_.fetch_add(1);
    wake = sleepers_.load() != 0;
    update_hungry();
  }
  if (wake) os::futex_wake(&change_, 1);
  return true;
}

// True when the marker has entries again; false when the phase has ended.
bool Team::find_work(Marker* marker, std::uint32_t phase) {
  {
    LockGuard guard(lock_);
    if (take_packet(marker)) return true;
    ++idle_;
    ++counts_.waits;
    if (idle_ == members_) {
      open_.store(false, std::memory_order_relaxed);
      hungry_.store(0, std::memory_order_relaxed);
      base::note_atomic(&change_);
      change_.fetch_add(1);
    } else {
      update_hungry();
    }
  }
  const unsigned spins = os::cpu_count() > 1 ? kSpins : 0;
  for (unsigned tries = 0;; ++tries) {
    const std::uint32_t seen = change_.load();
    if (packet_count_.load(std::memory_order_relaxed) != 0 ||
        !open_.load(std::memory_order_relaxed) || phase_.load(std::memory_order_relaxed) != phase) {
      LockGuard guard(lock_);
      if (!open_.load(std::memory_order_relaxed) ||
          phase_.load(std::memory_order_relaxed) != phase) {
        break;
      }
      if (packet_count_.load(std::memory_order_relaxed) != 0) {
        --idle_;
        return take_packet(marker);
      }
    }
    if (tries < spins) {
      os::cpu_relax();
      continue;
    }
    base::note_atomic(&sleepers_);
    sleepers_.fetch_add(1);
    os::futex_wait(&change_, seen);
    base::note_atomic(&sleepers_);
    sleepers_.fetch_sub(1);
  }
  if (sleepers_.load() != 0) os::futex_wake(&change_, os::kAllWaiters);
  return false;
}

void* Team::run_helper(void* self) {
  auto* marker = static_cast<Marker*>(self);
  for (;;) {
    const std::uint32_t phase = team.phase_.load(std::memory_order_acquire);
    if (team.join(marker, phase)) {
      while (team.find_work(marker, phase)) marker->run_in_team();
    }
    while (team.phase_.load(std::memory_order_acquire) == phase) {
      os::futex_wait(&team.phase_, phase);
    }
  }
}

void Team::publish(unsigned helpers) {
  if (settings_.published == nullptr) return;
  __atomic_store_n(settings_.published, static_cast<int>(helpers), __ATOMIC_RELAXED);
}

unsigned Team::start_helpers() {
  // Making a thread may allocate, and so lead here again.
  if (starting_.exchange(true)) return helpers_.load(std::memory_order_relaxed);
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
      no_more_.store(true);
      break;
    }
    ++helpers;
    LockGuard guard(lock_);
    helpers_.store(helpers, std::memory_order_relaxed);
  }
  publish(helpers);
  demand_.store(false, std::memory_order_relaxed);
  starting_.store(false, std::memory_order_release);
  return helpers;
}

void Team::forget_helpers_in_child() {
  lock_.reset_in_child();
  helpers_.store(0, std::memory_order_relaxed);
  publish(0);
  sleepers_.store(0, std::memory_order_relaxed);
  open_.store(false, std::memory_order_relaxed);
  demand_.store(false, std::memory_order_relaxed);
  starting_.store(false, std::memory_order_relaxed);
}

Team::Counts Team::counts() {
  LockGuard guard(lock_);
  return counts_;
}

}  // namespace jd::mark
