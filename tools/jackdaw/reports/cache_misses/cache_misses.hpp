// `jackdaw bench cache-misses`: the tables of Boehm's "Reducing Garbage Collector Cache Misses"
// (ISMM 2000) with this machine's figures, and what the paper lacks: the ring, other collectors,
// the distance to the memory system's limit.
#pragma once

#include "commands.hpp"

namespace jackdaw {

// Writes docs/results/cache-misses.md (or the file that settings.markdown names), its plots beside
// it, and JSON if asked for. Returns the exit status; throws Failure.
int cache_misses_command(const BenchSettings& settings);

}  // namespace jackdaw
