// The heap verifier (JACKDAW_VERIFY; on in debug builds): walks every structure and checks what
// must hold. It shares no code with what it verifies. Aborts with one line that names the broken
// invariant. Pre: the world is stopped.
#pragma once

#include "world/roots.hpp"

namespace jd::cycle {

// Blocks, runs, lists, bits, holes.
void verify_structures();
// After marking: every root's object is marked, every marked object's words lead to marked
// objects, and no free slot can be marked.
class MarkVerifier final : public world::RootVisitor {
 public:
  void range(const void* low, const void* high) override;
  void stack(const void* low, const void* high) override { range(low, high); }
  void finish();
};

}  // namespace jd::cycle
