// The benchmarks that `jackdaw bench` knows: which program with which arguments shows what.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace jackdaw {

// What the peer's side of a benchmark runs when that is no libgc: the same program, told to do
// without a collector, on a library of the system's.
struct Rival {
  std::string library;                 // by its bare name
  std::string package;                 // of Debian, for those who lack it
  std::vector<std::string> arguments;  // instead of the benchmark's own
};

struct Benchmark {
  std::string name;
  std::string program;  // in the benchmarks' folder (bench/NAME.cpp)
  std::vector<std::string> arguments;
  std::vector<std::string> variables;  // set in both libraries' environment
  std::string what;                    // one line: what it models and what it shows
  bool process_time = false;           // the time of the whole process is a figure of its own
  std::optional<Rival> rival = std::nullopt;
};

std::span<const Benchmark> all_benchmarks();

// Those whose names match the patterns (shell style: alloc-*), in the catalogue's order; all of
// them without patterns. Throws Failure for a pattern that matches none.
std::vector<Benchmark> choose_benchmarks(const std::vector<std::string>& patterns);

}  // namespace jackdaw
