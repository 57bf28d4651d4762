// Pieces of blocks (docs/design/alloc.md, "Pieces"): what a thread gets that allocates little. Its
// hole lies in a block that it does not own.
#include "alloc/refill.hpp"
#include "base/sharing.hpp"
#include "heap/blocks.hpp"
#include "heap/walk.hpp"

namespace jd::alloc {
namespace {

// Each piece is twice as large as the one before, as far as there are so many free slots in a row;
// after the last, which has 2 KiB, the hole gets blocks. So a thread takes the lock five times for
// the first 4 KiB of a size, and what it has of a size is at most some twice what it uses.
constexpr std::size_t kFirstBytes = 128;
static_assert(kFirstBytes << (kMostPieces - 1) == 2048);

struct Piece {
  unsigned from;
  unsigned to;
};

// The first free slots of the block, as many as lie in a row in one word, but at most so many.
Piece claim_slots(heap::Block* block, unsigned most) {
  for (unsigned w = 0; w < block->bit_words(); ++w) {
    const std::uint64_t free = heap::free_slots(*block, w);
    if (free == 0) continue;
    const unsigned first = base::lowest_bit(free);
    const unsigned behind = base::lowest_zero(free | ((std::uint64_t{1} << first) - 1));
    const Piece piece = {w * 64 + first, w * 64 + base::min_of(behind, first + most)};
    base::note_block_atomic();
    block->claim(w, heap::bits_between(w, piece.from, piece.to));
    return piece;
  }
  return {0, 0};
}

}  // namespace

// A thread that is alone has nobody to share a block with. Objects of layouts move together with
// their block, and a disclaim procedure wants to know whose a block is.
bool wants_piece(const Refill& refill) {
  const heap::Kind& kind = heap::kinds[refill.kind];
  return refill.reserve().pieces < kMostPieces && cache_count > 1 && !kind.has_layout() &&
         kind.disclaim == nullptr;
}

bool take_piece(const Refill& refill, Kept kept) {
  Hole* const hole = refill.hole;
  Reserve& reserve = refill.reserve();
  const std::size_t bytes = kFirstBytes << reserve.pieces;
  const auto most = static_cast<unsigned>(base::max_of(bytes / hole->slot_size(), std::size_t{1}));
  for (;;) {
    const BlockNumber number = find_block(refill, kept);
    if (number == heap::kNoBlock) return false;
    heap::Block& block = heap::space.blocks[number];
    heap::BlockExtra& extra = heap::space.extras[number];
    const Piece piece = claim_slots(&block, most);
    extra.free_slots = heap::count_free_slots(block);
    forget_zeroes(&extra);
    heap::list_block(number);
    // Since the sweep has listed it, a hole that stayed through the collection may have filled it.
    if (piece.from == piece.to) continue;
    char* const start = base::as_pointer(heap::block_address(number));
    hole->block = number;
    hole->move_to(start + std::size_t{piece.from} * hole->slot_size(),
                  start + std::size_t{piece.to} * hole->slot_size(), 0);
    refill.owner->count_taken(std::size_t{piece.to - piece.from} * hole->slot_size());
    refill.owner->has_blocks = true;
    refill.row->note_used(refill.hole);
    ++reserve.pieces;
    return true;
  }
}

}  // namespace jd::alloc
