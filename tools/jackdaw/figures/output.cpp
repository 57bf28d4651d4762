#include "figures/output.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <regex>
#include <system_error>

#include "failure.hpp"
#include "program/process.hpp"

namespace jackdaw {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, int error, int exit_status = kExitRefused) {
  throw Failure(exit_status, fmt::format("cannot write {}: {}", path, std::strerror(error)));
}

// 0, or the error.
int write_all(int fd, const std::string& text) {
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = write(fd, text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    written += static_cast<std::size_t>(n);
  }
  return 0;
}

void write_in_place(const std::string& path, const std::string& text) {
  const File file(open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (file.fd() < 0) fail(path, errno);
  if (const int error = write_all(file.fd(), text); error != 0) fail(path, error);
}

mode_t mode_of_new_files() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

// Calls visit(path) for the path and for what it links to, one link after another, until that
// returns true; returns the last.
template <class Visit>
fs::path follow_links(fs::path path, Visit visit) {
  constexpr int kMostLinks = 40;  // as the kernel
  std::error_code error;
  for (int i = 0; i < kMostLinks && !visit(path); ++i) {
    if (!fs::is_symlink(fs::symlink_status(path, error))) break;
    const fs::path target = fs::read_symlink(path, error);
    if (error) break;
    path = target.is_relative() ? path.parent_path() / target : target;
  }
  return path;
}

// The file that a path means, through links; it need not be there.
fs::path behind_links(const std::string& path) {
  const fs::path last = follow_links(path, [](const fs::path&) { return false; });
  std::error_code error;
  const fs::path real = last == path ? last : fs::weakly_canonical(last, error);
  return error ? last : real;
}

// The number, if the path means a file that this process has open already: /dev/stdout, say.
std::optional<int> open_number(const std::string& path) {
  const std::regex number(
      fmt::format("/(?:dev|proc/(?:self|thread-self|{}))/fd/([0-9]{{1,9}})", getpid()));
  std::optional<int> found;
  follow_links(path, [&](const fs::path& p) {
    std::smatch match;
    const std::string text = p.lexically_normal().string();
    if (!std::regex_match(text, match, number)) return false;
    found = std::stoi(match[1]);
    return true;
  });
  return found;
}

// Behind what is in it: opened by that name, it would be written over from its beginning.
void write_to_open(int fd, const std::string& path, const std::string& text) {
  std::fflush(nullptr);
  if (const int error = write_all(fd, text); error != 0) fail(path, error);
}

// A new file beside that one, for what is to take its place.
std::string name_beside(const fs::path& target) {
  return (target.parent_path() / ".jackdaw-XXXXXX").string();
}

}  // namespace

void write_file(const std::string& path, const std::string& text) {
  if (const std::optional<int> fd = open_number(path)) return write_to_open(*fd, path, text);
  struct stat old {};
  const bool exists = stat(path.c_str(), &old) == 0;
  if (exists && !S_ISREG(old.st_mode)) return write_in_place(path, text);
  const fs::path target = behind_links(path);
  std::string temporary = name_beside(target);
  const File file(mkostemp(temporary.data(), O_CLOEXEC));
  if (file.fd() < 0) {
    const int error = errno;
    // A folder that takes no new files may hold one that may be written.
    if (exists && (error == EACCES || error == EROFS)) return write_in_place(path, text);
    fail(path, error);
  }
  // Somebody else's stays theirs.
  if (exists && fchown(file.fd(), old.st_uid, old.st_gid) != 0) {
    unlink(temporary.c_str());
    return write_in_place(path, text);
  }
  int error = write_all(file.fd(), text);
  const mode_t mode = exists ? old.st_mode & 07777 : mode_of_new_files();
  if (error == 0 && fchmod(file.fd(), mode) != 0) error = errno;
  if (error == 0 && std::rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error == 0) return;
  unlink(temporary.c_str());
  fail(path, error);
}

void write_so_far(const std::string& path, const std::string& text) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (open_number(path) || (fs::exists(status) && !fs::is_regular_file(status))) return;
  try {
    write_file(path, text);
  } catch (const Failure&) {
  }
}

void require_writable(const std::string& path, int exit_status) {
  if (path.empty()) return;
  if (const std::optional<int> fd = open_number(path)) {
    const int flags = fcntl(*fd, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) fail(path, EBADF, exit_status);
    return;
  }
  struct stat old {};
  if (stat(path.c_str(), &old) == 0) {
    if (S_ISDIR(old.st_mode)) fail(path, EISDIR, exit_status);
    if (access(path.c_str(), W_OK) != 0) fail(path, errno, exit_status);
    return;
  }
  if (errno != ENOENT) fail(path, errno, exit_status);
  const fs::path folder = behind_links(path).parent_path();
  if (access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0) {
    fail(path, errno, exit_status);
  }
}

}  // namespace jackdaw
