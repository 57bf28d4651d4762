// What a partial collection begins at, beside the roots: marked objects that the program may have
// changed since they were marked (docs/design/cycle.md, "Partial collections").
#include "heap/kept_marks.hpp"
#include "heap/space.hpp"
#include "heap/walk.hpp"
#include "mark/marker.hpp"
#include "os/memory.hpp"
#include "os/write_watch.hpp"
#include "os/written_pages.hpp"

namespace jd::mark {
namespace {

using heap::Block;
using heap::BlockNumber;
using heap::BlockState;
using heap::kBlockSize;
using heap::Scan;
using heap::space;

// Of what was marked before anything else was: what marking in between has found need not be
// scanned a second time.
bool has_kept_marks(const Block& block) {
  for (unsigned w = 0; w < block.bit_words(); ++w) {
    if (heap::kept_marks(block, w) != 0) return true;
  }
  return false;
}

// What a program's own procedure pushes may not lie in the object. (Where the object itself names
// the procedure, the program keeps to what bdwgc asks of it: the object changes, too.)
bool has_procedure(const Block& block) {
  return block.scan == Scan::Descriptor && heap::has_procedure(heap::kinds[block.kind]);
}

// The block with slots that a block of the heap belongs to, itself or the head of its run; null if
// it is free.
Block* block_with_slots(BlockNumber number) {
  heap::Place place;
  if (!heap::find_place(heap::block_address(number), &place)) return nullptr;
  return place.block;
}

}  // namespace

// Of slots [from, to), what lies in [low, high): where every word counts, no more than that, and
// neighbours at once.
void Marker::push_marked(Block* block, unsigned from, unsigned to, Word low, Word high) {
  const Entry* const most = drain_above();
  const Word begin = heap::block_address(heap::number_of(block));
  const std::size_t size = heap::unmixed_size(*block);
  for (unsigned w = from / 64; w * 64 < to; ++w) {
    std::uint64_t old = heap::kept_marks(*block, w) & heap::bits_between(w, from, to);
    while (old != 0) {
      const unsigned first = base::lowest_bit(old);
      const unsigned count = block->scan == Scan::Words ? base::lowest_zero(old >> first) : 1;
      old &= ~heap::bits_between(0, first, first + count);
      if (block->scan != Scan::Words) {
        push_contents({block, w * 64 + first});
        continue;
      }
      const Word object = begin + std::size_t{w * 64 + first} * size;
      push_range(base::as_pointer(base::max_of(object, low)),
                 base::as_pointer(base::min_of(object + count * size, high)));
    }
    if (top_ > most) drain();
  }
}

class Marker::ChangedPages final : public os::PageVisitor {
 public:
  explicit ChangedPages(Marker* marker) : marker_(marker) {}

  [[nodiscard]] Changed visit_all(const os::WatchedPages& pages) {
    const bool known = pages.visit_written(base::as_pointer(space.base),
                                           base::as_pointer(space.base + space.span), this);
    const std::size_t page = os::page_size();
    return {known, bytes_ / page, watched_bytes_ / page};
  }

 private:
  void pages(char* low, char* high) override {
    const Word end = base::as_word(high);
    for (Word at = base::as_word(low); at < end;) {
      const Word next = base::min_of(base::align_down(at, kBlockSize) + kBlockSize, end);
      block(at, next);
      at = next;
    }
  }

  // [low, high) lies in one block.
  void block(Word low, Word high) {
    Block* const block = block_with_slots(heap::block_number(low));
    if (block == nullptr || block->scan == Scan::None || has_procedure(*block)) return;
    if (!has_kept_marks(*block)) return;
    bytes_ += high - low;
    if (heap::extra_of(block).watched) watched_bytes_ += high - low;
    if (block->state == BlockState::LargeHead) return large(block, low, high);
    const Word begin = heap::block_address(heap::number_of(block));
    const unsigned from = block->slot_of(low - begin);
    const unsigned to = block->slot_of(high - 1 - begin) + 1;
    marker_->push_marked(block, base::min_of(from, unsigned{block->slots}),
                         base::min_of(to, unsigned{block->slots}), low, high);
  }

  // With a descriptor, the object is scanned whole, and so once.
  void large(Block* head, Word low, Word high) {
    if (head->scan == Scan::Descriptor && head == last_described_) return;
    if (head->scan == Scan::Descriptor) last_described_ = head;
    const Word end = heap::block_address(heap::number_of(head)) + heap::unmixed_size(*head);
    if (low < end) marker_->push_marked(head, 0, 1, low, high);
  }

  Marker* marker_;
  std::size_t bytes_ = 0;
  std::size_t watched_bytes_ = 0;
  const Block* last_described_ = nullptr;
};

void Marker::push_marked_with_procedures() {
  heap::for_each_block([this](BlockNumber number, Block& block) {
    if (block.state == BlockState::Free || !has_procedure(block)) return;
    const Word begin = heap::block_address(number);
    push_marked(&block, 0, block.slots, begin, begin + kBlockSize);
  });
}

Changed Marker::push_changed(const os::WatchedPages& pages) {
  push_marked_with_procedures();
  return ChangedPages(this).visit_all(pages);
}

}  // namespace jd::mark
