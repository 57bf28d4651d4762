#include "program/temporary.hpp"

#include <unistd.h>

#include <cstdlib>

#include "failure.hpp"

namespace jackdaw {

namespace fs = std::filesystem;

TemporaryFile::TemporaryFile() {
  std::error_code error;
  std::string name = (fs::temp_directory_path(error) / "jackdaw-XXXXXX").string();
  const int file = error ? -1 : mkstemp(name.data());
  if (file < 0) {
    throw Failure(
        kExitRefused,
        "cannot make a temporary file; TMPDIR, or else /tmp, must be a folder that may be "
        "written to");
  }
  close(file);
  path_ = name;
}

TemporaryFile::~TemporaryFile() {
  std::error_code ignored;
  fs::remove(path_, ignored);
}

}  // namespace jackdaw
