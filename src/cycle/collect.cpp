// A collection (cycle.req.order):
//
//   look at the loaded libraries → start callback → stop the world → hide holes → clear marks
//   (a partial one keeps them) → client's roots, static data, stacks → mark → finalization → move
//   objects → sweep → show holes → resume → disclaim → plan the next
//
// One that is done in steps (cycle/incremental.hpp) goes as far as "mark" more than once.
#include "cycle/collect.hpp"

#include "alloc/collecting.hpp"
#include "alloc/totals.hpp"
#include "copy/evacuate.hpp"
#include "copy/hashes.hpp"
#include "copy/mcc.hpp"
#include "copy/policy.hpp"
#include "copy/verify.hpp"
#include "copy/weak.hpp"
#include "cycle/finalization.hpp"
#include "cycle/incremental.hpp"
#include "cycle/leaks.hpp"
#include "cycle/marking.hpp"
#include "cycle/measured.hpp"
#include "cycle/moving.hpp"
#include "cycle/pacing.hpp"
#include "cycle/partial.hpp"
#include "cycle/pause.hpp"
#include "cycle/refusal.hpp"
#include "cycle/return_memory.hpp"
#include "cycle/roots.hpp"
#include "cycle/settings.hpp"
#include "cycle/verify.hpp"
#include "heap/resident.hpp"
#include "heap/runs.hpp"
#include "heap/sweep.hpp"
#include "mark/marker.hpp"
#include "mark/team.hpp"
#include "os/context.hpp"
#include "os/cpu.hpp"
#include "os/log.hpp"
#include "world/stop.hpp"

namespace jd::cycle {
namespace {

using mark::marker;

struct Cycle {
  int (*stop_function)();
  bool partial;  // what is marked already stays so
  bool limited;  // what is not marked at the program's limit is marked in steps
  bool roots_are_known = true;
  Outcome outcome = Outcome::Abandoned;
  incremental::Begun begun = incremental::Begun::NotAtAll;

  // All in one pause, from no marks on: it tells how long such ones take.
  [[nodiscard]] bool is_plain() const { return !partial && !limited; }
  [[nodiscard]] bool is_full() const { return !partial || begun == incremental::Begun::Full; }

  [[nodiscard]] bool asked_to_stop() const {
    return stop_function != nullptr && stop_function() != 0;
  }
};

// For its lifetime the marker asks the program's function whether to go on.
class StopQuestion {
 public:
  explicit StopQuestion(const Cycle& cycle) {
    if (cycle.stop_function == nullptr) return;
    asked = cycle.stop_function;
    marker.set_stop_question([] { return asked() != 0; });
  }
  ~StopQuestion() {
    if (asked == nullptr) return;
    asked = nullptr;
    marker.set_stop_question(nullptr);
  }
  StopQuestion(const StopQuestion&) = delete;
  StopQuestion& operator=(const StopQuestion&) = delete;

