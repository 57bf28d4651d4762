// Writing, where the system has an end of it.
#include "os/files.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace {

using jd::os::write_all;

constexpr char kText[] = "some words\n";
constexpr std::size_t kLength = sizeof kText - 1;

// A pipe that nobody reads.
class DeadPipe {
 public:
  DeadPipe() {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    close(ends[0]);
    file_ = ends[1];
  }
  ~DeadPipe() { close(file_); }
  DeadPipe(const DeadPipe&) = delete;
  DeadPipe& operator=(const DeadPipe&) = delete;
  [[nodiscard]] int file() const { return file_; }

 private:
  int file_;
};

bool is_pending(int signal) {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, signal) == 1;
}
bool is_blocked(int signal) {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return sigismember(&mask, signal) == 1;
}
void block(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

TEST(WriteAll, IsNoReasonToDieWhereNobodyReads) {
  const DeadPipe pipe;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(write_all(pipe.file(), kText, kLength), EPIPE);
  EXPECT_FALSE(is_pending(SIGPIPE));
  EXPECT_FALSE(is_blocked(SIGPIPE));
}

TEST(WriteAll, IsNoReasonToDieWhereAFileMayNotGrow) {
  char path[] = "/tmp/jackdaw-files-XXXXXX";
  const int file = mkstemp(path);
  ASSERT_GE(file, 0);
  unlink(path);
  const rlimit none{0, RLIM_INFINITY};
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  setrlimit(RLIMIT_FSIZE, &none);
  EXPECT_EQ(write_all(file, kText, kLength), EFBIG);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_FALSE(is_pending(SIGXFSZ));
  EXPECT_EQ(write_all(file, kText, kLength), 0);
  close(file);
}

// Where the program blocks the signal, one that waits is its own.
TEST(WriteAll, LeavesTheProgramsSignalsAlone) {
  const DeadPipe pipe;
  block(SIGPIPE);
  EXPECT_EQ(write_all(pipe.file(), kText, kLength), EPIPE);
  EXPECT_FALSE(is_pending(SIGPIPE));
  raise(SIGPIPE);
  EXPECT_EQ(write_all(pipe.file(), kText, kLength), EPIPE);
  EXPECT_TRUE(is_pending(SIGPIPE));
  EXPECT_TRUE(is_blocked(SIGPIPE));
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  int taken = 0;
  sigwait(&set, &taken);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace
