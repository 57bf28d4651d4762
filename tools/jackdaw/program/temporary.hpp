// A file that a program is told to write its figures to.
#pragma once

#include <filesystem>

#include "program/signals.hpp"

namespace jackdaw {

// Empty at first, and gone when the object is. Throws Failure if it cannot be made.
class TemporaryFile {
 public:
  TemporaryFile();
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  HeldSignals held_;  // first: until the file is gone
  std::filesystem::path path_;
};

}  // namespace jackdaw
