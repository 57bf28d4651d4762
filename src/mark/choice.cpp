#include "mark/choice.hpp"

namespace jd::mark {
namespace {

// A series of trials ends, undecided, after so many without a collection to compare with.
constexpr unsigned kAttempts = 4;
// So often in a row a trial has to be quicker, since one may have been measured while another
// thread had the processor.
constexpr unsigned kWins = 2;

bool are_alike(std::size_t a, std::size_t b) {
  const std::size_t difference = a > b ? a - b : b - a;
  return difference <= base::max_of(a, b) / 8;
}

double cost(std::size_t objects, std::uint64_t ns) {
  return static_cast<double>(ns) / static_cast<double>(objects);
}

}  // namespace

MarkStrategy StrategyChoice::other() const {
  return preferred_ == MarkStrategy::Ring ? MarkStrategy::Grey : MarkStrategy::Ring;
}

MarkStrategy StrategyChoice::next() {
  if (since_trial_ >= interval_) trying_ = true;
  return trying_ ? other() : preferred_;
}

void StrategyChoice::note(std::size_t objects, std::uint64_t ns) {
  if (objects < kLeastObjects) return;
  if (trying_) {
    judge({objects, ns});
  } else {
    remember({objects, ns});
    ++since_trial_;
  }
}

void StrategyChoice::remember(Sample sample) {
  samples_[next_sample_] = sample;
  next_sample_ = (next_sample_ + 1) % kRemembered;
}

const StrategyChoice::Sample* StrategyChoice::like(std::size_t objects) const {
  const Sample* best = nullptr;
  for (const Sample& sample : samples_) {
    if (sample.objects == 0 || !are_alike(sample.objects, objects)) continue;
    if (best == nullptr || cost(sample.objects, sample.ns) < cost(best->objects, best->ns)) {
      best = &sample;
    }
  }
  return best;
}

void StrategyChoice::judge(Sample trial) {
  ++attempts_;
  const Sample* reference = like(trial.objects);
  if (reference == nullptr) {
    if (attempts_ >= kAttempts) end_trial();
    return;
  }
  // By less than a sixteenth is as good as not.
  const double limit = cost(reference->objects, reference->ns) * 15 / 16;
  if (cost(trial.objects, trial.ns) >= limit) {
    end_trial();
  } else if (++wins_ == kWins) {
    prefer_other(trial);
  }
}

void StrategyChoice::end_trial() {
  interval_ = base::min_of(4 * interval_, kLongestInterval);
  trying_ = false;
  attempts_ = 0;
  wins_ = 0;
  since_trial_ = 0;
}

void StrategyChoice::prefer_other(Sample sample) {
  preferred_ = other();
  for (Sample& old : samples_) old = {};
  remember(sample);
  end_trial();
  interval_ = kFirstInterval;
}

MarkStrategy StrategyChoices::next(std::size_t objects, std::size_t bytes, std::size_t allocated) {
  chosen_ = nullptr;
  if (bytes > kMostLive || bytes + allocated > kMostInUse) return MarkStrategy::Ring;
  const unsigned bits = objects == 0 ? 0 : base::log2_floor(objects);
  chosen_ = &by_size_[base::min_of(bits, kSizes - 1)];
  return chosen_->next();
}

void StrategyChoices::note(std::size_t objects, std::uint64_t ns) {
  if (chosen_ != nullptr) chosen_->note(objects, ns);
}

}  // namespace jd::mark
