// The heap verifier (JACKDAW_VERIFY; on in debug builds): walks every structure and checks what
// must hold. Aborts with one line that names the broken invariant. Pre: the world is stopped.
//
// Its own are the traversal, what it takes to be marked, and the way from a word to a small or a
// large object. It shares with what it verifies the walks over blocks and bits, and of mixed blocks
// where gaps lie (find_gap) and what an object's first words say (typed_at).
#pragma once

#include "world/roots.hpp"

namespace jd::cycle {

// Blocks, free runs and their bins, the lists of blocks with free slots, holes and their reserves.
void verify_structures();
// What magazines hold, before they are emptied.
void verify_magazines();
// After a sweep, before threads have their holes back: allocated is what was marked, but in blocks
// of kinds that disclaim.
void verify_swept();
// After marking: every root's object is marked, those that a word of a stack is one past the end of
// included; every marked object's words lead to marked objects, unless a descriptor says which of
// its words count, or the word is in the collector's own frames; and no free slot can be marked.
// The same after moving, when holes have gone back and free slots are as they are.
class MarkVerifier final : public world::RootVisitor {
 public:
  enum class When { Marked, MarkedPartially, Moved };
  // stack_top: where the collecting thread's frames end that are not the collector's.
  MarkVerifier(When when, const char* stack_top)
      : when_(when == When::MarkedPartially ? When::Marked : when),
        partial_(when == When::MarkedPartially),
        stack_top_(stack_top) {}
  void finish();

 private:
  void visit_range(const void* low, const void* high) override;
  void visit_stack(const void* low, const void* high) override;
  // What was marked for other words than these shows nothing.
  void visit_changing_range(const void*, const void*) override {}
  template <class Visit>
  void visit_words(const void* low, const void* high, Visit visit) const;
  void visit_object(base::Word begin, base::Word end);

  When when_;
  bool partial_;
  const char* stack_top_;
};

}  // namespace jd::cycle
