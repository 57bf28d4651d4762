#include "cycle/pause.hpp"

#include "cycle/measured.hpp"
#include "cycle/pacing.hpp"
#include "cycle/settings.hpp"
#include "os/cpu.hpp"
#include "os/log.hpp"
#include "os/thread.hpp"
#include "world/fork.hpp"
#include "world/mappings.hpp"
#include "world/roots.hpp"
#include "world/stop.hpp"

namespace jd::cycle {
namespace {

// Stops the world at a moment at which the known libraries are the loaded ones. A thread stopped
// in the middle of dlopen is let go again; if that goes on and on, what is known has to do.
// RootsUnknown if there was no memory to know them (cycle.req.roots), or for what *why_unknown
// says. Done: so far.
Outcome stop_at_known_libraries(const char** why_unknown) {
  constexpr int kTries = 20;
  bool known = true;
  for (int attempt = 1;; ++attempt) {
    if (!world::try_to_stop_world()) return Outcome::NotStopped;
    if (world::using_mappings()) {
      *why_unknown = world::read_mappings();
      known = *why_unknown == nullptr;
    }
    if (!known) return Outcome::RootsUnknown;
    if (world::using_mappings() || !world::static_roots_are_stale() || attempt == kTries) {
      return Outcome::Done;
    }
    world::resume_world();
    os::sleep_ns(static_cast<std::uint64_t>(attempt) * 50000);
    known = world::update_static_roots();
  }
}

void note_pause(std::uint64_t begin, std::uint64_t stopped, std::uint64_t end) {
  measured.stop_last = stopped - begin;
  measured.stop_total += stopped - begin;
  measured.stop_longest = base::max_of(measured.stop_longest, stopped - begin);
  measured.pause_last = end - begin;
  measured.pause_total += end - begin;
  measured.pause_longest = base::max_of(measured.pause_longest, end - begin);
}

// `why` counts where roots are read off the mappings.
void complain_about_roots(const char* why, const char* consequence) {
  if (!world::using_mappings()) {
    os::warn("no memory for the table of static roots; ", consequence);
    return;
  }
  // Once: it may be so at every collection from now on.
  static bool said = false;
  if (said) return;
  said = true;
  os::warn(why, ", so the roots are not known; ", consequence);
}

}  // namespace

namespace {
int collecting_depth = 0;  // under the heap's lock
}  // namespace

MeasuredCollecting::MeasuredCollecting() : began_(os::now_ns()) { ++collecting_depth; }
MeasuredCollecting::~MeasuredCollecting() {
  if (--collecting_depth == 0) measured.collecting_total += os::now_ns() - began_;
}

void tell(GC_EventType event) {
  if (settings.on_collection_event != nullptr) settings.on_collection_event(event);
}

void tell_threads(GC_EventType event) {
  if (settings.on_thread_event == nullptr) return;
  world::for_each_thread([event](world::Thread* thread) {
    if (thread != world::self() && thread->signalled) {
      settings.on_thread_event(event, reinterpret_cast<void*>(thread->handle));
    }
  });
}

bool may_look_for_roots() {
  // It is its parent's turn, once it has executed another program.
  if (settings.serves_malloc && world::is_borrowed_process()) return false;
  if (world::update_static_roots()) return true;
  complain_about_roots(world::kNoList, "not collecting");
  return false;
}

void Pause::begin(At at) {
  tell(GC_EVENT_PRE_STOP_WORLD);
  began_ = os::now_ns();
  committed_ = heap::space.committed;
  if (at == At::KnownLibraries) {
    outcome_ = stop_at_known_libraries(&why_unknown_);
  } else {
    outcome_ = world::try_to_stop_world() ? Outcome::Done : Outcome::NotStopped;
  }
  // Callbacks hear of a stop all the same, and of its end: some take a lock at the one event and
  // let it go at the other.
  if (stands() && settings.may_collect != nullptr && !settings.may_collect()) {
    outcome_ = Outcome::Abandoned;
  }
  stopped_ = os::now_ns();
  tell_threads(GC_EVENT_THREAD_SUSPENDED);
  tell(GC_EVENT_POST_STOP_WORLD);
}

void Pause::end() {
  tell(GC_EVENT_PRE_START_WORLD);
  tell_threads(GC_EVENT_THREAD_UNSUSPENDED);
  world::resume_world();
  note_pause(began_, stopped_, os::now_ns());
  tell(GC_EVENT_POST_START_WORLD);
  if (heap::space.committed > committed_) tell_of_growth(heap::space.committed - committed_);
}

void Pause::complain() const {
  if (outcome_ == Outcome::RootsUnknown)
    complain_about_roots(why_unknown_, "nothing was reclaimed");
}

}  // namespace jd::cycle
