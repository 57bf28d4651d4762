#include "cycle/incremental.hpp"

#include "alloc/pacer.hpp"
#include "alloc/totals.hpp"
#include "cycle/collect.hpp"
#include "cycle/due.hpp"
#include "cycle/marking.hpp"
#include "cycle/measured.hpp"
#include "cycle/pacing.hpp"
#include "cycle/partial.hpp"
#include "cycle/pause.hpp"
#include "cycle/refusal.hpp"
#include "cycle/settings.hpp"
#include "heap/snapshot.hpp"
#include "mark/concurrent.hpp"
#include "mark/marker.hpp"
#include "os/context.hpp"
#include "os/cpu.hpp"
#include "world/fork.hpp"

namespace jd::cycle::incremental {
namespace {

using mark::marker;

// Marking is to be done when a part of what makes a collection due was allocated since it began,
// but no less than kLeastMeanwhile. Between two steps the program runs for as long as one takes, or
// for that part of it when marking is late. Guesses.
constexpr std::uint64_t kLateShare = 2;
constexpr std::size_t kShareMeanwhile = 2;
constexpr std::size_t kLeastMeanwhile = base::kMiB;
// When so many times as much was allocated, a step comes whenever blocks are taken from the heap;
// and then whoever takes them does all steps that are left, one after another: they are too short
// for what the program allocates.
constexpr std::size_t kMuchMeanwhile = 2;
constexpr std::size_t kMostMeanwhile = 3;

// A pause that has not ended at the limit is tried again when all it has queued is marked, while
// that took no more than this part of what it took the time before, but no more often than that:
// where a program writes faster than steps can mark, the last pause has no limit. Guesses.
constexpr double kLessPerTry = 0.75;
constexpr unsigned kMostTries = 16;

// In a pause that may be the last, time is left of the limit for the sweep, or for going on in
// steps instead; but no more than this part of it, or nothing would be marked in large heaps.
constexpr std::uint64_t kMostForTables = 2;
// And this part of it is for marking in any case, even if the heap's tables have taken all of it: a
// pause that marks nothing is never the last.
constexpr std::uint64_t kLeastMarkingShare = 4;

enum class State {
  Idle,
  Marking,  // something is queued
  Marked    // nothing was, at the end of the last step
};

// All that follows is under the heap's lock.
State state = State::Idle;
Begun begun = Begun::NotAtAll;
Steps steps;
std::uint64_t expected_ns = 0;

// What the program allocates while a collection is under way.
struct Meanwhile {
  std::size_t before = 0;      // was allocated when it began
  std::size_t planned = 0;     // by the end of marking
  std::size_t in_earlier = 0;  // during the steps of the collection before

  [[nodiscard]] std::size_t allocated() const {
    const std::size_t now = alloc::totals_unsynchronised().allocated_since_gc;
    return now - base::min_of(now, before);
  }
};
Meanwhile meanwhile;

struct LastStep {
  std::uint64_t ended = 0;
  std::uint64_t took = 0;
};
LastStep last_step;

// The pause that is to end within the limit.
struct LimitedPause {
  std::uint64_t stood = 0;     // when the world did; 0: there is no such pause
  std::uint64_t deadline = 0;  // of its marking
};
LimitedPause limited_pause;
// How long the last such pause took to prepare for more steps.
std::uint64_t to_go_on_ns = 0;

// Such pauses of a collection that went on; and for how long it had marked by the end of the
// latest, and between that and the one before.
struct Tries {
  unsigned count = 0;
  std::uint64_t marked_by_then = 0;
  std::uint64_t marked_between = 0;

  // The collection had marked for so long when the pause began, and when it ended.
  void note(std::uint64_t at_begin, std::uint64_t at_end) {
    ++count;
    marked_between = at_begin - marked_by_then;
    marked_by_then = at_end;
  }
};
Tries tries;

// How long a collection marked, and how much it was for: what was alive, or new.
struct Cost {
  std::uint64_t ns = 0;
  std::size_t bytes = 1;

