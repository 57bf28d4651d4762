// Which strategy marks a small heap faster is measured while the program runs: what the ring's
// instructions cost, and how much of the live data is in the caches anyway, differs from program to
// program, and in one program with the size of its live data (docs/design/mark.md, "Measured").
//
// One collection in so many is marked with the other strategy, and compared with one that marked
// about as many objects. Used under the heap's lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bits.hpp"
#include "base/options.hpp"
#include "heap/layout.hpp"

namespace jd::mark {

using base::MarkStrategy;

// For collections after such as found about as much.
class StrategyChoice {
 public:
  constexpr StrategyChoice() = default;
  // What to use until something is measured.
  explicit constexpr StrategyChoice(MarkStrategy preferred) : preferred_(preferred) {}

  // For the next collection.
  MarkStrategy next();
  // What that collection's marking took.
  void note(std::size_t objects, std::uint64_t ns);

  // A collection that marks fewer tells nothing.
  static constexpr std::size_t kLeastObjects = 1024;
  // Collections between two trials; four times as many after each that was not won.
  static constexpr unsigned kFirstInterval = 4;
  static constexpr unsigned kLongestInterval = 128;

 private:
  struct Sample {
    std::size_t objects = 0;
    std::uint64_t ns = 0;
  };

  [[nodiscard]] MarkStrategy other() const;
  void remember(Sample sample);
  // The quickest of the remembered with about as many objects, or null.
  [[nodiscard]] const Sample* like(std::size_t objects) const;
  void judge(Sample trial);
  void end_trial();
  void prefer_other(Sample sample);

  static constexpr unsigned kRemembered = 8;
  Sample samples_[kRemembered];  // the preferred strategy's last
  unsigned next_sample_ = 0;
  MarkStrategy preferred_ = MarkStrategy::Grey;
  bool trying_ = false;
  unsigned attempts_ = 0;  // trials of this series
  unsigned wins_ = 0;
  unsigned since_trial_ = 0;
  unsigned interval_ = kFirstInterval;
};

// For all collections.
class StrategyChoices {
 public:
  constexpr StrategyChoices() {
    for (unsigned bits = kCachedBits; bits < kSizes; ++bits) {
      by_size_[bits] = StrategyChoice(MarkStrategy::Ring);
    }
  }

  // For the next collection, where the last one has found so much live, and so many bytes were
  // allocated since.
  MarkStrategy next(std::size_t objects, std::size_t bytes, std::size_t allocated);
  // What that collection's marking took.
  void note(std::size_t objects, std::uint64_t ns);

  // Live data beyond which there are no trials: without the ring each record that misses would be
  // waited for.
  static constexpr std::size_t kMostLive = 16 * base::kMiB;
  // The same, together with what was allocated since, of which more or less may live: in a first
  // collection, of a heap that was filled before.
  static constexpr std::size_t kMostInUse = 4 * kMostLive;

 private:
  // So many objects (as a power of two) are mostly in a processor's own caches.
  static constexpr unsigned kCachedBits = 15;
  static constexpr unsigned kSizes = 24;
  static_assert((std::size_t{1} << kSizes) > kMostLive / heap::kGranule);

  StrategyChoice by_size_[kSizes];    // by the last collection's objects, as a power of two
  StrategyChoice* chosen_ = nullptr;  // by next(); null: what comes is not measured
};

}  // namespace jd::mark
