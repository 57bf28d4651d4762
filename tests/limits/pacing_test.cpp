// When collections come by themselves (docs/design/cycle.md, "Pacing", "Finalizers and links").
#include <sched.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "child.hpp"
#include "gc_test.hpp"
#include "threads.hpp"

namespace jd::test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// An array of so many links, to objects that they keep by a second array.
struct Links {
  explicit Links(std::size_t count)
      : links(static_cast<void**>(GC_malloc_atomic_uncollectable(count * sizeof(void*)))),
        objects(static_cast<void**>(GC_malloc_uncollectable(count * sizeof(void*)))) {}
  void add(std::size_t i) const {
    objects[i] = GC_malloc(512);
    links[i] = objects[i];
    if (GC_general_register_disappearing_link(&links[i], objects[i]) != GC_SUCCESS) std::abort();
  }
  void** links;
  void** objects;
};

// With room for everything, so that nothing else is a reason to collect.
JD_CHILD(links_by_half) {
  GC_INIT();
  constexpr std::size_t kCount = 20000;
  if (GC_expand_hp(64 * kMiB) == 0) return 1;
  const Links links(kCount);
  GC_gcollect();
  GC_word before = GC_get_gc_no();
  for (std::size_t i = 0; i < kCount; ++i) {
    links.add(i);
    if (GC_get_gc_no() == before) continue;
    before = GC_get_gc_no();
    std::printf("%zu\n", i);
  }
  return 0;
}

TEST(Pacing, ATableThatHasGrownByHalfIsAReasonToCollect) {
  JD_OURS_ONLY("waits until it has doubled");
  const ChildResult r = run_child("links_by_half");
  ASSERT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.out, "4096\n6144\n9216\n13824\n");
}

// What so many threads, by turns, allocate until a collection comes, after one that found 16 MiB
// where the one before it had found 4.
void print_bytes_after_growth(std::size_t threads) {
  auto** live = static_cast<void**>(GC_malloc_uncollectable(16 * sizeof(void*)));
  for (int i = 0; i < 4; ++i) live[i] = GC_malloc(kMiB);
  GC_gcollect();
  GC_disable();
  for (int i = 4; i < 16; ++i) live[i] = GC_malloc(kMiB);
  GC_enable();
  GC_gcollect();
  const GC_word before = GC_get_gc_no();
  std::atomic<std::size_t> kib{0};
  run_threads(threads, [&](std::size_t number) {
    constexpr std::size_t kTurn = 64;
    while (GC_get_gc_no() == before) {
      if (kib / kTurn % threads == number) {
        opaque(GC_malloc(1024));
        ++kib;
      } else {
        sched_yield();
      }
    }
  });
  std::printf("%zu", kib.load());
}

JD_CHILD(one_after_growth) {
  GC_INIT();
  print_bytes_after_growth(1);
  return 0;
}
JD_CHILD(two_after_growth) {
  GC_INIT();
  print_bytes_after_growth(2);
  return 0;
}

TEST(Pacing, WhereSeveralThreadsAllocateTheLastCollectionCounts) {
  JD_OURS_ONLY("goes by the last one always");
  const ChildResult one = run_child("one_after_growth");
  ASSERT_TRUE(one.ok()) << one;
  const ChildResult two = run_child("two_after_growth");
  ASSERT_TRUE(two.ok()) << two;
  // A third of twice what is live, and what room there was.
  EXPECT_LT(std::stoul(one.out), 2 * std::size_t{4} * 1024) << "for one, the lesser";
  EXPECT_GT(std::stoul(two.out), std::size_t{16} * 1024 * 2 / 3 - 1024);
}

// What is allocated between two collections, with 16 MiB live, a divisor of 1 and so many links.
std::size_t bytes_between(std::size_t count) {
  GC_set_free_space_divisor(1);
  const Links links(count + 1);
  for (std::size_t i = 0; i < count; ++i) links.add(i);
  auto** live = static_cast<void**>(GC_malloc_uncollectable(16 * sizeof(void*)));
  for (int i = 0; i < 16; ++i) live[i] = GC_malloc(kMiB);
  // The lesser of two is what counts.
  GC_gcollect();
  GC_gcollect();
  const GC_word before = GC_get_gc_no();
  std::size_t bytes = 0;
  for (; GC_get_gc_no() == before; bytes += 1024) opaque(GC_malloc(1024));
  return bytes;
}

JD_CHILD(bytes_between_with_links) {
  GC_INIT();
  std::printf("%zu", bytes_between(5000));
  return 0;
}
JD_CHILD(bytes_between) {
  GC_INIT();
  std::printf("%zu", bytes_between(10));
  return 0;
}

TEST(Pacing, ManyLinksRaiseASmallDivisor) {
  JD_OURS_ONLY("knows only the divisor");
  const ChildResult without = run_child("bytes_between");
  ASSERT_TRUE(without.ok()) << without;
  const ChildResult with = run_child("bytes_between_with_links");
  ASSERT_TRUE(with.ok()) << with;
  // From 2 to 3. (The links' objects are 2.5 MiB more that live.)
  EXPECT_NEAR(std::stod(with.out) / std::stod(without.out), 2.0 / 3 * 18.5 / 16, 0.08);
}

}  // namespace
}  // namespace jd::test
