// What is mapped, what of it was written to, and what of it is ours (world.req.mappings).

#include <errno.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../support/emulator.hpp"
#include "os/limits.hpp"
#include "os/mappings.hpp"
#include "os/memory.hpp"
#include "os/own_ranges.hpp"
#include "os/safe_reading.hpp"
#include "os/thread.hpp"
#include "os/written_pages.hpp"

namespace {

using namespace jd::os;

std::size_t page() { return page_size(); }

char* map_pages(std::size_t count, int protection, int flags = MAP_PRIVATE | MAP_ANONYMOUS,
                int file = -1) {
  void* p = mmap(nullptr, count * page(), protection, flags, file, 0);
  if (p == MAP_FAILED) std::abort();
  return static_cast<char*>(p);
}

class Look final : public MappingVisitor {
 public:
  explicit Look(const char* p) : p_(p) {}
  bool mapping(const Mapping& mapping) override {
    EXPECT_LT(mapping.low, mapping.high);
    EXPECT_LE(last_, mapping.low) << "not in order";
    last_ = mapping.high;
    if (p_ >= mapping.low && p_ < mapping.high) found = mapping;
    return true;
  }
  std::optional<Mapping> found;

 private:
  const char* p_;
  const char* last_ = nullptr;
};

std::optional<Mapping> listed(const char* p) {
  Look look(p);
  EXPECT_TRUE(visit_mappings(&look));
  return look.found;
}

bool is_listed(const char* p) { return listed(p).has_value(); }

int in_data = 1;

TEST(Mappings, HaveWhatTheProgramMayHaveWritten) {
  const int on_stack = 0;
  EXPECT_TRUE(is_listed(reinterpret_cast<const char*>(&on_stack)));
  EXPECT_TRUE(is_listed(reinterpret_cast<const char*>(&in_data)));
  EXPECT_TRUE(is_listed(map_pages(1, PROT_READ | PROT_WRITE)));
  EXPECT_TRUE(is_listed(map_pages(1, PROT_READ))) << "it may have been writable before";
}

TEST(Mappings, LeaveOutWhatHoldsNoPointers) {
  JD_SKIP_IN_EMULATOR("tells of mappings in its own way");
  EXPECT_FALSE(is_listed(map_pages(1, PROT_NONE)));
  EXPECT_FALSE(is_listed(reinterpret_cast<const char*>(&is_listed))) << "code";
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(ftruncate(fileno(file), static_cast<off_t>(page())), 0);
  EXPECT_FALSE(is_listed(map_pages(1, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file))));
  std::fclose(file);
}

TEST(Mappings, HaveMemoryThatProcessesShare) {
  JD_SKIP_IN_EMULATOR("tells of mappings in its own way");
  const auto is_shared_memory = [](const char* p) {
    const std::optional<Mapping> mapping = listed(p);
    return mapping && mapping->shared_memory && !mapping->read_only_file;
  };
  EXPECT_TRUE(is_shared_memory(map_pages(1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS)));
  EXPECT_FALSE(is_shared_memory(map_pages(1, PROT_READ | PROT_WRITE)));
  const int file = memfd_create("test", MFD_CLOEXEC);
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(page())), 0);
  EXPECT_TRUE(is_shared_memory(map_pages(1, PROT_READ | PROT_WRITE, MAP_SHARED, file)));
  EXPECT_TRUE(is_shared_memory(map_pages(1, PROT_READ, MAP_SHARED, file)));
  // Code that is written through another mapping.
  const std::optional<Mapping> code = listed(map_pages(1, PROT_READ | PROT_EXEC, MAP_SHARED, file));
  EXPECT_TRUE(code && code->made_code);
  close(file);
}

TEST(Mappings, TellWhatCodeTheProcessHasMade) {
  JD_SKIP_IN_EMULATOR("tells of mappings in its own way");
  const auto is_made_code = [](const char* p) {
    const std::optional<Mapping> mapping = listed(p);
    return mapping && mapping->made_code;
  };
  const int on_stack = 0;
  EXPECT_TRUE(is_made_code(map_pages(1, PROT_READ | PROT_EXEC)));
  EXPECT_TRUE(is_made_code(map_pages(1, PROT_READ | PROT_WRITE | PROT_EXEC)));
  EXPECT_FALSE(is_made_code(map_pages(1, PROT_READ | PROT_WRITE)));
  EXPECT_FALSE(is_made_code(reinterpret_cast<const char*>(&on_stack)));
}

