// A collection (cycle.req.order):
//
//   start callback → look at the loaded libraries → stop the world → hide holes → clear marks
//   (a partial one keeps them) → client's roots, static data, stacks → mark → finalization → move
//   objects → sweep → show holes → resume → disclaim → plan the next
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
#include "cycle/leaks.hpp"
#include "cycle/measured.hpp"
#include "cycle/moving.hpp"
#include "cycle/pacing.hpp"
#include "cycle/partial.hpp"
#include "cycle/return_memory.hpp"
#include "cycle/roots.hpp"
#include "cycle/settings.hpp"
#include "cycle/verify.hpp"
#include "heap/resident.hpp"
#include "heap/runs.hpp"
#include "heap/sweep.hpp"
#include "mark/choice.hpp"
#include "mark/marker.hpp"
#include "mark/team.hpp"
#include "os/context.hpp"
#include "os/cpu.hpp"
#include "os/log.hpp"
#include "os/thread.hpp"
#include "world/fork.hpp"
#include "world/mappings.hpp"
#include "world/roots.hpp"
#include "world/stop.hpp"

namespace jd::cycle {
namespace {

using mark::marker;

class MarkRoots final : public world::RootVisitor {
 public:
  // When the first stack came: all come one after another, and little behind them
  // (visit_ambiguous_roots). 0: none did.
  std::uint64_t stacks_began = 0;

 private:
  void visit_range(const void* low, const void* high) override { marker.scan_roots(low, high); }
  void visit_stack(const void* low, const void* high) override {
    if (stacks_began == 0) stacks_began = os::now_ns();
    marker.scan_stack(low, high, ends_hold_objects());
  }
};

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

// NotBegun: in a borrowed process, or for lack of memory. NotStopped: some threads run
// (world::try_to_stop_world).
enum class Outcome { Done, NotBegun, RootsUnknown, Abandoned, NotStopped };
// What threads_did_not_stop says. Under the heap's lock.
bool last_did_not_stop = false;

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

struct Cycle {
  int (*stop_function)();
  bool partial;
  Outcome outcome;

