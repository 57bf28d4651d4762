#include "measure/pairs.hpp"

#include <utility>

#include "failure.hpp"

namespace jackdaw {

void run_pairs(int warm_ups, int pairs, std::array<Side*, 2> sides,
               const std::function<Sample(const Side&, int pair)>& run) {
  for (int pair = -warm_ups; pair < pairs; ++pair) {
    for (Side* side : sides) {
      try {
        Sample sample = run(*side, pair);
        if (pair >= 0) side->samples.push_back(std::move(sample));
      } catch (const Failure& failure) {
        side->failure = failure.what();
      }
    }
    if (!sides[0]->failure.empty() || !sides[1]->failure.empty()) return;
    // A B, then B A: a drift of the machine's speed falls on both alike.
    std::swap(sides[0], sides[1]);
  }
}

}  // namespace jackdaw
