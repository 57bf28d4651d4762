#include "cycle/size_classes.hpp"

#include "alloc/hole.hpp"
#include "cycle/settings.hpp"
#include "heap/size_class.hpp"
#include "heap/walk.hpp"

namespace jd::cycle {
namespace {

// So many blocks in use for each pair of kind and size class: few are nearly empty, and fewer
// classes would save none of them.
constexpr heap::BlockNumber kBlocksOfAPair = 4;
// With more pairs than this it never is so in a heap of 3 MiB.
constexpr std::size_t kMostPairs = 48;

// Under the heap's lock.
bool classes_are_fine = false;
heap::Ends ends = heap::Ends::Apart;

void choose_classes() {
  const bool apart = ends == heap::Ends::Apart;
  if (classes_are_fine) {
    alloc::use_classes(apart ? heap::kClassOfWords : heap::kJoinedClassOfWords);
  } else {
    alloc::use_classes(apart ? heap::kCoarseClassOfWords : heap::kCoarseJoinedClassOfWords);
  }
}

bool few_sizes_in_use() {
  unsigned pairs[kMostPairs];
  std::size_t count = 0;
  heap::BlockNumber blocks = 0;
  bool many = false;
  heap::for_each_block([&](heap::BlockNumber, const heap::Block& block) {
    if (block.state != heap::BlockState::Small || many) return;
    ++blocks;
    const unsigned pair = block.kind * heap::kSizeClasses + block.size_class;
    std::size_t i = 0;
    while (i < count && pairs[i] != pair) ++i;
    if (i < count) return;
    many = count == kMostPairs;
    if (!many) pairs[count++] = pair;
  });
  return !many && blocks >= count * kBlocksOfAPair && count != 0;
}

void use_fine_classes() {
  classes_are_fine = true;
  choose_classes();
}

}  // namespace

void start_size_classes() {
  ends = ends_hold_objects() ? heap::Ends::Apart : heap::Ends::Together;
  choose_classes();
}

void note_heap_size(std::size_t bytes) {
  if (!classes_are_fine && bytes > options.coarse_classes) use_fine_classes();
}

void reconsider_size_classes() {
  if (!classes_are_fine && few_sizes_in_use()) use_fine_classes();
}

}  // namespace jd::cycle
