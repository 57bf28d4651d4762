#include "cycle/pause.hpp"

#include "cycle/growth.hpp"
#include "cycle/measured.hpp"
#include "cycle/settings.hpp"
#include "os/cpu.hpp"
#include "os/log.hpp"
#include "world/fork.hpp"
#include "world/mappings.hpp"
#include "world/roots.hpp"
#include "world/stop.hpp"

namespace jd::cycle {
namespace {

constexpr const char* kNoTable = "no memory for the table of static roots";

// Stops the world at a moment at which the known libraries are the loaded ones. A thread stopped
// in the middle of dlopen is let go again; if that goes on and on, what is known has to do. False
// if the world does not stand. Sets *why_unknown where the roots are not known (cycle.req.roots).
bool stop_at_known_libraries(const char** why_unknown) {
  constexpr int kTries = 20;
  for (int attempt = 1;; ++attempt) {
    if (!world::try_to_stop_world()) return false;
    if (world::using_mappings()) {
      *why_unknown = world::read_mappings();
      return true;
    }
    if (*why_unknown != nullptr || !world::static_roots_are_stale() || attempt == kTries) {
      return true;
    }
    world::resume_world();
    os::sleep_ns(static_cast<std::uint64_t>(attempt) * 50000);
    if (!world::update_static_roots()) *why_unknown = kNoTable;
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

void complain_about_roots(const char* why, const char* consequence) {
  if (!world::using_mappings()) return os::warn(why, "; ", consequence);
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

bool is_in_own_process() {
  if (!settings.serves_malloc) return true;
  world::adopt_process();
  return !world::is_borrowed_process();
}

bool may_look_for_roots() {
  if (!is_in_own_process()) return false;
  if (world::update_static_roots()) return true;
  if (world::using_mappings()) {
    complain_about_roots(world::kNoList,
                         "not collecting while that is so (is a file left to open?)");
  } else {
    complain_about_roots(kNoTable, "not collecting");
  }
  return false;
}

void Pause::begin(At at) {
  tell(GC_EVENT_PRE_STOP_WORLD);
  began_ = os::now_ns();
  committed_ = heap::space.committed;
  stands_ = at == At::KnownLibraries ? stop_at_known_libraries(&why_unknown_)
                                     : world::try_to_stop_world();
  // Where it is not wanted, callbacks hear of a stop all the same, and of its end: some take a lock
  // at the one event and let it go at the other.
  wanted_ = stands_ && (settings.may_collect == nullptr || settings.may_collect());
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
  if (wanted_ && !roots_are_known()) complain_about_roots(why_unknown_, "nothing was reclaimed");
}

}  // namespace jd::cycle
