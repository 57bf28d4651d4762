#include "heap/huge_pages.hpp"

#include "heap/walk.hpp"
#include "os/memory.hpp"

namespace jd::heap {
namespace {

// A huge page that takes longer than this to come is taken for dearer than 512 ordinary ones: in a
// virtual machine it may be four milliseconds, where otherwise it is a fraction of one. After so
// many in a row no more are asked for. Guesses, both (docs/design/heap.md, "Huge pages").
constexpr std::uint64_t kSlow = 1500000;  // ns
constexpr unsigned kSlowEnough = 2;

// Pages that are asked for at once: few until one came quickly. Other steps were not tried.
constexpr BlockNumber kFirstStep = kHugePageBlocks;
constexpr BlockNumber kLongestStep = 8 * kHugePageBlocks;

// Pages behind the ends of large objects are never touched, but a huge page brings them in. While
// they are more than this part of the heap, none is asked for: about the memory by which the heap
// may exceed bdwgc's. And this is the heap's growth from one look to the next, so that looks cost a
// fraction of what growing does. Guesses, both.
constexpr std::size_t kTailShare = 16;
constexpr BlockNumber kLookShare = 8;

// The heap's size in blocks at the first look: before the first huge page can be asked for.
constexpr BlockNumber kFirstLook = kHugePagesFrom / 2;

// All under the heap's lock.
BlockNumber step = kFirstStep;
unsigned slow = 0;
BlockNumber next_look = kFirstLook;
bool tails_are_long = false;

std::size_t bytes_behind_large_objects() {
  std::size_t sum = 0;
  for_each_block([&](BlockNumber, Block& block) {
    if (block.state != BlockState::LargeHead) return;
    const std::size_t whole = std::size_t{block.run} << kBlockShift;
    const std::size_t bytes = __atomic_load_n(&extra_of(&block).bytes, __ATOMIC_ACQUIRE);
    sum += whole - base::align_up(bytes, os::page_size());
  });
  return sum;
}

}  // namespace

BlockNumber next_without_huge_page = kNoBlock;

void start_huge_pages() {
  next_without_huge_page = kHugePagesFrom;
  step = kFirstStep;
  slow = 0;
  next_look = kFirstLook;
  tails_are_long = false;
}

void note_growth_for_huge_pages() {
  if (next_without_huge_page == kNoBlock || space.committed < next_look) return;
  next_look = space.committed + space.committed / kLookShare;
  tails_are_long =
      bytes_behind_large_objects() > (std::size_t{space.committed} << kBlockShift) / kTailShare;
}

void ask_for_huge_pages(BlockNumber first, BlockNumber end) {
  const BlockNumber from = next_without_huge_page;
  const auto to = static_cast<BlockNumber>(
      base::align_up(std::size_t{end}, std::size_t{kHugePageBlocks}) + step - kHugePageBlocks);
  next_without_huge_page = to;
  if (tails_are_long) return;
  os::advise_huge_pages(base::as_pointer(block_address(from)),
                        std::size_t{base::min_of(to, space.reserved) - from} << kBlockShift, true);
  // One touch for all of a large object, since most of it may never be used.
  const BlockNumber touched = base::max_of(first, from);
  if (os::ns_of_first_touch(base::as_pointer(block_address(touched))) <= kSlow) {
    slow = 0;
    step = base::min_of(2 * step, kLongestStep);
    return;
  }
  step = kFirstStep;
  if (++slow >= kSlowEnough) next_without_huge_page = kNoBlock;
}

}  // namespace jd::heap
