// The kernel's interface for looking through a range's page tables (PAGEMAP_SCAN, Linux 6.7), which
// Debian 12's headers lack. What was never touched has no tables, and costs nothing.
#pragma once

#include <cstdint>

#include "base/bits.hpp"
#include "os/files.hpp"

namespace jd::os {

// The tables of this process's pages; not by /proc/self, as open_mappings().
inline constexpr const char* kPageMap = "/proc/thread-self/pagemap";

struct PageRegion {
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t categories;
};
struct PageScan {
  std::uint64_t size;
  std::uint64_t flags;
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t walk_end;  // where the kernel stopped, for want of room in the vector or at the end
  std::uint64_t vector;
  std::uint64_t vector_length;
  std::uint64_t max_pages;
  std::uint64_t category_inverted;
  std::uint64_t category_mask;
  std::uint64_t category_anyof_mask;
  std::uint64_t return_mask;
};
static_assert(sizeof(PageScan) == 96);
inline constexpr unsigned long kPageScan = 0xC0606610;  // _IOWR('f', 16, of 96 bytes)

// Categories of pages.
inline constexpr std::uint64_t kPageWritten = 1 << 1;  // not write-protected since
inline constexpr std::uint64_t kPageOfFile = 1 << 2;
inline constexpr std::uint64_t kPagePresent = 1 << 3;
inline constexpr std::uint64_t kPageSwapped = 1 << 4;
inline constexpr std::uint64_t kPageOfZeros = 1 << 5;  // the page of zeros, which was only read

// Flags: write-protect what is found; fail where the kernel does not lift that by itself.
inline constexpr std::uint64_t kScanProtects = 1 << 0;
inline constexpr std::uint64_t kScanChecksWatch = 1 << 1;

// The kernel's answers to a scan go to an array of so many.
inline void answer_in(PageRegion* regions, std::size_t count, PageScan* scan) {
  scan->vector = base::as_word(regions);
  scan->vector_length = count;
}

// Calls visit(region) for each region of the scan's range that the kernel finds. False, maybe in
// the midst of it, if the kernel refuses.
template <class Visit>
bool scan_pages(const RandomReader& tables, PageScan* scan, Visit visit) {
  const auto* const regions = reinterpret_cast<PageRegion*>(base::as_pointer(scan->vector));
  for (base::Word at = scan->start; at < scan->end; at = scan->walk_end) {
    scan->start = at;
    scan->walk_end = 0;
    const long count = tables.control(kPageScan, scan);
    if (count < 0 || scan->walk_end <= at) return false;
    for (long i = 0; i < count; ++i) visit(regions[i]);
  }
  return true;
}

}  // namespace jd::os
