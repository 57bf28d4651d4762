// Systems that lack something: no /proc, no file descriptors, closed standard streams.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "child.hpp"
#include "gc_test.hpp"
#include "threads.hpp"

namespace jd::test {
namespace {

// An ordinary program: threads, static data, collections.
void* static_list;

int ordinary_program() {
  GC_INIT();
  static_list = make_list(1000);
  void* volatile on_stack = make_list(1000);
  static int bad;
  run_threads(3, [](std::size_t) {
    for (int i = 0; i < 20; ++i) {
      void* volatile list = make_list(1000);
      GC_gcollect();
      opaque(make_list(5000));
      if (list_length(list) != 1000) ++bad;
    }
  });
  GC_gcollect();
  if (list_length(static_list) != 1000 || list_length(on_stack) != 1000) return 1;
  return bad == 0 ? 0 : 2;
}

JD_CHILD(without_proc) {
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("none", "/proc", "tmpfs", 0, nullptr) != 0) {
    std::fprintf(stderr, "cannot hide /proc: %s\n", std::strerror(errno));
    return kCannotTry;
  }
  return ordinary_program();
}

// os.req.no-proc
TEST(System, WithoutProc) {
  JD_OURS_ONLY("bdwgc aborts");
#if defined(JD_SANITIZE_ADDRESS) || defined(JD_SANITIZE_THREAD)
  GTEST_SKIP() << "the sanitizer needs /proc itself";
#endif
  const ChildResult r = run_child("without_proc");
  JD_SKIP_IF_CANNOT_TRY(r);
  EXPECT_TRUE(r.ok()) << r;
}

// A sandbox that forbids a system call: containers' used to forbid process_vm_readv. False if it
// can't be had.
bool forbid(unsigned call) {
  sock_filter filter[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, call},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog program = {4, filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Volatile, since nothing but the collector reads it.
thread_local void* volatile blocked_threads_own;

// What the main thread's variable refers to, while that thread is in a blocking section: then the
// collector does not read before it tried.
JD_CHILD(in_a_sandbox) {
  if (!forbid(SYS_process_vm_readv)) {
    std::fprintf(stderr, "no seccomp filter: %s\n", std::strerror(errno));
    return kCannotTry;
  }
  const int status = ordinary_program();
  if (status != 0) return status;
  Watch watch;
  far_away([&] {
    constexpr std::size_t kObjects = 100;
    void** array = static_cast<void**>(GC_malloc(kObjects * sizeof(void*)));
    for (std::size_t i = 0; i < kObjects; ++i) {
      array[i] = GC_malloc(48);
      watch.add(array[i]);
    }
    blocked_threads_own = array;
  });
  GC_do_blocking(
      [](void*) -> void* {
        run_threads(1, [](std::size_t) { collect(); });
        return nullptr;
      },
      nullptr);
  return all_alive(watch) ? 0 : 3;
}

TEST(System, WhereReadingMemoryIsForbidden) {
  JD_OURS_ONLY("bdwgc does not search thread-local data");
  const ChildResult r = run_child("in_a_sandbox");
  JD_SKIP_IF_CANNOT_TRY(r);
  EXPECT_TRUE(r.ok()) << r;
}

// Partial collections need a userfaultfd, and the kernel's tables of pages.
JD_CHILD(without_userfaultfd) {
  if (!forbid(SYS_userfaultfd)) return kCannotTry;
  GC_enable_incremental();
  if (GC_is_incremental_mode() != 0) return 2;
  GC_start_incremental_collection();
  return ordinary_program();
}
// The watch is on when scans begin to be refused.
JD_CHILD(loses_page_scans) {
  GC_INIT();
  GC_enable_incremental();
  if (GC_is_incremental_mode() == 0) return kCannotTry;
  static_list = make_list(1000);
  GC_gcollect();
  if (!forbid(SYS_ioctl)) return kCannotTry;
  GC_start_incremental_collection();
  const int status = ordinary_program();
  return status == 0 && GC_is_incremental_mode() != 0 ? 2 : status;
}

TEST(System, WhereUserfaultfdIsForbidden) {
  const ChildResult r = run_child("without_userfaultfd", {{"GC_ENABLE_INCREMENTAL", kUnset}});
  JD_SKIP_IF_CANNOT_TRY(r);
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.err.find("partial"), std::string::npos) << "programs ask, users did not: " << r;
  JD_OURS_ONLY("says nothing");
  const ChildResult asked = run_child("without_userfaultfd", {{"GC_ENABLE_INCREMENTAL", "1"}});
  EXPECT_NE(asked.err.find("GC_ENABLE_INCREMENTAL: no partial collections: userfaultfd is "
                           "forbidden to this process"),
            std::string::npos)
      << asked;
  const ChildResult told = run_child("without_userfaultfd", {{"GC_PRINT_STATS", "1"}});
  EXPECT_NE(told.err.find("no incremental mode: userfaultfd is forbidden to this process"),
            std::string::npos)
      << told;
}
TEST(System, WherePagesCanBeAskedForNoMore) {
  JD_OURS_ONLY("goes by signals");
  const ChildResult r = run_child("loses_page_scans");
  JD_SKIP_IF_CANNOT_TRY(r);
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_NE(r.err.find("no partial collections any more"), std::string::npos) << r;
}

JD_CHILD(without_thread_numbers) {
  if (!forbid(SYS_gettid)) return kCannotTry;
  return ordinary_program();
}

// Regression: all threads had the same number, -1, and the program crashed.
TEST(System, WhereAskingForTheThreadsNumberIsForbidden) {
#if defined(JD_SANITIZE_ADDRESS) || defined(JD_SANITIZE_THREAD)
  GTEST_SKIP() << "the sanitizer asks, too";
#endif
  const ChildResult r = run_child("without_thread_numbers");
  JD_SKIP_IF_CANNOT_TRY(r);
  EXPECT_TRUE(r.ok()) << r;
}

// A thread runs, which only a signal can stop.
JD_CHILD(without_thread_signals) {
  GC_INIT();
  if (!forbid(SYS_tgkill)) return kCannotTry;
  static_list = make_list(1000);
  std::atomic<bool> runs{false};
  std::atomic<bool> enough{false};
  std::thread other([&] {
    opaque(make_list(1));  // from now on the collector knows it
    runs = true;
    while (!enough) std::this_thread::yield();
  });
  while (!runs) std::this_thread::yield();
  const GC_word before = GC_get_gc_no();
  GC_gcollect();
  GC_gcollect();
  const bool collected = GC_get_gc_no() != before;
  enough = true;
  other.join();
  if (collected) return 2;
  // Alone it needs no signal.
  GC_gcollect();
  return GC_get_gc_no() == before ? 3 : ordinary_program();
}

// Regression: it ended the program.
TEST(System, WhereSignalsToThreadsAreForbiddenNothingIsCollected) {
  JD_OURS_ONLY("ends the program");
  const ChildResult r = run_child("without_thread_signals");
  JD_SKIP_IF_CANNOT_TRY(r);
  EXPECT_TRUE(r.ok()) << r;
  const std::string line = "the system refuses to send signal";
  const std::size_t first = r.err.find(line);
  ASSERT_NE(first, std::string::npos) << r;
  EXPECT_EQ(r.err.find(line, first + 1), std::string::npos) << "more than once: " << r;
}

JD_CHILD(without_files) {
  // No descriptor may be opened any more.
  const rlimit none = {3, 3};
  if (setrlimit(RLIMIT_NOFILE, &none) != 0) return kCannotTry;
  return ordinary_program();
}

TEST(System, WithoutFileDescriptors) {
#if defined(JD_SANITIZE_UNDEFINED)
  GTEST_SKIP() << "the sanitizer needs a file descriptor to look at a virtual table";
#endif
  JD_OURS_ONLY("bdwgc aborts");
  const ChildResult r = run_child("without_files");
  JD_SKIP_IF_CANNOT_TRY(r);
  EXPECT_TRUE(r.ok()) << r;
}

JD_CHILD(closed_streams) {
  for (const int stream : {0, 1, 2}) close(stream);
  const int status = ordinary_program();
  if (status != 0) return status;
  // Files of the program's own, one of which gets the number that standard error has elsewhere. No
  // message may go there.
  std::string path = testing::TempDir() + "jackdaw-closed-XXXXXX";
  int file = mkstemp(path.data());
  if (file != 0) return 3;
  while (file < 2) file = open(path.c_str(), O_RDWR);
  unlink(path.c_str());
  GC_free(&static_list);
  GC_gcollect();
  struct stat about = {};
  if (fstat(file, &about) != 0) return 4;
  return about.st_size == 0 ? 0 : 5;
}

// os.req.closed-error
TEST(System, WithClosedStandardStreams) {
  JD_OURS_ONLY("undefined with bdwgc");
  const ChildResult r = run_child("closed_streams");
  EXPECT_TRUE(r.ok()) << r;
}

JD_CHILD(one_cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) return kCannotTry;
  return ordinary_program();
}

TEST(System, OnOneCpu) {
  const ChildResult r = run_child("one_cpu");
  JD_SKIP_IF_CANNOT_TRY(r);
  EXPECT_TRUE(r.ok()) << r;
}

JD_CHILD(unlimited_stack) {
  const rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
  if (setrlimit(RLIMIT_STACK, &unlimited) != 0) return kCannotTry;
  return ordinary_program();
}

TEST(System, WithAnUnlimitedStack) {
  const ChildResult r = run_child("unlimited_stack");
  JD_SKIP_IF_CANNOT_TRY(r);
  EXPECT_TRUE(r.ok()) << r;
}

JD_CHILD(empty_environment) { return ordinary_program(); }

TEST(System, WithoutHomePathOrAnything) {
  const ChildResult r =
      run_child("empty_environment",
                {{"PATH", kUnset}, {"HOME", kUnset}, {"LANG", kUnset}, {"TMPDIR", kUnset}});
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.err, "");
}

}  // namespace
}  // namespace jd::test
