// The states of a model, for searches through all that can be reached (model_test.cpp,
// request_model_test.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

// No thread, or no fork, where a number of one could stand.
inline constexpr std::int8_t kNone = -1;
inline std::size_t subscript(int number) { return static_cast<std::size_t>(number); }

// Those that were reached, each once, and of these the ones that have still to be looked at.
template <class State>
class States {
  // They are told apart by their bytes, so there may be none that stand for nothing.
  static_assert(std::has_unique_object_representations_v<State>);

 public:
  void reach(const State& state) {
    std::string key(sizeof state, '\0');
    std::memcpy(key.data(), &state, sizeof state);
    if (seen_.insert(std::move(key)).second) open_.push_back(state);
  }
  bool are_left() const { return !open_.empty(); }
  State take() {
    const State state = open_.back();
    open_.pop_back();
    return state;
  }
  std::size_t count() const { return seen_.size(); }

 private:
  std::vector<State> open_;
  std::unordered_set<std::string> seen_;
};
