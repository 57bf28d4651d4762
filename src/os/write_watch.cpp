#include "os/write_watch.hpp"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.hpp"
#include "os/kept_errno.hpp"
#include "os/page_scan.hpp"
#include "os/thread.hpp"
#include "os/written_pages.hpp"

namespace jd::os {
namespace {

// Debian 12's headers lack it: the kernel itself lifts the protection.
constexpr std::uint64_t kWriteProtectAsync = 1 << 15;

// The kernel's answers. One visit at a time.
constexpr std::size_t kMostRegions = 256;
PageRegion regions[kMostRegions];

bool files_ran_out() { return errno == EMFILE || errno == ENFILE; }
constexpr const char* kNoFiles = "no more files can be opened";

const char* why_not_opened() {
  if (files_ran_out()) return kNoFiles;
  if (errno == ENOENT) return "there is no /proc/thread-self/pagemap";
  return "/proc/thread-self/pagemap can't be read";
}

const char* why_refused() {
  if (files_ran_out()) return kNoFiles;
  if (errno == ENOSYS) return "the system has no userfaultfd";
  if (errno == EPERM) return "userfaultfd is forbidden to this process";
  return "userfaultfd is refused";
}

// Number 0 of a program that has closed its standard files is for others.
int open_watch(const char** why) {
  const long low = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
  if (low < 0) {
    *why = why_refused();
    return -1;
  }
  const int file = duplicate_high(static_cast<int>(low));
  if (file < 0) return static_cast<int>(low);
  close_file(static_cast<int>(low));
  return file;
}

// Is it a userfaultfd that is in use? Such a one refuses to begin anew, where another file does not
// know the question.
bool is_watch(int file) {
  uffdio_api question{};
  question.api = UFFD_API;
  return syscall(SYS_ioctl, file, UFFDIO_API, &question) != 0 && errno == EINVAL;
}

// Pages that exist and are not protected. A page that does not exist was not written either.
PageScan written_pages(char* low, char* high) {
  PageScan scan{};
  scan.size = sizeof scan;
  scan.start = base::as_word(low);
  scan.end = base::as_word(high);
  scan.category_mask = kPageWritten;
  scan.category_anyof_mask = kPagePresent | kPageSwapped;
  // Where regions are answered, the kernel protects only what exists: otherwise it has an entry
  // made for each page that does not, which passes for swapped from then on.
  answer_in(regions, kMostRegions, &scan);
  scan.return_mask = kPageWritten;
  return scan;
}

}  // namespace

const char* WriteWatch::start(char* low, std::size_t size) {
  const KeptErrno kept;
  stop();
  const char* why = nullptr;
  file_ = open_watch(&why);
  if (file_ < 0) return why;
  process_ = process_id();
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = kWriteProtectAsync;
  uffdio_register range{};
  range.range = {base::as_word(low), size};
  range.mode = UFFDIO_REGISTER_MODE_WP;
  if (syscall(SYS_ioctl, file_, UFFDIO_API, &api) != 0) {
    close_file(file_);
    file_ = -1;
    return "Linux 6.7 or newer is needed";
  }
  range_ = {low, low + size};
  // A watch that was closed before may have left pages protected (Linux up to 6.8): nothing would
  // be noted of those.
  if (syscall(SYS_ioctl, file_, UFFDIO_REGISTER, &range) != 0 || !lift_all()) {
    stop();
    return "the memory can't be watched";
  }
  if (!RandomReader(kPageMap).is_open()) {
    const char* const why_closed = why_not_opened();
    stop();
    return why_closed;
  }
  return nullptr;
}

bool WriteWatch::is_on() const { return file_ >= 0 && process_ == process_id(); }

bool WriteWatch::lift_all() const {
  uffdio_writeprotect all{};
  all.range = {base::as_word(range_.low), static_cast<std::uint64_t>(range_.high - range_.low)};
  return syscall(SYS_ioctl, file_, UFFDIO_WRITEPROTECT, &all) == 0;
}

void WriteWatch::stop() {
  const KeptErrno kept;
  // The number may be another file's by now.
  if (file_ >= 0 && is_watch(file_)) {
    // A child that was forked may have the file open, too: then closing it ends nothing. In a child
    // the range would be its parent's.
    if (is_on() && range_.low != nullptr) {
      uffdio_range range{base::as_word(range_.low),
                         static_cast<std::uint64_t>(range_.high - range_.low)};
      syscall(SYS_ioctl, file_, UFFDIO_UNREGISTER, &range);
    }
    close_file(file_);
  }
  file_ = -1;
  range_ = {};
}

WatchedPages::WatchedPages() : tables_(kPageMap) {}

bool WatchedPages::watch(char* low, char* high) const {
  PageScan scan = written_pages(low, high);
  scan.flags = kScanProtects | kScanChecksWatch;
  return scan_pages(tables_, &scan, [](const PageRegion&) {});
}

bool WatchedPages::visit_written(char* low, char* high, PageVisitor* visitor) const {
  PageScan scan = written_pages(low, high);
  scan.flags = kScanChecksWatch;
  return scan_pages(tables_, &scan, [visitor](const PageRegion& region) {
    visitor->pages(base::as_pointer(region.start), base::as_pointer(region.end));
  });
}

}  // namespace jd::os
