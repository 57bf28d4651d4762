#include "program/standard_files.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace jackdaw {

void occupy_standard_files() {
  for (int fd = 0; fd <= 2; ++fd) {
    // The lowest number that is free is this one.
    if (fcntl(fd, F_GETFD) < 0) static_cast<void>(open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
}

}  // namespace jackdaw
