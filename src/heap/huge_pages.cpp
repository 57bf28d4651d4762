#include "heap/huge_pages.hpp"

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

// All under the heap's lock.
BlockNumber step = kFirstStep;
unsigned slow = 0;

}  // namespace

BlockNumber next_without_huge_page = kNoBlock;

void start_huge_pages() {
  next_without_huge_page = kHugePagesFrom;
  step = kFirstStep;
  slow = 0;
}

void ask_for_huge_pages(BlockNumber first, BlockNumber end, bool filled) {
  const BlockNumber from = next_without_huge_page;
  const auto beyond =
      static_cast<BlockNumber>(base::align_up(std::size_t{end}, std::size_t{kHugePageBlocks}));
  if (!filled) {
    next_without_huge_page = beyond;
    return;
  }
  const BlockNumber to = beyond + step - kHugePageBlocks;
  next_without_huge_page = to;
  os::advise_huge_pages(base::as_pointer(block_address(from)),
                        bytes_of(base::min_of(to, space.reserved) - from));
  // Of the run, what lies beyond the frontier was just asked for.
  const BlockNumber fresh = base::max_of(first, from);
  if (os::ns_of_first_touch(base::as_pointer(block_address(fresh))) <= kSlow) {
    slow = 0;
    step = base::min_of(2 * step, kLongestStep);
    return;
  }
  step = kFirstStep;
  if (++slow >= kSlowEnough) next_without_huge_page = kNoBlock;
}

}  // namespace jd::heap
