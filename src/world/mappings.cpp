#include "world/mappings.hpp"

#include <algorithm>

#include "heap/growable.hpp"
#include "os/limits.hpp"
#include "os/mappings.hpp"
#include "os/memory.hpp"
#include "os/own_ranges.hpp"
#include "os/safe_reading.hpp"
#include "os/thread.hpp"
#include "os/written_pages.hpp"
#include "world/stacks.hpp"
#include "world/thread.hpp"

namespace jd::world {
namespace {

using base::as_pointer;
using os::Extent;

// Set at the start, before there are threads.
bool in_use = false;

// As of the last read_mappings. Under the heap's lock.
heap::Growable<os::Mapping> mappings;
heap::Growable<Extent> own_ranges;
// What a visit leaves out: our own memory, and the stacks of known threads.
heap::Growable<Extent> cuts;

class Collect final : public os::MappingVisitor {
 public:
  bool mapping(const os::Mapping& mapping) override {
    has_room = mappings.push(mapping);
    return has_room;
  }
  bool has_room = true;
};

bool copy_own_ranges() {
  const std::size_t count = os::copy_own_ranges(nullptr, 0);
  // One more for our data, and some for what this very call may map.
  constexpr std::size_t kSpare = 8;
  if (!own_ranges.reserve(count + kSpare) || !cuts.reserve(count + kSpare)) return false;
  const std::size_t copied = os::copy_own_ranges(own_ranges.begin(), count + kSpare - 1);
  if (copied > count + kSpare - 1) return false;
  own_ranges.set_count(copied);
  return own_ranges.push(os::own_data());
}

// An alternate stack may be a part of it: then the frames that the signal interrupted lie below.
// (A stack without a low end is being told.)
bool on_own_stack(const Thread& thread, const char* sp) {
  return !on_alternate_stack(thread, sp) && thread.stack.low != nullptr &&
         thread.stack.contains(sp);
}

// The main thread's stack is as long as it is mapped: its low end is but the system's limit.
char* mapped_low(const Thread& thread) {
  if (!thread.is_main) return thread.stack.low;
  for (const os::Mapping& mapping : mappings) {
    if (mapping.main_stack) return base::max_of(mapping.low, thread.stack.low);
  }
  return thread.stack.high;
}

void find_cuts(char* own_stack_top) {
  cuts.clear();
  // There is room for these.
  for (const Extent& range : own_ranges) static_cast<void>(cuts.push(range));
  for_each_thread([&](Thread* thread) {
    if (thread->gone || !on_own_stack(*thread, stack_pointer(*thread, own_stack_top))) return;
    const Extent stack{mapped_low(*thread), thread->stack.high};
    // Without memory for it, the whole of the stack is visited.
    if (stack.low < stack.high) static_cast<void>(cuts.push(stack));
  });
  std::sort(cuts.begin(), cuts.end(),
            [](const Extent& a, const Extent& b) { return a.low < b.low; });
}

// Nobody can unmap anything now: each of the process's threads is known, and stands. (Where malloc
// is served there are no marker threads, which would count as unknown.)
bool everybody_stands() {
  std::size_t standing = 0;
  for_each_thread([&](const Thread* thread) {
    if (!thread->gone && !thread->blocked) ++standing;
  });
  return os::count_threads() == standing;
}

// What a copy is made into: our own data, which is no root.
alignas(base::kLine) char page_copy[32 * base::kKiB];

// Where not everybody stands, copies are visited: a thread that ends has taken itself off the list,
// and unmaps stacks that libc kept. What is gone can't be copied, which is all that happens. It
// takes twice the time. So also of shared memory, which another process may write and shorten.
class VisitPages final : public os::PageVisitor {
 public:
  explicit VisitPages(RootVisitor* visitor)
      : visitor_(visitor), everybody_stands_(everybody_stands()) {}
  // Whose pages come now. Where that is code that the process has made, instructions stand at any
  // address, and so do the words within them.
  void set_mapping(const os::Mapping& mapping) {
    code_ = mapping.made_code;
    direct_ = everybody_stands_ && !mapping.shared_memory;
  }
  void pages(char* low, char* high) override {
    const char* const first = as_pointer(base::align_up(base::as_word(low), sizeof(Word)));
    if (direct_) {
      visitor_->range(low, high);
    } else {
      visit_copies(first, high);
    }
    if (!code_) return;
    for (std::size_t shift = 1; shift < sizeof(Word); ++shift) visit_copies(first + shift, high);
  }

 private:
  // In pieces of whole words, as they are from `low` on.
  void visit_copies(const char* low, const char* high) {
    while (low < high) {
      const char* end = low + base::min_of(static_cast<std::size_t>(high - low), sizeof page_copy);
      if (!visit_copy(low, end)) visit_each_page(low, end);
      low = end;
    }
  }
  // False if not all of it could be read.
  bool visit_copy(const char* low, const char* high) {
    const auto size = static_cast<std::size_t>(high - low);
    if (direct_) {
      base::copy_bytes(page_copy, low, size);
      visitor_->range(page_copy, page_copy + size);
      return true;
    }
    if (!os::read_safely(page_copy, low, size)) return false;
    visitor_->changing_range(page_copy, page_copy + size);
    return true;
  }
  // A word may lie on two pages, of which only the first is there.
  void visit_each_page(const char* low, const char* high) {
    const std::size_t page = os::page_size();
    while (low < high) {
      const char* next = as_pointer(base::align_down(base::as_word(low), page) + page);
      const char* end = base::min_of(next + base::as_word(low) % sizeof(Word), high);
      if (!visit_copy(low, end)) static_cast<void>(visit_copy(low, base::min_of(next, end)));
      low = end;
    }
  }

