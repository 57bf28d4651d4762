// The subcommands. Each returns the exit status or throws Failure.
#pragma once

#include <string>
#include <vector>

namespace jackdaw {

struct RunSettings {
  bool stats = false;
  std::string stats_json;
  std::string malloc_mode;  // empty: the program is a client of libgc
  bool compare = false;
  int runs = 5;
  std::string library;         // ours, if empty
  std::string system_library;  // the system's, if empty
  bool force = false;
  std::vector<std::string> command;  // PROGRAM ARGS
};
int run_command(const RunSettings& settings);
int compare_command(const RunSettings& settings);

struct BenchSettings {
  std::vector<std::string> names;  // all, if empty
  bool list = false;
  std::string library;
  std::string peer;
  std::vector<std::string> variables;  // NAME=VALUE, in our library's environment alone
  int runs = 5;
  std::string json;
  std::string markdown;
  bool quick = false;
  bool add = false;  // a report's: together with the rounds that the JSON file holds
  int limit_seconds = 300;
};
int bench_command(const BenchSettings& settings);

enum class OptionsFormat { Text, Markdown, Man };
int options_command(OptionsFormat format);

}  // namespace jackdaw
