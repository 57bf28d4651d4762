#include "os/memory.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <initializer_list>

#include "base/bits.hpp"
#include "base/text.hpp"
#include "os/cpu.hpp"
#include "os/files.hpp"
#include "os/groups.hpp"
#include "os/kept_errno.hpp"
#include "os/log.hpp"
#include "os/own_ranges.hpp"
#include "os/thread.hpp"

namespace jd::os {
namespace {

// Written once while the runtime starts, before other threads exist; then only read.
std::size_t fail_from = 0;
// Counted by every thread; only its value matters, not its order.
std::atomic<std::size_t> calls{0};

bool failure_injected() {
  return fail_from != 0 && calls.fetch_add(1, std::memory_order_relaxed) + 1 >= fail_from;
}

bool find_mapping(const void* p, base::Word* start, base::Word* end) {
  const base::Word address = base::as_word(p);
  bool found = false;
  for_each_line(open_mappings(), [&](const char* line) {
    base::Word from = 0;
    base::Word to = 0;
    const char* c = parse_hex(line, &from);
    if (*c == '-') parse_hex(c + 1, &to);
    if (address >= from && address < to) {
      *start = from;
      *end = to;
      found = true;
    }
    return !found;
  });
  return found;
}

// Can the aligned word be read? The kernel reads a signal mask before it refuses to do the unknown
// with it.
bool word_is_readable(base::Word address) {
  constexpr int kUnknown = -1;
  const KeptErrno kept;
  return syscall(SYS_rt_sigprocmask, kUnknown, address, nullptr, 8) != 0 && errno == EINVAL;
}

// For systems that forbid process_vm_readv (os.req.no-proc). What is unmapped between the try and
// the reading would still end the program.
bool read_after_trying(void* to, const void* from, std::size_t size) {
  const base::Word end = base::as_word(from) + size;
  for (base::Word word = base::align_down(base::as_word(from), sizeof(base::Word)); word < end;
       word = base::align_down(word, page_size()) + page_size()) {
    if (!word_is_readable(word)) return false;
  }
  base::copy_bytes(to, from, size);
  return true;
}

// os.req.dumps. A kernel that refuses does no harm.
void keep_out_of_dumps(void* p, std::size_t size, bool keep_out) {
  const KeptErrno kept;
  madvise(p, size, keep_out ? MADV_DONTDUMP : MADV_DODUMP);
}

// What follows reserved memory, so that commit() may look a page ahead.
std::size_t with_page_after(std::size_t size) { return size + page_size(); }

bool readable(base::Word address) {
  char byte;
  return read_safely(&byte, base::as_pointer(address), 1);
}

}  // namespace

std::size_t page_size() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

void* reserve(std::size_t size, std::size_t alignment) {
  if (failure_injected()) return nullptr;
  std::size_t padded = 0;
  if (!base::checked_add(size, alignment + page_size(), &padded)) return nullptr;
  void* p = mmap(nullptr, padded, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  const base::Word start = base::as_word(p);
  const base::Word aligned = base::align_up(start, alignment);
  if (aligned != start) munmap(p, aligned - start);
  char* const low = base::as_pointer(aligned);
  char* const high = low + with_page_after(size);
  const base::Word end = start + padded;
  if (end != base::as_word(high)) munmap(high, end - base::as_word(high));
  keep_out_of_dumps(low, with_page_after(size), true);
  if (!add_own_range({low, high})) {
    munmap(low, with_page_after(size));
    return nullptr;
  }
  return low;
}

void unreserve(void* p, std::size_t size) { release(p, with_page_after(size)); }

void release(void* p, std::size_t size) {
  auto* const low = static_cast<char*>(p);
  remove_own_range({low, low + size});
  munmap(p, size);
}

bool commit(void* p, std::size_t size) {
  if (failure_injected()) return false;
  // The page after it, too: so between what is committed and what is kept out of dumps there is
  // always something that is neither. The kernel then only moves the two borders as the committed
  // part grows; where they coincide it first needs one more mapping, which it may not have.
  keep_out_of_dumps(p, with_page_after(size), false);
  return mprotect(p, size, PROT_READ | PROT_WRITE) == 0;
}

void* map(std::size_t size) {
  if (failure_injected()) return nullptr;
  void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  auto* const low = static_cast<char*>(p);
  if (add_own_range({low, low + size})) return p;
  munmap(p, size);
  return nullptr;
}

void* map_zero_in_children(std::size_t size) {
  void* p = map(size);
  if (p == nullptr) return nullptr;
  const KeptErrno kept;
  if (madvise(p, size, MADV_WIPEONFORK) == 0) return p;
  release(p, size);
  return nullptr;
}

bool discard(void* p, std::size_t size) { return madvise(p, size, MADV_DONTNEED) == 0; }

void advise_huge_pages(void* p, std::size_t size) { madvise(p, size, MADV_HUGEPAGE); }

// The page belongs to no object yet.
[[gnu::no_sanitize_address]] std::uint64_t ns_of_first_touch(void* p) {
  const std::uint64_t begin = now_ns();
  *static_cast<volatile char*>(p) = 0;
  return now_ns() - begin;
}

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

namespace {

// The calling thread's, while a ManyReads lives; otherwise 0.
constinit thread_local pid_t known_thread = 0;

// What process_vm_readv says of this process's own memory.
ssize_t read_own(const iovec& local, const iovec* remote, std::size_t count) {
  // By the thread's number: by the process's, nothing can be read once the main thread has ended.
  const pid_t self = known_thread != 0 ? known_thread : thread_id();
  return process_vm_readv(self, &local, 1, remote, count, 0);
}

}  // namespace

ManyReads::ManyReads() : before_(known_thread) { known_thread = thread_id(); }
ManyReads::~ManyReads() { known_thread = before_; }

bool read_pieces_safely(void* to, const Piece* pieces, std::size_t count) {
  JD_DCHECK(count <= kMostPieces);
  iovec remote[kMostPieces];
  std::size_t size = 0;
  for (std::size_t i = 0; i < count; ++i) {
    remote[i] = {const_cast<void*>(pieces[i].from), pieces[i].size};
    size += pieces[i].size;
  }
  const KeptErrno kept;
  return read_own({to, size}, remote, count) == static_cast<ssize_t>(size);
}

bool read_safely(void* to, const void* from, std::size_t size) {
  const iovec remote{const_cast<void*>(from), size};
  const KeptErrno kept;
  const ssize_t done = read_own({to, size}, &remote, 1);
  const bool forbidden = done < 0 && errno != EFAULT;
  return forbidden ? read_after_trying(to, from, size) : done == static_cast<ssize_t>(size);
}

void PagesToRead::add(char* low, char* high) {
  while (low < high && readable_) {
    if (count_ == kMostPieces) ask();
    pieces_[count_++] = {low, 1};
    low = base::as_pointer(base::align_up(base::as_word(low) + 1, page_size()));
  }
}

void PagesToRead::ask() {
  char bytes[kMostPieces];
  readable_ = readable_ && read_pieces_safely(bytes, pieces_, count_);
  count_ = 0;
}

bool PagesToRead::are_readable() {
  if (count_ != 0) ask();
  return readable_;
}

char* end_of_readable(char* low, char* high) {
  while (low < high) {
    Piece pages[kMostPieces];
    std::size_t count = 0;
    char* at = low;
    for (; at < high && count < kMostPieces; ++count) {
      pages[count] = {at, 1};
      at = base::as_pointer(base::align_up(base::as_word(at) + 1, page_size()));
    }
    char bytes[kMostPieces];
    if (!read_pieces_safely(bytes, pages, count)) {
      for (std::size_t i = 0; i < count; ++i) {
        const base::Word page = base::as_word(pages[i].from);
        if (!readable(page)) return base::as_pointer(page);
      }
    }
    low = at;
  }
  return high;
}

void clip_to_readable(char** low, char** high) {
  while (*low < *high && !readable(base::as_word(*low))) {
    const base::Word page = base::align_down(base::as_word(*low), page_size());
    *low = base::min_of(*high, base::as_pointer(page + page_size()));
  }
  while (*low < *high && !readable(base::as_word(*high) - 1)) {
    const base::Word page = base::align_down(base::as_word(*high) - 1, page_size());
    *high = base::max_of(*low, base::as_pointer(page));
  }
}

void* end_of_mapping(const void* p) {
  base::Word start = 0;
  base::Word end = 0;
  if (find_mapping(p, &start, &end)) return base::as_pointer(end);
  // No /proc: feel the way upward a page at a time.
  base::Word page = base::align_down(base::as_word(p), page_size());
  if (!readable(page)) return nullptr;
  while (readable(page)) page += page_size();
  return base::as_pointer(page);
}

void* start_of_mapping(const void* p) {
  base::Word start = 0;
  base::Word end = 0;
  if (find_mapping(p, &start, &end)) return base::as_pointer(start);
  base::Word page = base::align_down(base::as_word(p), page_size());
  if (!readable(page)) return nullptr;
  while (readable(page - page_size())) page -= page_size();
  return base::as_pointer(page);
}

void fail_from_call(std::size_t n) { fail_from = n; }

}  // namespace jd::os
