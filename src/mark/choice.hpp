// Which of two ways marks faster is measured while the program runs.
//
// Two such choices are made. With the rings or without: what their instructions cost, and how much
// of the live data is in the caches anyway, differs from program to program, and in one program
// with the size of its live data (docs/design/mark.md, "Measured"). In company or alone: a helper
// whose processor others use, or lies far away, is a loss (docs/design/mark-team.md, "Alone").
//
// One collection in so many is marked in the other way, and compared with one that marked about as
// many objects. Used under the heap's lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bits.hpp"
#include "base/options.hpp"
#include "heap/layout.hpp"

namespace jd::mark {

using base::MarkStrategy;

// The choice for collections whose predecessor found about so many objects. One of the two ways is
// called "the other"; which one, the owner says.
class Choice {
 public:
  // For arrays, whose constructors say what it is to be.
  constexpr Choice() : Choice(false, kLongestInterval) {}
  // The way to use until something is measured, and the collections before the first trial.
  constexpr Choice(bool other, unsigned first_interval)
      : prefers_other_(other), first_interval_(first_interval), interval_(first_interval) {}

  // For the next collection, which may be a trial or may not: the other way?
  bool next(bool may_try);
  [[nodiscard]] bool prefers_other() const { return prefers_other_; }
  // It is a trial.
  [[nodiscard]] bool is_trial() const { return is_trial_; }
  // What that collection's marking took. Not called for one that tells nothing.
  void note(std::size_t objects, std::uint64_t ns);

  // A collection that marks fewer tells nothing.
  static constexpr std::size_t kLeastObjects = 1024;
  // Collections between two trials, at most: four times as many after each that was not won.
  static constexpr unsigned kLongestInterval = 128;

 private:
  struct Sample {
    std::size_t objects = 0;
    std::uint64_t ns = 0;
  };

  void remember(Sample sample);
  // The quickest of the remembered with about as many objects, or null.
  [[nodiscard]] const Sample* like(std::size_t objects) const;
  void judge(Sample trial);
  void end_trials();
  void change(Sample sample);

  static constexpr unsigned kRemembered = 8;
  Sample samples_[kRemembered];  // the preferred way's last
  unsigned next_sample_ = 0;
  bool prefers_other_;
  bool is_trial_ = false;
  unsigned attempts_ = 0;  // trials of this series
  unsigned wins_ = 0;
  unsigned since_trials_ = 0;
  unsigned first_interval_;
  unsigned interval_;
};

// By the last collection's objects, as a power of two.
inline constexpr unsigned kObjectSizes = 24;
inline unsigned object_size(std::size_t objects) {
  return objects == 0 ? 0 : base::min_of(base::log2_floor(objects), kObjectSizes - 1);
}

// Without the rings (grey) or, the other way, with them.
class StrategyChoices {
 public:
  static constexpr unsigned kFirstInterval = 4;

  constexpr StrategyChoices() {
    for (unsigned bits = 0; bits < kObjectSizes; ++bits) {
      by_size_[bits] = Choice(bits >= kCachedBits, kFirstInterval);
    }
  }

  // For the next collection, where the last one has found so much live, and so many bytes were
  // allocated since.
  MarkStrategy next(std::size_t objects, std::size_t bytes, std::size_t allocated);
  [[nodiscard]] bool is_trial() const { return chosen_ != nullptr && chosen_->is_trial(); }
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
  static_assert((std::size_t{1} << kObjectSizes) > kMostLive / heap::kGranule);

  Choice by_size_[kObjectSizes];
  Choice* chosen_ = nullptr;  // by next(); null: what comes is not measured
};

// In company or, the other way, alone.
class CompanyChoices {
 public:
  // A trial takes up to twice as long where company pays, as it mostly does.
  static constexpr unsigned kFirstInterval = 16;

  constexpr CompanyChoices() {
    for (Choice& choice : by_size_) choice = Choice(false, kFirstInterval);
  }
  // Whether the next collection is to be marked alone, where the last has found so many objects,
  // and so many markers took so long for it. may_try: nothing else about it is a trial.
  bool next(std::size_t objects, std::uint64_t ns, unsigned markers, bool may_try);
  // What that collection's marking took. Only of one that had, or would have had, company.
  void note(std::size_t objects, std::uint64_t ns);
  [[nodiscard]] bool is_trial() const { return chosen_ != nullptr && chosen_->is_trial(); }

  // Alone is not tried where that may take longer. (By the last collection: where the live data
  // grow, it takes longer after all.)
  static constexpr std::uint64_t kLongest = 100000000;  // ns: 100 ms; a guess

 private:
  Choice by_size_[kObjectSizes];
  Choice* chosen_ = nullptr;  // by next()
};

}  // namespace jd::mark
