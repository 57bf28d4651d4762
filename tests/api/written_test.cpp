// Large objects of which only some pages were ever written (docs/design/mark.md, "Pages that nobody
// wrote").
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "child.hpp"
#include "gc_test.hpp"

namespace jd::test {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kKiB = 1024;

// Objects of many sizes with pointers in random places. More places are written from round to
// round, some are written anew: nothing that they hold may die.
class Sparse {
 public:
  explicit Sparse(std::uint64_t seed) : random_(seed) {
    static constexpr std::size_t kSizes[] = {9 * kKiB,  17 * kKiB,  40 * kKiB,
                                             70 * kKiB, 300 * kKiB, 3000 * kKiB};
    for (std::size_t i = 0; i < kObjects; ++i) {
      const std::size_t bytes = kSizes[i % std::size(kSizes)];
      table_.get()[i] = GC_malloc(bytes);
      words_.push_back(bytes / sizeof(void*));
    }
  }
  void write(std::size_t count) {
    far_away([&] {
      for (std::size_t k = 0; k < count; ++k) {
        const std::size_t i = random_.below(kObjects);
        auto** words = static_cast<void**>(table_.get()[i]);
        void*& word = words[random_.below(words_[i])];
        void* held = GC_malloc_atomic(32);
        if (word != nullptr) place_of(word).word = nullptr;
        word = held;
        held_.push_back({&word, watch_.add(held)});
      }
    });
  }
  void expect_held() const {
    for (const Held& held : held_) {
      if (held.word == nullptr) continue;
      ASSERT_TRUE(watch_.alive(held.number));
      ASSERT_EQ(watch_.get(held.number), *held.word);
    }
  }

 private:
  static constexpr std::size_t kObjects = 24;
  struct Held {
    void** word;
    std::size_t number;
  };
  Held& place_of(const void* held) {
    for (Held& h : held_) {
      if (h.word != nullptr && *h.word == held) return h;
    }
    ADD_FAILURE() << "a word that the test did not write";
    return held_.front();
  }

  Random random_;
  Root<void*> table_{static_cast<void**>(GC_malloc(kObjects * sizeof(void*)))};
  std::vector<std::size_t> words_;
  std::vector<Held> held_;
  Watch watch_;
};

TEST(Written, WhatTheWrittenPagesHoldLives) {
  Sparse sparse(test_seed());
  for (std::size_t round = 0; round < rounds(12); ++round) {
    sparse.write(20);
    collect();
    sparse.expect_held();
  }
}

// It is told of its own pages, not of its parent's.
TEST(Written, AForksChildAsksForItsOwnPages) {
  JD_SKIP_UNDER_TSAN("does not follow threads through a fork");
  Sparse sparse(test_seed());
  sparse.write(20);
  collect();
  const pid_t child = fork();
  if (child == 0) {
    for (int round = 0; round < 3; ++round) {
      sparse.write(20);
      collect();
      sparse.expect_held();
    }
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  collect();
  sparse.expect_held();
}

std::size_t pages_in_memory(const void* begin, std::size_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(begin) & ~(kPage - 1);
  std::vector<unsigned char> told((bytes + kPage - 1) / kPage);
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  EXPECT_EQ(mincore(reinterpret_cast<void*>(first), bytes, told.data()), 0);
  std::size_t count = 0;
  for (const unsigned char page : told) count += page & 1u;
  return count;
}

// A page that was read, even of zeros, would count as in memory.
JD_CHILD(marks_large_objects) {
  GC_INIT();
  static constexpr std::size_t kSizes[] = {20 * kKiB, 200 * kKiB, 8000 * kKiB};
  int wrong = 0;
  for (const std::size_t bytes : kSizes) {
    Root<char> object(static_cast<char*>(GC_malloc(bytes)));
    object.get()[bytes / 2] = 1;
    const std::size_t before = pages_in_memory(object.get(), bytes);
    if (before > bytes / kPage / 2) {
      std::fputs("this system makes huge pages of what was written\n", stderr);
      return kCannotTry;
    }
    for (int i = 0; i < 3; ++i) GC_gcollect();
    const std::size_t after = pages_in_memory(object.get(), bytes);
    std::printf("%zu bytes: %zu pages in memory, %zu when collected\n", bytes, before, after);
    wrong += after != before;
  }
  return wrong;
}

TEST(Written, OtherPagesAreNotRead) {
  JD_OURS_ONLY("it clears the whole object, and so do others");
  // The verifier reads all, and so does a marker in spans.
  const ChildResult r =
      run_child("marks_large_objects", {{"JACKDAW_VERIFY", "0"}, {"JACKDAW_SPANS", "0"}});
  JD_SKIP_IF_CANNOT_TRY(r);
  EXPECT_TRUE(r.ok()) << r;
  const ChildResult all =
      run_child("marks_large_objects", {{"JACKDAW_VERIFY", "0"}, {"JACKDAW_WRITTEN_PAGES", "0"}});
  JD_SKIP_IF_CANNOT_TRY(all);
  EXPECT_EQ(all.status, 3) << all;
}

}  // namespace
}  // namespace jd::test
