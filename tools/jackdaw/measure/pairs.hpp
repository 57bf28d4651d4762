// A benchmark on two libraries, in turn.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "measure/sample.hpp"

namespace jackdaw {

struct Side {
  const char* key;
  std::filesystem::path measured;  // the library that the figures are about
  std::vector<std::filesystem::path> preload;
  std::vector<std::string> arguments;
  std::vector<std::string> variables;  // beside the benchmark's own
  std::vector<Sample> samples;
  std::string failure;  // of the first run that failed
};

// Runs so many pairs after the warm-ups, whose samples do not count; `run` gets negative numbers
// for those, and the pair's from 0 otherwise. A failure ends it with its pair, and is kept in its
// side.
void run_pairs(int warm_ups, int pairs, std::array<Side*, 2> sides,
               const std::function<Sample(const Side&, int pair)>& run);

}  // namespace jackdaw
