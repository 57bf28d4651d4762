#include "os/files.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace jd::os {
namespace {

// All this happens under the heap's lock and in a stopped world, where a thread must not be
// cancelled: so by the bare calls, which are no cancellation points.
int open_file(const char* path, int flags, int mode) {
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, mode));
}

// -1 if that fails.
long try_to_read(int file, char* buffer, std::size_t capacity) {
  for (;;) {
    const long n = syscall(SYS_read, file, buffer, capacity);
    if (n >= 0) return n;
    if (errno != EINTR) return -1;
  }
}

std::size_t read_some(int file, char* buffer, std::size_t capacity) {
  const long n = try_to_read(file, buffer, capacity);
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

}  // namespace

std::size_t read_file(const char* path, char* buffer, std::size_t capacity) {
  const KeptErrno kept;
  const int file = open_file(path, O_RDONLY, 0);
  std::size_t size = 0;
  if (file >= 0) {
    while (size < capacity) {
      const std::size_t n = read_some(file, buffer + size, capacity - size);
      if (n == 0) break;
      size += n;
    }
    close_file(file);
  }
  return size;
}

const char* parse_hex(const char* text, base::Word* value) {
  base::Word n = 0;
  for (;; ++text) {
    if (*text >= '0' && *text <= '9') {
      n = n * 16 + static_cast<base::Word>(*text - '0');
    } else if (*text >= 'a' && *text <= 'f') {
      n = n * 16 + static_cast<base::Word>(*text - 'a' + 10);
    } else {
      *value = n;
      return text;
    }
  }
}

int open_mappings() {
  const KeptErrno kept;
  // Not /proc/self, which shows nothing once the main thread has ended before others.
  int file = open_file("/proc/thread-self/maps", O_RDONLY, 0);
  if (file < 0) file = open_file("/proc/self/maps", O_RDONLY, 0);  // before Linux 3.17
  return file;
}

LineReader::LineReader(const char* path) : file_(open_file(path, O_RDONLY, 0)) {}

LineReader::~LineReader() {
  if (file_ >= 0) close_file(file_);
}

bool LineReader::fill() {
  begin_ = 0;
  const long n = file_ >= 0 ? try_to_read(file_, buffer_, sizeof buffer_) : -1;
  failed_ |= n < 0;
  end_ = n > 0 ? static_cast<std::size_t>(n) : 0;
  return end_ != 0;
}

const char* LineReader::next() {
  std::size_t size = 0;
  for (;;) {
    if (begin_ == end_ && !fill()) {
      if (size == 0) return nullptr;
      break;
    }
    const char c = buffer_[begin_++];
    if (c == '\n') break;
    if (size < sizeof line_ - 1) line_[size++] = c;
  }
  line_[size] = '\0';
  return line_;
}

bool is_open(int file) {
  const KeptErrno kept;
  return syscall(SYS_fcntl, file, F_GETFD) >= 0;
}

int duplicate_high(int file) {
  // Shells and servers choose low numbers for files of theirs, whatever is open there.
  constexpr int kFirstNumber = 200;
  const KeptErrno kept;
  return static_cast<int>(syscall(SYS_fcntl, file, F_DUPFD_CLOEXEC, kFirstNumber));
}

int open_log(const char* path) {
  const int file = open_file(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (file < 0) return file;
  const int higher = duplicate_high(file);
  if (higher < 0) return file;
  close_file(file);
  return higher;
}

FileIdentity identity_of(int file) {
  struct stat status = {};
  const KeptErrno kept;
  const bool open = fstat(file, &status) == 0;
  return open ? FileIdentity{status.st_dev, status.st_ino} : FileIdentity{};
}

RandomReader::RandomReader(const char* path) : file_(open_to_read(path)) {}

RandomReader::~RandomReader() {
  if (file_ >= 0 && is_owner_) close_file(file_);
}

bool RandomReader::read(std::uint64_t offset, void* to, std::size_t size) const {
  auto* at = static_cast<char*>(to);
  while (size != 0) {
    const long n = syscall(SYS_pread64, file_, at, size, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    offset += static_cast<std::uint64_t>(n);
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

long RandomReader::control(unsigned long request, void* argument) const {
  return syscall(SYS_ioctl, file_, request, argument);
}

int create_file(const char* path) { return open_file(path, O_WRONLY | O_CREAT | O_TRUNC, 0644); }

int open_to_read(const char* path) { return open_file(path, O_RDONLY, 0); }

void close_file(int file) { syscall(SYS_close, file); }

namespace {

// For its lifetime what this thread writes brings it no signal that would end the process: SIGPIPE,
// where nobody reads a pipe any more, or SIGXFSZ, where a file may not grow. A program that writes
// nothing there itself expects neither. A write that succeeds takes two system calls more, of which
// sandboxes allow both.
class SilentWriting {
 public:
  SilentWriting() {
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &kHeldBack, &before_, sizeof before_);
    // Those that wait already, where the thread blocks them, are not ours to take.
    Mask pending = 0;
    if ((before_ & kHeldBack) != 0) syscall(SYS_rt_sigpending, &pending, sizeof pending);
    ours_ = kHeldBack & ~pending;
  }
  ~SilentWriting() {
    if (failed) {
      const timespec no_time{};
      syscall(SYS_rt_sigtimedwait, &ours_, nullptr, &no_time, sizeof ours_);
    }
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof before_);
  }
  SilentWriting(const SilentWriting&) = delete;
  SilentWriting& operator=(const SilentWriting&) = delete;

  bool failed = false;

 private:
  using Mask = std::uint64_t;  // the kernel's
  static constexpr Mask kHeldBack = Mask{1} << (SIGPIPE - 1) | Mask{1} << (SIGXFSZ - 1);
  Mask before_ = 0;
  Mask ours_ = 0;
};

}  // namespace

int write_all(int file, const char* data, std::size_t size) {
  const KeptErrno kept;
  SilentWriting writing;
  while (size != 0) {
    const long n = syscall(SYS_write, file, data, size);
    if (n < 0 && errno == EINTR) continue;
    writing.failed = n <= 0;
    if (n < 0) return errno;
    if (n == 0) return EIO;
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return 0;
}

const char* describe_error(int number) {
  const char* const description = strerrordesc_np(number);
  return description != nullptr ? description : "unknown error";
}

}  // namespace jd::os
