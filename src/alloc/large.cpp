// Objects in runs of blocks: large ones, which have a run of their own, and those that share one, a
// span (heap/spans.hpp).
#include "alloc/allocate.hpp"
#include "alloc/collecting.hpp"
#include "alloc/pacer.hpp"
#include "alloc/refill.hpp"
#include "alloc/settings.hpp"
#include "alloc/totals.hpp"
#include "heap/blocks.hpp"
#include "heap/resident.hpp"
#include "heap/spans.hpp"
#include "os/context.hpp"
#include "os/memory.hpp"
#include "world/thread.hpp"

namespace jd::alloc {
namespace {

using heap::Block;
using heap::heap_lock;
using heap::kBlockSize;
using heap::space;
using os::LockGuard;

// True if that has written all its pages; false if it has given them back. Pre: whole blocks from
// `object` on are its own.
bool clear_large(char* object, std::size_t bytes) {
  if (bytes >= clear_by_discarding_from && os::discard(object, base::align_up(bytes, kBlockSize))) {
    return false;
  }
  base::clear_bytes(object, bytes);
  return true;
}

// Since the last collection. Under the heap's lock.
RunDemand run_demand;
void note_demand(BlockNumber blocks) {
  if (blocks == 1) return;
  run_demand.blocks += blocks;
  run_demand.length = base::max_of(run_demand.length, blocks);
}

// Before the lock is let go: another thread may fork, and in the child the object stays as it is.
void begin_with_zero(char* object, KindNumber kind) {
  if (heap::begins_with_zero(heap::kinds[kind])) base::clear_bytes(object, sizeof(base::Word));
}

void* allocate_large(std::size_t bytes, std::size_t alignment, KindNumber kind) {
  std::size_t rounded = 0;
  if (!base::checked_add(bytes, heap::kGranule - 1, &rounded)) return nullptr;
  rounded = base::align_down(rounded, heap::kGranule);
  const std::size_t blocks = base::div_up(rounded, kBlockSize);
  const std::size_t alignment_blocks = base::max_of(alignment / kBlockSize, std::size_t{1});
  if (blocks + alignment_blocks > space.reserved) return nullptr;
  const auto run = static_cast<BlockNumber>(blocks);
  const heap::Kind& of = heap::kinds[kind];
  char* object = nullptr;
  Block* block = nullptr;
  bool clear = false;
  BlockNumber dirty = 0;
  os::clear_stack_below();
  {
    LockGuard guard(heap_lock);
    if (__builtin_expect(collection_waits, 0)) pacer.catch_up();
    for (unsigned attempt = 0;;) {
      block = heap::make_large(kind, rounded, static_cast<BlockNumber>(alignment_blocks), &dirty);
      if (block != nullptr) break;
      if (give_back_unused(cache)) continue;
      if (!pacer.make_room(static_cast<BlockNumber>(blocks + alignment_blocks - 1), attempt++)) {
        return nullptr;
      }
    }
    object = base::as_pointer(heap::block_address(heap::number_of(block)));
    // Whoever waits for the lock may collect as soon as it is free. By then the object's own
    // address must be in this thread's registers: the record's is no root.
    asm volatile("" : "+r"(object));
    add_large_taken(rounded);
    note_demand(run);
    // A collection may come before it is clear: until then it has no words, and no descriptor.
    clear = of.clear ? dirty != 0
                     : of.clear_reclaimed && heap::has_dropped_words(heap::number_of(block), run);
    if (clear) block->scan = heap::Scan::None;
    begin_with_zero(object, kind);
  }
  if (clear) {
    if (of.clear) {
      heap::extra_of(block).filled = clear_large(object, rounded);
    } else {
      heap::clear_dropped_words(heap::number_of(block), run);
    }
    // Release: this thread may be stopped right behind it, and then the words are read.
    heap::Scan scan = of.scan;
    __atomic_store(&block->scan, &scan, __ATOMIC_RELEASE);
  }
  return object;
}

// Bytes of the heap from which there are spans: the free slots of a few are a good part of a small
// heap. Set at the start.
std::size_t least_heap_for_spans = SIZE_MAX;

// A span of the class with a free slot, which may be new. Null if no free run is long enough. Pre:
// the lock is held.
Block* span_of(unsigned span_class, KindNumber kind) {
  const heap::SpanClass& best = heap::kSpans[span_class];
  if (Block* listed = heap::find_span(kind, best.slot_size, best.slot_size)) return listed;
  Block* const made = heap::make_span(kind, span_class);
  if (made != nullptr) note_demand(best.blocks);
  return made;
}

// The object in the slot that find() gives it, if that finds a span, which it does with the lock
// held; null if not.
template <class Find>
void* allocate_in_span(KindNumber kind, Find find) {
  os::clear_stack_below();
  heap_lock.acquire();
  if (__builtin_expect(collection_waits, 0)) pacer.catch_up();
  Block* const span = find();
  if (span == nullptr) {
    heap_lock.release();
    return nullptr;
  }
  // Nobody stops this thread before the slot is clear: what it held would be marked.
  const world::NoStop no_stop(world::self());
  auto old_words = heap::OldWords::Freed;
  const heap::Place place = heap::take_slot(span, &old_words);
  add_large_taken(span->slot_size);
  char* slot = base::as_pointer(place.address());
  begin_with_zero(slot, kind);
  heap_lock.release();
  const heap::Kind& of = heap::kinds[kind];
  const bool clear = of.clear ? old_words != heap::OldWords::None
                              : of.clear_reclaimed && old_words == heap::OldWords::Dropped;
  if (clear) base::clear_bytes(slot, span->slot_size);
  // When the section ends, a collection may come: as above.
  asm volatile("" : "+r"(slot));
  return slot;
}

}  // namespace

void set_spans_from(std::size_t bytes) { least_heap_for_spans = bytes == 0 ? SIZE_MAX : bytes; }

RunDemand take_run_demand() {
  const RunDemand taken = run_demand;
  run_demand = {};
  return taken;
}

static bool uses_spans() {
  return __atomic_load_n(&space.span, __ATOMIC_RELAXED) >= least_heap_for_spans;
}

std::size_t size_in_run(std::size_t bytes) {
  const unsigned span_class = uses_spans() ? heap::span_class_for(bytes) : heap::kSpanClasses;
  return span_class != heap::kSpanClasses ? heap::kSpans[span_class].slot_size
                                          : base::align_up(bytes, heap::kGranule);
}

void* allocate_in_run(std::size_t bytes, std::size_t alignment, KindNumber kind, Run run) {
  if (run == Run::Own || alignment > heap::kGranule || heap::kinds[kind].has_layout() ||
      !uses_spans()) {
    return allocate_large(bytes, alignment, kind);
  }
  const unsigned span_class = heap::span_class_for(bytes);
  if (span_class != heap::kSpanClasses) {
    if (void* slot = allocate_in_span(kind, [=] { return span_of(span_class, kind); })) return slot;
  }
  // For whole blocks, the heap may collect or grow.
  if (void* object = allocate_large(bytes, alignment, kind)) return object;
  return allocate_in_span(kind, [=] { return heap::find_span(kind, bytes, SIZE_MAX); });
}

}  // namespace jd::alloc
