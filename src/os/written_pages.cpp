#include "os/written_pages.hpp"

#include <sys/mman.h>

#include <atomic>

#include "base/bits.hpp"
#include "os/memory.hpp"
#include "os/page_scan.hpp"
#include "os/safe_reading.hpp"
#include "os/thread.hpp"

namespace jd::os {
namespace {

using base::Word;

// What is tried at a time where all that can be read is visited: the least page of any system.
constexpr Word kPage = 4096;

bool can_be_read(const char* at) {
  char byte;
  return read_safely(&byte, at, 1);
}

}  // namespace

// Pages of a file's mapping may lie beyond the file's end, where a read would kill the process.
void visit_readable(char* low, char* high, PageVisitor* visitor) {
  char* from = low;
  for (char* at = low; at < high;) {
    char* next = base::as_pointer(base::align_down(base::as_word(at), kPage) + kPage);
    if (!can_be_read(at)) {
      if (from < at) visitor->pages(from, at);
      from = next;
    }
    at = next;
  }
  if (from < high) visitor->pages(from, high);
}

WrittenPages::WrittenPages(void* answers, std::size_t size)
    : pagemap_(kPageMap), answers_(answers), size_(size) {}

WrittenPages::WrittenPages(PageMap* map, void* answers, std::size_t size)
    : pagemap_(map->opened()), answers_(answers), size_(size) {}

// A signal's handler may fork at any point here. What the child inherits stays open, until it
// executes another program: the number may be a file of the program's by now.
int PageMap::opened() {
  if (file_plus_one_ != 0 && is_own()) return file_plus_one_ - 1;
  const KeptErrno kept;
  process_ = process_id();
  file_plus_one_ = open_to_read(kPageMap) + 1;
  return file_plus_one_ - 1;
}

void PageMap::close() {
  if (file_plus_one_ == 0) return;
  const int file = file_plus_one_ - 1;
  file_plus_one_ = 0;
  const KeptErrno kept;
  if (is_own()) close_file(file);
}

bool PageMap::is_own() const { return process_ == process_id(); }

namespace {
// Not on the stack, as the reader's buffers.
alignas(base::kLine) char collectors_answers[16 * base::kKiB];
}  // namespace

WrittenPages::WrittenPages() : WrittenPages(collectors_answers, sizeof collectors_answers) {}

// What visitors are told of: the written pages, those next to each other at once.
class WrittenPages::Found {
 public:
  Found(char* low, char* high, PageVisitor* visitor) : low_(low), high_(high), visitor_(visitor) {}
  // In the order of their addresses.
  void add(char* first, char* end) {
    if (first == end_) {
      end_ = end;
      return;
    }
    tell();
    first_ = first;
    end_ = end;
  }
  void tell() {
    if (first_ != end_) visitor_->pages(base::max_of(first_, low_), base::min_of(end_, high_));
    first_ = end_;
  }

