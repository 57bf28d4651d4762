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

// Curves over a logarithmic axis, in panels side by side that share their series.
struct Curves {
  struct Panel {
    std::string title;
    // For each series its points, which may be none.
    std::vector<std::vector<std::pair<double, double>>> points;
  };
  std::string title;
  std::string x_unit;
  std::string y_unit;
  std::vector<std::string> series;
  std::vector<Panel> panels;
};

// Is there a gnuplot to draw with?
bool can_draw();

// Pre: can_draw(). Throws Failure if gnuplot fails.
void draw_bars(const Bars& bars, const std::filesystem::path& svg);
void draw_curves(const Curves& curves, const std::filesystem::path& svg);

}  // namespace jackdaw
