#include "temporary.hpp"

#include <unistd.h>

#include <cstdlib>

#include "failure.hpp"

namespace jackdaw {

namespace fs = std::filesystem;

TemporaryFile::TemporaryFile() {
  std::string name = (fs::temp_directory_path() / "jackdaw-XXXXXX").string();
  const int file = mkstemp(name.data());
  if (file < 0) throw Failure(kExitRefused, "cannot make a temporary file");
  close(file);
  path_ = name;
}

TemporaryFile::~TemporaryFile() {
  std::error_code ignored;
  fs::remove(path_, ignored);
}

}  // namespace jackdaw
