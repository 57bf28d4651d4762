#include "heap/kept_marks.hpp"

#include "heap/side_table.hpp"
#include "heap/snapshot.hpp"
#include "heap/walk.hpp"

namespace jd::heap {
namespace {

SideTable<BlockBits> kept;
bool are_noted = false;  // by the last keep_marks

}  // namespace

std::size_t keep_marks(Keep which) {
  std::size_t count = 0;
  are_noted = kept.cover();
  for_each_block([&](BlockNumber number, Block& block) {
    for (unsigned w = 0; w < block.bit_words(); ++w) {
      std::uint64_t old = block.marks[w] & block.allocated[w];
      if (which == Keep::Noted) old &= noted_objects(block, w);
      count += base::count_ones(old);
      block.marks[w] = old | ~block.allocated[w];
      if (are_noted && block.scan != Scan::None) kept[number].words[w] = old;
    }
  });
  return count;
}

void discard_kept_marks() { kept.discard(); }

std::uint64_t kept_marks(const Block& block, unsigned word) {
  return are_noted ? kept[number_of(&block)].words[word]
                   : block.marks[word] & block.allocated[word];
}

}  // namespace jd::heap
