// Four million 64-bit numbers in random order, by merging halves; merges are cut, too.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "../framework.hpp"
#include "../large_vector.hpp"
#include "../random.hpp"

namespace bench {

using Key = std::uint64_t;
constexpr std::size_t kSortLeaf = 4096;
constexpr std::size_t kMergeLeaf = 8192;

struct Keys {
  const Key* first;
  std::size_t count;
  Keys part(std::size_t begin, std::size_t end) const { return {first + begin, end - begin}; }
};

}  // namespace bench

BENCH_DECLARE(void, merge, bench::Keys a, bench::Keys b, bench::Key* to);
BENCH_TASK(void, merge, bench::Keys a, bench::Keys b, bench::Key* to) {
  if (a.count + b.count <= bench::kMergeLeaf) {
    std::merge(a.first, a.first + a.count, b.first, b.first + b.count, to);
    BENCH_RETURN_VOID;
  }
  if (a.count < b.count) std::swap(a, b);
  const std::size_t i = a.count / 2;
  const std::size_t j =
      static_cast<std::size_t>(std::lower_bound(b.first, b.first + b.count, a.first[i]) - b.first);
  BENCH_PAR_VOID(merge, (a.part(0, i), b.part(0, j), to), merge,
                 (a.part(i, a.count), b.part(j, b.count), to + i + j));
}

// Sorts keys[0, count) into themselves, or into scratch; both are overwritten.
BENCH_DECLARE(void, sort, bench::Key* keys, bench::Key* scratch, std::size_t count,
              bool into_scratch);
BENCH_TASK(void, sort, bench::Key* keys, bench::Key* scratch, std::size_t count,
           bool into_scratch) {
  if (count <= bench::kSortLeaf) {
    std::sort(keys, keys + count);
    if (into_scratch) std::copy(keys, keys + count, scratch);
    BENCH_RETURN_VOID;
  }
  const std::size_t half = count / 2;
  BENCH_PAR_VOID(sort, (keys, scratch, half, !into_scratch), sort,
                 (keys + half, scratch + half, count - half, !into_scratch));
  const bench::Key* from = into_scratch ? keys : scratch;
  BENCH_CALL_VOID(merge, (bench::Keys{from, half}, bench::Keys{from + half, count - half},
                          into_scratch ? scratch : keys));
}

namespace bench {

class Sort {
 public:
  explicit Sort(bool quick) : count_(quick ? 30000 : 4000000) {}
  void prepare() {
    keys_.resize(count_);
    scratch_.resize(count_);
    sum_ = 0;
    for (std::size_t i = 0; i < count_; ++i) sum_ += mix(keys_[i] = mix(i));
  }
  void run() { BENCH_RUN(sort, keys_.data(), scratch_.data(), count_, false); }
  bool check() const {
    Key sum = 0;
    for (const Key key : keys_) sum += mix(key);
    return sum == sum_ && std::is_sorted(keys_.begin(), keys_.end());
  }

 private:
  std::size_t count_;
  LargeVector<Key> keys_;
  LargeVector<Key> scratch_;
  Key sum_ = 0;  // over what the keys mix to, in any order
};

}  // namespace bench
