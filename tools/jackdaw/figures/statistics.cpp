#include "figures/statistics.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace jackdaw {

Summary summarize(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  const double median = n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
  return {median, values.front(), values.back(), n};
}

std::vector<double> ratios(const std::vector<double>& ours, const std::vector<double>& peers) {
  std::vector<double> result;
  for (std::size_t i = 0; i < std::min(ours.size(), peers.size()); ++i) {
    if (peers[i] != 0) result.push_back(ours[i] / peers[i]);
  }
  return result;
}

nlohmann::ordered_json to_json(const Summary& s) {
  return {{"median", s.median}, {"min", s.least}, {"max", s.most}, {"count", s.count}};
}

std::string to_text(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace jackdaw
