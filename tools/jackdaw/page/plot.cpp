#include "page/plot.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "failure.hpp"
#include "program/places.hpp"
#include "program/process.hpp"

namespace jackdaw {
namespace {

// A string of gnuplot's, in which '_' and the like stand for themselves.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') result += '\'';
    result += c;
  }
  return result + "'";
}

// Width by the number of groups, so that their names fit.
std::string script(const Bars& bars, const std::string& svg) {
  std::string text = fmt::format(
      "set terminal svg size {},420 noenhanced font 'sans-serif,13' background 'white'\n"
      "set output {}\nset title {}\nset ylabel {}\nset style data histograms\n"
      "set style histogram clustered gap 1\nset style fill solid 0.85 border -1\n"
      "set boxwidth 0.9\nset grid ytics\nset key top left\nset xtics rotate by -20 nomirror\n"
      "set yrange [*<0:*]\nset offsets graph 0, 0, graph 0.15, 0\n$data << END\n",
      220 + 130 * bars.groups.size(), quoted(svg), quoted(bars.title), quoted(bars.unit));
  for (const auto& [name, values] : bars.groups) {
    text += '"' + name + '"';
    for (const double value : values) text += fmt::format(" {:.6g}", value);
    text += "\n";
  }
  text += "END\nplot ";
  for (std::size_t s = 0; s < bars.series.size(); ++s) {
    text += fmt::format("{}$data using {}{} title {}", s == 0 ? "" : ", ", s + 2,
                        s == 0 ? ":xtic(1)" : "", quoted(bars.series[s]));
  }
  return text + "\n";
}

constexpr std::size_t kColumns = 4;

std::string script(const Curves& curves, const std::string& svg) {
  const std::size_t rows = (curves.panels.size() + kColumns - 1) / kColumns;
  std::string text = fmt::format(
      "set terminal svg size 1400,{} noenhanced font 'sans-serif,12' background 'white'\n"
      "set output {}\nset multiplot layout {},{} title {}\nset logscale x 2\nset grid\n"
      "set format x '%.3g'\nset xlabel {}\nset ylabel {}\nset yrange [0:*]\n"
      "set key top right font ',9'\n",
      60 + 320 * rows, quoted(svg), rows, kColumns, quoted(curves.title), quoted(curves.x_unit),
      quoted(curves.y_unit));
  for (const Curves::Panel& panel : curves.panels) {
    std::string blocks;
    std::string plots;
    std::string missing;
    for (std::size_t s = 0; s < panel.points.size(); ++s) {
      if (panel.points[s].empty()) {
        // For the legend, which shows what the first panel has.
        missing += fmt::format(", NaN with linespoints lt {} pt 7 ps 0.4 title {}", s + 1,
                               quoted(curves.series[s]));
        continue;
      }
      blocks += fmt::format("$series{} << END\n", s);
      for (const auto& [x, y] : panel.points[s]) blocks += fmt::format("{:.6g} {:.6g}\n", x, y);
      blocks += "END\n";
      plots += fmt::format("{}$series{} using 1:2 with linespoints lt {} pt 7 ps 0.4 title {}",
                           plots.empty() ? "plot " : ", ", s, s + 1, quoted(curves.series[s]));
    }
    if (plots.empty()) continue;
    text += fmt::format("{}set title {}\n{}\n", blocks, quoted(panel.title), plots + missing);
    // One legend is enough.
    text += "unset key\n";
  }
  return text + "unset multiplot\n";
}

void draw(const std::string& text, const std::filesystem::path& svg) {
  const File input = make_memory_file("jackdaw-plot");
  if (write(input.fd(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      lseek(input.fd(), 0, SEEK_SET) != 0) {
    throw Failure(kExitRefused, "cannot hand gnuplot its commands");
  }
  Command command;
  command.file = find_program("gnuplot").value();
  command.arguments = {"gnuplot", "-"};
  command.environment = environment_with({}, {});
  const File output = make_memory_file("jackdaw-plot-output");
  command.in = input.fd();
  command.out = command.err = output.fd();
  command.interactive = false;
  command.limit = std::chrono::seconds(60);
  const Outcome outcome = run(command, nullptr);
  if (!outcome.succeeded()) {
    throw Failure(kExitFailed, fmt::format("gnuplot, drawing {}: {}\n{}", svg.string(),
                                           outcome.describe(), contents(output).substr(0, 500)));
  }
}

}  // namespace

bool can_draw() { return find_program("gnuplot").has_value(); }

void draw_bars(const Bars& bars, const std::filesystem::path& svg) {
  draw(script(bars, svg.string()), svg);
}

void draw_curves(const Curves& curves, const std::filesystem::path& svg) {
  draw(script(curves, svg.string()), svg);
}

}  // namespace jackdaw
