// An unbalanced tree that is searched while it unfolds: the root has thousands of children, each
// other node eight with a probability of almost 1/8, else none. What a node has follows from its
// own name, so that nothing is stored, and no one can know which subtree is large.
#pragma once

#include <cstdint>
#include <vector>

#include "../framework.hpp"
#include "../random.hpp"

namespace bench {

constexpr unsigned kBranches = 8;
constexpr double kProbability = 0.1247;
// How many times a name is mixed: the work at a node.
constexpr int kMixings = 8;

inline std::uint64_t child_of(std::uint64_t node, unsigned number) {
  std::uint64_t name = node + number;
  for (int i = 0; i < kMixings; ++i) name = mix(name);
  return name;
}
inline unsigned branches_of(std::uint64_t node) {
  return mixed_fraction(node) < kProbability ? kBranches : 0;
}

}  // namespace bench

// The nodes in the trees under `count` children of a node.
BENCH_DECLARE(long, search, std::uint64_t parent, unsigned first, unsigned count);
BENCH_TASK(long, search, std::uint64_t parent, unsigned first, unsigned count) {
  long nodes = 0;
  if (count == 1) {
    parent = bench::child_of(parent, first);
    first = 0;
    count = bench::branches_of(parent);
    nodes = 1;
    if (count == 0) BENCH_RETURN(nodes);
  }
  long x = 0;
  long y = 0;
  BENCH_PAR(x, search, (parent, first, count / 2), y, search,
            (parent, first + count / 2, count - count / 2));
  BENCH_RETURN(nodes + x + y);
}

namespace bench {

class Search {
 public:
  explicit Search(bool quick) : root_branches_(quick ? 20 : 8000) {}
  void prepare() {}
  void run() { nodes_ = BENCH_RUN(search, kRoot, 0U, root_branches_); }
  // Whether a plain search with a stack of its own finds as many.
  bool check() const {
    long nodes = 0;
    std::vector<std::uint64_t> open;
    for (unsigned i = 0; i < root_branches_; ++i) open.push_back(child_of(kRoot, i));
    while (!open.empty()) {
      const std::uint64_t node = open.back();
      open.pop_back();
      ++nodes;
      for (unsigned i = 0; i < branches_of(node); ++i) open.push_back(child_of(node, i));
    }
    return nodes == nodes_;
  }

 private:
  static constexpr std::uint64_t kRoot = 19;
  unsigned root_branches_;
  long nodes_ = -1;
};

}  // namespace bench