  RootVisitor* visitor_;
  bool everybody_stands_;
  bool direct_ = false;
  bool code_ = false;
};

// What the cuts leave of mappings, which come in the order of their addresses.
class Parts {
 public:
  explicit Parts(VisitPages* pages) : pages_(pages) {}
  // Calls visit(low, high) for each part.
  template <class Visit>
  void visit(const os::Mapping& mapping, Visit visit) {
    pages_->set_mapping(mapping);
    while (first_ < cuts.count() && cuts[first_].high <= mapping.low) ++first_;
    char* at = mapping.low;
    for (std::size_t i = first_; i < cuts.count() && cuts[i].low < mapping.high; ++i) {
      char* const cut = cuts[i].low;
      if (cut > at) visit(at, cut);
      at = base::max_of(at, cuts[i].high);
    }
    if (at < mapping.high) visit(at, mapping.high);
  }

 private:
  VisitPages* pages_;
  std::size_t first_ = 0;  // the cuts before it end below the mapping
};

// For the kernel's tables not to be had. All of a library's constants, or of a font, are too much
// to look through for nothing; and to look at a page of shared memory that is not there makes one.
bool is_looked_through(const os::Mapping& mapping) {
  return !mapping.read_only_file && !mapping.shared_memory;
}

// Whatever can be read of each mapping that has pages in swap.
class VisitSwapped final : public os::MappingVisitor {
 public:
  explicit VisitSwapped(VisitPages* pages) : pages_(pages), parts_(pages) {}
  bool mapping(const os::Mapping& mapping) override {
    if (!mapping.swapped || !is_looked_through(mapping)) return true;
    parts_.visit(mapping, [this](char* low, char* high) { os::visit_readable(low, high, pages_); });
    return true;
  }

 private:
  VisitPages* pages_;
  Parts parts_;
};

// All of each mapping that has pages in swap. False if these can't be told.
bool visit_swapped(VisitPages* pages) {
  VisitSwapped swapped(pages);
  return !os::has_swap() || os::visit_mappings_and_swap(&swapped);
}

// A page in swap is to mincore() as one that was never touched, and the kernel may put any there,
// at any time. So what is in swap is looked for before and after: nobody who stands fetches a page
// from there in between. (swapoff would have to, in the same instant in which the page got there.)
bool visit_present_and_swapped(const os::WrittenPages& written, VisitPages* pages) {
  if (!visit_swapped(pages)) return false;
  Parts parts(pages);
  for (const os::Mapping& mapping : mappings) {
    if (!is_looked_through(mapping)) continue;
    parts.visit(mapping, [&](char* low, char* high) { written.visit_in_memory(low, high, pages); });
  }
  return visit_swapped(pages);
}

}  // namespace

void use_mappings() { in_use = true; }
bool using_mappings() { return in_use; }

const char* read_mappings() {
  // The tables grow meanwhile, which changes what is mapped: then once more. By the third time
  // they are large enough.
  constexpr int kTries = 10;
  constexpr const char* kNoRoom = "there is no memory for a copy of /proc/self/maps";
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const std::uint64_t version = os::own_ranges_version();
    mappings.clear();
    Collect collect;
    if (!os::visit_mappings(&collect)) return collect.has_room ? kNoList : kNoRoom;
    if (!copy_own_ranges()) return kNoRoom;
    if (os::own_ranges_version() == version) return nullptr;
  }
  return "/proc/self/maps changes all the while";
}

void visit_mappings(RootVisitor* visitor, char* own_stack_top) {
  find_cuts(own_stack_top);
  const os::WrittenPages written;
  VisitPages pages(visitor);
  if (!written.known() && visit_present_and_swapped(written, &pages)) return;
  Parts parts(&pages);
  for (const os::Mapping& mapping : mappings) {
    if (!written.known() && !is_looked_through(mapping)) continue;
    parts.visit(mapping, [&](char* low, char* high) {
      if (mapping.shared_memory) {
        written.visit_own(low, high, &pages);
      } else if (written.known()) {
        written.visit(low, high, &pages);
      } else {
        os::visit_readable(low, high, &pages);
      }
    });
  }
}

void visit_thread_stacks(RootVisitor* visitor, char* own_stack_top) {
  for_each_thread([&](Thread* thread) {
    if (thread->gone) return;
    // Not with the mappings: the alternate stack may be of our own memory.
    visit_interrupted(visitor, *thread);
    char* sp = stack_pointer(*thread, own_stack_top);
    if (on_own_stack(*thread, sp)) {
      visitor->stack(sp, thread->stack.high);
    } else {
      // Some other stack: a mapping, which is visited whole, or an object of the heap's, which its
      // own address holds.
      visitor->range(&sp, &sp + 1);
    }
  });
}

}  // namespace jd::world
