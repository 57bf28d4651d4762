#include "mark/marker.hpp"

#include "heap/mixed.hpp"
#include "heap/size_class.hpp"
#include "heap/snapshot.hpp"
#include "heap/walk.hpp"
#include "mark/team.hpp"
#include "os/cpu.hpp"
#include "os/log.hpp"
#include "os/memory.hpp"
#include "os/written_pages.hpp"

namespace jd::mark {
namespace {

using heap::Block;
using heap::BlockState;
using heap::kBlockShift;
using heap::Scan;
using heap::space;

// A stack must hold at least the entries of one step.
constexpr std::size_t kLeastEntries = 16;
// What is committed at first: 64 KiB, which few programs ever fill. The rest is committed when it
// is needed, because systems count committed memory (RLIMIT_DATA, strict overcommit).
constexpr std::size_t kFirstEntries = 64 * base::kKiB / sizeof(Entry);
// A stack that is so large a part of the heap is long (docs/design/mark.md, "Objects of more than a
// line").
constexpr std::size_t kLongStackShare = 8;

}  // namespace

Marker marker;
std::size_t by_written_pages_from = heap::kBlockSize;

void Marker::drain() {
  if (__builtin_expect(deadline_ != 0, 0)) return drain_until_deadline();
  run();
  while (overflowed_ && !was_stopped_) {
    overflowed_ = false;
    ++overflows_;
    rescan_marked_objects();
    run();
  }
}

// Roots may name as many objects as there are: what waits is no more than a part of the heap.
void Marker::drain_until_deadline() {
  constexpr std::uint64_t kPassed = 1;
  constexpr std::size_t kWaitingShare = 16;  // a guess
  if (deadline_ != kPassed) {
    if (os::now_ns() < deadline_) run_until(deadline_);
    if (os::now_ns() >= deadline_) deadline_ = kPassed;
  }
  const std::size_t most = heap::bytes_of(space.committed) / kWaitingShare;
  while (static_cast<std::size_t>(top_ - bottom_) * sizeof(Entry) > most) run_until(0);
}

// In a mixed block, a word into the middle of an object has marked its granule; the object would
// have been marked when the entry that was lost came from the stack (pointers_at_granule).
void Marker::mark_objects_at_granules(Block* block) {
  const heap::BlockNumber number = heap::number_of(block);
  heap::learn_starts(number);
  for (unsigned w = 0; w < block->bit_words(); ++w) {
    const std::uint64_t granules = block->marks[w] & ~block->allocated[w];
    heap::for_each_bit(&granules, 64, [&](unsigned bit) {
      const Word address = heap::block_address(number) + (w * 64 + bit) * heap::kGranule;
      heap::Place place;
      if (heap::find_mixed(address, &place)) mark(place);
    });
  }
}

// Some marked object was not scanned, and nobody knows which: scan them all again. A pass that
// loses an entry again has marked an object that was not marked before, so the passes end.
void Marker::rescan_marked_objects() {
  heap::for_each_block([this](heap::BlockNumber, Block& block) {
    if (block.state == BlockState::Free || block.scan == Scan::None) return;
    if (block.state == BlockState::Mixed) mark_objects_at_granules(&block);
    heap::for_each_marked(block, [&](unsigned slot) {
      push_contents({&block, slot});
      if (top_ == limit_) run();
    });
  });
}

bool Marker::initialise_as_helper(std::size_t entries) {
  if (stack_ == nullptr) return initialise(entries);
  bottom_ = top_ = stack_;
  overflowed_ = false;
  // The system may have refused the stack's first pages.
  return limit_ != stack_ || extend_stack();
}

bool Marker::initialise(std::size_t entries) {
  if (entries != 0) {
    entries = base::max_of(entries, kLeastEntries);
  } else {
    // An entry for every smallest object, or for every word in the heap, is what the worst graph
    // could need; a sixteenth of the first is far beyond what any program has needed and costs only
    // address space. If it is not enough, or not to be had, the overflow path is there.
    entries = heap::bytes_of(space.reserved) / heap::kGranule / 16;
  }
  Entry* stack = nullptr;
  // A packet fits.
  const std::size_t least = base::min_of(entries, std::size_t{Team::kPacketEntries});
  for (; entries >= least; entries /= 2) {
    const std::size_t bytes = base::align_up(entries * sizeof(Entry), os::page_size());
    stack = static_cast<Entry*>(os::reserve(bytes, os::page_size()));
    if (stack != nullptr) break;
  }
  if (stack == nullptr) return false;
  bottom_ = stack;
  top_ = stack;
  limit_ = stack;
  reserved_limit_ = stack + entries;
  // Last: another thread may fork now, and the child goes by this (initialise_as_helper).
  __atomic_store_n(&stack_, stack, __ATOMIC_RELEASE);
  return extend_stack();
}

void Marker::set_strategy(MarkStrategy strategy) {
  strategy_ = strategy;
  if (strategy == MarkStrategy::Ring) ring_use_.begin();
  const std::size_t share = heap::bytes_of(space.committed) / kLongStackShare;
  const auto reserved = static_cast<std::size_t>(reserved_limit_ - stack_);
  long_stack_ = stack_ + base::min_of(share / sizeof(Entry), reserved);
}

bool Marker::extend_stack() {
  const auto room = static_cast<std::size_t>(reserved_limit_ - limit_);
  const auto now = static_cast<std::size_t>(limit_ - stack_);
  // Doubling, in whole pages: limit_ stays a page's end until the last step.
  const std::size_t more = base::min_of(base::max_of(now, kFirstEntries), room);
  if (more == 0) return false;
  const std::size_t bytes = base::align_up(more * sizeof(Entry), os::page_size());
  if (!os::commit(limit_, bytes)) return false;
  limit_ += more;
  return true;
}

bool Marker::mark_word(Word word) {
  if (!heap::in_heap(word)) return false;
  heap::Place place;
  if (!heap::find_object_in_stopped_world(word, &place) || !place.is_held_by(word) || !mark(place))
    return false;
  push_contents(place);
  return true;
}

void Marker::mark_unusual_object_ending_at(Word word) {
  heap::Place before;
  if (!heap::find_object_in_stopped_world(word - 1, &before) || before.marked()) return;
  if (!before.ends_at(word)) return;
  before.set_mark();
  push_contents(before);
}

void Marker::push_range(const void* low, const void* high) {
  const Word begin = base::align_up(base::as_word(low), sizeof(Word));
  const Word end = base::align_down(base::as_word(high), sizeof(Word));
  if (top_ != limit_ || extend_stack()) {
    if (begin < end) {
      *top_++ = {reinterpret_cast<const Word*>(begin), reinterpret_cast<const Word*>(end)};
    }
    return;
  }
  // One object may have more ranges than the stack has entries: the rest is marked at once, or no
  // pass over the heap would ever scan it.
  for (Word at = begin; at < end; at += sizeof(Word)) {
    mark_word(__atomic_load_n(reinterpret_cast<const Word*>(at), __ATOMIC_RELAXED));
  }
}

bool Marker::prepare_own_marks() {
  JD_CHECK(space.base % (std::size_t{1} << (kBlockShift + kTouchShift)) == 0,
           "neighbours by number are neighbours by address");
  return own_marks_.cover() && touched_.cover();
}

void Marker::discard_tables() {
  const std::size_t bytes = static_cast<std::size_t>(limit_ - stack_) * sizeof(Entry);
  if (bytes != 0) os::discard(stack_, base::align_up(bytes, os::page_size()));
  own_marks_.discard();
  touched_.discard();
}

// Blocks that are free have none, and keep stale records.
void Marker::merge_own_marks() {
  const heap::BlockNumber blocks = touched_.covered();
  std::uint8_t* const touched = touched_.entries();
  for (std::size_t group = 0; group << kTouchShift < blocks; ++group) {
    if (group % sizeof(std::uint64_t) == 0) {
      // Behind the last block's group there is as much room: the table is whole pages.
      std::uint64_t eight = 0;
      base::copy_bytes(&eight, touched + group, sizeof eight);
      if (eight == 0) {
        group += sizeof eight - 1;
        continue;
      }
    }
    if (touched[group] == 0) continue;
    touched[group] = 0;
    for (unsigned i = 0; i < 1u << kTouchShift; ++i) {
      const auto number = static_cast<heap::BlockNumber>((group << kTouchShift) + i);
      if (number >= blocks) break;
      std::uint64_t* own = own_marks_[number].words;
      for (unsigned w = 0; w < heap::kBitWords; ++w) {
        if (own[w] == 0) continue;
        space.blocks[number].marks[w] |= own[w];
        own[w] = 0;
      }
    }
  }
}

// Words and ranges lead to nothing that is not checked: a range of what was freed holds some words
// that mean nothing. But an object is taken for what its block says.
void Marker::forget_queued_that_are_gone() {
  Entry* kept = bottom_;
  for (const Entry* entry = bottom_; entry < top_; ++entry) {
    if (entry->is_object() && !heap::was_noted(base::as_word(entry->next))) continue;
    *kept++ = *entry;
  }
  top_ = kept;
}

void Marker::take_put_aside() {
  for (const Entry entry : put_aside_) push(entry);
  put_aside_.clear();
}

// A packet fits (Team::packet_entries): whoever receives one has nothing else.
void Marker::receive(const Entry* entries, unsigned count) {
  JD_CHECK(top_ == stack_, "a marker takes entries when it has none");
  for (unsigned i = 0; i < count; ++i) push(entries[i]);
}

void Marker::adopt_overflow(Marker* other) {
  overflowed_ |= other->overflowed_;
  other->overflowed_ = false;
}

// Where the kernel does not tell, the object is scanned whole: all of it can be read. So is, from
// the next time on, one of which half was written: to ask costs half of what reading does. (Out of
// line: what the kernel says is not to be in the frame of the loop.)
[[gnu::noinline]] void Marker::push_written_pages(Word object, std::size_t size) {
  class Push final : public os::PageVisitor {
   public:
    explicit Push(Marker* marker) : marker_(marker) {}
    void pages(char* low, char* high) override {
      written += static_cast<std::size_t>(high - low);
      marker_->push_range(low, high);
    }
    std::size_t written = 0;

   private:
    Marker* marker_;
  };
  alignas(std::uint64_t) char answers[2 * base::kKiB];
  char* const begin = base::as_pointer(object);
  Push push(this);
  const os::WrittenPages written(&page_map_, answers, sizeof answers);
  if (written.known()) written.visit(begin, begin + size, &push);
  // In the child of a fork that a signal's handler has called meanwhile, it was the parent's pages.
  if (!written.known() || !page_map_.is_own()) push.pages(begin, begin + size);
  constexpr std::size_t kFilledFrom = 2;
  space.extras[heap::block_number(object)].filled = push.written >= size / kFilledFrom;
}

void Marker::push_contents(const heap::Place& place) {
  const Entry contents = contents_of(*place.block, place.address());
  if (contents.next != nullptr) push(contents);
}

void Marker::mark_uncollectable() {
  heap::for_each_block([this](heap::BlockNumber, Block& block) {
    if (block.state == BlockState::Free || !heap::is_uncollectable(block.kind)) return;
    heap::for_each_unmarked(block, [&](unsigned slot) {
      heap::Place{&block, slot}.set_mark();
      push_contents({&block, slot});
      if (top_ - stack_ > (limit_ - stack_) / 2) drain();
    });
  });
}

void Marker::mark_from_unreachable() {
  heap::for_each_block([this](heap::BlockNumber, Block& block) {
    if (block.state == BlockState::Free || block.scan == Scan::None) return;
    if (!heap::kinds[block.kind].mark_from_unreachable) return;
    heap::for_each_unmarked(block, [&](unsigned slot) {
      push_contents({&block, slot});
      if (top_ - stack_ > (limit_ - stack_) / 2) drain();
    });
  });
}

}  // namespace jd::mark
