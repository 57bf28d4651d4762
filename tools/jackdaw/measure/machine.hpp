// The facts about the machine that a measurement depends on.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "program/places.hpp"

namespace jackdaw {

struct Machine {
  std::string cpu;
  long cpus = 0;  // those this process may use
  std::string kernel;
  std::string huge_pages;  // /sys/kernel/mm/transparent_hugepage/enabled
  std::uint64_t memory_bytes = 0;
};

Machine this_machine();
// The numbers of the processors that this process may use. Empty if the kernel does not say.
std::vector<int> usable_processors();

std::string to_text(const Machine& machine);
nlohmann::ordered_json to_json(const Machine& machine);

}  // namespace jackdaw
