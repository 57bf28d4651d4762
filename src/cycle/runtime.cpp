#include "cycle/runtime.hpp"

#include <errno.h>

#include <atomic>

#include "alloc/allocate.hpp"
#include "alloc/pacer.hpp"
#include "alloc/settings.hpp"
#include "alloc/totals.hpp"
#include "base/sharing.hpp"
#include "copy/policy.hpp"
#include "cycle/collect.hpp"
#include "cycle/due.hpp"
#include "cycle/finalization.hpp"
#include "cycle/growth.hpp"
#include "cycle/incremental.hpp"
#include "cycle/leaks.hpp"
#include "cycle/moving.hpp"
#include "cycle/pacing.hpp"
#include "cycle/partial.hpp"
#include "cycle/return_memory.hpp"
#include "cycle/settings.hpp"
#include "cycle/size_classes.hpp"
#include "cycle/statistics.hpp"
#include "heap/blocks.hpp"
#include "heap/huge_pages.hpp"
#include "heap/runs.hpp"
#include "heap/sweep.hpp"
#include "mark/concurrent.hpp"
#include "mark/marker.hpp"
#include "mark/team.hpp"
#include "os/cpu.hpp"
#include "os/early_environment.hpp"
#include "os/files.hpp"
#include "os/limits.hpp"
#include "os/log.hpp"
#include "os/memory.hpp"
#include "os/thread.hpp"
#include "world/fork.hpp"
#include "world/mappings.hpp"
#include "world/roots.hpp"
#include "world/stop.hpp"

// Exported by every program that GOO's compiler made; elsewhere it stays null.
extern "C" [[gnu::weak, gnu::visibility("default")]] void goo_makes_a_symbol() asm("YPfab_sym");

