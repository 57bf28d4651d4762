#include "measure/others.hpp"

#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace jackdaw {

std::optional<double> Others::share() const {
  const std::optional<double> now = busy();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began_;
  const auto cpus = static_cast<double>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
  if (!now || !busy_ || took.count() <= 0) return std::nullopt;
  return share_of(took.count() * cpus, *now - *busy_, own() - own_);
}

double Others::share_of(double all, double used, double own) {
  // The two are counted in ticks of different lengths.
  return std::max(0.0, (used - own) / all);
}

std::optional<std::string> Others::note(const std::string& measured) const {
  constexpr double kNoticed = 0.02;
  const std::optional<double> taken = share();
  if (!taken || *taken <= kNoticed) return std::nullopt;
  return fmt::format("{}: other programs took {:.0f}% of the CPUs while it ran", measured,
                     *taken * 100);
}

// User, nice, system, interrupts, and stolen by other machines.
std::optional<double> Others::busy() {
  std::ifstream in("/proc/stat");
  std::string word;
  double user = 0;
  double nice = 0;
  double system = 0;
  double idle = 0;
  double waiting = 0;
  double hard = 0;
  double soft = 0;
  double stolen = 0;
  if (!(in >> word >> user >> nice >> system >> idle >> waiting >> hard >> soft >> stolen)) {
    return std::nullopt;
  }
  return (user + nice + system + hard + soft + stolen) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double Others::own() {
  double sum = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& t : {usage.ru_utime, usage.ru_stime}) {
      sum += static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
    }
  }
  return sum;
}

}  // namespace jackdaw
