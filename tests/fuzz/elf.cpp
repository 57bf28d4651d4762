// Files that pretend to be ELF: the command reads them, or says that they are damaged.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "failure.hpp"
#include "input.hpp"
#include "program/elf.hpp"

namespace {

// Of this program: what a linker wrote, for the input to damage.
std::string sound_file() {
  std::string bytes(1 << 16, '\0');
  const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  const ssize_t length = read(fd, bytes.data(), bytes.size());
  close(fd);
  FUZZ_CHECK(length > 0);
  bytes.resize(static_cast<std::size_t>(length));
  return bytes;
}

void read_bytes(const char* data, std::size_t size) {
  const int fd = memfd_create("elf", MFD_CLOEXEC);
  FUZZ_CHECK(write(fd, data, size) == static_cast<ssize_t>(size));
  try {
    (void)jackdaw::read_elf("/proc/self/fd/" + std::to_string(fd));
  } catch (const jackdaw::Failure&) {
  }
  close(fd);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read_bytes(reinterpret_cast<const char*>(data), size);
  // And a sound one with some bytes changed: an offset, of which the headers' are likeliest to
  // matter, and a value each.
  static const std::string sound = sound_file();
  std::string damaged = sound;
  fuzz::Input input(data, std::min<std::size_t>(size, 64));
  while (!input.empty()) {
    const std::size_t limit = input.byte() % 2 == 0 ? 1024 : damaged.size();
    damaged[input.number(2) % limit] = static_cast<char>(input.byte());
  }
  read_bytes(damaged.data(), damaged.size());
  return 0;
}