namespace jd::cycle {
namespace {

using heap::heap_lock;
using os::LockGuard;

// Set (release) when start is done; read (acquire) by every slow path.
std::atomic<bool> is_started{false};
// Counted by slow paths under JACKDAW_COLLECT_EVERY; only its value matters.
std::atomic<std::uint64_t> slow_paths{0};

void complain(const base::OptionInfo& option, const char* value, bool is_out_of_range) {
  if (is_out_of_range) {
    os::warn("environment variable ", option.name, "=", value, " is out of range (", option.range,
             "); using the nearest value");
    return;
  }
  if (option.type == base::OptionType::Flag) {
    os::warn("environment variable ", option.name, "=", value,
             " is neither on nor off; taken for on, as bdwgc takes any value");
    return;
  }
  os::warn("environment variable ", option.name, "=", value, " is not understood (",
           option.range[0] != '\0' ? option.range : "a value is needed", "); using the default, ",
           option.default_text);
}

void complain_of_unknown(const char* variable) {
  os::warn("environment variable ", variable,
           " is none of Jackdaw's and is ignored; 'jackdaw options' lists them");
}

// Address space for the heap: four times what memory there is, so that fragmentation never meets
// the end of it; half of what is left where the address space is limited, because the rest of the
// program needs some too.
std::size_t reservation() {
  if (options.reserve != 0) return options.reserve;
  constexpr std::size_t kMost = std::size_t{1} << 42;  // 4 TiB, of heap::kMostReserved: a guess
  const std::size_t by_memory = base::min_of(os::machine_memory(), kMost / 4) * 4;
  const std::size_t left = os::address_space_left();
  return left == SIZE_MAX ? by_memory : base::min_of(by_memory, left / 2);
}

// They write a word past the end of objects of 16 and 48 bytes, which bdwgc's byte of padding makes
// room for (docs/guide/libgc.md).
bool is_goo_program() { return &goo_makes_a_symbol != nullptr; }

void read_options() {
  const os::EarlyEnvironment environment;
  os::look_for_standard_error();
  base::read_options(&options, complain);
  base::find_unknown_options(complain_of_unknown);
  if (options.log_file == nullptr) return;
  if (const char* const why = os::open_log_and_report(options.log_file)) {
    os::warn("can't open GC_LOG_FILE ", options.log_file, " (", why,
             "); logging to standard error");
  }
}

void configure_marking() {
  if (options.nprocs != 0) os::set_cpu_count(static_cast<unsigned>(options.nprocs));
  // Each marker has bits of its own for the whole heap, so more of them must be asked for.
  constexpr unsigned kMostByDefault = 16;
  // Asked now in any case: it opens files, which is better done here than while the world stops.
  const unsigned cpus = os::cpu_count();
  std::uint64_t markers =
      options.markers != 0 ? options.markers : base::min_of(cpus, kMostByDefault);
  if (settings.serves_malloc) markers = 1;
  base::note_marking_object(&mark::team, sizeof mark::team);
  // A user who sets the patience gets helpers at that moment, whatever the defaults say.
  const bool patience_given = base::was_given(&base::Options::mark_patience);
  mark::team.configure({.markers = static_cast<unsigned>(
                            base::min_of(markers, std::uint64_t{mark::Team::kMostMarkers})),
                        .patience = options.mark_patience,
                        .patience_with_few = patience_given ? 0 : mark::Team::kPatienceWithFew,
                        .worth_threads = patience_given ? 0 : mark::Team::kWorthThreads,
                        .turn_entries = options.mark_turn,
                        .stack_entries = options.mark_stack,
                        .measured = !patience_given,
                        .published = &GC_parallel});
  // A child that nobody has told of the fork would find the lock taken.
  if (markers > 1 && options.mark_beside != 0 && settings.handle_fork != 0) {
    mark::concurrent.configure(incremental::mark_beside);
  }
  mark::by_written_pages_from = options.written_pages == 0 ? SIZE_MAX : options.written_pages;
}

// What the program has set itself stays, unless the user says otherwise.
void set_variables_of_the_abi() {
  using base::Options;
  using base::was_given;
  if (was_given(&Options::free_space_divisor)) GC_free_space_divisor = options.free_space_divisor;
  if (was_given(&Options::full_frequency)) GC_full_freq = static_cast<int>(options.full_frequency);
  if (was_given(&Options::pause_target)) GC_time_limit = options.pause_target;
  if (was_given(&Options::all_interior_pointers)) {
    GC_all_interior_pointers = static_cast<int>(options.all_interior_pointers);
  }
  if (was_given(&Options::unmap_on_gcollect)) {
    settings.unmap_on_gcollect = options.unmap_on_gcollect != 0;
  }
  if (was_given(&Options::maximum_heap_size)) settings.max_heap_size = options.maximum_heap_size;
  if (options.dont_gc != 0) GC_dont_gc = 1;
  // Programs that free by hand have a mode of their own for that (malloc/leaks.hpp).
  if (options.find_leak != 0 && !settings.serves_malloc) GC_find_leak = 1;
}

void configure_heap_and_allocation() {
  heap::poison_freed = options.poison != 0;
  heap::sweep_policy = {
      .eager = static_cast<base::SweepTime>(options.sweep_time) == base::SweepTime::Eager,
      .nearly_full_divisor = static_cast<unsigned>(options.nearly_full)};
  alloc::choose_treatment_of_frees(false);
  alloc::choose_magazine_key(os::random_bits());
  alloc::clear_ahead = options.clear_ahead;
  alloc::set_spans_from(options.spans);
  if (options.time_sweep != 0) alloc::start_timing_refills();
  const bool pads = options.pad_objects != 0 || is_goo_program();
  alloc::padding = pads ? 1 : 0;
  alloc::every_allocation_is_slow = options.collect_every != 0 || pads;
}

void apply_options() {
  read_options();
  prepare_statistics(options.statistics_file);
  os::fail_from_call(options.fail_os);
  configure_marking();
  set_variables_of_the_abi();
  configure_heap_and_allocation();
  world::configure_stop(options.retry_signals != 0, options.stop_delay * 1000);
}

void make_heap() {
  // Blocks could neither come into use nor be given back one by one.
  if (os::page_size() > heap::kBlockSize) {
    os::fatal("this system's pages have ", os::page_size() / base::kKiB,
              " KiB; the heap is made for pages of up to ", heap::kBlockSize / base::kKiB, " KiB");
  }
  if (!heap::reserve_space(reservation())) {
    os::fatal(
        "the system refuses address space for the heap (see ulimit -v and -d, and ulimit -l where "
        "the program locks its memory); at least 8 MiB are needed");
  }
  if (options.huge_pages != 0) heap::start_huge_pages();
  if (!mark::marker.initialise(options.mark_stack)) {
    os::fatal("the system refuses memory for the mark stack (JACKDAW_MARK_STACK sets its size)");
  }
  GC_least_plausible_heap_addr = base::as_pointer(heap::space.base);
  GC_greatest_plausible_heap_addr =
      base::as_pointer(heap::block_address(heap::space.reserved - 1) + heap::kBlockSize);
  start_size_classes();
  std::size_t first = options.initial_heap_size;
  // Whoever sets a lower limit has not asked for more, and needs no warning.
  if (settings.max_heap_size != 0 && first == base::Options{}.initial_heap_size) {
    first = base::min_of(first, base::align_down(settings.max_heap_size, heap::kBlockSize));
  }
  if (!expand(first)) {
    os::warn("the heap's initial size (GC_INITIAL_HEAP_SIZE) of ", first / base::kKiB,
             " KiB is not to be had; starting small");
  }
}

// By the first thread that comes. The others wait until it is done; that one itself does not, since
// libc's allocator, which is called for it, may lead back here.
void handle_forks() {
  if (settings.handle_fork != 1) return;
  // Set by the installer (release), read by all (acquire).
  static std::atomic<bool> done{false};
  // Its kernel id. Set once, by the thread that becomes it; each compares with its own (relaxed).
  static std::atomic<int> installer{0};
  if (done.load(std::memory_order_acquire)) return;
  const int self = os::thread_id();
  int who = 0;
  if (!installer.compare_exchange_strong(who, self, std::memory_order_relaxed)) {
    // Not for ever: this thread may be in a handler of fork(), and hold what that one waits for.
    constexpr std::uint64_t kPatience = 100000000;  // ns: far longer than it takes; a guess
    const std::uint64_t end = os::now_ns() + kPatience;
    while (who != self && !done.load(std::memory_order_acquire) && os::now_ns() < end) {
      os::yield();
    }
    return;
  }
  if (!world::install_fork_handlers()) {
    os::warn("pthread_atfork failed; after fork() the child must not allocate");
  }
  done.store(true, std::memory_order_release);
}

// Once, by the first thread that comes; the others wait for the lock. Pre: the lock is held.
void start_once() {
  apply_options();
  if (settings.serves_malloc) world::use_mappings();
  make_heap();
  world::main_stack_bottom = &GC_stackbottom;
  world::ignore_libraries_variable = &GC_no_dls;
  if (GC_stackbottom == nullptr) GC_stackbottom = os::main_stack_high();
  using mark::Team;
  if (!world::exclude_own_data(Team::scratch(), Team::scratch() + Team::scratch_size())) {
    os::warn("no memory to exclude the markers' packets from the roots");
  }
  world::initialise_threads();
  if (settings.serves_malloc) handle_forks();
  if (options.enable_incremental == 0) return;
  const char* const why = partial::turn_on();
  if (why != nullptr) os::warn("GC_ENABLE_INCREMENTAL: no partial collections: ", why);
}

// What a collection leaves to be done when the lock is free.
void finish_collection() {
  if (options.abort_on_leak != 0 && faults_reported.load(std::memory_order_relaxed)) {
    os::fatal("leaked or smashed objects were found (GC_ABORT_ON_LEAK)");
  }
  warn_of_cycles();
  if (memory_waits_to_be_returned()) return_free_memory();
  if (mark::team.in_demand()) mark::team.start_helpers();
  if (mark::concurrent.in_demand()) mark::concurrent.start();
}

void on_slow_path() {
  if (options.collect_every != 0 &&
      (slow_paths.fetch_add(1, std::memory_order_relaxed) + 1) % options.collect_every == 0) {
    LockGuard guard(heap_lock);
    if (GC_dont_gc == 0) {
      if (incremental::is_under_way() || incremental::is_wanted()) {
        incremental::step();
      } else {
        collect_locked(nullptr, Extent::AsDue);
      }
    }
  }
  // In this order: a finalizer may leave by longjmp.
  finish_collection();
  notify_or_run();
}

void* out_of_memory(std::size_t bytes) {
  GC_oom_func function = nullptr;
  {
    LockGuard guard(heap_lock);
    note_shortage();
    function = GC_oom_fn;
  }
  warn("GC Warning: Out of memory: no room for %lu bytes\n", bytes);
  void* const helped = function != nullptr ? function(bytes) : nullptr;
  // As malloc's callers have it, and bdwgc's of the system's refusal.
  if (helped == nullptr) errno = ENOMEM;
  return helped;
}

}  // namespace

bool started() { return is_started.load(std::memory_order_acquire); }

void start_without_registering() {
  if (started()) return;
  // Before the lock is first held: the child of a fork meanwhile would find it so for ever. (libc's
  // allocator, which this calls, may itself be what starts the collector: then later.)
  if (!settings.serves_malloc) handle_forks();
  LockGuard guard(heap_lock);
  if (!started()) start_once();
  is_started.store(true, std::memory_order_release);
}

void start() {
  start_without_registering();
  if (world::self() == nullptr && !world::register_self({})) {
    os::fatal("no memory for the record of thread ", os::thread_id(), " (see ulimit -d and -v)");
  }
}

bool collect_now(int (*stop_function)()) {
  start();
  bool done = false;
  {
    LockGuard guard(heap_lock);
    // Under the lock: after GC_disable no collection begins.
    done = GC_dont_gc == 0 && collect_locked(stop_function) == Outcome::Done;
  }
  finish_collection();
  if (done) notify_or_run();
  return done;
}

void collect_and_return_memory(int (*stop_function)()) {
  start();
  {
    LockGuard guard(heap_lock);
    if (GC_dont_gc == 0) collect_locked(stop_function);
    return_table_memory();
    // As bdwgc's unmapping collection: afterwards no free page is kept.
    return_free_memory_later(0);
  }
  finish_collection();
  notify_or_run();
}

void compact() {
  // What the first has no room for may go to where it has made room; a sparse heap needs two.
  constexpr unsigned kMostCollections = 3;
  // Another is worth it as long as one freed such a part of the blocks in use. Neither number was
  // measured against others.
  constexpr heap::BlockNumber kWorthAnother = 16;
  const auto used = [] { return heap::space.committed - heap::free_blocks(); };
  start();
  {
    LockGuard guard(heap_lock);
    for (unsigned i = 0; GC_dont_gc == 0 && i < kMostCollections; ++i) {
      const std::uint64_t moved = copy::counts.collections;
      const heap::BlockNumber before = used();
      wish_to_compact();
      if (collect_locked() != Outcome::Done || copy::counts.collections == moved) break;
      if (used() > before - before / kWorthAnother) break;
    }
    return_table_memory();
    return_free_memory_later(0);
  }
  finish_collection();
  notify_or_run();
}

bool collect_if_due() {
  start();
  bool more = false;
  {
    LockGuard guard(heap_lock);
    if (GC_dont_gc == 0 && (incremental::is_under_way() || collection_is_due())) {
      more = incremental::step() == incremental::Progress::Step;
    }
  }
  finish_collection();
  if (finalizers_due()) notify_or_run();
  return more;
}

void collect_partially() {
  if (!started()) return;
  {
    LockGuard guard(heap_lock);
    if (GC_dont_gc == 0 && partial::is_on()) incremental::step();
  }
  finish_collection();
  if (finalizers_due()) notify_or_run();
}

bool expand(std::size_t bytes) {
  // Down, as in bdwgc: programs ask for what is left to their limit. At least one block.
  const std::size_t blocks = base::max_of(bytes / heap::kBlockSize, std::size_t{1});
  return blocks < heap::space.reserved && commit_as_asked(static_cast<heap::BlockNumber>(blocks));
}

}  // namespace jd::cycle

const jd::alloc::Pacer jd::alloc::pacer = {jd::cycle::start_without_registering,
                                           jd::cycle::make_room,
                                           jd::cycle::collects_first,
                                           jd::cycle::has_room,
                                           jd::cycle::found_little,
                                           jd::cycle::ends_in_vain,
                                           jd::cycle::catch_up,
                                           jd::cycle::on_slow_path,
                                           jd::cycle::out_of_memory};
std::size_t* const jd::alloc::uncollectable_bytes = &GC_non_gc_bytes;
