// Every switch that the environment offers, as one typed table (base.req.options). The `jackdaw
// options` command, the man page and docs/guide/options.md are generated from it, so a row is the
// only place to add one.
//
// Names that begin with GC_ are bdwgc's and keep its meaning; names that begin with JACKDAW_ are
// ours. Sizes take the suffixes k, M and G (powers of 1024).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bits.hpp"

namespace jd::base {

// The strategies by which the marker hides cache misses (src/mark/marker.hpp). Measured: grey or
// ring, whichever was quicker lately (src/mark/choice.hpp).
enum class MarkStrategy : std::uint8_t { None, Grey, OnGrey, Ring, Measured };
// What free() means to a program whose malloc is ours (src/malloc).
enum class MallocMode : std::uint8_t { Free, Ignore, LeakCheck };

// How tasks are forked and stolen (include/jackdaw/task.h, in the order of its enumeration).
enum class TaskMode : std::uint8_t { Deque, Stop, Barrier };

// How typed objects move (include/jackdaw/heap.h, in the order of its enumeration).
enum class Policy : std::uint8_t { Evacuate, Mcc, NonMoving };

// When the free slots of blocks in use are found and cleared (src/heap/sweep.hpp).
enum class SweepTime : std::uint8_t { Lazy, Eager };

// The value of an option that is as the program has it until the environment says otherwise: none
// of its own.
inline constexpr std::uint64_t kAsTheProgramHasIt = ~std::uint64_t{0};

// The values after parsing. Numbers are 64-bit so that one table can point at them; flags are 0
// or 1.
struct Options {
  // bdwgc begins with 64 KiB. Four blocks would not do for four size classes of two kinds; 256 KiB
  // is address space, not memory.
  std::uint64_t initial_heap_size = 256 * kKiB;
  std::uint64_t maximum_heap_size = 0;
  std::uint64_t free_space_divisor = 3;
  std::uint64_t markers = 0;
  std::uint64_t nprocs = 0;
  std::uint64_t enable_incremental = 0;
  std::uint64_t full_frequency = 19;
  std::uint64_t pause_target = 999999;  // GC_TIME_UNLIMITED
  std::uint64_t dont_gc = 0;
  std::uint64_t find_leak = 0;
  std::uint64_t abort_on_leak = 0;
  std::uint64_t print_stats = 0;
  std::uint64_t print_verbose_stats = 0;
  std::uint64_t retry_signals = 1;
  std::uint64_t unmap_threshold = 7;
  std::uint64_t unmap_on_gcollect = 0;
  std::uint64_t all_interior_pointers = kAsTheProgramHasIt;
  const char* log_file = nullptr;

  std::uint64_t mark_strategy = static_cast<std::uint64_t>(MarkStrategy::Measured);
  std::uint64_t mark_stack = 0;
  std::uint64_t mark_patience = 2048;
  std::uint64_t mark_turn = 1024;
  std::uint64_t mark_beside = 1;
  std::uint64_t written_pages = 16 * kKiB;
  std::uint64_t sweep_time = static_cast<std::uint64_t>(SweepTime::Lazy);
  std::uint64_t nearly_full = 16;
  std::uint64_t coarse_classes = 3 * kMiB;
  std::uint64_t spans = 4 * kMiB;
  std::uint64_t clear_ahead = 2 * kKiB;
  std::uint64_t time_sweep = 0;
  const char* statistics_file = nullptr;
  std::uint64_t huge_pages = 1;
  std::uint64_t pad_objects = 0;
  std::uint64_t reserve = 0;
  std::uint64_t collect_every = 0;
  std::uint64_t poison = 0;
#if defined(JD_DEBUG_CHECKS) && JD_DEBUG_CHECKS
  std::uint64_t verify = 1;
#else
  std::uint64_t verify = 0;
#endif
  std::uint64_t stop_delay = 0;
  std::uint64_t fail_os = 0;
  std::uint64_t malloc_mode = static_cast<std::uint64_t>(MallocMode::Free);
  std::uint64_t workers = 0;
  std::uint64_t task_mode = static_cast<std::uint64_t>(TaskMode::Barrier);
  std::uint64_t task_stack = 8 * kMiB;
  std::uint64_t task_delay = 0;
  std::uint64_t task_seed = 0;
  std::uint64_t policy = kAsTheProgramHasIt;
  std::uint64_t move = 0;
  std::uint64_t mixed = 1;
};

enum class OptionType : std::uint8_t { Flag, Count, Size, Choice, Path };

// In the order in which people read a row.
struct OptionInfo {  // NOLINT(clang-analyzer-optin.performance.Padding)
  const char* name;
  OptionType type;
  const char* range;         // for people: "1..64", "none, grey, ring"; empty: anything
  const char* default_text;  // for people
  const char* help;          // one line

