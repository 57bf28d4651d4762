// Medians and spreads of repeated measurements.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace jackdaw {

struct Summary {
  double median = 0;
  double least = 0;
  double most = 0;
  std::size_t count = 0;
};

// Of at least one value.
Summary summarize(std::vector<double> values);
// In another unit.
std::optional<Summary> scaled(std::optional<Summary> s, double factor);

// Ours divided by the peer's, pair by pair: neighbours in time saw the same machine. Nothing if the
// peer's is zero in any pair: without those in which ours is infinitely more, the others could say
// the reverse of what was measured.
std::optional<Summary> ratio_of(const std::vector<double>& ours, const std::vector<double>& peers);

nlohmann::ordered_json to_json(const Summary& s);
nlohmann::ordered_json to_json(const std::optional<Summary>& s);  // null if there is none

// Indented, a newline at the end, what is not UTF-8 replaced.
std::string to_text(const nlohmann::ordered_json& json);

}  // namespace jackdaw
