#include "os/safe_reading.hpp"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/bits.hpp"
#include "os/files.hpp"
#include "os/kept_errno.hpp"
#include "os/log.hpp"
#include "os/memory.hpp"
#include "os/thread.hpp"

namespace jd::os {
namespace {

bool find_mapping(const void* p, base::Word* start, base::Word* end) {
  const base::Word address = base::as_word(p);
  bool found = false;
  for_each_line(open_mappings(), [&](const char* line) {
    base::Word from = 0;
    base::Word to = 0;
    const char* c = parse_hex(line, &from);
    if (*c == '-') parse_hex(c + 1, &to);
    if (address >= from && address < to) {
      *start = from;
      *end = to;
      found = true;
    }
    return !found;
  });
  return found;
}

// Can the aligned word be read? The kernel reads a signal mask before it refuses to do the unknown
// with it.
bool word_is_readable(base::Word address) {
  constexpr int kUnknown = -1;
  const KeptErrno kept;
  return syscall(SYS_rt_sigprocmask, kUnknown, address, nullptr, 8) != 0 && errno == EINVAL;
}

// For systems that forbid process_vm_readv (os.req.no-proc). What is unmapped between the try and
// the reading would still end the program.
bool read_after_trying(void* to, const void* from, std::size_t size) {
  const base::Word end = base::as_word(from) + size;
  for (base::Word word = base::align_down(base::as_word(from), sizeof(base::Word)); word < end;
       word = base::align_down(word, page_size()) + page_size()) {
    if (!word_is_readable(word)) return false;
  }
  base::copy_bytes(to, from, size);
  return true;
}

// The calling thread's, while a ManyReads lives; otherwise 0.
constinit thread_local pid_t known_thread = 0;

// What process_vm_readv says of this process's own memory.
ssize_t read_own(const iovec& local, const iovec* remote, std::size_t count) {
  // By the thread's number: by the process's, nothing can be read once the main thread has ended.
  const pid_t self = known_thread != 0 ? known_thread : thread_id();
  return process_vm_readv(self, &local, 1, remote, count, 0);
}

bool readable(base::Word address) {
  char byte;
  return read_safely(&byte, base::as_pointer(address), 1);
}

}  // namespace

ManyReads::ManyReads() : before_(known_thread) { known_thread = thread_id(); }
ManyReads::~ManyReads() { known_thread = before_; }

bool read_pieces_safely(void* to, const Piece* pieces, std::size_t count) {
  JD_DCHECK(count <= kMostPieces);
  iovec remote[kMostPieces];
  std::size_t size = 0;
  for (std::size_t i = 0; i < count; ++i) {
    remote[i] = {const_cast<void*>(pieces[i].from), pieces[i].size};
    size += pieces[i].size;
  }
  const KeptErrno kept;
  return read_own({to, size}, remote, count) == static_cast<ssize_t>(size);
}

bool read_safely(void* to, const void* from, std::size_t size) {
  const iovec remote{const_cast<void*>(from), size};
  const KeptErrno kept;
  const ssize_t done = read_own({to, size}, &remote, 1);
  const bool forbidden = done < 0 && errno != EFAULT;
  return forbidden ? read_after_trying(to, from, size) : done == static_cast<ssize_t>(size);
}

void PagesToRead::add(char* low, char* high) {
  while (low < high && readable_) {
    if (count_ == kMostPieces) ask();
    pieces_[count_++] = {low, 1};
    low = base::as_pointer(base::align_up(base::as_word(low) + 1, page_size()));
  }
}

void PagesToRead::ask() {
  char bytes[kMostPieces];
  readable_ = readable_ && read_pieces_safely(bytes, pieces_, count_);
  count_ = 0;
}

bool PagesToRead::are_readable() {
  if (count_ != 0) ask();
  return readable_;
}

char* end_of_readable(char* low, char* high) {
  while (low < high) {
    Piece pages[kMostPieces];
    std::size_t count = 0;
    char* at = low;
    for (; at < high && count < kMostPieces; ++count) {
      pages[count] = {at, 1};
      at = base::as_pointer(base::align_up(base::as_word(at) + 1, page_size()));
    }
    char bytes[kMostPieces];
    if (!read_pieces_safely(bytes, pages, count)) {
      for (std::size_t i = 0; i < count; ++i) {
        const base::Word page = base::as_word(pages[i].from);
        if (!readable(page)) return base::as_pointer(page);
      }
    }
    low = at;
  }
  return high;
}

void clip_to_readable(char** low, char** high) {
  while (*low < *high && !readable(base::as_word(*low))) {
    const base::Word page = base::align_down(base::as_word(*low), page_size());
    *low = base::min_of(*high, base::as_pointer(page + page_size()));
  }
  while (*low < *high && !readable(base::as_word(*high) - 1)) {
    const base::Word page = base::align_down(base::as_word(*high) - 1, page_size());
    *high = base::max_of(*low, base::as_pointer(page));
  }
}

void* end_of_mapping(const void* p) {
  base::Word start = 0;
  base::Word end = 0;
  if (find_mapping(p, &start, &end)) return base::as_pointer(end);
  // No /proc: feel the way upward a page at a time.
  base::Word page = base::align_down(base::as_word(p), page_size());
  if (!readable(page)) return nullptr;
  while (readable(page)) page += page_size();
  return base::as_pointer(page);
}

void* start_of_mapping(const void* p) {
  base::Word start = 0;
  base::Word end = 0;
  if (find_mapping(p, &start, &end)) return base::as_pointer(start);
  base::Word page = base::align_down(base::as_word(p), page_size());
  if (!readable(page)) return nullptr;
  while (readable(page - page_size())) page -= page_size();
  return base::as_pointer(page);
}

}  // namespace jd::os
