// Bar charts as SVG, drawn by gnuplot.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace jackdaw {

// Groups of bars, one bar a series.
struct Bars {
  std::string title;
  std::string unit;
  std::vector<std::string> series;
  std::vector<std::pair<std::string, std::vector<double>>> groups;
};

// Is there a gnuplot to draw with?
bool can_draw();

// Pre: can_draw(). Throws Failure if gnuplot fails.
void draw_bars(const Bars& bars, const std::filesystem::path& svg);

}  // namespace jackdaw
