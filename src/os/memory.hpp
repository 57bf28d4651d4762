// Address space and pages. Sizes and addresses are in bytes; every range is whole pages unless it
// says otherwise. No function here aborts: a refusal is returned and the caller decides
// (os.req.refusal).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bits.hpp"
#include "os/groups.hpp"

namespace jd::os {

// The system's page size (4 KiB on x86-64).
std::size_t page_size();
// And a huge page's, where the others have 4 KiB.
inline constexpr std::size_t kHugePage = 2 * base::kMiB;

// Reserves address space that can't be touched yet, aligned to `alignment` (a power of two).
// Returns null when the system refuses. Post: not one page is committed.
void* reserve(std::size_t size, std::size_t alignment);
// Gives reserved address space back: the whole of it.
void unreserve(void* p, std::size_t size);

// Makes a reserved range readable and writable. Post: fresh pages read as zero. False when the
// system refuses; then nothing has changed.
[[nodiscard]] bool commit(void* p, std::size_t size);
// Maps zeroed, readable and writable memory of its own; null when the system refuses.
void* map(std::size_t size);
// Gives mapped memory back.
void release(void* p, std::size_t size);
// Such memory that reads as zero in every child of a fork, however the program makes it; one that
// shares its parent's memory (vfork) sees what is there. Null, too, where the system has none.
void* map_zero_in_children(std::size_t size);

// Returns the pages to the system; the range stays committed. Post on true: it reads as zero.
bool discard(void* p, std::size_t size);

// Asks for huge pages in the range. A hint.
void advise_huge_pages(void* p, std::size_t size);

// Writes a zero to the fresh page there, and says how long that took, in ns.
std::uint64_t ns_of_first_touch(void* p);

// Bytes of physical memory that this process may use: the machine's, its cgroup's or that of a
// cgroup above, whichever is least. Never 0.
std::size_t memory_limit(const GroupFiles& files = {});
// The same, after the first time. False if it can't be told any more, as where the process has
// changed its root, or has no file to open left.
[[nodiscard]] bool memory_limit_now(std::size_t* limit, const GroupFiles& files = {});
// Bytes of physical memory that the machine has.
std::size_t machine_memory();
// Bytes of address space that this process may still map (RLIMIT_AS less what is in use), or
// SIZE_MAX when there is no limit.
std::size_t address_space_left(const char* own_memory = "/proc/self/statm");

// Can pages be in swap now? True if that can't be told.
bool has_swap();

// Copies from any address without faulting. False if a byte of it is not readable.
[[nodiscard]] bool read_safely(void* to, const void* from, std::size_t size);
struct Piece {
  const void* from;
  std::size_t size;
};
inline constexpr std::size_t kMostPieces = 64;  // 256 KiB by a byte of each page; a guess
// Copies the pieces one after the other, in this order, by one question to the system. False if
// they can't all be read, or the system forbids the question (then read_safely() may do it).
[[nodiscard]] bool read_pieces_safely(void* to, const Piece* pieces, std::size_t count);
// For its lifetime each reading by the calling thread costs one question less: the thread's number
// is known. Nobody forks meanwhile.
class ManyReads {
 public:
  ManyReads();
  ~ManyReads();
  ManyReads(const ManyReads&) = delete;
  ManyReads& operator=(const ManyReads&) = delete;

 private:
  int before_;
};
// Several ranges, of whose pages as few questions are asked as can be.
class PagesToRead {
 public:
  void add(char* low, char* high);
  // Can all that was added be read? False, too, where the system forbids the question.
  [[nodiscard]] bool are_readable();

 private:
  void ask();

  Piece pieces_[kMostPieces];
  std::size_t count_ = 0;  // of those that were not asked for
  bool readable_ = true;
};
// The first byte of [low, high) that can't be read, or high.
char* end_of_readable(char* low, char* high);
// Leaves out what can't be read at either end of [*low, *high), without faulting: whole pages.
void clip_to_readable(char** low, char** high);

// Without /proc, too (os.req.no-proc):
// The end of the mapping that contains p, or null if p is not mapped or this can't be told.
void* end_of_mapping(const void* p);
// The beginning of the mapping that contains p, or null likewise.
void* start_of_mapping(const void* p);

// Stress (JACKDAW_FAIL_OS): from the n-th call on, commit, map and reserve fail. 0: never.
void fail_from_call(std::size_t n);

}  // namespace jd::os
