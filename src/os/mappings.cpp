#include "os/mappings.hpp"

#include <errno.h>

#include <new>

#include "base/bits.hpp"
#include "os/memory.hpp"

namespace jd::os {
namespace {

using base::Word;

// Of the thread, as open_mappings has it.
constexpr const char* kPageMap = "/proc/thread-self/pagemap";

// The list's pages, whatever the system's are.
constexpr Word kPage = 4096;

bool begins_with(const char* text, const char* beginning) {
  while (*beginning != '\0' && *text == *beginning) ++text, ++beginning;
  return *beginning == '\0';
}

struct Line {
  Mapping mapping;
  bool wanted;
};

// "55e0c0a00000-55e0c0a21000 rw-p 00000000 00:00 0          [heap]"
Line parse(const char* text) {
  Line line{};
  Word low = 0;
  Word high = 0;
  const char* c = parse_hex(text, &low);
  if (*c == '-') c = parse_hex(c + 1, &high);
  line.mapping = {base::as_pointer(low), base::as_pointer(high), false, false, false};
  if (*c != ' ' || low >= high) return line;
  const char* permissions = c + 1;
  for (int i = 0; i < 4; ++i) {
    if (permissions[i] == '\0') return line;
  }
  const bool readable = permissions[0] == 'r';
  const bool writable = permissions[1] == 'w';
  const bool executable = permissions[2] == 'x';
  const bool is_private = permissions[3] == 'p';
  // The name is the sixth word.
  const char* name = permissions;
  for (int word = 0; word < 4; ++word) {
    while (*name != '\0' && *name != ' ') ++name;
    while (*name == ' ') ++name;
  }
  line.mapping.main_stack = begins_with(name, "[stack]");
  // Reading what a driver maps may do things. [vvar] and its like are the kernel's own.
  const bool device = begins_with(name, "/dev/") && !begins_with(name, "/dev/zero") &&
                      !begins_with(name, "/dev/shm/");
  const bool kernels = begins_with(name, "[v");
  const bool file = *name == '/';
  line.mapping.read_only_file = file && !writable;
  line.mapping.made_code = executable && !file && !line.mapping.main_stack;
  line.wanted =
      readable && is_private && !device && !kernels && !(line.mapping.read_only_file && executable);
  return line;
}

// Apart from the stack, which may be a small one: its buffers are half of the least that a thread
// can have. One visit at a time.
alignas(LineReader) char reader_place[sizeof(LineReader)];

bool read_list(LineReader& reader, MappingVisitor* visitor) {
  // A list without the very frame that reads it is none.
  const char* here = static_cast<const char*>(__builtin_frame_address(0));
  bool found_here = false;
  while (const char* text = reader.next()) {
    const Line line = parse(text);
    found_here |= here >= line.mapping.low && here < line.mapping.high;
    if (line.wanted && !visitor->mapping(line.mapping)) return false;
  }
  return reader.good() && found_here;
}

bool can_be_read(const char* at) {
  char byte;
  return read_safely(&byte, at, 1);
}

// Without the kernel's tables. Pages of a file's mapping may lie beyond the file's end, where a
// read would kill the process.
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

}  // namespace

bool visit_mappings(MappingVisitor* visitor) {
  const int saved = errno;
  auto* reader = new (reader_place) LineReader(open_mappings());
  const bool complete = read_list(*reader, visitor);
  reader->~LineReader();
  errno = saved;
  return complete;
}

bool mappings_are_known() { return LineReader(open_mappings()).good(); }

WrittenPages::WrittenPages() : saved_errno_(errno), pagemap_(kPageMap) { errno = saved_errno_; }

void WrittenPages::visit(char* low, char* high, PageVisitor* visitor) const {
  if (!pagemap_.is_open()) return visit_readable(low, high, visitor);
  // Of an entry: the page is in memory; it is in swap; it is a file's, or shared; it is a guard
  // page in the middle of a mapping, as libc's stacks have since 2.42, which passes for swapped.
  // Linux 6.13 has such pages, 6.15 the bit: so what is swapped is tried.
  constexpr std::uint64_t kPresent = std::uint64_t{1} << 63;
  constexpr std::uint64_t kSwapped = std::uint64_t{1} << 62;
  constexpr std::uint64_t kOfFile = std::uint64_t{1} << 61;
  constexpr std::uint64_t kGuard = std::uint64_t{1} << 58;
  constexpr std::size_t kEntries = 2048;
  static std::uint64_t entries[kEntries];  // not on the stack, as the reader's buffers
  const std::size_t page = page_size();
  const auto report = [&](char* first, char* end) {
    visitor->pages(base::max_of(first, low), base::min_of(end, high));
  };
  char* from = nullptr;  // the beginning of the pages found last
  for (char* at = base::as_pointer(base::align_down(base::as_word(low), page)); at < high;) {
    const std::size_t left = base::div_up(static_cast<std::size_t>(high - at), page);
    const std::size_t count = base::min_of(left, kEntries);
    if (!pagemap_.read(base::as_word(at) / page * sizeof entries[0], entries,
                       count * sizeof entries[0])) {
      if (from != nullptr) report(from, at);
      return visit_readable(base::max_of(at, low), high, visitor);
    }
    for (std::size_t i = 0; i < count; ++i, at += page) {
      const bool kept = (entries[i] & (kPresent | kSwapped)) != 0;
      const bool written = kept && (entries[i] & (kOfFile | kGuard)) == 0 &&
                           ((entries[i] & kPresent) != 0 || can_be_read(at));
      if (written && from == nullptr) from = at;
      if (!written && from != nullptr) {
        report(from, at);
        from = nullptr;
      }
    }
  }
  if (from != nullptr) report(from, high);
}

}  // namespace jd::os
