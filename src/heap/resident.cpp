#include "heap/resident.hpp"

#include "heap/huge_pages.hpp"
#include "heap/runs.hpp"
#include "os/memory.hpp"

namespace jd::heap {
namespace {

// All under the heap's lock; the first two are read without it, too, by whoever asks how large the
// heap is (relaxed).
BlockNumber total_returned;
BlockNumber peak_resident;  // as of when pages were returned last
// Free blocks that may have pages, those at most that became free since all was discarded.
BlockNumber maybe_idle;

void set(BlockNumber* total, BlockNumber value) {
  __atomic_store_n(total, value, __ATOMIC_RELAXED);
}
BlockNumber read(const BlockNumber& total) { return __atomic_load_n(&total, __ATOMIC_RELAXED); }

BlockNumber blocks_in_use() { return space.committed - 1 - free_blocks(); }

// Committed blocks whose pages are not returned.
BlockNumber resident_blocks() {
  const std::size_t committed = __atomic_load_n(&space.span, __ATOMIC_RELAXED) >> kBlockShift;
  // Block 0 is never used; before the start there is not even that.
  const auto usable = static_cast<BlockNumber>(committed == 0 ? 0 : committed - 1);
  return usable - base::min_of(usable, read(total_returned));
}

template <class Visit>
void for_each_run(Visit visit) {
  for (unsigned number = 0; number < bin_count(); ++number) {
    for (BlockNumber b = bin(number).runs.head(); b != kNoBlock; b = space.extras[b].next) {
      visit(b, space.blocks[b].run);
    }
  }
}

// Discards what is idle of [from, end), up to `most` bytes, which it takes from *most. Returns
// where it stopped.
BlockNumber discard_idle_in(BlockNumber from, BlockNumber end, unsigned least_age,
                            std::size_t* most) {
  const auto idle = [least_age](BlockNumber at) {
    return space.extras[at].dirty && space.extras[at].age >= least_age;
  };
  BlockNumber b = from;
  while (b < end && *most >= kBlockSize) {
    if (!idle(b)) {
      ++b;
      continue;
    }
    const BlockNumber first = b;
    while (b < end && idle(b) && bytes_of(b - first) < *most) ++b;
    const std::size_t bytes = bytes_of(b - first);
    if (!os::discard(base::as_pointer(block_address(first)), bytes)) continue;
    for (BlockNumber at = first; at < b; ++at) {
      space.extras[at].dirty = false;
      space.extras[at].dropped = false;
      space.extras[at].returned = true;
    }
    set(&total_returned, total_returned + (b - first));
    *most -= bytes;
  }
  return b;
}

}  // namespace

BlockNumber most_resident = UINT32_MAX;

bool has_memory_for(BlockNumber count) {
  return space.committed - 1 <= most_resident || blocks_in_use() + count <= most_resident;
}

bool make_memory_for(BlockNumber count) {
  if (__builtin_expect(space.committed - 1 <= most_resident, 1)) return true;
  if (!has_memory_for(count)) return false;
  const BlockNumber idle = base::min_of(maybe_idle, free_blocks() - total_returned);
  if (blocks_in_use() + idle + count > most_resident) {
    // All of it: then it is long until the next time.
    discard_idle(0);
    maybe_idle = 0;
  }
  return true;
}

void note_idle(BlockNumber count) {
  maybe_idle = base::min_of(maybe_idle + count, space.committed);
}

void forget_idle() { maybe_idle = 0; }

std::size_t discard_idle(unsigned least_age, std::size_t most, DiscardPosition* position) {
  most = base::align_down(base::min_of(most, SIZE_MAX - kBlockSize), kBlockSize);
  std::size_t left = most;
  set(&peak_resident, base::max_of(peak_resident, resident_blocks()));
  DiscardPosition at;
  const bool goes_on =
      position != nullptr && position->run != kNoBlock && position->run == remembered_run();
  unsigned number = 0;
  if (goes_on) {
    at = *position;
    number = bin_of(space.blocks[at.run].run);
    at.block = discard_idle_in(at.block, at.run + space.blocks[at.run].run, least_age, &left);
  }
  BlockNumber next = goes_on ? space.extras[at.run].next : bin(number).runs.head();
  while (left != 0) {
    if (next == kNoBlock) {
      if (++number == bin_count()) break;
      next = bin(number).runs.head();
      continue;
    }
    at.run = next;
    at.block = discard_idle_in(next, next + space.blocks[next].run, least_age, &left);
    next = space.extras[next].next;
  }
  if (position != nullptr) {
    *position = at;
    remember_run(at.run);
  }
  return most - left;
}

void discard_stale_records() {
  for_each_run([](BlockNumber first, BlockNumber count) {
    // The ends describe the run.
    const Word from = base::align_up(base::as_word(&space.blocks[first + 1]), os::page_size());
    const Word to =
        base::align_down(base::as_word(&space.blocks[first + count - 1]), os::page_size());
    if (from < to) os::discard(base::as_pointer(from), to - from);
  });
}

std::size_t returned_bytes() { return bytes_of(read(total_returned)); }
std::size_t resident_bytes() { return bytes_of(resident_blocks()); }
std::size_t free_resident_bytes() {
  const BlockNumber free = free_blocks();
  // Whoever asks without the lock may come when a run is taken, and its blocks still count as
  // returned.
  return bytes_of(free - base::min_of(free, read(total_returned)));
}
std::size_t peak_resident_bytes() {
  return bytes_of(base::max_of(read(peak_resident), resident_blocks()));
}

BlockNumber start_using(BlockNumber first, BlockNumber count, bool filled) {
  note_use_for_huge_pages(first, first + count, filled);
  BlockNumber dirty = 0;
  for (BlockNumber number = first; number < first + count; ++number) {
    BlockExtra& extra = space.extras[number];
    dirty += extra.dirty ? 1 : 0;
    if (extra.returned) set(&total_returned, total_returned - 1);
    extra.returned = false;
    extra.dirty = true;
    extra.age = 0;
  }
  return dirty;
}

bool has_dropped_words(BlockNumber first, BlockNumber count) {
  for (BlockNumber number = first; number < first + count; ++number) {
    if (space.extras[number].dropped) return true;
  }
  return false;
}

void clear_dropped_words(BlockNumber first, BlockNumber count) {
  for (BlockNumber number = first; number < first + count; ++number) {
    if (!space.extras[number].dropped) continue;
    base::clear_bytes(base::as_pointer(block_address(number)), kBlockSize);
    space.extras[number].dropped = false;
  }
}

}  // namespace jd::heap
