// `jackdaw bench scale`: the table of bdwgc's scalability notes, clients by markers, on this
// machine; how marking and stopping scale; and a model for more processors than there are, which
// counts what threads share.
#pragma once

#include "commands.hpp"

namespace jackdaw {

// Runs the report's parts, all of them or those that settings.names has after "scale". Writes
// docs/results/scale.md (or the file that settings.markdown names), its plots beside it, and JSON
// if asked for; with settings.add, together with the rounds that the JSON file holds already.
// Returns the exit status; throws Failure.
int scale_command(const BenchSettings& settings);

// Lists the parts.
std::vector<std::string> scale_parts();

}  // namespace jackdaw
