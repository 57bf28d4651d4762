#include "figures/statistics.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace jackdaw {

Summary summarize(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  const double median = n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
  return {median, values.front(), values.back(), n};
}

std::optional<Summary> scaled(std::optional<Summary> s, double factor) {
  if (s) *s = {s->median * factor, s->least * factor, s->most * factor, s->count};
  return s;
}

std::optional<Summary> ratio_of(const std::vector<double>& ours, const std::vector<double>& peers) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(ours.size(), peers.size()); ++i) {
    if (peers[i] == 0) return std::nullopt;
    ratios.push_back(ours[i] / peers[i]);
  }
  if (ratios.empty()) return std::nullopt;
  return summarize(std::move(ratios));
}

nlohmann::ordered_json to_json(const Summary& s) {
  return {{"median", s.median}, {"min", s.least}, {"max", s.most}, {"count", s.count}};
}

nlohmann::ordered_json to_json(const std::optional<Summary>& s) {
  return s ? to_json(*s) : nlohmann::ordered_json();
}

std::string to_text(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace jackdaw
