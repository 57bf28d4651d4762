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

bool Choice::next(bool may_try) {
  is_trial_ = may_try && since_trials_ >= interval_;
  return prefers_other_ != is_trial_;
}

void Choice::note(std::size_t objects, std::uint64_t ns) {
  if (objects < kLeastObjects) return;
  if (is_trial_) {
    judge({objects, ns});
  } else {
    remember({objects, ns});
    ++since_trials_;
  }
}

void Choice::remember(Sample sample) {
  samples_[next_sample_] = sample;
  next_sample_ = (next_sample_ + 1) % kRemembered;
}

const Choice::Sample* Choice::like(std::size_t objects) const {
  const Sample* best = nullptr;
  for (const Sample& sample : samples_) {
    if (sample.objects == 0 || !are_alike(sample.objects, objects)) continue;
    if (best == nullptr || cost(sample.objects, sample.ns) < cost(best->objects, best->ns)) {
      best = &sample;
    }
  }
  return best;
}

void Choice::judge(Sample trial) {
  ++attempts_;
  const Sample* reference = like(trial.objects);
  if (reference == nullptr) {
    if (attempts_ >= kAttempts) end_trials();
    return;
  }
  // By less than a sixteenth is as good as not.
  const double limit = cost(reference->objects, reference->ns) * 15 / 16;
  if (cost(trial.objects, trial.ns) >= limit) {
    end_trials();
  } else if (++wins_ == kWins) {
    change(trial);
  }
}

void Choice::end_trials() {
  interval_ = base::min_of(4 * interval_, kLongestInterval);
  attempts_ = 0;
  wins_ = 0;
  since_trials_ = 0;
}

void Choice::change(Sample sample) {
  prefers_other_ = !prefers_other_;
  for (Sample& old : samples_) old = {};
  remember(sample);
  end_trials();
  interval_ = first_interval_;
}

MarkStrategy StrategyChoices::next(std::size_t objects, std::size_t bytes, std::size_t allocated) {
  chosen_ = nullptr;
  if (bytes > kMostLive || bytes + allocated > kMostInUse) return MarkStrategy::Ring;
  chosen_ = &by_size_[object_size(objects)];
  return chosen_->next(true) ? MarkStrategy::Ring : MarkStrategy::Grey;
}

void StrategyChoices::note(std::size_t objects, std::uint64_t ns) {
  if (chosen_ != nullptr) chosen_->note(objects, ns);
}

bool CompanyChoices::next(std::size_t objects, std::uint64_t ns, unsigned markers, bool may_try) {
  chosen_ = &by_size_[object_size(objects)];
  return chosen_->next(may_try && (ns * markers <= kLongest || chosen_->prefers_other()));
}

void CompanyChoices::note(std::size_t objects, std::uint64_t ns) {
  if (chosen_ != nullptr) chosen_->note(objects, ns);
}

}  // namespace jd::mark
