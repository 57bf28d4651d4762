#include "os/mappings.hpp"

#include <initializer_list>
#include <new>

#include "base/bits.hpp"
#include "base/text.hpp"
#include "os/files.hpp"
#include "os/kept_errno.hpp"

namespace jd::os {
namespace {

using base::Word;

bool begins_with(const char* text, const char* beginning) {
  return base::after(text, beginning) != nullptr;
}

// Files that are only in memory: of memfd_create, MAP_SHARED | MAP_ANONYMOUS (the same with huge
// pages), shm_open and shmget.
bool is_memorys(const char* name) {
  for (const char* known : {"/memfd:", "/dev/zero", "/anon_hugepage", "/dev/shm/", "/SYSV"}) {
    if (begins_with(name, known)) return true;
  }
  return false;
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
  line.mapping.low = base::as_pointer(low);
  line.mapping.high = base::as_pointer(high);
  line.mapping.swapped = true;
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
  const bool memorys = is_memorys(name);
  line.mapping.shared_memory = memorys && !is_private;
  // Reading what a driver maps may do things. [vvar] and its like are the kernel's own.
  const bool device = begins_with(name, "/dev/") && !memorys;
  const bool kernels = begins_with(name, "[v");
  const bool file = *name == '/' && !line.mapping.shared_memory;
  line.mapping.read_only_file = file && !writable;
  line.mapping.made_code = executable && !file && !line.mapping.main_stack;
  line.wanted = readable && (is_private || line.mapping.shared_memory) && !device && !kernels &&
                !(line.mapping.read_only_file && executable);
  return line;
}

// Apart from the stack, which may be a small one: its buffers are half of the least that a thread
// can have. One visit at a time.
alignas(LineReader) char reader_place[sizeof(LineReader)];

// "Swap:                  0 kB", by the page tables: VmSwap in status is the sum of counters that
// lag behind on Linux 6.2 to 6.16, and says 0 of some pages.
bool says_none(const char* amount) {
  while (*amount == ' ') ++amount;
  return amount[0] == '0' && amount[1] == ' ';
}

// In smaps each mapping's line is followed by others that tell more of it.
bool read_list(LineReader& reader, MappingVisitor* visitor) {
  // A list without the very frame that reads it is none.
  const char* here = static_cast<const char*>(__builtin_frame_address(0));
  bool found_here = false;
  Line line{};
  while (const char* text = reader.next()) {
    const Line next = parse(text);
    if (next.mapping.low == next.mapping.high) {
      const char* swap = base::after(text, "Swap:");
      if (swap != nullptr) line.mapping.swapped = !says_none(swap);
      continue;
    }
    found_here |= here >= next.mapping.low && here < next.mapping.high;
    if (line.wanted && !visitor->mapping(line.mapping)) return false;
    line = next;
  }
  if (line.wanted && !visitor->mapping(line.mapping)) return false;
  return reader.good() && found_here;
}

bool visit_list(LineReader* reader, MappingVisitor* visitor) {
  const bool complete = read_list(*reader, visitor);
  reader->~LineReader();
  return complete;
}

}  // namespace

bool visit_mappings(MappingVisitor* visitor) {
  const KeptErrno kept;
  return visit_list(new (reader_place) LineReader(open_mappings()), visitor);
}

bool visit_mappings_and_swap(MappingVisitor* visitor, const char* smaps) {
  const KeptErrno kept;
  return visit_list(new (reader_place) LineReader(smaps), visitor);
}

bool mappings_are_known() { return LineReader(open_mappings()).good(); }

}  // namespace jd::os
