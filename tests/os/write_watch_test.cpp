#include "os/write_watch.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "os/memory.hpp"
#include "os/written_pages.hpp"

namespace jd::os {
namespace {

constexpr std::size_t kPages = 64;

class Found final : public PageVisitor {
 public:
  explicit Found(char* low) : low_(low) {}
  void pages(char* low, char* high) override {
    for (; low < high; low += page_size()) {
      text[static_cast<std::size_t>(low - low_) / page_size()] = 'w';
    }
  }
  std::string text = std::string(kPages, '.');

 private:
  char* low_;
};

class Watch : public testing::Test {
 protected:
  void SetUp() override {
    low_ = static_cast<char*>(mmap(nullptr, size(), PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    ASSERT_NE(low_, MAP_FAILED);
    const char* const why = watch_.start(low_, size());
    if (why != nullptr) GTEST_SKIP() << why;
  }
  void TearDown() override {
    watch_.stop();
    munmap(low_, size());
  }
  static std::size_t size() { return kPages * page_size(); }
  char* page(std::size_t number) { return low_ + number * page_size(); }
  bool watch_all() { return WatchedPages().watch(low_, low_ + size()); }
  // '?': not known.
  std::string written() {
    Found found(low_);
    return WatchedPages().visit_written(low_, low_ + size(), &found) ? found.text : "?";
  }

  char* low_ = nullptr;
  WriteWatch watch_;
};

std::string only(std::size_t number) {
  std::string text(kPages, '.');
  text[number] = 'w';
  return text;
}

TEST_F(Watch, PagesThatDoNotExistWereNotWritten) {
  EXPECT_EQ(written(), std::string(kPages, '.'));
  *page(3) = 1;
  EXPECT_EQ(written(), only(3));
}

TEST_F(Watch, WritesAreSeenUntilPagesAreWatchedAgain) {
  std::memset(low_, 1, size());
  EXPECT_EQ(written(), std::string(kPages, 'w'));
  ASSERT_TRUE(watch_all());
  EXPECT_EQ(written(), std::string(kPages, '.'));
  page(5)[17] = 2;
  EXPECT_EQ(written(), only(5));
  EXPECT_EQ(written(), only(5)) << "to ask changes nothing";
  ASSERT_TRUE(watch_all());
  EXPECT_EQ(written(), std::string(kPages, '.'));
  EXPECT_EQ(page(5)[17], 2);
}

TEST_F(Watch, ReadingIsNoWriting) {
  std::memset(low_, 1, size());
  ASSERT_TRUE(watch_all());
  long sum = 0;
  for (std::size_t i = 0; i < size(); i += 64) sum += low_[i];
  EXPECT_EQ(sum, static_cast<long>(size() / 64));
  EXPECT_EQ(written(), std::string(kPages, '.'));
}

TEST_F(Watch, APageIsWrittenWhatEverItHeldBefore) {
  ASSERT_TRUE(watch_all());
  *page(9) = 1;  // it did not exist when the others were watched
  EXPECT_EQ(written(), only(9));
  ASSERT_TRUE(watch_all());
  const char zero = *page(7);  // the page of zeros
  ASSERT_TRUE(watch_all());
  *page(7) = static_cast<char>(zero + 1);
  EXPECT_EQ(written(), only(7));
}

// To protect what does not exist would make it pass for swapped (WrittenPages).
TEST_F(Watch, PagesThatDoNotExistStaySo) {
  *page(30) = 1;
  ASSERT_TRUE(watch_all());
  std::uint64_t entry = 0;
  const RandomReader tables("/proc/self/pagemap");
  ASSERT_TRUE(tables.read(reinterpret_cast<std::uintptr_t>(page(31)) / page_size() * sizeof entry,
                          &entry, sizeof entry));
  EXPECT_EQ(entry >> 62, 0u) << "neither present nor swapped";
}

TEST_F(Watch, PagesThatWereGivenBackAreNew) {
  std::memset(low_, 1, size());
  ASSERT_TRUE(watch_all());
  ASSERT_TRUE(discard(page(20), page_size()));
  EXPECT_EQ(written(), std::string(kPages, '.'));
  *page(20) = 1;
  EXPECT_EQ(written(), only(20));
}

TEST_F(Watch, SystemCallsMayWrite) {
  std::memset(low_, 1, size());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_TRUE(watch_all());
  ASSERT_EQ(write(ends[1], "jackdaw", 8), 8);
  ASSERT_EQ(read(ends[0], page(11), 8), 8);
  EXPECT_STREQ(page(11), "jackdaw");
  EXPECT_EQ(written(), only(11));
  close(ends[0]);
  close(ends[1]);
}

TEST_F(Watch, SomePagesMayBeWatched) {
  std::memset(low_, 1, size());
  ASSERT_TRUE(watch_all());
  *page(1) = *page(40) = 2;
  ASSERT_TRUE(WatchedPages().watch(page(0), page(32)));
  EXPECT_EQ(written(), only(40));
}

TEST_F(Watch, EndsInAForksChildAndThereAlone) {
  std::memset(low_, 1, size());
  ASSERT_TRUE(watch_all());
  EXPECT_TRUE(watch_.is_on());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool ended = !watch_.is_on() && !watch_all() && written() == "?";
    const bool again = watch_.start(low_, size()) == nullptr && watch_all();
    *page(2) = 3;
    _exit(ended && again && written() == only(2) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(watch_.is_on());
  *page(4) = 3;
  EXPECT_EQ(written(), only(4));
}

// As long as the child has the file, the watch would live on.
TEST_F(Watch, StartsAnewBesideAForksChild) {
  std::memset(low_, 1, size());
  ASSERT_TRUE(watch_all());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    char byte = 0;
    close(ends[1]);
    _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
  }
  EXPECT_EQ(watch_.start(low_, size()), nullptr);
  EXPECT_TRUE(watch_all());
  EXPECT_EQ(written(), std::string(kPages, '.'));
  *page(6) = 2;
  EXPECT_EQ(written(), only(6));
  close(ends[1]);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  close(ends[0]);
}

// Nothing is left of the watch before.
TEST_F(Watch, StartsWithAllPagesWritten) {
  std::memset(low_, 1, size());
  ASSERT_TRUE(watch_all());
  ASSERT_EQ(watch_.start(low_, size()), nullptr);
  EXPECT_EQ(written(), std::string(kPages, 'w'));
}

TEST_F(Watch, EndsWhenItIsStopped) {
  std::memset(low_, 1, size());
  ASSERT_TRUE(watch_all());
  watch_.stop();
  EXPECT_FALSE(watch_.is_on());
  EXPECT_FALSE(watch_all());
  EXPECT_EQ(written(), "?");
  ASSERT_EQ(watch_.start(low_, size()), nullptr);
  EXPECT_TRUE(watch_all());
}

// A watched huge page is written a small one at a time.
TEST_F(Watch, HugePagesAreSplit) {
  constexpr std::size_t kSize = 2 * kHugePage;
  char* const memory = static_cast<char*>(reserve(kSize, kHugePage));
  ASSERT_NE(memory, nullptr);
  ASSERT_TRUE(commit(memory, kSize));
  advise_huge_pages(memory, kSize);
  WriteWatch watch;
  ASSERT_EQ(watch.start(memory, kSize), nullptr);
  std::memset(memory, 1, kSize);
  const WatchedPages pages;
  ASSERT_TRUE(pages.watch(memory, memory + kSize));
  memory[kHugePage + 5 * page_size()] = 2;
  class Count final : public PageVisitor {
   public:
    void pages(char* low, char* high) override { bytes += static_cast<std::size_t>(high - low); }
    std::size_t bytes = 0;
  } count;
  ASSERT_TRUE(pages.visit_written(memory, memory + kSize, &count));
  EXPECT_EQ(count.bytes, page_size());
  watch.stop();
  unreserve(memory, kSize);
}

TEST(WriteWatch, WhatIsNoMemoryIsRefused) {
  WriteWatch watch;
  EXPECT_NE(watch.start(nullptr, page_size()), nullptr);
  EXPECT_FALSE(watch.is_on());
}

}  // namespace
}  // namespace jd::os