TEST(Mappings, VisitEndsWhenTheVisitorSaysSo) {
  class Stop final : public MappingVisitor {
   public:
    bool mapping(const Mapping&) override { return ++count < 2; }
    int count = 0;
  } stop;
  EXPECT_FALSE(visit_mappings(&stop));
  EXPECT_EQ(stop.count, 2);
}

TEST(Mappings, AreKnownHere) { EXPECT_TRUE(mappings_are_known()); }

struct Part {
  char* low;
  char* high;
  bool operator==(const Part& other) const { return low == other.low && high == other.high; }
};

class Keep final : public PageVisitor {
 public:
  void pages(char* low, char* high) override { parts.push_back({low, high}); }
  std::vector<Part> parts;
};

std::vector<Part> written_in(char* low, char* high) {
  Keep scanned;
  WrittenPages().visit(low, high, &scanned);
  WrittenPages::allow_scans(false);
  Keep each;
  WrittenPages().visit(low, high, &each);
  WrittenPages::allow_scans(true);
  EXPECT_EQ(scanned.parts, each.parts);
  return scanned.parts;
}

// A map that stays open, as the marker has it.
TEST(WrittenPages, AForksChildIsToldOfItsOwn) {
  char* const p = map_pages(16, PROT_READ | PROT_WRITE);
  madvise(p, 16 * page(), MADV_NOHUGEPAGE);
  static PageMap map;
  const auto count = [p] {
    char answers[512];
    Keep found;
    WrittenPages(&map, answers, sizeof answers).visit(p, p + 16 * page(), &found);
    return found.parts.size();
  };
  EXPECT_EQ(count(), 0u);
  const int file = map.opened();
  EXPECT_EQ(map.opened(), file) << "it stays open";
  const pid_t child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  // Nobody was told of it.
  if (child == 0) {
    *p = 1;
    const bool was_own = map.is_own();
    _exit(!was_own && count() == 1 && map.is_own() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(map.is_own());
  EXPECT_EQ(count(), 0u) << "the child's page";
  errno = 77;
  map.close();
  map.close();
  EXPECT_EQ(errno, 77);
  EXPECT_EQ(fcntl(file, F_GETFD), -1);
}

TEST(WrittenPages, AreThoseThatWereTouched) {
  // No huge page may make neighbours present.
  char* const p = map_pages(5000, PROT_READ | PROT_WRITE);
  madvise(p, 5000 * page(), MADV_NOHUGEPAGE);
  const auto at = [p](std::size_t n) { return p + n * page(); };
  EXPECT_EQ(written_in(p, at(5000)), std::vector<Part>{});
  *at(3) = 1;
  *at(4) = 1;
  *at(2047) = 1;
  *at(2048) = 1;  // across the table's parts
  *at(4999) = 1;
  EXPECT_EQ(written_in(p, at(5000)),
            (std::vector<Part>{{at(3), at(5)}, {at(2047), at(2049)}, {at(4999), at(5000)}}));
  // Parts of pages, as they are asked for.
  EXPECT_EQ(written_in(at(3) + 16, at(4) + 64), (std::vector<Part>{{at(3) + 16, at(4) + 64}}));
  EXPECT_EQ(written_in(at(1) + 16, at(3) + 8), (std::vector<Part>{{at(3), at(3) + 8}}));
}

TEST(WrittenPages, AreMoreThanTheKernelTellsAtATime) {
  constexpr std::size_t kCount = 3000;
  char* const p = map_pages(kCount, PROT_READ | PROT_WRITE);
  madvise(p, kCount * page(), MADV_NOHUGEPAGE);
  std::vector<Part> expected;
  for (std::size_t i = 0; i < kCount; i += 2) {
    p[i * page()] = 1;
    expected.push_back({p + i * page(), p + (i + 1) * page()});
  }
  EXPECT_EQ(written_in(p, p + kCount * page()), expected);
  munmap(p, kCount * page());
}

// Regression: each page was asked for, 16 GiB of them, while the world stood.
TEST(WrittenPages, OfALargeReservationAreFound) {
  constexpr std::size_t kBytes = std::size_t{16} << 30;
  void* const map = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) GTEST_SKIP() << "no 16 GiB of address space";
  char* const p = static_cast<char*>(map);
  madvise(p, kBytes, MADV_NOHUGEPAGE);
  char* const last = p + kBytes - page();
  *last = 1;
  EXPECT_EQ(written_in(p, p + kBytes), (std::vector<Part>{{last, p + kBytes}}));
  munmap(p, kBytes);
}

// As a visitor is told of them where the kernel's tables can't be opened.
std::vector<Part> in_memory_in(char* low, char* high) {
  rlimit limit{};
  EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{0, limit.rlim_max};
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const WrittenPages written;
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_FALSE(written.known());
  Keep keep;
  written.visit_in_memory(low, high, &keep);
  return keep.parts;
}

TEST(WrittenPages, InMemoryAreFoundWithoutTheTables) {
  constexpr std::size_t kCount = 20000;  // more than it is told of at a time
  char* const p = map_pages(kCount, PROT_READ | PROT_WRITE);
  madvise(p, kCount * page(), MADV_NOHUGEPAGE);
  const auto at = [p](std::size_t n) { return p + n * page(); };
  EXPECT_EQ(in_memory_in(p, at(kCount)), std::vector<Part>{});
  for (const std::size_t n : {3, 4, 16383, 16384, 19999}) *at(n) = 1;
  EXPECT_EQ(in_memory_in(p, at(kCount)),
            (std::vector<Part>{{at(3), at(5)}, {at(16383), at(16385)}, {at(19999), at(20000)}}));
  EXPECT_EQ(in_memory_in(at(3) + 16, at(4) + 64), (std::vector<Part>{{at(3) + 16, at(4) + 64}}));
  // What is not mapped is not told of: then each page is tried.
  munmap(at(10), page());
  EXPECT_EQ(in_memory_in(at(2), at(12)), (std::vector<Part>{{at(2), at(10)}, {at(11), at(12)}}));
  munmap(p, 10 * page());
  munmap(at(11), (kCount - 11) * page());
}

TEST(WrittenPages, InMemoryOfAFileThatHasEndedAreNotTouched) {
  FILE* file = tmpfile();
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(ftruncate(fileno(file), static_cast<off_t>(page())), 0);
  char* const p = map_pages(3, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file));
  *p = 1;
  EXPECT_EQ(in_memory_in(p, p + 3 * page()), (std::vector<Part>{{p, p + page()}}));
  munmap(p, 3 * page());
  fclose(file);
}

