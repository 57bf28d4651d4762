#include "figures/units.hpp"

#include <fmt/core.h>

#include <array>
#include <cmath>

namespace jackdaw {

std::string show_number(double value) {
  const double size = std::fabs(value);
  if (size == 0) return "0";
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  if (size >= 9.995) return fmt::format("{:.1f}", value);
  if (size >= 0.9995) return fmt::format("{:.2f}", value);
  if (size >= 0.0995) return fmt::format("{:.3f}", value);
  return fmt::format("{:.2g}", value);
}

std::string show_bytes(double bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1023.5 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{:.0f} B", bytes);
  return fmt::format("{} {}", show_number(bytes), kUnits[unit]);
}

std::string show_seconds(double seconds) {
  if (seconds == 0) return "0 s";
  if (seconds < 1e-6) return fmt::format("{} ns", show_number(seconds * 1e9));
  if (seconds < 1e-3) return fmt::format("{} us", show_number(seconds * 1e6));
  if (seconds < 1) return fmt::format("{} ms", show_number(seconds * 1e3));
  return fmt::format("{} s", show_number(seconds));
}

std::string show_spread(const Summary& s, const std::function<std::string(double)>& show,
                        const char* unit) {
  const std::string median = show(s.median) + unit;
  return s.least == s.most ? median
                           : fmt::format("{} ({}..{})", median, show(s.least), show(s.most));
}

std::string show_figure(const std::optional<Summary>& s, const char* unit) {
  if (!s) return "-";
  return show_spread(
      *s, [](double value) { return fmt::format("{:.3g}", value); }, unit);
}

std::string show_percent(const std::optional<Summary>& s) {
  if (!s) return "-";
  return show_spread(
      *s, [](double value) { return fmt::format("{:.1f}", 100 * value); }, "%");
}

std::string show_ratio(const std::optional<Summary>& s) {
  if (!s) return "-";
  return show_spread(*s, [](double value) { return fmt::format("{:.2f}", value); });
}

}  // namespace jackdaw
