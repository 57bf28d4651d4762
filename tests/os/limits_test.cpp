// How much memory there is: the machine's, the control groups', the address space's. The files are
// a test's own, as either version of the hierarchy has them.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "../support/emulator.hpp"
#include "os/cpu.hpp"
#include "os/limits.hpp"
#include "os/memory.hpp"

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// A folder with files, which goes away with the object.
class Files {
 public:
  Files() {
    if (mkdtemp(folder_.data()) == nullptr) std::abort();
  }
  ~Files() { std::filesystem::remove_all(folder_); }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name)) << text;
  }
  // "cgroup" is the list of the process's groups, "fs" the hierarchy.
  [[nodiscard]] std::size_t memory_limit() const {
    const std::string own = path("cgroup");
    const std::string hierarchy = path("fs");
    return jd::os::memory_limit({own.c_str(), hierarchy.c_str()});
  }
  [[nodiscard]] unsigned cpu_quota() const {
    const std::string own = path("cgroup");
    const std::string hierarchy = path("fs");
    return jd::os::cpu_quota({own.c_str(), hierarchy.c_str()});
  }

 private:
  std::string folder_ = testing::TempDir() + "jackdaw-os-XXXXXX";
};

std::size_t machine() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

TEST(MemoryLimit, IsTheMachinesWithoutGroups) {
  const Files files;
  EXPECT_EQ(files.memory_limit(), machine());
}

TEST(MemoryLimit, IsThatOfTheUnifiedGroup) {
  const Files files;
  files.write("cgroup", "0::/system.slice/a.service\n");
  files.write("fs/system.slice/a.service/memory.max", "67108864\n");
  EXPECT_EQ(files.memory_limit(), 64 * kMiB);
}

TEST(MemoryLimit, IsThatOfTheOldMemoryGroup) {
  const Files files;
  files.write("cgroup",
              "12:pids:/other\n"
              "9:memory:/docker/abc\n"
              "1:name=systemd:/docker/abc\n");
  files.write("fs/memory/docker/abc/memory.limit_in_bytes", "50331648\n");
  // Groups of other kinds are none of ours.
  files.write("fs/memory/other/memory.limit_in_bytes", "1048576\n");
  files.write("fs/docker/abc/memory.max", "1048576\n");
  EXPECT_EQ(files.memory_limit(), 48 * kMiB);
}

TEST(MemoryLimit, OfAGroupAboveCounts) {
  const Files files;
  files.write("cgroup", "0::/user.slice/user-1.slice/session-2.scope\n");
  files.write("fs/user.slice/user-1.slice/session-2.scope/memory.max", "max\n");
  files.write("fs/user.slice/user-1.slice/memory.max", "33554432\n");
  files.write("fs/user.slice/memory.max", "83886080\n");
  EXPECT_EQ(files.memory_limit(), 32 * kMiB);
}

TEST(MemoryLimit, IsTheLeastOfAll) {
  const Files files;
  files.write("cgroup", "5:memory:/a\n0::/b\n");
  files.write("fs/memory/a/memory.limit_in_bytes", "30000000\n");
  files.write("fs/b/memory.max", "20000000\n");
  EXPECT_EQ(files.memory_limit(), 20000000u);
  files.write("fs/b/memory.max", "40000000\n");
  EXPECT_EQ(files.memory_limit(), 30000000u);
}

TEST(MemoryLimit, IsAtTheRootInsideAContainer) {
  // The list names the group as it is called outside; inside, it is the root.
  const Files unified;
  unified.write("cgroup", "0::/system.slice/docker-abc.scope\n");
  unified.write("fs/memory.max", "16777216\n");
  EXPECT_EQ(unified.memory_limit(), 16 * kMiB);
  const Files old;
  old.write("cgroup", "9:memory:/docker/abc\n");
  old.write("fs/memory/memory.limit_in_bytes", "25165824\n");
  EXPECT_EQ(old.memory_limit(), 24 * kMiB);
}

TEST(MemoryLimit, IsLookedUpAnewWhereTheGroupCanBeRead) {
  const Files files;
  const std::string own = files.path("cgroup");
  const std::string hierarchy = files.path("fs");
  const jd::os::GroupFiles where{own.c_str(), hierarchy.c_str()};
  std::size_t limit = 0;
  // As in a changed root.
  EXPECT_FALSE(jd::os::memory_limit_now(&limit, where));
  files.write("cgroup", "0::/a\n");
  EXPECT_FALSE(jd::os::memory_limit_now(&limit, where));
  for (const auto& [text, wanted] :
       {std::pair{"67108864\n", 64 * kMiB}, {"50331648\n", 48 * kMiB}, {"max\n", machine()}}) {
    files.write("fs/a/memory.max", text);
    EXPECT_TRUE(jd::os::memory_limit_now(&limit, where)) << text;
    EXPECT_EQ(limit, wanted);
  }
}