// The list of the kernel's, with another amount of swap for the mapping of p.
std::string with_swap(const char* p, const std::string& amount) {
  std::ifstream smaps("/proc/self/smaps");
  std::ostringstream changed;
  bool within = false;
  for (std::string line; std::getline(smaps, line);) {
    std::size_t low = 0;
    std::size_t high = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx ", &low, &high) == 2) {
      within = jd::base::as_word(p) >= low && jd::base::as_word(p) < high;
    }
    if (within && line.starts_with("Swap:")) line = amount;
    changed << line << '\n';
  }
  return changed.str();
}

std::optional<Mapping> listed_with_swap(const char* p, const std::string& amount) {
  const std::string path = testing::TempDir() + "jackdaw-smaps-" + std::to_string(getpid());
  std::ofstream(path) << with_swap(p, amount);
  Look look(p);
  EXPECT_TRUE(visit_mappings_and_swap(&look, path.c_str()));
  unlink(path.c_str());
  return look.found;
}

TEST(Mappings, TellWhetherPagesAreInSwap) {
  char* const p = map_pages(2, PROT_READ | PROT_WRITE);
  // Its neighbour is another mapping, of which something else is told.
  ASSERT_EQ(mprotect(p + page(), page(), PROT_READ), 0);
  *p = 1;
  const auto is_swapped = [p](const char* amount) {
    const std::optional<Mapping> mapping = listed_with_swap(p, amount);
    EXPECT_TRUE(mapping && mapping->low <= p && mapping->high == p + page());
    return !mapping || mapping->swapped;
  };
  EXPECT_FALSE(is_swapped("Swap:                  0 kB"));
  EXPECT_TRUE(is_swapped("Swap:                  4 kB"));
  EXPECT_TRUE(is_swapped("Swap:             100000 kB"));
  EXPECT_TRUE(is_swapped("SwapPss:               0 kB")) << "not told";
  Look kernels(p);
  EXPECT_TRUE(visit_mappings_and_swap(&kernels));
  EXPECT_TRUE(kernels.found && (has_swap() || !kernels.found->swapped));
  EXPECT_TRUE(listed(p)->swapped) << "the plain list does not tell";
  EXPECT_FALSE(visit_mappings_and_swap(&kernels, "/does/not/exist"));
  munmap(p, 2 * page());
}

