#include "os/limits.hpp"

#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/bits.hpp"
#include "os/files.hpp"
#include "os/kept_errno.hpp"
#include "os/memory.hpp"

namespace jd::os {

std::size_t machine_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  return pages > 0 ? static_cast<std::size_t>(pages) * page_size() : SIZE_MAX / 2;
}

bool memory_limit_now(std::size_t* limit, const GroupFiles& files) {
  std::size_t least = machine_memory();
  bool is_known = false;
  for_each_own_group(files, "memory", [&](const Group& group) {
    const char* const file = group.unified ? "memory.max" : "memory.limit_in_bytes";
    is_known |= group.has(file);
    least = base::min_of(least, group.number(file));
  });
  *limit = base::max_of(least, page_size());
  return is_known;
}

std::size_t memory_limit(const GroupFiles& files) {
  std::size_t limit = 0;
  static_cast<void>(memory_limit_now(&limit, files));
  return limit;
}

std::size_t address_space_left(const char* own_memory) {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  // The first number of statm is the mapped size in pages. Without /proc, and where it says nothing
  // (0) since the main thread has ended, assume that a quarter of the limit is in use.
  char text[64];
  const std::size_t size = read_file(own_memory, text, sizeof text - 1);
  std::size_t pages = 0;
  for (std::size_t i = 0; i < size && text[i] >= '0' && text[i] <= '9'; ++i) {
    pages = pages * 10 + static_cast<std::size_t>(text[i] - '0');
  }
  const std::size_t used = pages != 0 ? pages * page_size() : limit.rlim_cur / 4;
  return used < limit.rlim_cur ? limit.rlim_cur - used : 0;
}

bool has_swap() {
  // While swap is being given up, what is still there counts as its size, but also as free: so the
  // size alone tells. (A sandbox may say that all went well, and do nothing.)
  struct sysinfo system {};
  system.totalswap = 1;
  const KeptErrno kept;
  return sysinfo(&system) != 0 || system.totalswap != 0;
}

}  // namespace jd::os