 private:
  char* low_;
  char* high_;
  PageVisitor* visitor_;
  char* first_ = nullptr;
  char* end_ = nullptr;
};

namespace {

// The system has refused a scan. Written and read by any visit (relaxed: a visit that does not
// know it yet is refused, too).
std::atomic<bool> scans_are_refused{false};

}  // namespace

void WrittenPages::allow_scans(bool allowed) {
  scans_are_refused.store(!allowed, std::memory_order_relaxed);
}

// A guard page in the middle of a mapping, as libc's stacks have since 2.42, passes for swapped
// (Linux 6.13 has such pages, 6.15 tells them): so what is swapped is tried.

// Pre: whole pages. False if the kernel can't: then it is for visit_each to find, again.
bool WrittenPages::visit_scanned(char* low, char* high, Wanted wanted, Found* found) const {
  if (scans_are_refused.load(std::memory_order_relaxed)) return false;
  const std::size_t page = page_size();
  PageScan scan{};
  scan.size = sizeof scan;
  scan.start = base::as_word(low);
  scan.end = base::as_word(high);
  answer_in(static_cast<PageRegion*>(answers_), size_ / sizeof(PageRegion), &scan);
  if (wanted == Wanted::Written) {
    scan.category_inverted = kPageOfFile | kPageOfZeros;
    scan.category_mask = kPageOfFile | kPageOfZeros;
  }
  scan.category_anyof_mask = kPagePresent | kPageSwapped;
  scan.return_mask = kPagePresent | kPageSwapped;
  const bool complete = scan_pages(pagemap_, &scan, [=](const PageRegion& region) {
    char* first = base::as_pointer(region.start);
    char* const end = base::as_pointer(region.end);
    if ((region.categories & kPagePresent) != 0) return found->add(first, end);
    for (; first < end; first += page) {
      if (can_be_read(first)) found->add(first, first + page);
    }
  });
  if (!complete) scans_are_refused.store(true, std::memory_order_relaxed);
  return complete;
}

// Pre: whole pages. Returns where the kernel's table ended to be readable: `high` if it never did.
char* WrittenPages::visit_each(char* low, char* high, Wanted wanted, Found* found) const {
  // Of an entry: the page is in memory; it is in swap; it is a file's, or shared; it is a guard
  // page.
  constexpr std::uint64_t kPresent = std::uint64_t{1} << 63;
  constexpr std::uint64_t kSwapped = std::uint64_t{1} << 62;
  constexpr std::uint64_t kOfFile = std::uint64_t{1} << 61;
  constexpr std::uint64_t kGuard = std::uint64_t{1} << 58;
  auto* const entries = static_cast<std::uint64_t*>(answers_);
  const std::size_t most = size_ / sizeof entries[0];
  const std::size_t page = page_size();
  for (char* at = low; at < high;) {
    const std::size_t count = base::min_of(static_cast<std::size_t>(high - at) / page, most);
    if (!pagemap_.read(base::as_word(at) / page * sizeof entries[0], entries,
                       count * sizeof entries[0])) {
      return at;
    }
    for (std::size_t i = 0; i < count; ++i, at += page) {
      const bool present = (entries[i] & kPresent) != 0;
      const bool kept = present || (entries[i] & kSwapped) != 0;
      const std::uint64_t left_out = wanted == Wanted::Written ? kOfFile | kGuard : kGuard;
      if (kept && (entries[i] & left_out) == 0 && (present || can_be_read(at))) {
        found->add(at, at + page);
      }
    }
  }
  return high;
}

// Pre: whole pages. Returns where mincore() ended to tell: `high` if it never did. It says of a
// page of its own that the process has, and of one that it would share with others, whether that is
// in memory; of any where the process may not know of a file's. So what it says is in memory is
// tried: a file may have ended, and the hardware may have lost the page.
char* WrittenPages::visit_present(char* low, char* high, Found* found) const {
  auto* const told = static_cast<unsigned char*>(answers_);
  const std::size_t page = page_size();
  char* at = low;
  while (at < high) {
    const std::size_t count = base::min_of(static_cast<std::size_t>(high - at) / page, size_);
    // A sandbox may say that all went well, and do nothing.
    __builtin_memset(told, 1, count);
    if (mincore(at, count * page, told) != 0) break;
    for (std::size_t i = 0; i < count;) {
      // Most of a large reservation is not there: it is passed a word of answers at a time.
      Word several = 1;
      if (count - i >= sizeof several) base::copy_bytes(&several, told + i, sizeof several);
      if (several == 0) {
        i += sizeof several;
        continue;
      }
      char* const first = at + i * page;
      if ((told[i] & 1) != 0 && can_be_read(first)) found->add(first, first + page);
      ++i;
    }
    at += count * page;
  }
  return at;
}

void WrittenPages::visit_own(char* low, char* high, PageVisitor* visitor) const {
  if (!pagemap_.is_open()) return;
  const std::size_t page = page_size();
  char* const first = base::as_pointer(base::align_down(base::as_word(low), page));
  char* const end = base::as_pointer(base::align_up(base::as_word(high), page));
  Found found(low, high, visitor);
  if (!visit_scanned(first, end, Wanted::Own, &found)) visit_each(first, end, Wanted::Own, &found);
  found.tell();
}

void WrittenPages::visit_in_memory(char* low, char* high, PageVisitor* visitor) const {
  const std::size_t page = page_size();
  Found found(low, high, visitor);
  char* const ended =
      visit_present(base::as_pointer(base::align_down(base::as_word(low), page)),
                    base::as_pointer(base::align_up(base::as_word(high), page)), &found);
  found.tell();
  if (ended < high) visit_readable(base::max_of(ended, low), high, visitor);
}

void WrittenPages::visit(char* low, char* high, PageVisitor* visitor) const {
  if (!pagemap_.is_open()) return visit_readable(low, high, visitor);
  const std::size_t page = page_size();
  char* const first = base::as_pointer(base::align_down(base::as_word(low), page));
  char* const end = base::as_pointer(base::align_up(base::as_word(high), page));
  Found found(low, high, visitor);
  if (visit_scanned(first, end, Wanted::Written, &found)) return found.tell();
  char* const ended = visit_each(first, end, Wanted::Written, &found);
  found.tell();
  if (ended < high) visit_readable(base::max_of(ended, low), high, visitor);
}

}  // namespace jd::os