TEST(WrittenPages, OfAFileAreThePrivateOnes) {
  FILE* file = tmpfile();
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(ftruncate(fileno(file), static_cast<off_t>(3 * page())), 0);
  char* const p = map_pages(4, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file));
  // Read, written, untouched, beyond the file's end.
  static_cast<void>(*const_cast<volatile char*>(p));
  p[page()] = 1;
  EXPECT_EQ(written_in(p, p + 4 * page()), (std::vector<Part>{{p + page(), p + 2 * page()}}));
  // It may be protected later, as the loader does it.
  EXPECT_EQ(mprotect(p, 4 * page(), PROT_READ), 0);
  EXPECT_TRUE(is_listed(p + page()));
  EXPECT_EQ(written_in(p, p + 4 * page()), (std::vector<Part>{{p + page(), p + 2 * page()}}));
  munmap(p, 4 * page());
  fclose(file);
}

TEST(Mappings, HaveBothSortsOfSharedMemory) {
  const std::string name = "/dev/shm/jackdaw-mappings-" + std::to_string(getpid());
  const int file = open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) GTEST_SKIP() << "/dev/shm can't be written to";
  unlink(name.c_str());
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(page())), 0);
  char* const own = map_pages(1, PROT_READ | PROT_WRITE, MAP_PRIVATE, file);
  char* const shared = map_pages(1, PROT_READ | PROT_WRITE, MAP_SHARED, file);
  EXPECT_TRUE(is_listed(own));
  EXPECT_TRUE(is_listed(shared));
  munmap(own, page());
  munmap(shared, page());
  close(file);
}

// A hole that is looked at becomes a page.
TEST(WrittenPages, OfSharedMemoryAreThoseThatWereTouched) {
  const WrittenPages written;
  if (!written.known()) GTEST_SKIP() << "the kernel does not tell";
  constexpr std::size_t kPages = 64;
  const int file = memfd_create("holes", MFD_CLOEXEC);
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(kPages * page())), 0);
  char* const p = map_pages(kPages, PROT_READ | PROT_WRITE, MAP_SHARED, file);
  p[3 * page()] = 1;
  p[40 * page()] = 1;
  struct stat before {};
  ASSERT_EQ(fstat(file, &before), 0);
  for (const bool by_scans : {true, false}) {
    WrittenPages::allow_scans(by_scans);
    Keep keep;
    written.visit_own(p, p + kPages * page(), &keep);
    EXPECT_THAT(keep.parts, testing::ElementsAre(Part{p + 3 * page(), p + 4 * page()},
                                                 Part{p + 40 * page(), p + 41 * page()}));
  }
  WrittenPages::allow_scans(true);
  struct stat after {};
  ASSERT_EQ(fstat(file, &after), 0);
  EXPECT_EQ(after.st_blocks, before.st_blocks);
  munmap(p, kPages * page());
  close(file);
}

TEST(WrittenPages, AreNoGuardPages) {
  JD_SKIP_IN_EMULATOR("knows no guard pages");
  constexpr int kInstallGuard = 102;  // MADV_GUARD_INSTALL, Linux 6.13
  char* const p = map_pages(4, PROT_READ | PROT_WRITE);
  madvise(p, 4 * page(), MADV_NOHUGEPAGE);
  for (std::size_t i = 0; i < 4; ++i) p[i * page()] = 1;
  if (madvise(p + page(), page(), kInstallGuard) != 0) {
    GTEST_SKIP() << "this kernel has no guard pages in the middle of a mapping";
  }
  EXPECT_EQ(written_in(p, p + 4 * page()),
            (std::vector<Part>{{p, p + page()}, {p + 2 * page(), p + 4 * page()}}));
  munmap(p, 4 * page());
}

