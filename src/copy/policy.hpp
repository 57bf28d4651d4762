// How typed objects are collected, and what was moved, whatever the policy.
#pragma once

#include <cstdint>

namespace jd::copy {

struct Policy {
  bool moves = true;
  bool mcc = false;         // every collection is one of mcc.hpp
  bool everything = false;  // JACKDAW_MOVE
};
extern Policy policy;  // set before the first layout, precise root or weak reference is made
// Is there anything to be done for typed objects, precise roots, or weak references? Set once,
// under the heap's lock.
extern bool in_use;

// Since the start, but for what is said to be the last collection's.
struct Counts {
  std::uint64_t collections = 0;
  std::uint64_t objects = 0;
  std::uint64_t bytes = 0;
  std::uint64_t pinned_last = 0;
  std::uint64_t pin_ns = 0;
  std::uint64_t move_ns = 0;
  std::uint64_t fix_ns = 0;
};
extern Counts counts;

}  // namespace jd::copy
