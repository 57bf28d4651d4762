// Numbers for people.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "figures/statistics.hpp"

namespace jackdaw {

std::string show_bytes(double bytes);      // "1.50 MiB"
std::string show_seconds(double seconds);  // "12.3 ms"

// Three digits that mean something: 1234, 123, 12.3, 1.23, 0.123.
std::string show_number(double value);

// A cell of a table: the median, with the smallest and the largest value where they differ. The
// unit is of all three, unless `show` has one for each.
std::string show_spread(const Summary& s, const std::function<std::string(double)>& show,
                        const char* unit = "");
// The same of what may not have been measured: "-".
std::string show_figure(const std::optional<Summary>& s, const char* unit);
std::string show_percent(const std::optional<Summary>& s);
std::string show_ratio(const std::optional<Summary>& s);

}  // namespace jackdaw
