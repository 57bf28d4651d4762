#include "measure/machine.hpp"

#include <fmt/core.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "figures/units.hpp"

namespace jackdaw {
namespace {

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) {
      const std::size_t at = line.find(": ");
      if (at != std::string::npos) return line.substr(at + 2);
    }
  }
  return "unknown";
}

std::string huge_page_setting() {
  std::ifstream in("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string line;
  std::getline(in, line);
  const std::size_t from = line.find('[');
  const std::size_t end = line.find(']');
  return from == std::string::npos || end == std::string::npos
             ? "unknown"
             : line.substr(from + 1, end - from - 1);
}

}  // namespace

std::vector<int> usable_processors() {
  std::vector<int> numbers;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return numbers;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<unsigned>(cpu), &set)) numbers.push_back(cpu);
  }
  return numbers;
}

Machine this_machine() {
  Machine machine;
  machine.cpu = cpu_name();
  const std::size_t usable = usable_processors().size();
  machine.cpus = usable > 0 ? static_cast<long>(usable) : sysconf(_SC_NPROCESSORS_ONLN);
  utsname name{};
  machine.kernel = uname(&name) == 0
                       ? fmt::format("{} {} {}", name.sysname, name.release, name.machine)
                       : "unknown";
  machine.huge_pages = huge_page_setting();
  machine.memory_bytes = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                         static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return machine;
}

std::string to_text(const Machine& machine) {
  return fmt::format("machine  {}, {} CPUs, {}, {}, huge pages: {}\n", machine.cpu, machine.cpus,
                     show_bytes(static_cast<double>(machine.memory_bytes)), machine.kernel,
                     machine.huge_pages);
}

nlohmann::ordered_json to_json(const Machine& machine) {
  return {{"cpu", machine.cpu},
          {"cpus", machine.cpus},
          {"memory_bytes", machine.memory_bytes},
          {"kernel", machine.kernel},
          {"transparent_huge_pages", machine.huge_pages}};
}

}  // namespace jackdaw
