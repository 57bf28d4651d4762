#include "os/own_ranges.hpp"

#include <link.h>
#include <sys/mman.h>

#include <atomic>

#include "base/bits.hpp"
#include "os/lock.hpp"
#include "os/signals.hpp"

// Made by the linker: the beginning of the object's image, where its headers are.
extern "C" [[gnu::visibility("hidden")]] const ElfW(Ehdr) __ehdr_start;

namespace jd::os {
namespace {

using base::Word;

// The collector maps memory while others are stopped, so nobody may be stopped while holding this
// one: signals are blocked meanwhile. (Most hold the heap's lock besides, but not a thread that
// maps a stack for tasks.)
Lock ranges_lock;

class RangesGuard {
 private:
  SignalsBlocked signals_;
  LockGuard guard_{ranges_lock};
};

// A few are enough: the system puts new mappings next to older ones, and neighbours are joined.
Extent first_ranges[64];
// Under ranges_lock.
Extent* ranges = first_ranges;
std::size_t capacity = 64;
std::size_t count = 0;
// Counts changes. Written under ranges_lock; read without it by the collector before and after it
// reads the list of mappings, which it repeats where they differ (relaxed).
std::atomic<std::uint64_t> version{0};

// Joins the range to one that it touches. What lies between two that meet then stays two ranges.
bool join(Extent range) {
  for (std::size_t i = 0; i < count; ++i) {
    if (ranges[i].high == range.low) {
      ranges[i].high = range.high;
      return true;
    }
    if (ranges[i].low == range.high) {
      ranges[i].low = range.low;
      return true;
    }
  }
  return false;
}

// The larger table is a mapping of ours, too, and the first one to be written into it.
bool grow() {
  const std::size_t bytes = base::align_up(2 * capacity * sizeof(Extent), 4096);
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return false;
  auto* larger = static_cast<Extent*>(p);
  for (std::size_t i = 0; i < count; ++i) larger[i] = ranges[i];
  // The old one stays where it is, known as ours.
  ranges = larger;
  capacity = bytes / sizeof(Extent);
  auto* const low = static_cast<char*>(p);
  if (!join({low, low + bytes})) ranges[count++] = {low, low + bytes};
  return true;
}

}  // namespace

bool add_own_range(Extent range) {
  const RangesGuard guard;
  version.fetch_add(1, std::memory_order_relaxed);
  if (join(range)) return true;
  if (count == capacity && !grow()) return false;
  ranges[count++] = range;
  return true;
}

void remove_own_range(Extent range) {
  const RangesGuard guard;
  version.fetch_add(1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < count;) {
    Extent& own = ranges[i];
    if (range.low >= own.high || range.high <= own.low) {
      ++i;
    } else if (range.low > own.low && range.high < own.high) {
      // Without a place for the upper part that is forgotten: it is looked through, no more.
      const Extent upper{range.high, own.high};
      own.high = range.low;
      if (count < capacity || grow()) ranges[count++] = upper;
      return;
    } else if (range.low > own.low) {
      own.high = range.low;
      ++i;
    } else if (range.high < own.high) {
      own.low = range.high;
      ++i;
    } else {
      own = ranges[--count];
    }
  }
}

std::size_t copy_own_ranges(Extent* to, std::size_t room) {
  const RangesGuard guard;
  for (std::size_t i = 0; i < count && i < room; ++i) to[i] = ranges[i];
  return count;
}

void hold_own_ranges() { ranges_lock.acquire(); }
void let_go_of_own_ranges() { ranges_lock.release(); }
void reset_own_ranges_in_child() { ranges_lock.reset_in_child(); }

std::uint64_t own_ranges_version() { return version.load(std::memory_order_relaxed); }

Extent own_data() {
  const Word image = base::as_word(&__ehdr_start);
  const auto* header =
      reinterpret_cast<const ElfW(Phdr)*>(base::as_pointer(image + __ehdr_start.e_phoff));
  Word first = ~Word{0};  // where the image was to be loaded
  Extent data;
  for (int i = 0; i < __ehdr_start.e_phnum; ++i) {
    if (header[i].p_type != PT_LOAD) continue;
    if (first == ~Word{0}) first = base::align_down(header[i].p_vaddr, 4096);
    if ((header[i].p_flags & PF_W) == 0) continue;
    char* const low = base::as_pointer(image + header[i].p_vaddr - first);
    data = {low, low + header[i].p_memsz};
  }
  return data;
}

}  // namespace jd::os
