// `jackdaw bench mostly-copying`: objects that move and objects that stay, under ambiguous roots:
// the tables of Smith and Morrisett, "Comparing Mostly-Copying and Mark-Sweep Conservative
// Collection" (1998).
#pragma once

#include <string>
#include <vector>

#include "commands.hpp"

namespace jackdaw {

// The parts that may be named behind the report's name; all, without any.
std::vector<std::string> mostly_copying_parts();

int mostly_copying_command(const BenchSettings& settings);

}  // namespace jackdaw