  [[nodiscard]] bool asked_to_stop() const {
    return stop_function != nullptr && stop_function() != 0;
  }
};

// By what collections before this one took; the first if JACKDAW_MARK_STRATEGY leaves it open.
// Under the lock.
constinit mark::StrategyChoices strategy_choices;
constinit mark::CompanyChoices company_choices;

mark::MarkStrategy strategy_now() {
  const auto strategy = static_cast<mark::MarkStrategy>(options.mark_strategy);
  if (strategy != mark::MarkStrategy::Measured) return strategy;
  return strategy_choices.next(measured.live_objects, measured.live_bytes,
                               alloc::totals().allocated_since_gc);
}

// At most one of the two is a trial. A partial collection, whose objects are few and mostly new, is
// none, and tells nothing of others.
void choose_how_to_mark(bool partial) {
  if (partial) {
    const auto strategy = static_cast<mark::MarkStrategy>(options.mark_strategy);
    const bool measured = strategy == mark::MarkStrategy::Measured;
    marker.set_strategy(measured ? mark::MarkStrategy::Ring : strategy);
    mark::team.begin_collection(false);
    return;
  }
  marker.set_strategy(strategy_now());
  mark::team.begin_collection(mark::team.is_measured() &&
                              company_choices.next(measured.live_objects, measured.mark_last,
                                                   mark::team.most_markers(),
                                                   !strategy_choices.is_trial()));
}

// What it took to mark all that the roots lead to. Without a choice of company the collection says
// nothing of that, and was no trial of it.
struct Reaching {
  std::uint64_t ns;
  bool had_choice;
};
void note_how_marked(std::size_t objects, Reaching reaching) {
  if (!reaching.had_choice || !company_choices.is_trial()) {
    strategy_choices.note(objects, reaching.ns);
  }
  if (reaching.had_choice && !strategy_choices.is_trial()) {
    company_choices.note(objects, reaching.ns);
  }
}

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

// False if the collection was abandoned.
bool mark_everything(char* stack_top, Cycle* cycle) {
  // The threads stand: a function that allows a collection so much time wants to know how long that
  // took.
  if (cycle->asked_to_stop()) return false;
  MarkRoots roots;
  StopQuestion question(*cycle);
  if (cycle->partial) cycle->partial = partial::queue_changed();
  marker.mark_uncollectable();
  const std::uint64_t began = os::now_ns();
  visit_all_roots(&roots, stack_top);
  const std::uint64_t ended = os::now_ns();
  measured.root_total += ended - began;
  if (roots.stacks_began != 0) measured.stack_total += ended - roots.stacks_began;
  if (marker.was_stopped() || cycle->asked_to_stop()) {
    marker.forget_queued();
    return false;
  }
  marker.drain();
  measured.root_bytes = roots.bytes();
  measured.mark_stack_overflows += marker.take_overflows();
  return !marker.was_stopped();
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

// Marks all that the roots lead to; where every collection copies, copies it, if there is memory
// for that. The collection is abandoned where the program's function says so. Returns how long it
// took, from the moment on when there were no marks.
Reaching reach_everything(char* stack_top, Cycle* cycle, bool* copied) {
  choose_how_to_mark(cycle->partial);
  marker.set_stop_question(nullptr);
  if (cycle->partial) {
    partial::keep_marks();
  } else {
    heap::clear_marks();
  }
  const std::uint64_t cleared = os::now_ns();
  // Nothing may move for words that nobody looked at.
  const bool copies = copy::policy.mcc && cycle->outcome == Outcome::Done;
  if (copies && cycle->asked_to_stop()) cycle->outcome = Outcome::Abandoned;
  *copied =
      copies && cycle->outcome == Outcome::Done && copy_everything(stack_top, &measured.root_bytes);
  if (!*copied && cycle->outcome != Outcome::Abandoned && !mark_everything(stack_top, cycle)) {
    cycle->outcome = Outcome::Abandoned;
  }
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
  // Where a hole begins there is no object yet that anybody should visit.
  alloc::unmark_mixed_holes();
  alloc::show_holes();
  return count;
}

// Where not all roots are known, everything is done that the program takes part in, and nothing is
// reclaimed.
heap::SweepCount run_stopped(char* stack_top, Cycle* cycle) {
  const bool verify = options.verify != 0;
  // Here, so that what holes give back was counted before.
  alloc::settle_totals();
  if (verify) verify_magazines();
  alloc::hide_magazines();
  alloc::hide_holes();
  if (verify) verify_structures();
  const std::uint64_t begin = os::now_ns();
  tell(GC_EVENT_MARK_START);
  bool copied = false;
  const Reaching reaching = reach_everything(stack_top, cycle, &copied);
  // A word one past the last object may have marked where a hole begins.
  alloc::unmark_mixed_holes();
  if (cycle->outcome != Outcome::Done) {
    tell(GC_EVENT_MARK_END);
    heap::keep_everything();
    alloc::unmark_mixed_holes();
    alloc::show_holes();
    alloc::show_magazines();
    return {};
  }
  alloc::empty_magazines();
  if (verify) {
    verify_marks(stack_top,
                 cycle->partial ? MarkVerifier::When::MarkedPartially : MarkVerifier::When::Marked);
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
  const heap::SweepCount count = reclaim(stack_top, copied);
  partial::end_collection(
      {cycle->partial, copied, marked - begin, count.live_bytes + count.deferred_bytes});
  const std::uint64_t swept = os::now_ns();
  if (verify) verify_structures();
  if (!copied && !cycle->partial) note_how_marked(count.live_objects, reaching);
  measured.mark_last = marked - begin;
  measured.mark_total += marked - begin;
  measured.sweep_last = swept - marked;
  measured.sweep_total += swept - marked;
  return count;
}

void note_pause(std::uint64_t begin, std::uint64_t stopped, std::uint64_t end) {
  measured.stop_last = stopped - begin;
  measured.stop_total += stopped - begin;
  measured.stop_longest = base::max_of(measured.stop_longest, stopped - begin);
  measured.pause_last = end - begin;
  measured.pause_total += end - begin;
  measured.pause_longest = base::max_of(measured.pause_longest, end - begin);
}

void note_sweep(const heap::SweepCount& count, bool was_partial) {
  measured.marked_objects += count.live_objects;
  measured.live_objects = count.live_objects;
  if (was_partial) {
    ++measured.partial_collections;
    measured.marked_objects -= base::min_of(partial::kept_objects(), count.live_objects);
  } else {
    mark::team.note_collection(count.live_objects, count.live_bytes, measured.mark_last);
  }
  measured.live_bytes = count.live_bytes;
  measured.live_atomic_bytes = count.live_atomic_bytes;
  measured.live_typed_bytes = count.live_typed_bytes;
  measured.reclaimed_before += measured.reclaimed_bytes;
  measured.reclaimed_bytes = count.freed_bytes;
}

void report(bool partial) {
  if (options.print_stats == 0 && options.print_verbose_stats == 0) return;
  os::log("collection ", measured.collections, partial ? " (partial): pause " : ": pause ",
          measured.pause_last / 1000, " us (stop ", measured.stop_last / 1000, ", mark ",
          measured.mark_last / 1000, ", sweep ", measured.sweep_last / 1000, "), live ",
          measured.live_bytes / base::kKiB, " KiB in ", measured.live_objects,
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

void run_cycle(void* data, char* stack_top) {
  auto* cycle = static_cast<Cycle*>(data);
  // It is its parent's turn, once it has executed another program.
  if (settings.serves_malloc && world::is_borrowed_process()) return;
  // Before any callback: programs take locks in theirs, which only a whole collection lets go of.
  if (!world::update_static_roots()) {
    complain_about_roots(world::kNoList, "not collecting");
    return;
  }
  tell(GC_EVENT_START);
  if (settings.start_callback != nullptr) settings.start_callback();
  prepare_toggle_references();

  tell(GC_EVENT_PRE_STOP_WORLD);
  const std::uint64_t begin = os::now_ns();
  const heap::BlockNumber committed = heap::space.committed;
  const char* why_unknown = nullptr;
  cycle->outcome = stop_at_known_libraries(&why_unknown);
  // Callbacks hear of a stop all the same, and of its end: some take a lock at the one event and
  // let it go at the other.
  const bool stands = cycle->outcome != Outcome::NotStopped;
  if (stands && settings.may_collect != nullptr && !settings.may_collect()) {
    cycle->outcome = Outcome::Abandoned;
  }
  const std::uint64_t stopped = os::now_ns();
  tell_threads(GC_EVENT_THREAD_SUSPENDED);
  tell(GC_EVENT_POST_STOP_WORLD);

  heap::SweepCount count = stands ? run_stopped(stack_top, cycle) : heap::SweepCount{};
  // While nobody makes or frees an object.
  if (cycle->outcome == Outcome::Done && settings.check_heap != nullptr) settings.check_heap();

  tell(GC_EVENT_PRE_START_WORLD);
  tell_threads(GC_EVENT_THREAD_UNSUSPENDED);
  world::resume_world();
  note_pause(begin, stopped, os::now_ns());
  tell(GC_EVENT_POST_START_WORLD);
  if (heap::space.committed > committed) tell_of_growth(heap::space.committed - committed);
  if (cycle->outcome != Outcome::Done) {
    if (cycle->outcome == Outcome::RootsUnknown) {
      complain_about_roots(why_unknown, "nothing was reclaimed");
    }
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
  note_sweep(count, cycle->partial);
  plan_next_collection(count.live_bytes, count.live_atomic_bytes, measured.root_bytes);
  report(cycle->partial);
  tell(GC_EVENT_END);
}

}  // namespace

Measurements measured;

bool collect_locked(int (*stop_function)(), Extent extent) {
  Cycle cycle{stop_function, extent == Extent::AsDue && partial::is_possible(), Outcome::NotBegun};
  last_did_not_stop = false;
  if (cycle.asked_to_stop()) return false;
  if (settings.may_begin != nullptr && !settings.may_begin()) return false;
  const std::uint64_t begin = os::now_ns();
  os::call_with_registers_on_stack(run_cycle, &cycle);
  os::clear_vector_registers();
  measured.collecting_total += os::now_ns() - begin;
  last_did_not_stop = cycle.outcome == Outcome::NotStopped;
  return cycle.outcome == Outcome::Done;
}

bool threads_did_not_stop() { return last_did_not_stop; }

void stop_for_program() {
  world::stop_world();
  tell_threads(GC_EVENT_THREAD_SUSPENDED);
}
void resume_for_program() {
  tell_threads(GC_EVENT_THREAD_UNSUSPENDED);
  world::resume_world();
}

}  // namespace jd::cycle