// What a child's thread says of a range and its end, once the child's main thread has ended.
int is_found_without_main_thread(char* p) {
  constexpr int kTooLong = 10000;  // ms
  static char byte;
  for (int ms = 0; ms < kTooLong; ++ms) {
    std::FILE* file = std::fopen("/proc/self/maps", "r");
    const bool shown = file != nullptr && std::fread(&byte, 1, 1, file) == 1;
    if (file != nullptr) std::fclose(file);
    if (!shown) {
      const bool ends_found =
          end_of_mapping(p) == p + page() && start_of_mapping(p + page()) == p + page();
      return mappings_are_known() && is_listed(p) && ends_found ? 0 : 1;
    }
    usleep(1000);
  }
  return 2;
}

// Regression: the ends of a mapping were felt for a page at a time then, and one that borders on
// another passed for a part of it.
TEST(Mappings, AreFoundOnceTheMainThreadHasEnded) {
  char* p = map_pages(2, PROT_READ | PROT_WRITE);
  ASSERT_EQ(mprotect(p + page(), page(), PROT_READ), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::thread([p] { _exit(is_found_without_main_thread(p)); }).detach();
    syscall(SYS_exit, 0);  // the thread alone
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
  munmap(p, 2 * page());
}

TEST(Mappings, ThreadsAreCounted) {
  // ThreadSanitizer makes a thread of its own beside the program's first one.
  std::thread([] {}).join();
  const std::size_t before = count_threads();
  EXPECT_GE(before, 1u);
  std::atomic<bool> leave{false};
  std::thread other([&leave] {
    while (!leave) std::this_thread::yield();
  });
  EXPECT_EQ(count_threads(), before + 1);
  leave = true;
  other.join();
}

std::vector<Extent> own_ranges() {
  std::vector<Extent> ranges(copy_own_ranges(nullptr, 0));
  EXPECT_EQ(copy_own_ranges(ranges.data(), ranges.size()), ranges.size());
  return ranges;
}

bool is_own(const void* p) {
  for (const Extent& range : own_ranges()) {
    if (range.contains(p)) return true;
  }
  return false;
}

TEST(OwnRanges, KnowWhatWasMappedAndNotReleased) {
  char* const mapped = static_cast<char*>(map(16 * page()));
  char* const reserved = static_cast<char*>(reserve(64 * page(), 16 * page()));
  ASSERT_TRUE(mapped != nullptr && reserved != nullptr);
  for (std::size_t i : {0, 7, 15}) EXPECT_TRUE(is_own(mapped + i * page()));
  EXPECT_TRUE(is_own(reserved) && is_own(reserved + 64 * page() - 1));
  const auto version = own_ranges_version();
  // From the middle, then one end, then all.
  release(mapped + 4 * page(), 4 * page());
  EXPECT_NE(own_ranges_version(), version);
  EXPECT_TRUE(is_own(mapped) && is_own(mapped + 4 * page() - 1));
  EXPECT_FALSE(is_own(mapped + 4 * page()) || is_own(mapped + 8 * page() - 1));
  EXPECT_TRUE(is_own(mapped + 8 * page()) && is_own(mapped + 16 * page() - 1));
  release(mapped, 4 * page());
  EXPECT_FALSE(is_own(mapped));
  release(mapped + 8 * page(), 8 * page());
  EXPECT_FALSE(is_own(mapped + 8 * page()));
  unreserve(reserved, 64 * page());
  EXPECT_FALSE(is_own(reserved));
}

TEST(Mappings, AreClippedToWhatCanBeRead) {
  // Not readable, not there, two that are, not readable.
  char* const pages = map_pages(5, PROT_NONE);
  munmap(pages + page(), page());
  char* const low = pages + 2 * page();
  char* const high = pages + 4 * page();
  ASSERT_EQ(mprotect(low, 2 * page(), PROT_READ), 0);
  const auto clip = [](char* from, char* to) {
    clip_to_readable(&from, &to);
    return std::pair(from, to);
  };
  EXPECT_EQ(clip(pages + 100, high + 100), std::pair(low, high));
  EXPECT_EQ(clip(low - 1, high + 1), std::pair(low, high));
  EXPECT_EQ(clip(low + 8, high - 8), std::pair(low + 8, high - 8));
  EXPECT_EQ(clip(low, low), std::pair(low, low));
  const auto [from, to] = clip(pages, low - 8);
  EXPECT_EQ(from, to) << "nothing of it can be read";
  munmap(pages, page());
  munmap(low, 3 * page());
}

TEST(OwnRanges, AreAsManyAsThereAre) {
  // With a page of the program's between them, no two can be joined.
  std::vector<char*> pages;
  std::vector<char*> between;
  for (int i = 0; i < 500; ++i) {
    pages.push_back(static_cast<char*>(map(page())));
    between.push_back(map_pages(1, i % 2 == 0 ? PROT_READ : PROT_NONE));
  }
  for (char* p : pages) EXPECT_TRUE(is_own(p));
  for (char* p : between) EXPECT_FALSE(is_own(p));
  for (char* p : pages) release(p, page());
  for (char* p : pages) EXPECT_FALSE(is_own(p));
  for (char* p : between) munmap(p, page());
}

TEST(OwnRanges, OwnDataIsThatOfTheObject) {
  const Extent data = own_data();
  EXPECT_TRUE(data.contains(&in_data));
  const int on_stack = 0;
  EXPECT_GE(jd::base::as_word(&on_stack), jd::base::as_word(data.high));
}

// ---- Core dumps ----

// The kernel's flags of the mapping of that address, as in /proc/self/smaps.
std::vector<std::string> flags_of(const char* address) {
  std::ifstream smaps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(smaps, line);) {
    unsigned long from = 0;
    unsigned long to = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2) {
      const auto wanted = reinterpret_cast<unsigned long>(address);
      here = from <= wanted && wanted < to;
    } else if (here && line.starts_with("VmFlags:")) {
      std::istringstream words(line.substr(8));
      return {std::istream_iterator<std::string>(words), {}};
    }
  }
  return {};
}

