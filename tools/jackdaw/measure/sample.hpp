// One run of a benchmark program: the figures it printed, and what the kernel counted.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "measure/catalogue.hpp"
#include "program/places.hpp"

namespace jackdaw {

struct FigureName {
  std::string name;
  std::string unit;
};

// The figures in the order in which the program printed them; then ours.
struct Sample {  // NOLINT(bugprone-exception-escape): moving Json throws nothing
  std::vector<FigureName> names;
  std::vector<double> values;
  nlohmann::ordered_json facts;  // the rest of the program's line: live bytes, collections ...
};

struct BenchmarkRun {
  const Benchmark& benchmark;
  std::filesystem::path measured;  // the library that the figures are about
  std::vector<std::filesystem::path> preload;
  std::vector<std::string> arguments;
  std::vector<std::string> variables;  // beside the benchmark's own
  bool quick = false;
  int limit_seconds = 300;
};

// Throws Failure, with no program's name, if the run fails, takes too long, or its line is not as
// agreed.
Sample run_benchmark(const BenchmarkRun& wanted);
// The same on a libgc.
Sample run_benchmark(const Benchmark& b, const Library& library, bool quick, int limit_seconds,
                     const std::vector<std::string>& variables = {});

// A figure that none may forget, checked: which library a program really ran on, as its line says.
// Throws Failure if it was another.
void require_library(const nlohmann::ordered_json& line, const std::filesystem::path& wanted);
// The same of a program that was built with libjackdaw: the one beside this command.
void require_libjackdaw(const nlohmann::ordered_json& line);

}  // namespace jackdaw
