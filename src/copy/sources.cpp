// Which blocks are to be emptied.
#include <algorithm>

#include "copy/evacuate.hpp"
#include "copy/groups.hpp"
#include "copy/policy.hpp"
#include "copy/roles.hpp"
#include "heap/mixed.hpp"
#include "heap/runs.hpp"
#include "heap/walk.hpp"

namespace jd::copy {
namespace {

using heap::Block;
using heap::BlockState;
using heap::space;

// Blocks that are fuller than this are left alone, unless all is to be compacted: a block that is
// three quarters full costs three times as much copying as it frees.
constexpr unsigned kFullestQuarters = 3;
// And of mixed blocks, if all is to be compacted: they may go to free blocks, and what is so full
// would only go from one to the next. Not measured against others.
constexpr unsigned kFullestSixteenths = 15;
// Moving reads every typed object once more. It is worth that only if so many blocks become free...
constexpr BlockNumber kLeastGain = 64;
// ... and such a part of the heap,
constexpr BlockNumber kGainShare = 4;
// ... where the heap has grown by such a part since the last that moved: so a heap that grows is
// read once more for each such step, however many collections that takes. Where it has not, what is
// free in blocks in use is as good as free blocks, until the program wants objects of other sizes:
// then so many collections must have found that half of the heap would be free.
constexpr BlockNumber kGrowthShare = 4;
constexpr BlockNumber kIdleGainShare = 2;
constexpr unsigned kPatience = 16;
// The part of the heap by which it may grow to be compacted (docs/design/copy.md, "Where to").
constexpr BlockNumber kCompactionShare = 8;

BlockNumber committed_before = 0;  // as of the last collection that moved
// Of the collections since then, those that found that half of the heap would become free.
unsigned found_sparse = 0;

unsigned live_slots(const Block& block) {
  unsigned live = 0;
  for (unsigned w = 0; w < block.bit_words(); ++w) {
    live += base::count_ones(block.marks[w] & block.allocated[w]);
  }
  return live;
}

// Blocks of typed objects that no thread allocates from and that the sweep will not free anyway.
// *most: no more of them can become free, whatever is moved where.
bool list_blocks(BlockNumber* most) {
  blocks.clear();
  bool complete = true;
  // In parts of a block.
  constexpr std::uint32_t kParts = 1024;
  std::uint64_t empty = 0;
  heap::for_each_block([&](BlockNumber number, const Block& block) {
    if (!heap::is_alone(block) || !heap::kinds[block.kind].has_layout()) return;
    if (space.extras[number].owner != nullptr) return;
    const unsigned live =
        block.state == BlockState::Mixed ? heap::live_granules(number) : live_slots(block);
    if (live == 0) return;
    empty += (block.slots - live) * kParts / block.slots + 1;
    complete &=
        blocks.push({block.kind, block.size_class, static_cast<std::uint16_t>(live), number});
  });
  *most = static_cast<BlockNumber>(empty / kParts);
  return complete;
}

// By how much a compaction may let the heap grow.
BlockNumber growth_for_compaction() {
  const BlockNumber blocks = space.committed / kCompactionShare;
  return growth.may_grow(blocks) ? blocks : 0;
}

// Of a group with blocks [begin, end): as many sources, from the first on, as the others have room
// for. Returns how many become free.
BlockNumber choose_in_group(std::size_t begin, std::size_t end, Wish wish) {
  const unsigned slots = space.blocks[blocks[begin].number].slots;
  if (policy.everything) {
    for (std::size_t i = begin; i < end; ++i) roles[blocks[i].number] = Role::Source;
    return 0;
  }
  const bool mixed = blocks[begin].is_mixed();
  std::size_t room = 0;
  // Gaps are of any size, and objects leave some of each: blocks that are free make up for it, and
  // some more than the heap has.
  if (wish == Wish::Compact && mixed) {
    room = std::size_t{slots} * (heap::free_blocks() + growth_for_compaction());
  }
  for (std::size_t i = begin; i < end; ++i) room += slots - blocks[i].live;
  std::size_t to_move = 0;
  BlockNumber chosen = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const unsigned live = blocks[i].live;
    if (wish != Wish::Compact && 4 * live > kFullestQuarters * slots) break;
    if (mixed && 16 * live > kFullestSixteenths * slots) continue;
    room -= slots - live;
    to_move += live;
    if (to_move > room) break;
    roles[blocks[i].number] = Role::Source;
    ++chosen;
  }
  return chosen;
}

bool has_grown() { return space.committed > committed_before + committed_before / kGrowthShare; }

bool is_worth_it(BlockNumber gain, Wish wish) {
  if (policy.everything) return true;
  if (wish == Wish::Compact) return gain != 0;
  if (gain < kLeastGain) return false;
  if (has_grown() && gain >= space.committed / kGainShare) return true;
  return gain >= space.committed / kIdleGainShare && ++found_sparse >= kPatience;
}

// Can it be, if so many blocks become free at most? Asked before much is done to find out how many
// do: in most collections it can't.
bool may_be_worth_it(BlockNumber most, Wish wish) {
  if (policy.everything || wish == Wish::Compact) return true;
  return most >= kLeastGain &&
         most >= space.committed / (has_grown() ? kGainShare : kIdleGainShare);
}

}  // namespace

heap::Growable<TypedBlock> blocks;
Growth growth;

bool choose_sources(Wish wish, const Growth& how_to_grow) {
  growth = how_to_grow;
  if (!policy.moves || policy.mcc || !may_be_worth_it(space.committed, wish)) return false;
  BlockNumber most = 0;
  if (!list_blocks(&most) || blocks.count() == 0 || !may_be_worth_it(most, wish) ||
      !prepare_roles()) {
    return false;
  }
  // The sparsest, which cost least; but if all is to be compacted, the highest, so that what
  // becomes free lies together: for large objects, and because its records can go, too.
  std::sort(blocks.begin(), blocks.end(), wish == Wish::Compact ? higher : sparser);
  BlockNumber gain = 0;
  for_each_group(
      [&](std::size_t begin, std::size_t end) { gain += choose_in_group(begin, end, wish); });
  if (!is_worth_it(gain, wish)) {
    end_moving();
    return false;
  }
  committed_before = space.committed;
  found_sparse = 0;
  return true;
}

void end_moving() {
  for (const TypedBlock& block : blocks) {
    roles[block.number] = Role::None;
    pinned[block.number] = {};
  }
  blocks.clear();
}

}  // namespace jd::copy
