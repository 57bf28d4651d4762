#include "heap/sweep.hpp"

#include "heap/blocks.hpp"
#include "heap/mixed.hpp"
#include "heap/runs.hpp"
#include "heap/walk.hpp"
#include "os/log.hpp"

namespace jd::heap {
namespace {

// Blocks whose unreachable objects wait for their disclaim function, linked by `next`. Under the
// heap's lock.
BlockNumber deferred = kNoBlock;

// The free run that the walk is in the middle of.
struct OpenRun {
  BlockNumber first = kNoBlock;
  BlockNumber count = 0;

  void extend(BlockNumber number, BlockNumber blocks) {
    if (count == 0) first = number;
    count += blocks;
  }
  void close() {
    if (count != 0) add_run_in_order(first, count);
    count = 0;
  }
};

void poison_dead_slots(BlockNumber number, const Block& block) {
  for_each_unmarked(block, [&](unsigned slot) {
    poison(block_address(number) + std::size_t{slot} * block.slot_size, block.slot_size);
  });
}

void age_free_blocks(BlockNumber first, BlockNumber length, SweepCount* count) {
  for (BlockNumber b = first; b < first + length; ++b) {
    BlockExtra& extra = space.extras[b];
    if (!extra.dirty) continue;
    if (extra.age != UINT8_MAX) ++extra.age;
    count->oldest_free = base::max_of(count->oldest_free, unsigned{extra.age});
  }
}

void count_live(const Block& block, std::size_t objects, std::size_t bytes, SweepCount* count) {
  count->live_objects += objects;
  count->live_bytes += bytes;
  if (block.scan == Scan::None) count->live_atomic_bytes += bytes;
  if (kinds[block.kind].has_layout()) count->live_typed_bytes += bytes;
}

enum class World { Stopped, Running };

// allocated := marked, and the reverse, for a word of the block's bits. Where the world runs, other
// threads may be freeing objects of this word, and what they clear must stay clear.
template <World kWorld>
void sweep_word(Block& block, unsigned w) {
  if constexpr (kWorld == World::Running) {
    block.marks[w] = __atomic_and_fetch(&block.allocated[w], block.marks[w], __ATOMIC_RELAXED);
  } else {
    // Threads that no collection stops may read them meanwhile (GC_free's first look).
    block.marks[w] &= block.allocated[w];
    __atomic_store_n(&block.allocated[w], block.marks[w], __ATOMIC_RELAXED);
  }
}

// Some of its objects were freed. `before`: the first word of its allocated bits until then.
void note_dropped(const Block& block, std::uint64_t before, BlockExtra* extra) {
  if (block.state == BlockState::SpanHead) {
    const std::uint64_t left = __atomic_load_n(&block.allocated[0], __ATOMIC_RELAXED);
    extra->span.dropped |= static_cast<std::uint32_t>(before & ~left);
  } else {
    extra->dropped = true;
  }
}

// A small block or a span. True if it has become free.
template <World kWorld>
bool sweep_slots(BlockNumber number, Block& block, SweepCount* count) {
  BlockExtra& extra = space.extras[number];
  const unsigned allocated = count_bits(block.allocated, block.slots);
  // Where the world runs, of some moment.
  const std::uint64_t before = __atomic_load_n(&block.allocated[0], __ATOMIC_RELAXED);
  if (poison_freed) poison_dead_slots(number, block);
  for (unsigned w = 0; w < block.bit_words(); ++w) sweep_word<kWorld>(block, w);
  const unsigned live = count_bits(block.allocated, block.slots);
  set_listed(&extra, false);
  count_live(block, live, std::size_t{live} * block.slot_size, count);
  if (live != allocated) note_dropped(block, before, &extra);
  count->freed_bytes += std::size_t{allocated - live} * block.slot_size;
  if (live == 0 && extra.owner == nullptr) {
    become_free(number, length_of(block), true);
    return true;
  }
  extra.free_slots = static_cast<std::uint16_t>(block.slots - live);
  extra.zeroed = false;
  return false;
}

// As sweep_slots, in a stopped world; free_slots are granules.
bool sweep_mixed_block(BlockNumber number, Block& block, SweepCount* count) {
  BlockExtra& extra = space.extras[number];
  unsigned objects = 0;
  for (unsigned w = 0; w < block.bit_words(); ++w) {
    objects += base::count_ones(block.marks[w] & block.allocated[w]);
  }
  set_listed(&extra, false);
  extra.zeroed = false;
  if (objects == 0 && extra.owner == nullptr) {
    count->freed_bytes += std::size_t{used_granules(number)} * kGranule;
    become_free(number, 1, true);
    return true;
  }
  const unsigned used = used_granules(number);
  unsigned free = 0;
  const unsigned live = sweep_mixed(number, &free);
  if (poison_freed) poison_gaps(number);
  extra.free_slots = static_cast<std::uint16_t>(free);
  count_live(block, objects, std::size_t{live} * kGranule, count);
  count->freed_bytes += std::size_t{used - live} * kGranule;
  return false;
}

bool sweep_large(BlockNumber number, Block& block, SweepCount* count) {
  const BlockExtra& extra = space.extras[number];
  if (block.marked(0)) {
    count_live(block, 1, extra.bytes, count);
    return false;
  }
  count->freed_bytes += extra.bytes;
  become_free(number, block.run, true);
  return true;
}

// heap.req.zeroed. What lazy sweeping leaves to allocation: finds the free slots of a block that no
// thread owns, and clears them. Costs every block in use its cache misses twice; here to measure
// just that.
void clear_free_slots(BlockNumber number, const Block& block) {
  const Word start = block_address(number);
  const Word end = start + std::size_t{block.slots} * block.slot_size;
  Word from = start;
  for_each_bit(block.allocated, block.slots, [&](unsigned slot) {
    const Word object = start + std::size_t{slot} * block.slot_size;
    base::clear_bytes(base::as_pointer(from), object - from);
    from = object + block.slot_size;
  });
  base::clear_bytes(base::as_pointer(from), end - from);
  space.extras[number].zeroed = true;
}

bool has_dead_objects(const Block& block) {
  for (unsigned w = 0; w < block.bit_words(); ++w) {
    if ((block.allocated[w] & ~block.marks[w]) != 0) return true;
  }
  return false;
}

void defer_disclaiming(BlockNumber number, const Block& block, SweepCount* count) {
  BlockExtra& extra = space.extras[number];
  std::size_t marked = 0;
  for_each_marked(block, [&marked](unsigned) { ++marked; });
  count->deferred_bytes += marked * unmixed_size(block);
  set_listed(&extra, false);
  extra.next = deferred;
  deferred = number;
}

// Lists a block that is in use and has room enough, behind the free run before it. False if it is
// not to be listed.
bool list_if_worthwhile(BlockNumber number, const Block& block, OpenRun* run) {
  const BlockExtra& extra = space.extras[number];
  if (extra.owner != nullptr || nearly_full(block, extra.free_slots)) return false;
  run->close();
  list_block_in_order(number);
  return true;
}

// True if the block, or the run that begins with it, is free.
bool sweep_block(BlockNumber number, Block& block, OpenRun* run, SweepCount* count) {
  if (block.state == BlockState::Free) {
    age_free_blocks(number, block.run, count);
    return true;
  }
  const Kind& kind = kinds[block.kind];
  if (kind.disclaim != nullptr && has_dead_objects(block)) {
    defer_disclaiming(number, block, count);
    return false;
  }
  if (block.state == BlockState::Mixed) {
    if (sweep_mixed_block(number, block, count)) return true;
    if (!sweep_policy.keep_gaps) list_if_worthwhile(number, block, run);
    return false;
  }
  if (has_slots_of_one_size(block)) {
    if (sweep_slots<World::Stopped>(number, block, count)) return true;
    const bool listed = list_if_worthwhile(number, block, run);
    // Where a kind disclaims, a hole may lie in a block without an owner, and be dirty. Of spans
    // nobody would ask.
    if (listed && sweep_policy.eager && kind.clear && kind.disclaim == nullptr && is_alone(block)) {
      clear_free_slots(number, block);
    }
    return false;
  }
  return sweep_large(number, block, count);
}

}  // namespace

SweepPolicy sweep_policy;

void start_marks() {
  for_each_block([](BlockNumber, Block& block) {
    // Where an object of a mixed block begins may not be known yet.
    const bool mixed = block.state == BlockState::Mixed;
    for (unsigned w = 0; w < block.bit_words(); ++w) {
      block.marks[w] = mixed ? 0 : ~block.allocated[w];
    }
  });
}

SweepCount sweep() {
  SweepCount count;
  OpenRun run;
  forget_runs();
  forget_lists();
  deferred = kNoBlock;
  for_each_block([&](BlockNumber number, Block& block) {
    const BlockNumber length = length_of(block);
    if (sweep_block(number, block, &run, &count)) {
      run.extend(number, length);
    } else {
      run.close();
    }
  });
  run.close();
  return count;
}

void keep_everything() {
  for_each_block([](BlockNumber number, Block& block) {
    if (block.state == BlockState::Mixed) return keep_mixed(number);
    for (unsigned w = 0; w < block.bit_words(); ++w) block.marks[w] = block.allocated[w];
  });
}

void (*on_disclaimed)(const Place& place) = nullptr;

void disclaim_deferred(SweepCount* count) {
  while (deferred != kNoBlock) {
    const BlockNumber number = deferred;
    deferred = space.extras[number].next;
    Block& block = space.blocks[number];
    const DisclaimFunction disclaim = kinds[block.kind].disclaim;
    for_each_unmarked(block, [&](unsigned slot) {
      const Place place{&block, slot};
      if (disclaim(base::as_pointer(place.address())) != 0) {
        place.set_mark();
      } else if (void (*const tell)(const Place&) =
                     __atomic_load_n(&on_disclaimed, __ATOMIC_RELAXED)) {
        tell(place);
      }
    });
    const BlockNumber length = length_of(block);
    if (block.state == BlockState::LargeHead) {
      if (sweep_large(number, block, count)) give_run(number, length);
    } else if (sweep_slots<World::Running>(number, block, count)) {
      give_run(number, length);
    } else {
      list_block(number);
    }
  }
}

}  // namespace jd::heap