  // For the parser.
  std::uint64_t least;
  std::uint64_t most;
  std::uint64_t Options::*number;
  const char* Options::*text;
  bool zero_allowed = false;  // 0 is no number of its own but "no limit", "choose yourself"
};

inline constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

inline constexpr OptionInfo kOptions[] = {
    {"GC_INITIAL_HEAP_SIZE", OptionType::Size, "0 to the address space", "256k",
     "Size of the heap at the start; nothing is collected before it is full.", 0, kNoLimit,
     &Options::initial_heap_size, nullptr},
    {"GC_MAXIMUM_HEAP_SIZE", OptionType::Size, "64k or more; 0: no limit", "0",
     "The heap never grows beyond this; then the out-of-memory function is called.", 64 * kKiB,
     kNoLimit, &Options::maximum_heap_size, nullptr, true},
    {"GC_FREE_SPACE_DIVISOR", OptionType::Count, "1 to 1000", "3",
     "A collection follows when about live bytes times 2 / divisor were allocated (1 is as 2; 1 "
     "and 2 are as 3 with many finalizers or links).",
     1, 1000, &Options::free_space_divisor, nullptr},
    {"GC_MARKERS", OptionType::Count, "1 to 64", "the CPUs available, at most 16",
     "Number of threads that mark, the collecting one included.", 1, 64, &Options::markers,
     nullptr},
    {"GC_NPROCS", OptionType::Count, "1 to 4096", "the CPUs available", "Number of CPUs to assume.",
     1, 4096, &Options::nprocs, nullptr},
    {"GC_ENABLE_INCREMENTAL", OptionType::Flag, "", "off",
     "Most collections look only at what is new and what changed (Linux 6.7 or newer).", 0, 1,
     &Options::enable_incremental, nullptr},
    {"GC_FULL_FREQUENCY", OptionType::Count, "0 to 1000000", "19",
     "In the incremental mode, so many partial collections come before a full one.", 0, 1000000,
     &Options::full_frequency, nullptr},
    {"GC_PAUSE_TIME_TARGET", OptionType::Count, "0 to 999999; 999999: no limit", "999999",
     "In the incremental mode, the milliseconds that the world stands while objects are marked: "
     "collections that take longer are done in steps.",
     0, 999999, &Options::pause_target, nullptr},
    {"GC_DONT_GC", OptionType::Flag, "", "off", "Never collect.", 0, 1, &Options::dont_gc, nullptr},
    {"GC_FIND_LEAK", OptionType::Flag, "", "off",
     "Report objects that nothing reaches and that were not freed, at each collection and the end.",
     0, 1, &Options::find_leak, nullptr},
    {"GC_ABORT_ON_LEAK", OptionType::Flag, "", "off",
     "End the program by abort() after a collection that reports leaked or smashed objects.", 0, 1,
     &Options::abort_on_leak, nullptr},
    {"GC_PRINT_STATS", OptionType::Flag, "", "off", "Log a few lines for each collection.", 0, 1,
     &Options::print_stats, nullptr},
    {"GC_PRINT_VERBOSE_STATS", OptionType::Flag, "", "off", "Log more lines for each collection.",
     0, 1, &Options::print_verbose_stats, nullptr},
    {"GC_LOG_FILE", OptionType::Path, "", "stderr", "Append the log to this file.", 0, 0, nullptr,
     &Options::log_file},
    {"GC_RETRY_SIGNALS", OptionType::Flag, "", "on",
     "Send the stop signal again to a thread that does not answer.", 0, 1, &Options::retry_signals,
     nullptr},
    {"GC_UNMAP_THRESHOLD", OptionType::Count, "0 to 255; 0: never", "7",
     "Free memory goes back to the system after it lay idle for so many collections.", 0, 255,
     &Options::unmap_threshold, nullptr},
    {"GC_FORCE_UNMAP_ON_GCOLLECT", OptionType::Flag, "", "off",
     "After GC_gcollect() no free page is kept.", 0, 1, &Options::unmap_on_gcollect, nullptr},
    {"GC_ALL_INTERIOR_POINTERS", OptionType::Flag, "", "as the program sets it (on)",
     "Do pointers past an object's end count on stacks? Interior ones always do.", 0, 1,
     &Options::all_interior_pointers, nullptr},
    {"JACKDAW_MARK_STRATEGY", OptionType::Choice, "none, grey, on-grey, ring, measured", "measured",
     "How the marker prefetches: not at all, each object when it turns grey, the same with the "
     "refinements of Boehm's paper, through a FIFO ring, or, in small heaps, grey or ring by what "
     "was quicker.",
     0, 4, &Options::mark_strategy, nullptr},
    {"JACKDAW_MARK_STACK", OptionType::Count, "16 to 4294967296; 0: by the heap", "0",
     "Entries of the mark stack; a small one forces the overflow path.", 16, std::uint64_t{1} << 32,
     &Options::mark_stack, nullptr, true},
    {"JACKDAW_MARK_PATIENCE", OptionType::Count, "1 or more", "2048",
     "Entries that a lone marker takes from its stack before it wakes helpers; 1 shares the "
     "smallest work. Unless given, it is 16 times as many where fewer than 65536 objects, and less "
     "than 4 MiB, were alive the last time; then, too, no helper is woken before marking has taken "
     "2 ms, nor where one marker was quicker lately.",
     1, kNoLimit, &Options::mark_patience, nullptr},
    {"JACKDAW_MARK_TURN", OptionType::Count, "1 or more; 0: always with the ring", "1024",
     "Objects that the ring strategy marks without it before it looks whether that is quicker "
     "(up to 15: stress, by turns with it and without).",
     1, kNoLimit, &Options::mark_turn, nullptr, true},
    {"JACKDAW_MARK_BESIDE", OptionType::Flag, "", "on",
     "A thread marks beside the program where collections are done in steps "
     "(GC_PAUSE_TIME_TARGET) and there may be two markers.",
     0, 1, &Options::mark_beside, nullptr},
    {"JACKDAW_WRITTEN_PAGES", OptionType::Size, "any; 0: of no object", "16k",
     "Of objects of this size or more only those pages are marked from that were written, as "
     "/proc/self/pagemap says, which a sandbox may forbid to open. With --malloc: 4m.",
     0, kNoLimit, &Options::written_pages, nullptr},
    {"JACKDAW_SWEEP", OptionType::Choice, "lazy, eager", "lazy",
     "When the free slots of blocks in use are found and cleared: at need, or in each collection.",
     0, 1, &Options::sweep_time, nullptr},
    {"JACKDAW_NEARLY_FULL", OptionType::Count, "1 to 64; 0: no block is passed over", "16",
     "With n, allocation passes over blocks of whose slots less than 1/n is free; of blocks with "
     "slots that were freed by hand, those with less than 1/(4n).",
     1, 64, &Options::nearly_full, nullptr, true},
    {"JACKDAW_COARSE_CLASSES", OptionType::Size, "any; 0: never", "3M",
     "Up to this size of the heap, objects of 33 to 504 bytes have eleven sizes of slots.", 0,
     kNoLimit, &Options::coarse_classes, nullptr},
    {"JACKDAW_SPANS", OptionType::Size, "any; 0: in none", "4m",
     "In heaps of this size or more, objects of 8 to 40 KiB share runs of blocks.", 0, kNoLimit,
     &Options::spans, nullptr},
    {"JACKDAW_CLEAR_AHEAD", OptionType::Size, "16 to 16k", "2k",
     "Memory is cleared in pieces of this size ahead of allocation.", 16, 16 * kKiB,
     &Options::clear_ahead, nullptr},
    {"JACKDAW_STATISTICS", OptionType::Path, "", "none",
     "At exit, write the measured statistics to this file as a line of JSON.", 0, 0, nullptr,
     &Options::statistics_file},
    {"JACKDAW_TIME_SWEEP", OptionType::Flag, "", "off",
     "Measure the finding and the clearing of free slots, too; makes allocation a little slower.",
     0, 1, &Options::time_sweep, nullptr},
    {"JACKDAW_HUGE_PAGES", OptionType::Flag, "", "on",
     "Ask the system for huge pages once the heap is large.", 0, 1, &Options::huge_pages, nullptr},
    {"JACKDAW_PAD_OBJECTS", OptionType::Flag, "", "off",
     "Add bdwgc's byte of padding, for clients that keep only past-the-end pointers in the heap, "
     "or write a little past their objects' ends.",
     0, 1, &Options::pad_objects, nullptr},
    {"JACKDAW_RESERVE", OptionType::Size, "4M to 16384G; 0: by the machine", "0",
     "Address space to reserve for the heap.", 4 * kMiB, std::uint64_t{1} << 44, &Options::reserve,
     nullptr, true},
    {"JACKDAW_COLLECT_EVERY", OptionType::Count, "0: off", "0",
     "Stress: collect at every n-th allocation (1: at each).", 0, kNoLimit, &Options::collect_every,
     nullptr},
    {"JACKDAW_POISON", OptionType::Flag, "", "off", "Stress: overwrite reclaimed memory with 0xDB.",
     0, 1, &Options::poison, nullptr},
    {"JACKDAW_VERIFY", OptionType::Flag, "", "off (on in debug builds)",
     "Check every heap structure, and mark again with an independent marker, at each collection.",
     0, 1, &Options::verify, nullptr},
    {"JACKDAW_STOP_DELAY", OptionType::Count, "up to 1000000 microseconds; 0: off", "0",
     "Stress: wait a random time up to this while stopping and resuming threads.", 0, 1000000,
     &Options::stop_delay, nullptr},
    {"JACKDAW_FAIL_OS", OptionType::Count, "0: off", "0",
     "Stress: from the n-th on, let every request for memory to the system fail.", 0, kNoLimit,
     &Options::fail_os, nullptr},
    {"JACKDAW_MALLOC", OptionType::Choice, "free, ignore, leak-check", "free",
     "For jackdaw run --malloc: free() frees, or does nothing; or leaks are reported at exit.", 0,
     2, &Options::malloc_mode, nullptr},
    {"JACKDAW_WORKERS", OptionType::Count, "1 to 128", "the CPUs available",
     "Number of threads that run tasks.", 1, 128, &Options::workers, nullptr},
    {"JACKDAW_TASK_MODE", OptionType::Choice, "deque, stop, barrier", "barrier",
     "How tasks are stolen: from deques; from stopped stacks; below a return barrier.", 0, 2,
     &Options::task_mode, nullptr},
    {"JACKDAW_TASK_STACK", OptionType::Size, "64k to 1G", "8M",
     "Address space for a task's stack; pages are taken as they are touched.", 64 * kKiB,
     1024 * kMiB, &Options::task_stack, nullptr},
    {"JACKDAW_TASK_DELAY", OptionType::Count, "up to 1000000 microseconds; 0: off", "0",
     "Stress: wait a random time up to this at the steps of a steal and of a join.", 0, 1000000,
     &Options::task_delay, nullptr},
    {"JACKDAW_TASK_SEED", OptionType::Count, "0: another one each time", "0",
     "Stress: what the workers' choices of victims and their delays begin with.", 0, kNoLimit,
     &Options::task_seed, nullptr},
    {"JACKDAW_POLICY", OptionType::Choice, "evacuate, mcc, non-moving",
     "as the program sets it (evacuate)", "How typed objects move.", 0, 2, &Options::policy,
     nullptr},
    {"JACKDAW_MOVE", OptionType::Flag, "", "off",
     "Stress: at each collection, move every typed object that may move.", 0, 1, &Options::move,
     nullptr},
    {"JACKDAW_MIXED_BLOCKS", OptionType::Flag, "", "on",
     "Objects that say their layout themselves lie in the order of allocation, not by size.", 0, 1,
     &Options::mixed, nullptr},
};

// Reads the environment into *options: nothing of it in a program that has other privileges than
// the user who started it. What is out of range is taken for the nearest that is not. Each value
// that is not understood leaves the default in place. Both are reported, once each.
using Complain = void(const OptionInfo& option, const char* value, bool is_out_of_range);
void read_options(Options* options, Complain* complain);

// Whether the environment had a value for it that was understood: it may be the default's.
[[nodiscard]] bool was_given(std::uint64_t Options::*number);

// Calls found("NAME=value") for each variable of the environment that is named like an option of
// Jackdaw's own and is none: misspelt, as a rule.
void find_unknown_options(void (*found)(const char* variable));

// Parses a number with an optional suffix k, M or G. False for anything else, and on overflow.
[[nodiscard]] bool parse_size(const char* text, std::uint64_t* value);

}  // namespace jd::base
