// `jackdaw bench work-stealing`: fork and join on our scheduler, in each of its modes, and on other
// frameworks, after Kumar, Blackburn and Grove's papers on work stealing through return barriers.
#pragma once

#include <string>
#include <vector>

#include "commands.hpp"

namespace jackdaw {

// The parts that may be named behind the report's name; all, without any.
std::vector<std::string> work_stealing_parts();

int work_stealing_command(const BenchSettings& settings);

}  // namespace jackdaw
