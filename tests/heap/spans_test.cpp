// Spans: from their bytes to their slots, and from slots back to free runs.
#include "heap/spans.hpp"

#include <gtest/gtest.h>

#include "heap/blocks.hpp"
#include "heap/resident.hpp"
#include "heap/runs.hpp"
#include "heap/sweep.hpp"

namespace {

using namespace jd::heap;

// A span of the class with a free slot, which is made if need be.
Block* span_of(KindNumber kind, unsigned span_class, bool* fresh) {
  const std::size_t size = kSpans[span_class].slot_size;
  Block* const listed = find_span(kind, size, size);
  *fresh = listed == nullptr;
  return listed != nullptr ? listed : make_span(kind, span_class);
}

void make_space() {
  ASSERT_TRUE(reserve_space(64u << 20));
  ASSERT_TRUE(grow(256));
  forget_lists();
}

TEST(Spans, ARequestGetsTheClassThatWastesLeast) {
  for (std::size_t bytes = kMaxSmall + 1; bytes <= 4 * kBlockSize; ++bytes) {
    const unsigned span_class = span_class_for(bytes);
    const std::size_t whole_blocks = blocks_for(bytes) * kBlockSize;
    std::size_t least = whole_blocks;
    for (const SpanClass& span : kSpans) {
      if (span.slot_size >= bytes && span.slot_size < least) least = span.slot_size;
    }
    const std::size_t got = span_class < kSpanClasses ? kSpans[span_class].slot_size : whole_blocks;
    ASSERT_EQ(got, least) << bytes;
    const bool is_longer_than_all = bytes > kSpans.back().slot_size;
    ASSERT_TRUE(is_longer_than_all || got <= bytes + got / 5) << bytes;
  }
}

TEST(Spans, EveryByteLeadsToItsSlot) {
  make_space();
  for (unsigned c = 0; c < kSpanClasses; ++c) {
    const SpanClass& span = kSpans[c];
    Block* const head = make_span(kNormal, c);
    ASSERT_NE(head, nullptr);
    const Word start = block_address(number_of(head));
    for (Word offset = 0; offset < span.bytes(); ++offset) {
      Place place{};
      const bool found = find_place(start + offset, &place);
      const std::size_t slot = offset / span.slot_size;
      ASSERT_EQ(found, slot < span.slots()) << span.slot_size << " " << offset;
      if (!found) continue;
      ASSERT_EQ(place.block, head);
      ASSERT_EQ(place.slot, slot);
      ASSERT_EQ(place.address(), start + slot * span.slot_size);
      ASSERT_EQ(place.size(), span.slot_size);
      ASSERT_FALSE(place.allocated());
    }
    // What is behind the last slot of its run belongs to nobody.
    Place place{};
    EXPECT_FALSE(find_object(start, &place));
  }
}

TEST(Spans, TheSlotsOfOneAreTakenBeforeAnotherIsMade) {
  for (unsigned c = 0; c < kSpanClasses; ++c) {
    make_space();
    const BlockNumber free = free_blocks();
    Block* first = nullptr;
    for (unsigned i = 0; i < kSpans[c].slots(); ++i) {
      bool fresh = false;
      Block* const span = span_of(kAtomic, c, &fresh);
      ASSERT_NE(span, nullptr);
      EXPECT_EQ(fresh, i == 0);
      if (first == nullptr) first = span;
      EXPECT_EQ(span, first);
      auto words = OldWords::Freed;
      const Place place = take_slot(span, &words);
      EXPECT_EQ(words, OldWords::None);  // the pages are new
      EXPECT_EQ(place.slot, i);
      EXPECT_TRUE(place.allocated());
    }
    EXPECT_EQ(free_blocks(), free - kSpans[c].blocks);
    bool fresh = false;
    EXPECT_NE(span_of(kAtomic, c, &fresh), first);
    EXPECT_TRUE(fresh);
    release_block(listed_blocks(kAtomic, size_class_of_span(c)).head());
    // A slot that comes back is the next to be taken, and is not said to be zero.
    give_slot({first, 1});
    EXPECT_EQ(span_of(kAtomic, c, &fresh), first);
    EXPECT_FALSE(fresh);
    auto words = OldWords::None;
    EXPECT_EQ(take_slot(first, &words).slot, 1u);
    EXPECT_EQ(words, OldWords::Freed);
    // With the last object goes the span.
    for (unsigned i = 0; i < kSpans[c].slots(); ++i) give_slot({first, i});
    EXPECT_EQ(first->state, BlockState::Free);
    EXPECT_EQ(free_blocks(), free);
    EXPECT_TRUE(listed_blocks(kAtomic, size_class_of_span(c)).is_empty());
  }
}

TEST(Spans, OfTheirKindOnly) {
  make_space();
  bool fresh = false;
  auto words = OldWords::None;
  Block* const atomic = span_of(kAtomic, 0, &fresh);
  take_slot(atomic, &words);
  Block* const normal = span_of(kNormal, 0, &fresh);
  EXPECT_TRUE(fresh);
  EXPECT_NE(normal, atomic);
  EXPECT_EQ(span_of(kAtomic, 0, &fresh), atomic);
}

TEST(Spans, OfLargerOnesTheSmallestIsFound) {
  make_space();
  make_span(kNormal, 7);
  Block* const smaller = make_span(kNormal, 4);
  EXPECT_EQ(find_span(kNormal, kSpans[1].slot_size, kSpans[3].slot_size), nullptr);
  EXPECT_EQ(find_span(kNormal, kSpans[1].slot_size, SIZE_MAX), smaller);
  EXPECT_EQ(find_span(kNormal, kSpans[7].slot_size + 1, SIZE_MAX), nullptr);
  EXPECT_EQ(find_span(kAtomic, kSpans[1].slot_size, SIZE_MAX), nullptr);
}

TEST(Spans, WithoutAFreeRunThereIsNone) {
  ASSERT_TRUE(reserve_space(64u << 20));
  ASSERT_TRUE(grow(6));
  forget_lists();
  bool fresh = false;
  auto words = OldWords::None;
  BlockNumber dirty = 0;
  ASSERT_NE(make_large(kNormal, 2 * kBlockSize, 1, &dirty), nullptr);
  EXPECT_EQ(span_of(kNormal, 0, &fresh), nullptr);  // which takes five blocks
  Block* const span = span_of(kNormal, 1, &fresh);  // three
  ASSERT_NE(span, nullptr);
  for (unsigned i = 0; i < kSpans[1].slots(); ++i) take_slot(span, &words);
  EXPECT_EQ(span_of(kNormal, 1, &fresh), nullptr);
}

TEST(Spans, ASweepKeepsWhatIsMarked) {
  make_space();
  const BlockNumber free = free_blocks();
  bool fresh = false;
  auto words = OldWords::None;
  constexpr unsigned kClass = 4;
  // Of the first, two objects live; of the second, none; the third is full and lives.
  Block* spans[3];
  for (Block*& span : spans) {
    span = span_of(kNormal, kClass, &fresh);
    for (unsigned i = 0; i < kSpans[kClass].slots(); ++i) take_slot(span, &words);
  }
  start_marks();
  Place{spans[0], 0}.set_mark();
  Place{spans[0], 3}.set_mark();
  for (unsigned i = 0; i < kSpans[kClass].slots(); ++i) Place{spans[2], i}.set_mark();
  const SweepCount count = sweep();
  EXPECT_EQ(count.live_objects, 2 + kSpans[kClass].slots());
  EXPECT_EQ(count.live_bytes, count.live_objects * kSpans[kClass].slot_size);
  EXPECT_EQ(count.freed_bytes,
            (2 * kSpans[kClass].slots() - 2) * std::size_t{kSpans[kClass].slot_size});
  EXPECT_EQ(free_blocks(), free - 2 * kSpans[kClass].blocks);
  EXPECT_EQ(spans[1]->state, BlockState::Free);
  EXPECT_EQ(span_of(kNormal, kClass, &fresh), spans[0]);
  EXPECT_EQ(take_slot(spans[0], &words).slot, 1u);
  EXPECT_EQ(words, OldWords::Dropped);
  EXPECT_EQ(listed_blocks(kNormal, size_class_of_span(kClass)).count(), 1u);
}

// What the program frees is not told apart by the next to take it from what it freed last time.
TEST(Spans, OnlyWhatASweepFreesIsDropped) {
  make_space();
  bool fresh = false;
  auto words = OldWords::None;
  Block* const span = span_of(kNormal, 0, &fresh);
  for (unsigned i = 0; i < 2; ++i) take_slot(span, &words);
  start_marks();
  Place{span, 0}.set_mark();
  sweep();
  EXPECT_EQ(take_slot(span, &words).slot, 1u);
  EXPECT_EQ(words, OldWords::Dropped);
  give_slot({span, 1});
  EXPECT_EQ(take_slot(span, &words).slot, 1u);
  EXPECT_EQ(words, OldWords::Freed);
  // A span made of blocks with such words has them.
  const BlockNumber number = number_of(span);
  start_marks();
  sweep();
  EXPECT_TRUE(has_dropped_words(number, kSpans[0].blocks));
  ASSERT_EQ(span_of(kNormal, 0, &fresh), span);
  take_slot(span, &words);
  EXPECT_EQ(words, OldWords::Dropped);
  // So has what is made of the span when the program has freed its last object.
  give_slot({span, 0});
  BlockNumber dirty = 0;
  Block* const large = make_large(kNormal, kSpans[0].bytes(), 1, &dirty);
  ASSERT_EQ(number_of(large), number);
  EXPECT_TRUE(has_dropped_words(number, kSpans[0].blocks));
  clear_dropped_words(number, kSpans[0].blocks);
  release_block(number);
  EXPECT_FALSE(has_dropped_words(number, kSpans[0].blocks));
}

}  // namespace
