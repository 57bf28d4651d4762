// The blocks of typed objects that a moving collection looks at, in groups that may exchange
// objects: those of one kind and size class. Between the files of evacuation only.
#pragma once

#include "copy/evacuate.hpp"
#include "heap/growable.hpp"
#include "heap/space.hpp"

namespace jd::copy {

struct TypedBlock {
  heap::KindNumber kind;
  std::uint8_t size_class;
  std::uint16_t live;  // slots of marked objects, or granules of a mixed block
  heap::BlockNumber number;

  [[nodiscard]] unsigned group() const { return unsigned{kind} << 8 | size_class; }
  [[nodiscard]] bool is_mixed() const {
    return heap::space.blocks[number].state == heap::BlockState::Mixed;
  }
};

// By group, and within one the sparsest first, or by address.
inline bool sparser(const TypedBlock& a, const TypedBlock& b) {
  if (a.group() != b.group()) return a.group() < b.group();
  return a.live != b.live ? a.live < b.live : a.number < b.number;
}
inline bool lower(const TypedBlock& a, const TypedBlock& b) {
  return a.group() != b.group() ? a.group() < b.group() : a.number < b.number;
}

inline bool higher(const TypedBlock& a, const TypedBlock& b) {
  return a.group() != b.group() ? a.group() < b.group() : a.number > b.number;
}

// Used in a stopped world only.
extern heap::Growable<TypedBlock> blocks;
extern Growth growth;  // what choose_sources was given

// Calls visit(begin, end) for the indices of each group.
template <class Visit>
void for_each_group(Visit visit) {
  for (std::size_t begin = 0; begin < blocks.count();) {
    std::size_t end = begin + 1;
    while (end < blocks.count() && blocks[end].group() == blocks[begin].group()) ++end;
    visit(begin, end);
    begin = end;
  }
}

}  // namespace jd::copy
