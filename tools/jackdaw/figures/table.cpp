#include "figures/table.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace jackdaw {

Table::Table(std::vector<std::string> headings) { rows_.push_back(std::move(headings)); }

void Table::add(std::vector<std::string> cells) {
  cells.resize(rows_.front().size());
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += i == 0 ? fmt::format("{:<{}}", row[i], widths[i])
                     : fmt::format("  {:>{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string Table::markdown() const {
  std::string text;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (const std::string& cell : rows_[r]) text += fmt::format("| {} ", cell);
    text += "|\n";
    if (r != 0) continue;
    for (std::size_t i = 0; i < rows_[r].size(); ++i) text += i == 0 ? "|---" : "|---:";
    text += "|\n";
  }
  return text;
}

// A series goes on where nobody can be told how far it is.
void Progress::write(const std::string& text) {
  static_cast<void>(std::fputs(text.c_str(), stderr));
  std::fflush(stderr);
}

Progress::Progress() : terminal_(isatty(2) != 0) {}

Progress::~Progress() { clear(); }

void Progress::say(const std::string& text) {
  write(terminal_ ? "\r\033[K" + text : text + "\n");
  shown_ = terminal_;
}

void Progress::clear() {
  if (shown_) write("\r\033[K");
  shown_ = false;
}

}  // namespace jackdaw
