// Columns of text, as wide as their widest cell.
#pragma once

#include <string>
#include <vector>

namespace jackdaw {

class Table {
 public:
  explicit Table(std::vector<std::string> headings);
  void add(std::vector<std::string> cells);
  // The first column is left-aligned, the others right-aligned.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::string markdown() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// One line on stderr that says what is going on; it overwrites itself on a terminal.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void say(const std::string& text);
  void clear();

 private:
  static void write(const std::string& text);

  bool terminal_;
  bool shown_ = false;
};

}  // namespace jackdaw