 private:
  static int (*asked)();  // under the heap's lock
};
int (*StopQuestion::asked)() = nullptr;

Outcome mark_everything(char* stack_top, Cycle* cycle) {
  StopQuestion question(*cycle);
  if (cycle->partial) cycle->partial = partial::queue_changed();
  queue_roots(stack_top);
  if (marker.was_stopped()) return Outcome::Abandoned;
  const bool refused = cycle->asked_to_stop();
  if (refused && !cycle->limited) return Outcome::Abandoned;
  if (refused) {
    constexpr std::uint64_t kLongAgo = 1;
    marker.set_deadline(kLongAgo);
  } else {
    incremental::note_queued();
  }
  marker.drain();
  if (cycle->roots_are_known && cycle->limited && !marker.was_stopped()) {
    using incremental::Begun;
    if (incremental::goes_on(cycle->is_full() ? Begun::Full : Begun::Partial)) {
      return Outcome::GoesOn;
    }
    if (refused) return Outcome::Abandoned;
    marker.drain();
  }
  measured.mark_stack_overflows += marker.take_overflows();
  return cycle->roots_are_known && !marker.was_stopped() ? Outcome::Done : Outcome::Abandoned;
}

// Kinds that ask for it keep what their unreachable objects point to, until those are disclaimed.
void mark_from_disclaimable() {
  bool any = false;
  for (unsigned k = 0; k < heap::kind_count; ++k) any |= heap::kinds[k].mark_from_unreachable;
  if (!any) return;
  marker.mark_from_unreachable();
  marker.drain();
}

void finish_marking() {
  // Before anything is found to be unreachable: an object that its disclaim function keeps must not
  // refer to what was finalized, nor hold links that were cleared.
  mark_from_disclaimable();
  if (copy::in_use) copy::settle_weak(&marker);
  finalize_after_marking(&marker);
  // Programs that use nothing else of a typed heap may ask for hashes.
  if (!copy::in_use) return copy::forget_dead_hashes();
  copy::settle_weak(&marker);
  alloc::unmark_mixed_holes();
  copy::forget_dead_hashes();
}

void verify_marks(char* stack_top, MarkVerifier::When when) {
  MarkVerifier verifier(when, stack_top);
  visit_all_roots(&verifier, stack_top);
  verifier.finish();
  copy::verify_typed_words();
}

// What the first part of a collection did.
struct Reached {
  std::uint64_t began;  // os::now_ns
  Reaching how;
  bool copied;  // not marked
};

// Marks all that the roots lead to; where every collection copies, copies it, if there is memory
// for that. The collection is abandoned where the program's function says so, or not all roots are
// known. Returns how long it took, from the moment on when there were no marks.
Reaching reach_everything(char* stack_top, Cycle* cycle, bool* copied) {
  choose_how_to_mark(cycle->is_plain() ? Marking::Whole : Marking::PartialOrInSteps);
  if (cycle->partial) {
    cycle->begun = incremental::end();
    partial::keep_marks(cycle->begun != incremental::Begun::NotAtAll);
  } else {
    incremental::abandon();
    heap::start_marks();
  }
  const std::uint64_t cleared = os::now_ns();
  // Nothing may move for words that nobody looked at.
  const bool copies = copy::policy.mcc && cycle->roots_are_known;
  *copied = copies && copy_everything(stack_top, &measured.root_bytes);
  cycle->outcome = *copied ? Outcome::Done : mark_everything(stack_top, cycle);
  return {os::now_ns() - cleared, mark::team.had_choice()};
}

// What is not marked becomes free, once objects were moved, if any are.
heap::SweepCount reclaim(char* stack_top, bool copied) {
  const bool verify = options.verify != 0;
  alloc::drop_lost_slots();
  alloc::retire_idle_holes();
  const bool moving = move_objects(stack_top);
  if (moving && verify) {
    verify_marks(stack_top, MarkVerifier::When::Moved);
    copy::verify_pins();
  }
  alloc::detach_disclaiming_holes();
  if (GC_find_leak != 0) report_leaks();
  if (settings.before_sweep != nullptr) settings.before_sweep();
  const heap::SweepCount count = heap::sweep();
  if (moving) copy::end_moving();
  if (copied) copy::mcc::end();
  if (verify) verify_swept();
  alloc::show_holes();
  return count;
}

// All that the roots lead to is marked, or copied: finds out what is not reachable, and takes it.
heap::SweepCount finish(char* stack_top, const Cycle& cycle, const Reached& reached) {
  const bool verify = options.verify != 0;
  alloc::empty_magazines();
  alloc::unmark_mixed_holes();
  if (verify) {
    verify_marks(stack_top,
                 cycle.partial ? MarkVerifier::When::MarkedPartially : MarkVerifier::When::Marked);
  }
  finish_marking();
  // Links were cleared and finalizers are due by now.
  if (marker.was_stopped()) {
    os::fatal(
        "the child of a fork() in a signal handler has returned into a collection's end, whose "
        "other markers it does not have; it should have called exec or _exit");
  }
  // As bdwgc: what comes now is of the next number. GC_get_gc_no() reads it at any time.
  __atomic_store_n(&GC_gc_no, GC_gc_no + 1, __ATOMIC_RELAXED);
  tell(GC_EVENT_MARK_END);
  const std::uint64_t marked = os::now_ns();
  const heap::SweepCount count = reclaim(stack_top, reached.copied);
  const std::uint64_t mark_ns = incremental::last_steps().mark_ns + marked - reached.began;
  const std::size_t live_bytes = count.live_bytes + count.deferred_bytes;
  incremental::note(!cycle.is_full(), mark_ns, live_bytes);
  refusal::forget_all();
  partial::end_collection({!cycle.is_full(), cycle.begun != incremental::Begun::NotAtAll,
                           reached.copied, mark_ns, live_bytes});
  const std::uint64_t swept = os::now_ns();
  if (verify) verify_structures();
  if (!reached.copied && cycle.is_plain()) note_how_marked(count.live_objects, reached.how);
  measured.mark_last = mark_ns;
  measured.mark_total += marked - reached.began;
  measured.sweep_last = swept - marked;
  measured.sweep_total += swept - marked;
  return count;
}

// In an abandoned one everything is done that the program takes part in, and nothing is reclaimed.
heap::SweepCount run_stopped(char* stack_top, Cycle* cycle) {
  const bool verify = options.verify != 0;
  // Here, so that what holes give back was counted before.
  alloc::settle_totals();
  if (verify) verify_magazines();
  alloc::hide_magazines();
  alloc::hide_holes();
  if (verify) verify_structures();
  const std::uint64_t began = os::now_ns();
  tell(GC_EVENT_MARK_START);
  bool copied = false;
  const Reaching how = reach_everything(stack_top, cycle, &copied);
  if (cycle->outcome == Outcome::Done) return finish(stack_top, *cycle, {began, how, copied});
  tell(GC_EVENT_MARK_END);
  if (cycle->outcome == Outcome::Abandoned) {
    marker.forget_queued();
    heap::keep_everything();
  }
  alloc::show_holes();
  alloc::show_magazines();
  return {};
}

void note_sweep(const heap::SweepCount& count, const Cycle& cycle) {
  measured.marked_objects += count.live_objects;
  measured.live_objects = count.live_objects;
  if (!cycle.is_full()) {
    ++measured.partial_collections;
    measured.marked_objects -= base::min_of(partial::kept_objects(), count.live_objects);
  } else if (cycle.is_plain()) {
    mark::team.note_collection(count.live_objects, count.live_bytes, measured.mark_last);
  }
  measured.live_bytes = count.live_bytes;
  measured.live_atomic_bytes = count.live_atomic_bytes;
  measured.live_typed_bytes = count.live_typed_bytes;
  measured.reclaimed_before += measured.reclaimed_bytes;
  measured.reclaimed_bytes = count.freed_bytes;
}

void report(const Cycle& cycle) {
  if (options.print_stats == 0 && options.print_verbose_stats == 0) return;
  const incremental::Steps steps = incremental::last_steps();
  if (steps.count != 0) {
    os::log("collection ", measured.collections, " was marked in ", steps.count, " steps, ",
            steps.mark_ns / 1000, " us together, ", steps.beside_ns / 1000,
            " us of it beside the program, before this pause:");
  }
  os::log("collection ", measured.collections, cycle.is_full() ? ": pause " : " (partial): pause ",
          measured.pause_last / 1000, " us (stop ", measured.stop_last / 1000, ", mark ",
          (measured.mark_last - steps.mark_ns) / 1000, ", sweep ", measured.sweep_last / 1000,
          "), live ", measured.live_bytes / base::kKiB, " KiB in ", measured.live_objects,
          " objects, reclaimed ", measured.reclaimed_bytes / base::kKiB, " KiB, heap ",
          heap::resident_bytes() / base::kKiB, " KiB");
  if (options.print_verbose_stats == 0) return;
  const FinalizationCounts finalization = count_finalization();
  os::log("  roots ", measured.root_bytes / base::kKiB, " KiB, threads ", world::thread_count(),
          ", free blocks ", heap::free_blocks(), ", finalizers ", finalization.finalizers,
          ", links ", finalization.short_links + finalization.long_links, ", due ",
          finalization.due, ", mark stack overflows ", measured.mark_stack_overflows);
  if (copy::in_use) {
    os::log("  since the start: ", copy::counts.collections, " collections moved ",
            copy::counts.objects, " objects, ", copy::counts.bytes / base::kKiB,
            " KiB; pinned in the last ", copy::counts.pinned_last, ", promoted blocks ",
            copy::mcc::last_promoted.blocks);
  }
  const mark::Team::Counts team = mark::team.counts();
  os::log("  markers ", mark::team.helpers() + 1, ", packets ", team.packets, ", waits ",
          team.waits, ", looks ", team.looks, ", guests ", team.guests);
}

void run_cycle(void* data, char* stack_top) {
  auto* cycle = static_cast<Cycle*>(data);
  if (!may_look_for_roots()) return;
  tell(GC_EVENT_START);
  if (settings.start_callback != nullptr) settings.start_callback();
  prepare_toggle_references();

  Pause pause;
  pause.begin(Pause::At::KnownLibraries);
  if (!pause.stands()) cycle->outcome = Outcome::ThreadsDidNotStop;
  cycle->roots_are_known = pause.roots_are_known();
  if (cycle->limited) incremental::begin_limited_pause(pause);
  heap::SweepCount count;
  // The threads stand: a function that allows a collection so much time wants to know how long that
  // took. Nothing has been touched yet, and what steps have marked is kept.
  if (pause.is_wanted() && !cycle->asked_to_stop()) count = run_stopped(stack_top, cycle);
  // While nobody makes or frees an object.
  if (cycle->outcome == Outcome::Done && settings.check_heap != nullptr) settings.check_heap();
  pause.end();
  if (cycle->outcome != Outcome::Done) {
    pause.complain();
    tell(GC_EVENT_END);
    return;
  }

  tell(GC_EVENT_RECLAIM_START);
  tell_about_finalization();
  heap::disclaim_deferred(&count);
  if (options.unmap_threshold != 0 && count.oldest_free >= options.unmap_threshold) {
    return_free_memory_later(static_cast<unsigned>(options.unmap_threshold));
  }
  alloc::start_new_totals();
  tell(GC_EVENT_RECLAIM_END);

  ++measured.collections;
  note_sweep(count, *cycle);
  plan_next_collection(count.live_bytes, count.live_atomic_bytes, measured.root_bytes);
  report(*cycle);
  tell(GC_EVENT_END);
}

}  // namespace

Measurements measured;

Outcome collect_locked(int (*stop_function)(), Extent extent) {
  const bool keeps = incremental::is_under_way() ? partial::may_watch() : partial::is_possible();
  Cycle cycle{stop_function, extent != Extent::Full && keeps, extent == Extent::AsDueWithinLimit};
  if (cycle.asked_to_stop()) return Outcome::Abandoned;
  if (settings.may_begin != nullptr && !settings.may_begin()) return Outcome::Abandoned;
  const std::uint64_t began = os::now_ns();
  {
    const MeasuredCollecting collecting;
    os::call_with_registers_on_stack(run_cycle, &cycle);
    os::clear_vector_registers();
  }
  if (cycle.outcome == Outcome::Done && cycle.is_full()) {
    measured.full_total += os::now_ns() - began + incremental::last_steps().mark_ns;
  }
  return cycle.outcome;
}

void stop_for_program() {
  world::stop_world();
  tell_threads(GC_EVENT_THREAD_SUSPENDED);
}
void resume_for_program() {
  tell_threads(GC_EVENT_THREAD_UNSUSPENDED);
  world::resume_world();
}

}  // namespace jd::cycle
