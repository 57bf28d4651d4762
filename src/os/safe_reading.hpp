// Reading memory that may not be there.
#pragma once

#include <cstddef>

namespace jd::os {

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

}  // namespace jd::os