TEST(MemoryLimit, NoLimitAndNonsenseAreTheMachines) {
  for (const char* text : {"max\n", "", "\n", "many\n", "-1\n", "99999999999999999999999\n",
                           "9223372036854771712\n"}) {
    const Files files;
    files.write("cgroup", "0::/a\n");
    files.write("fs/a/memory.max", text);
    EXPECT_EQ(files.memory_limit(), machine()) << text;
  }
  for (const char* groups : {"", "\n", "0\n", "0:\n", "0::\n", "memory\n", "3:memory\n",
                             "3:memory:\n", "3:memor:/a\n", ":::::\n"}) {
    const Files files;
    files.write("cgroup", groups);
    files.write("fs/a/memory.max", "1048576\n");
    files.write("fs/memory/a/memory.limit_in_bytes", "1048576\n");
    EXPECT_EQ(files.memory_limit(), machine()) << groups;
  }
}

constexpr unsigned kNoQuota = std::numeric_limits<unsigned>::max();

TEST(CpuQuota, ThereIsNoneWithoutGroups) {
  const Files files;
  EXPECT_EQ(files.cpu_quota(), kNoQuota);
}

TEST(CpuQuota, IsThatOfTheUnifiedGroupRoundedUp) {
  const Files files;
  files.write("cgroup", "0::/system.slice/a.service\n");
  files.write("fs/system.slice/a.service/cpu.max", "300000 100000\n");
  EXPECT_EQ(files.cpu_quota(), 3u);
  files.write("fs/system.slice/a.service/cpu.max", "300001 100000\n");
  EXPECT_EQ(files.cpu_quota(), 4u);
  files.write("fs/system.slice/a.service/cpu.max", "1000 100000\n");
  EXPECT_EQ(files.cpu_quota(), 1u);
}

TEST(CpuQuota, IsThatOfTheOldGroupWhicheverShareItsHierarchy) {
  for (const char* line :
       {"4:cpu:/docker/abc\n", "4:cpu,cpuacct:/docker/abc\n", "4:cpuacct,cpu:/docker/abc\n"}) {
    const Files files;
    files.write("cgroup", std::string("9:cpuset:/other\n5:cpuacct:/third\n") + line);
    files.write("fs/cpu/docker/abc/cpu.cfs_quota_us", "150000\n");
    files.write("fs/cpu/docker/abc/cpu.cfs_period_us", "50000\n");
    // Groups of other kinds are none of ours.
    for (const char* other : {"other", "third"}) {
      files.write(std::string("fs/cpu/") + other + "/cpu.cfs_quota_us", "1000\n");
      files.write(std::string("fs/cpu/") + other + "/cpu.cfs_period_us", "1000\n");
    }
    EXPECT_EQ(files.cpu_quota(), 3u) << line;
  }
}