  [[nodiscard]] std::uint64_t for_bytes(std::size_t now) const {
    return static_cast<std::uint64_t>(static_cast<double>(ns) * static_cast<double>(now) /
                                      static_cast<double>(bytes));
  }
};
// Of the last full collection, and of the last partial one.
Cost full_cost;
Cost partial_cost;

constexpr std::uint64_t kNsOfMs = 1000000;

bool has_limit() { return GC_time_limit < GC_TIME_UNLIMITED; }
std::uint64_t limit_ns() { return GC_time_limit * kNsOfMs + settings.time_limit_ns; }

std::uint64_t expected_to_take() {
  const std::size_t allocated = alloc::totals_unsynchronised().allocated_since_gc;
  if (partial::is_possible()) return partial_cost.for_bytes(allocated);
  return full_cost.for_bytes(measured.live_bytes + allocated);
}

void set_state(State now) {
  state = now;
  note_whether_collection_waits();
}

Progress refuse() {
  refusal::note();
  return Progress::None;
}

// The one that is under way has had its first pause.
void begin_steps() {
  meanwhile.before = alloc::totals_unsynchronised().allocated_since_gc;
  meanwhile.planned = base::max_of(due_after() / kShareMeanwhile, kLeastMeanwhile);
  tries = {};
}

void note_step(std::uint64_t began) {
  const std::uint64_t took = os::now_ns() - began;
  steps.mark_ns += took;
  measured.mark_total += took;
  ++steps.count;
  last_step = {began + took, took};
}

// The next pause that may be the last.
bool is_to_have_limit() {
  if (tries.count <= 1) return true;
  const auto between = static_cast<double>(steps.mark_ns - tries.marked_by_then);
  return tries.count < kMostTries &&
         between <= kLessPerTry * static_cast<double>(tries.marked_between);
}

Progress end_or_go_on(Extent extent) {
  limited_pause = {};
  const Outcome outcome = collect_locked(refusal::stop_function(), extent);
  limited_pause = {};
  marker.set_deadline(0);
  if (outcome == Outcome::Done) return Progress::End;
  if (outcome != Outcome::GoesOn) return refuse();
  mark::concurrent.wake();
  return Progress::Step;
}

// How long a partial one takes depends on what has changed, which nobody knows beforehand.
Progress begin_or_end() {
  const bool has_limit_now = is_under_way()
                                 ? is_to_have_limit()
                                 : is_wanted() || (may_be_wanted() && partial::is_possible());
  return end_or_go_on(has_limit_now ? Extent::AsDueWithinLimit : Extent::AsDue);
}

void mark_stopped(const Pause& pause) {
  marker.take_put_aside();
  if (heap::take_freed_in_steps()) marker.forget_queued_that_are_gone();
  if (marker.run_until(pause.began() + limit_ns())) set_state(State::Marked);
  note_step(pause.stood());
  if (marker.has_overflowed()) abandon();
}

Progress mark_some() {
  const MeasuredCollecting collecting;
  Pause pause;
  pause.begin(Pause::At::AnyTime);
  if (pause.is_wanted()) mark_stopped(pause);
  pause.end();
  os::clear_vector_registers();
  if (!pause.is_wanted()) return refuse();
  if (state == State::Marking) mark::concurrent.wake();
  // It was abandoned, for what would come again.
  return state == State::Idle ? end_or_go_on(Extent::AsDue) : Progress::Step;
}

bool is_allowed() {
  int (*const stop_function)() = refusal::stop_function();
  if (stop_function != nullptr && stop_function() != 0) return false;
  return settings.may_begin == nullptr || settings.may_begin();
}

}  // namespace

bool is_under_way() { return state != State::Idle; }

bool may_be_wanted() { return has_limit() && partial::may_watch(); }

bool is_wanted() { return may_be_wanted() && expected_to_take() >= limit_ns() / 2; }

bool begins_early() { return may_be_wanted() && expected_to_take() >= limit_ns(); }

bool is_behind() {
  if (refusal::waits()) return false;
  if (state == State::Idle) return true;
  const std::size_t allocated = meanwhile.allocated();
  if (allocated > kMuchMeanwhile * meanwhile.planned) return true;
  const bool is_late = state == State::Marked || allocated > meanwhile.planned;
  const std::uint64_t pause = is_late ? last_step.took / kLateShare : last_step.took;
  if (os::now_ns() - last_step.ended < pause) return false;
  if (is_late) return true;
  const double share = static_cast<double>(allocated) / static_cast<double>(meanwhile.planned);
  return static_cast<double>(steps.mark_ns) < share * static_cast<double>(expected_ns);
}

// A refused step ends it: the lock is held, so that nothing changes until the caller goes on.
void catch_up() {
  const auto is_far_behind = [] {
    return is_under_way() && meanwhile.allocated() > kMostMeanwhile * meanwhile.planned;
  };
  while (is_behind() && step() == Progress::Step && is_far_behind()) {
  }
}

Progress step() {
  // As collect_locked does, before anything is abandoned: in a child of vfork it is the parent's.
  if (!is_in_own_process()) return Progress::None;
  refusal::forget_last();
  if (is_under_way() && !partial::may_watch()) abandon();
  if (state != State::Marking) return begin_or_end();
  return is_allowed() ? mark_some() : refuse();
}

void begin_limited_pause(const Pause& pause) {
  limited_pause.stood = pause.stood();
  if (!is_under_way()) expected_ns = expected_to_take();
  const std::uint64_t for_tables = base::max_of(to_go_on_ns, measured.sweep_last);
  limited_pause.deadline =
      pause.began() + limit_ns() - base::min_of(for_tables, limit_ns() / kMostForTables);
  marker.set_deadline(limited_pause.deadline);
}

void note_queued() {
  if (limited_pause.stood == 0) return;
  marker.set_deadline(
      base::max_of(limited_pause.deadline, os::now_ns() + limit_ns() / kLeastMarkingShare));
}

bool mark_beside(bool leaves) {
  if (state != State::Marking || GC_dont_gc != 0 || !partial::may_watch()) return false;
  const std::uint64_t began = os::now_ns();
  const bool more = marker.run_beside(leaves);
  const std::uint64_t took = os::now_ns() - began;
  steps.mark_ns += took;
  steps.beside_ns += took;
  measured.mark_total += took;
  if (!marker.has_queued() && !marker.has_overflowed()) set_state(State::Marked);
  return more;
}

Begun end() {
  if (!is_under_way()) {
    steps = {};
    return Begun::NotAtAll;
  }
  marker.take_put_aside();
  if (heap::take_freed_in_steps()) marker.forget_queued_that_are_gone();
  heap::end_marking_in_steps();
  meanwhile.in_earlier = meanwhile.allocated();
  set_state(State::Idle);
  return begun;
}

bool goes_on(Begun now) {
  marker.set_deadline(0);
  if (limited_pause.stood == 0 || !marker.has_queued() || marker.has_overflowed()) return false;
  const std::uint64_t began = os::now_ns();
  if (!heap::begin_marking_in_steps()) return false;
  if (!partial::watch_in_use()) {
    heap::end_marking_in_steps();
    return false;
  }
  partial::forget_marks();
  begun = now;
  if (steps.count == 0) begin_steps();
  const std::uint64_t marked_before = steps.mark_ns;
  note_step(limited_pause.stood);
  tries.note(marked_before, steps.mark_ns);
  to_go_on_ns = os::now_ns() - began;
  set_state(State::Marking);
  return true;
}

std::size_t allocated_in_last() { return meanwhile.in_earlier; }

void abandon() {
  steps = {};
  if (!is_under_way()) return;
  marker.forget_queued();
  heap::end_marking_in_steps();
  partial::forget_marks();
  set_state(State::Idle);
}

void note(bool was_partial, std::uint64_t mark_ns, std::size_t live_bytes) {
  if (was_partial) {
    partial_cost = {mark_ns, base::max_of(alloc::totals().allocated_since_gc, std::size_t{1})};
  } else {
    full_cost = {mark_ns, base::max_of(live_bytes, std::size_t{1})};
  }
}

Steps last_steps() { return steps; }

}  // namespace jd::cycle::incremental