// os.req.dumps
TEST(Dumps, HaveWhatIsCommittedAndNotWhatIsReserved) {
  JD_SKIP_IN_EMULATOR("tells of mappings in its own way");
  const std::size_t size = 16 * page();
  auto* const reserved = static_cast<char*>(reserve(size, page()));
  ASSERT_NE(reserved, nullptr);
  ASSERT_TRUE(commit(reserved + 4 * page(), 4 * page()));
  EXPECT_THAT(flags_of(reserved), testing::Contains("dd"));
  EXPECT_THAT(flags_of(reserved + 4 * page()),
              testing::AllOf(testing::Contains("rd"), testing::Not(testing::Contains("dd"))));
  EXPECT_THAT(flags_of(reserved + 9 * page()), testing::Contains("dd"));
  // What follows the reserved pages is nobody else's.
  ASSERT_TRUE(commit(reserved + 8 * page(), 8 * page()));
  EXPECT_TRUE(is_own(reserved + size));
  unreserve(reserved, size);
  EXPECT_FALSE(is_own(reserved + size));
}

// Regression: marked address space made a mapping of each committed part, and at the limit none
// could be committed.
TEST(Dumps, AtTheLimitOfMappingsWhatIsReservedIsStillCommitted) {
  constexpr std::size_t kMost = 200000;
  const std::size_t size = 16 * page();
  auto* const reserved = static_cast<char*>(reserve(size, page()));
  ASSERT_TRUE(reserved != nullptr && commit(reserved, page()));
  std::vector<char*> others;
  others.reserve(kMost);
  while (others.size() < kMost) {
    // No two neighbours can be joined.
    void* p = mmap(nullptr, page(), others.size() % 2 == 0 ? PROT_READ : PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) break;
    others.push_back(static_cast<char*>(p));
  }
  const bool full = others.size() < kMost;
  bool committed = true;
  for (std::size_t i = 1; i < 16; ++i) committed &= commit(reserved + i * page(), page());
  for (char* p : others) munmap(p, page());
  if (!full) GTEST_SKIP() << "this system allows very many mappings";
  EXPECT_TRUE(committed);
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(reserved[i * page()], 0);
  unreserve(reserved, size);
}

}  // namespace
