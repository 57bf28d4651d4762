// What allocation is told at the start, and what it then measures.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace jd::alloc {

// For one-slot holes under stress, so that every allocation takes the slow path. Set at the start.
extern bool every_allocation_is_slow;
// bdwgc's byte of padding (JACKDAW_PAD_OBJECTS). Set at the start, together with
// every_allocation_is_slow: the fast path knows nothing of it.
extern std::size_t padding;

// Whatever is freed loses its mark, which else would stay for whoever has the slot next
// (cycle/partial.hpp). Set under the heap's lock, maybe while others free (relaxed: a mark too many
// is only garbage that stays).
extern bool marks_are_kept;
// That, or another treatment of what is freed: then the fast path of freeing leaves it alone. As
// above.
extern bool frees_are_treated;
// Sets both; also once at the start, when heap::poison_freed and heap::sweep_policy are set.
void choose_treatment_of_frees(bool keeping_marks);

// Bytes that are cleared at a time ahead of the cursor (docs/design/alloc.md, "Clearing ahead").
// Set at the start.
extern std::size_t clear_ahead;

// Large objects of so many bytes or more get clear by giving old pages back to the system. Set at
// the start.
extern std::size_t clear_by_discarding_from;

// Objects of more than half a block share runs of blocks (heap/spans.hpp) in heaps of so many bytes
// or more; 0: in none. At the start.
void set_spans_from(std::size_t bytes);

// It is libc that asks for memory, as for any other program's malloc, and may hold its locks. Set
// at the start.
extern bool within_libc;

// What the lazy part of the sweep took, in os::ticks: looking for free slots in a block, and
// clearing them. What reading the clock takes is left out. Counted if time_refills, which is set at
// the start. Every refilling thread adds, the statistics read (relaxed; only the sums matter).
struct RefillTicks {
  std::atomic<std::uint64_t> finding{0};
  std::atomic<std::uint64_t> clearing{0};
};
extern RefillTicks refill_ticks;
extern bool time_refills;
void start_timing_refills();  // at the start

// What tells slots in magazines from objects is made of these bits. At the start.
void choose_magazine_key(std::uint64_t random);

}  // namespace jd::alloc
