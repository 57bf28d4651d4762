// Small reads and log writes, without stdio and without allocation, and no cancellation points
// (os.req.no-cancellation).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bits.hpp"
#include "os/kept_errno.hpp"

namespace jd::os {

// Reads at most `capacity` bytes from the beginning of a file; 0 if it can't be opened or is empty.
std::size_t read_file(const char* path, char* buffer, std::size_t capacity);

// Parses hexadecimal digits; returns the first character behind them.
const char* parse_hex(const char* text, base::Word* value);

// Opens the list of what is mapped in this process; -1 if that fails.
int open_mappings();

// A file read a line at a time through a buffer of its own. Lines longer than the buffer are cut.
class LineReader {
 public:
  explicit LineReader(const char* path);
  // Of a file that is open, if it is not -1, and that the reader closes.
  explicit LineReader(int file) : file_(file) {}
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;
  // The next line without its newline, or null at the end.
  const char* next();
  // False if the file could not be opened, or not be read to the end.
  [[nodiscard]] bool good() const { return file_ >= 0 && !failed_; }

 private:
  bool fill();
  KeptErrno kept_;
  int file_;
  bool failed_ = false;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  char buffer_[4096];
  char line_[512];
};

// Calls visit(line) for each line until it returns false. The file is a path, or open and to be
// closed.
template <class File, class Visit>
void for_each_line(File file, Visit visit) {
  LineReader reader(file);
  while (const char* line = reader.next()) {
    if (!visit(line)) return;
  }
}

// Is there an open file under this number?
bool is_open(int file);
// Another number for it, which programs do not use and their children do not get; -1 if there is
// none.
int duplicate_high(int file);
// What an open file is, whatever its number; all 0 if it is not open.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool operator==(const FileIdentity&) const = default;
};
FileIdentity identity_of(int file);
// Opens a file for appending, under a number that programs do not use; -1 if that fails.
int open_log(const char* path);
// Makes the file, or empties it; -1 if that fails.
int create_file(const char* path);
// -1 if the system refuses.
int open_to_read(const char* path);
void close_file(int file);
// Writes all of it, through interruptions, and keeps errno. Returns 0, or the error's number if not
// all could be written.
int write_all(int file, const char* data, std::size_t size);
// What an error's number means, for people.
const char* describe_error(int number);

// A file read from given places, without a position of its own.
class RandomReader {
 public:
  explicit RandomReader(const char* path);
  // Of a file that is open, and stays so; -1 if it is not.
  explicit RandomReader(int open_file) : file_(open_file), is_owner_(false) {}
  ~RandomReader();
  RandomReader(const RandomReader&) = delete;
  RandomReader& operator=(const RandomReader&) = delete;
  [[nodiscard]] bool is_open() const { return file_ >= 0; }
  // False unless all `size` bytes at `offset` were read.
  [[nodiscard]] bool read(std::uint64_t offset, void* to, std::size_t size) const;
  // What ioctl() says: -1 if the system refuses.
  [[nodiscard]] long control(unsigned long request, void* argument) const;

 private:
  int file_;
  bool is_owner_ = true;
};

}  // namespace jd::os