TEST(CpuQuota, OfTheStrictestGroupAboveCounts) {
  const Files files;
  files.write("cgroup", "0::/a/b/c\n");
  files.write("fs/a/b/c/cpu.max", "max 100000\n");
  files.write("fs/a/b/cpu.max", "800000 100000\n");
  files.write("fs/a/cpu.max", "200000 100000\n");
  EXPECT_EQ(files.cpu_quota(), 2u);
  const Files old;
  old.write("cgroup", "3:cpu,cpuacct:/a/b\n");
  old.write("fs/cpu/a/b/cpu.cfs_quota_us", "-1\n");
  old.write("fs/cpu/a/b/cpu.cfs_period_us", "100000\n");
  old.write("fs/cpu/a/cpu.cfs_quota_us", "500000\n");
  old.write("fs/cpu/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(old.cpu_quota(), 5u);
}

TEST(CpuQuota, IsAtTheRootInsideAContainer) {
  const Files unified;
  unified.write("cgroup", "0::/system.slice/docker-abc.scope\n");
  unified.write("fs/cpu.max", "200000 100000\n");
  EXPECT_EQ(unified.cpu_quota(), 2u);
  const Files old;
  old.write("cgroup", "9:cpu,cpuacct:/docker/abc\n");
  old.write("fs/cpu/cpu.cfs_quota_us", "400000\n");
  old.write("fs/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(old.cpu_quota(), 4u);
}

TEST(CpuQuota, NonsenseIsNone) {
  for (const char* text :
       {"max 100000\n", "", "\n", "200000\n", "200000 0\n", "0 100000\n", "-1 100000\n",
        "2e5 100000\n", "200000  100000\n", "200000 1x\n", "99999999999999999999999 100000\n"}) {
    const Files files;
    files.write("cgroup", "0::/a\n");
    files.write("fs/a/cpu.max", text);
    EXPECT_EQ(files.cpu_quota(), kNoQuota) << text;
  }
  for (const char* groups :
       {"", "0:\n", "0\n", "3:cpu\n", "3:cpu,\n", "3:cpus:/a\n", "3:acpu:/a\n"}) {
    const Files files;
    files.write("cgroup", groups);
    files.write("fs/cpu/a/cpu.cfs_quota_us", "100000\n");
    files.write("fs/cpu/a/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(files.cpu_quota(), kNoQuota) << groups;
  }
}

TEST(MemoryLimit, IsNeverNothing) {
  const Files files;
  files.write("cgroup", "0::/a\n");
  files.write("fs/a/memory.max", "0\n");
  EXPECT_GT(files.memory_limit(), 0u);
  EXPECT_LE(files.memory_limit(), kMiB);
}

// Sets the limit of the address space, which nothing here comes near.
class AddressSpaceLimit {
 public:
  explicit AddressSpaceLimit(rlim_t bytes) {
    getrlimit(RLIMIT_AS, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    possible_ = setrlimit(RLIMIT_AS, &limit) == 0;
  }
  ~AddressSpaceLimit() { setrlimit(RLIMIT_AS, &before_); }
  AddressSpaceLimit(const AddressSpaceLimit&) = delete;
  AddressSpaceLimit& operator=(const AddressSpaceLimit&) = delete;
  [[nodiscard]] bool possible() const { return possible_; }

 private:
  rlimit before_ = {};
  bool possible_ = false;
};

TEST(AddressSpaceLeft, IsTheLimitLessWhatIsMapped) {
  JD_SKIP_IN_EMULATOR("has mappings of its own");
  constexpr std::size_t kLimit = std::size_t{1} << 50;
  const Files files;
  files.write("statm", "1000 50 40 10 0 30 0\n");
  files.write("full", "999999999999 50 40 10 0 30 0\n");
  const std::string statm = files.path("statm");
  const std::string full = files.path("full");
  const std::string missing = files.path("missing");
  {
    const AddressSpaceLimit limit(kLimit);
    if (!limit.possible()) GTEST_SKIP() << "the address space is limited already";
    EXPECT_EQ(jd::os::address_space_left(statm.c_str()), kLimit - 1000 * jd::os::page_size());
    EXPECT_EQ(jd::os::address_space_left(full.c_str()), 0u);
    // Regression: nothing seemed to be mapped once the main thread had ended.
    files.write("ended", "0 0 0 0 0 0 0\n");
    const std::string ended = files.path("ended");
    EXPECT_EQ(jd::os::address_space_left(ended.c_str()), kLimit - kLimit / 4);
    // Without /proc, a guess.
    EXPECT_EQ(jd::os::address_space_left(missing.c_str()), kLimit - kLimit / 4);
  }
  const AddressSpaceLimit none(RLIM_INFINITY);
  if (!none.possible()) GTEST_SKIP() << "the address space is limited already";
  EXPECT_EQ(jd::os::address_space_left(statm.c_str()), SIZE_MAX);
}

TEST(Failures, BeginWithTheChosenCall) {
  jd::os::fail_from_call(3);
  void* first = jd::os::map(4096);
  void* second = jd::os::reserve(4096, 4096);
  EXPECT_NE(first, nullptr);
  EXPECT_NE(second, nullptr);
  EXPECT_FALSE(jd::os::commit(second, 4096));
  EXPECT_EQ(jd::os::map(4096), nullptr);
  EXPECT_EQ(jd::os::reserve(4096, 4096), nullptr);
  jd::os::fail_from_call(0);
  EXPECT_TRUE(jd::os::commit(second, 4096));
  jd::os::release(first, 4096);
  jd::os::unreserve(second, 4096);
}

}  // namespace
