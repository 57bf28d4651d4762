// What a moving collection knows of each block: whether it is to be emptied, and which of its
// objects are pinned. Tables beside the heap's; used in a stopped world only.
#pragma once

#include <cstdint>

#include "heap/side_table.hpp"

namespace jd::copy {

using base::Word;
using heap::BlockNumber;

// Source: to be emptied. Target: copies lie there (mcc.hpp). Left: was a source, some of whose
// objects may have been copied, until memory for copies ran out (mcc.hpp).
enum class Role : std::uint8_t { None, Source, Target, Left };

struct PinnedBits {
  std::uint64_t words[heap::kBitWords + 1];
  [[nodiscard]] bool has(unsigned slot) const { return (words[slot / 64] >> (slot % 64)) & 1; }
  // True if it was not set before.
  bool add(unsigned slot) {
    const std::uint64_t bit = std::uint64_t{1} << (slot % 64);
    const bool fresh = (words[slot / 64] & bit) == 0;
    words[slot / 64] |= bit;
    return fresh;
  }
};
static_assert(sizeof(PinnedBits) == 128);

// By block number; all Role::None and clear outside of a moving collection.
extern heap::SideTable<Role> roles;
extern heap::SideTable<PinnedBits> pinned;

// Has the tables cover all committed blocks. False if the system refuses.
[[nodiscard]] bool prepare_roles();

// Gives the tables' pages back until they are needed again.
void discard_roles();
// Those below this number have entries.
BlockNumber blocks_with_roles();

inline bool is_source(Word word) {
  return heap::in_heap(word) && roles[heap::block_number(word)] == Role::Source;
}

}  // namespace jd::copy
