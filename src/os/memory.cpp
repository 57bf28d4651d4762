#include "os/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "base/bits.hpp"
#include "os/cpu.hpp"
#include "os/kept_errno.hpp"
#include "os/own_ranges.hpp"

namespace jd::os {
namespace {

// Written once while the runtime starts, before other threads exist; then only read.
std::size_t fail_from = 0;
// Counted by every thread; only its value matters, not its order.
std::atomic<std::size_t> calls{0};

bool failure_injected() {
  return fail_from != 0 && calls.fetch_add(1, std::memory_order_relaxed) + 1 >= fail_from;
}

// os.req.dumps. A kernel that refuses does no harm.
void keep_out_of_dumps(void* p, std::size_t size, bool keep_out) {
  const KeptErrno kept;
  madvise(p, size, keep_out ? MADV_DONTDUMP : MADV_DODUMP);
}

// What follows reserved memory, so that commit() may look a page ahead.
std::size_t with_page_after(std::size_t size) { return size + page_size(); }

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

void fail_from_call(std::size_t n) { fail_from = n; }

}  // namespace jd::os
