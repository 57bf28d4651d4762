#include "cycle/incremental.hpp"

#include "alloc/collecting.hpp"
#include "alloc/pacer.hpp"
#include "alloc/totals.hpp"
#include "cycle/collect.hpp"
#include "cycle/marking.hpp"
#include "cycle/measured.hpp"
#include "cycle/pacing.hpp"
#include "cycle/partial.hpp"
#include "cycle/pause.hpp"
#include "cycle/settings.hpp"
#include "cycle/verify.hpp"
#include "heap/snapshot.hpp"
#include "heap/sweep.hpp"
#include "mark/marker.hpp"
#include "mark/team.hpp"
#include "os/context.hpp"
#include "os/cpu.hpp"
#include "world/fork.hpp"

namespace jd::cycle::incremental {
namespace {

using mark::marker;

// What lies on pages that were written is looked at once more between steps, since it would be in
// the last pause otherwise: while it is as much as that, 2 MiB, and at most three quarters of what
// it was the last time, for a program may write more than steps can look at. Guesses.
constexpr std::size_t kManyPages = 512;
bool is_much_less(std::size_t pages, std::size_t before) { return pages <= before / 4 * 3; }

// Marking is to be done when a part of what makes a collection due was allocated since it began,
// but no less than kLeastMeanwhile. Between two steps the program runs for as long as one takes, or
// for that part of it when marking is late. Guesses.
constexpr std::uint64_t kLateShare = 2;
constexpr std::size_t kShareMeanwhile = 2;
constexpr std::size_t kLeastMeanwhile = base::kMiB;
// When so many times as much was allocated, the rest is done at once: steps are too short for what
// the program allocates.
constexpr std::size_t kMostMeanwhile = 3;

enum class State {
  Idle,
  Marking,  // something is queued
  Looking,  // nothing was: what has changed?
  Marked    // all but that
};

// All under the heap's lock.
State state = State::Idle;
Begun begun = Begun::NotAtAll;
std::size_t changed_pages = 0;  // by the last look
Steps steps;
std::size_t allocated_before = 0;
std::size_t meanwhile = 0;
std::uint64_t expected_ns = 0;
std::uint64_t last_step_ended = 0;
std::uint64_t last_step_took = 0;

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

std::size_t allocated_since(std::size_t before) {
  const std::size_t allocated = alloc::totals_unsynchronised().allocated_since_gc;
  return allocated - base::min_of(allocated, before);
}
std::size_t allocated_meanwhile() { return allocated_since(allocated_before); }

void set_state(State now) {
  state = now;
  note_whether_collection_waits();
}

// Nothing came of a step: the next try comes when as much more was allocated as it was to take.
bool was_refused = false;
std::size_t allocated_when_refused = 0;
Progress refuse() {
  was_refused = true;
  allocated_when_refused = alloc::totals_unsynchronised().allocated_since_gc;
  return Progress::None;
}

// The time of a step, from when the world stopped.
class Timed {
 public:
  Timed() : began_(os::now_ns()) {}
  ~Timed() {
    const std::uint64_t took = os::now_ns() - began_;
    steps.mark_ns += took;
    measured.mark_total += took;
    ++steps.count;
    last_step_ended = began_ + took;
    last_step_took = took;
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  std::uint64_t began_;
};

Progress finish() {
  const bool done = collect_locked(settings.stop_function, Extent::AsDue);
  return done ? Progress::End : refuse();
}

// Slots that threads have for their next objects.
void hide_free() {
  if (options.verify != 0) verify_magazines();
  alloc::hide_magazines();
  alloc::hide_holes();
}
void show_free() {
  alloc::show_holes();
  alloc::show_magazines();
}

// False if it can't be done in steps. (Where not all roots are known, they are looked at all the
// same: the program's function may let go of what the start callback took.)
bool begin_stopped(char* stack_top, const Pause& pause) {
  const Timed timed;
  alloc::settle_totals();
  hide_free();
  if (options.verify != 0) verify_structures();
  choose_how_to_mark(Marking::PartialOrInSteps);
  marker.set_deadline(pause.began() + limit_ns());
  bool keeps = partial::is_possible();
  if (keeps) {
    partial::keep_marks(true);
    keeps = partial::queue_changed();
  } else {
    heap::clear_marks();
  }
  const bool noted = heap::begin_marking_in_steps();
  queue_roots(stack_top);
  show_free();
  begun = keeps ? Begun::Partial : Begun::Full;
  partial::forget_marks();
  set_state(State::Marking);
  const bool goes_on = noted && pause.outcome() == Outcome::Done && !marker.has_overflowed() &&
                       partial::watch_in_use();
  if (!goes_on) abandon();
  return goes_on;
}

struct Beginning {
  Outcome outcome = Outcome::NotBegun;
  bool goes_on = false;
};
void begin_with_stack(void* data, char* stack_top) {
  auto* const beginning = static_cast<Beginning*>(data);
  if (!may_look_for_roots()) return;
  if (settings.start_callback != nullptr) settings.start_callback();
  Pause pause;
  pause.begin(Pause::At::KnownLibraries);
  beginning->outcome = pause.outcome();
  if (pause.outcome() == Outcome::Done || pause.outcome() == Outcome::RootsUnknown) {
    beginning->goes_on = begin_stopped(stack_top, pause);
  }
  pause.end();
  pause.complain();
}

Progress begin() {
  const MeasuredCollecting collecting;
  steps = {};
  changed_pages = SIZE_MAX;
  expected_ns = expected_to_take();
  Beginning beginning;
  os::call_with_registers_on_stack(begin_with_stack, &beginning);
  os::clear_vector_registers();
  allocated_before = alloc::totals().allocated_since_gc;
  meanwhile = base::max_of(due_after() / kShareMeanwhile, kLeastMeanwhile);
  if (beginning.goes_on) return Progress::Step;
  // Memory was missing, or a file, and a whole collection does without; or it would meet with the
  // same.
  return beginning.outcome == Outcome::Done ? finish() : refuse();
}

// Queues what has changed since the last look, if that is worth while. False if it is not known.
bool look() {
  const mark::Changed changed = partial::count_changed_in_steps();
  if (!changed.known) return false;
  const std::size_t many = mark::team.is_stress() ? 1 : kManyPages;
  if (changed.pages < many || !is_much_less(changed.pages, changed_pages)) {
    set_state(State::Marked);
    return true;
  }
  changed_pages = changed.pages;
  set_state(State::Marking);
  // What is new is marked by what is scanned from now on, and not only at the end: the pages that
  // hold it pass for unwritten now.
  hide_free();
  const bool renewed = heap::renew_snapshot();
  show_free();
  return renewed && partial::queue_changed_in_steps() && partial::watch_in_use();
}

void mark_stopped(std::uint64_t end) {
  const Timed timed;
  if (heap::take_freed_in_steps()) marker.forget_queued_that_are_gone();
  if (state == State::Looking && !look()) return abandon();
  if (state == State::Marking && marker.run_until(end)) {
    set_state(State::Looking);
  }
  if (marker.has_overflowed()) abandon();
}

Progress mark_some() {
  const MeasuredCollecting collecting;
  Pause pause;
  pause.begin(Pause::At::AnyTime);
  const bool stands = pause.outcome() == Outcome::Done;
  if (stands) mark_stopped(pause.began() + limit_ns());
  pause.end();
  os::clear_vector_registers();
  if (!stands) return refuse();
  // It was abandoned, for what would come again.
  return state == State::Idle ? finish() : Progress::Step;
}

bool is_allowed() {
  if (settings.stop_function != nullptr && settings.stop_function() != 0) return false;
  return settings.may_begin == nullptr || settings.may_begin();
}

}  // namespace

bool is_under_way() { return state != State::Idle; }

bool may_be_wanted() { return has_limit() && partial::may_watch(); }

bool is_wanted() { return may_be_wanted() && expected_to_take() >= limit_ns() / 2; }

bool is_behind() {
  const std::size_t wait = base::max_of(meanwhile, kLeastMeanwhile);
  if (was_refused && allocated_since(allocated_when_refused) < wait) return false;
  if (state == State::Idle) return true;
  const bool is_late = state == State::Marked || allocated_meanwhile() > meanwhile;
  const std::uint64_t pause = is_late ? last_step_took / kLateShare : last_step_took;
  if (os::now_ns() - last_step_ended < pause) return false;
  if (is_late) return true;
  const double share = static_cast<double>(allocated_meanwhile()) / static_cast<double>(meanwhile);
  return static_cast<double>(steps.mark_ns) < share * static_cast<double>(expected_ns);
}

Progress step() {
  // As collect_locked does, before anything is abandoned: in a child of vfork it is the parent's.
  if (settings.serves_malloc && world::is_borrowed_process()) return Progress::None;
  was_refused = false;
  if (is_under_way() && !partial::may_watch()) {
    abandon();
    return finish();
  }
  if (state == State::Marked) return finish();
  if (is_under_way() && allocated_meanwhile() > kMostMeanwhile * meanwhile) return finish();
  if (!is_allowed()) return refuse();
  return state == State::Idle ? begin() : mark_some();
}

Progress collect_as_due() { return is_under_way() || is_wanted() ? step() : finish(); }

Begun end() {
  if (!is_under_way()) {
    steps = {};
    return Begun::NotAtAll;
  }
  if (heap::take_freed_in_steps()) marker.forget_queued_that_are_gone();
  heap::unmark_new_objects();
  heap::end_marking_in_steps();
  marker.set_deadline(0);
  set_state(State::Idle);
  return begun;
}

void abandon() {
  steps = {};
  marker.set_deadline(0);
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
