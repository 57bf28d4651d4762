// Lists of blocks, linked in both directions through their extras: the bins of free runs, by their
// first blocks, and the blocks with free slots of each kind and size class. A block is on one list
// at a time. Under the heap's lock, or in a stopped world.
#pragma once

#include "heap/space.hpp"

namespace jd::heap {

// All zeroes is an empty list.
class BlockList {
 public:
  [[nodiscard]] BlockNumber head() const { return head_; }
  [[nodiscard]] BlockNumber tail() const { return tail_; }
  [[nodiscard]] BlockNumber count() const { return count_; }
  [[nodiscard]] bool is_empty() const { return head_ == kNoBlock; }

  void push_front(BlockNumber number) {
    BlockExtra& extra = space.extras[number];
    extra.previous = kNoBlock;
    extra.next = head_;
    (head_ != kNoBlock ? space.extras[head_].previous : tail_) = number;
    head_ = number;
    ++count_;
  }
  void push_back(BlockNumber number) {
    BlockExtra& extra = space.extras[number];
    extra.next = kNoBlock;
    extra.previous = tail_;
    (tail_ != kNoBlock ? space.extras[tail_].next : head_) = number;
    tail_ = number;
    ++count_;
  }
  // Pre: the block is on this list.
  void remove(BlockNumber number) {
    const BlockExtra& extra = space.extras[number];
    (extra.previous != kNoBlock ? space.extras[extra.previous].next : head_) = extra.next;
    (extra.next != kNoBlock ? space.extras[extra.next].previous : tail_) = extra.previous;
    --count_;
  }

 private:
  BlockNumber head_ = kNoBlock;
  BlockNumber tail_ = kNoBlock;
  BlockNumber count_ = 0;
};

}  // namespace jd::heap
