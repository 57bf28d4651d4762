// Threads that allocate little get pieces of blocks that they share (docs/design/alloc.md,
// "Pieces"): how much memory that saves, and that nobody's slot is another's.
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "child.hpp"
#include "gc_test.hpp"
#include "threads.hpp"

namespace jd::test {
namespace {

JD_CHILD(many_that_allocate_little) {
  GC_INIT();
  constexpr std::size_t kThreads = 300;
  GC_gcollect();
  const std::size_t before = GC_get_heap_size();
  pthread_barrier_t all_have;
  pthread_barrier_init(&all_have, nullptr, kThreads);
  run_threads(kThreads, [&](std::size_t) {
    for (std::size_t size = 16; size <= 256; size += 16) {
      opaque(GC_malloc(size));
      opaque(GC_malloc_atomic(size));
    }
    pthread_barrier_wait(&all_have);
  });
  std::printf("%zu\n", (GC_get_heap_size() - before) / kThreads);
  return 0;
}

// A block for each thread and size was 512 KiB a thread.
TEST(Pieces, ManyThreadsThatAllocateLittleTakeLittle) {
  JD_SKIP_UNDER_TSAN("hands no signal over to a thread at a barrier");
  const ChildResult r = run_child("many_that_allocate_little");
  ASSERT_TRUE(r.ok()) << r;
  // 19 KiB as a rule, and up to 25 where threads come in another order.
  EXPECT_LE(std::stoul(r.out), 32 * 1024u) << "bytes of heap a thread";
}

// An object says which thread made it as its how manieth, in each of its words.
struct Object {
  std::uint64_t* words;
  std::size_t count;
  std::uint64_t mark;

  [[nodiscard]] bool is_whole() const {
    for (std::size_t i = 0; i < count; ++i) {
      if (words[i] != mark) return false;
    }
    return true;
  }
};

std::atomic<std::size_t> damaged;

Object make_object(std::mt19937* random, std::uint64_t mark) {
  const std::size_t count = 1 + (*random)() % 40;
  const bool is_atomic = (*random)() % 2 == 0;
  const std::size_t bytes = count * sizeof(std::uint64_t);
  auto* words = static_cast<std::uint64_t*>(is_atomic ? GC_malloc_atomic(bytes) : GC_malloc(bytes));
  if (words == nullptr) {
    ++damaged;
    return {};
  }
  for (std::size_t i = 0; i < count && !is_atomic; ++i) damaged += words[i] != 0;
  for (std::size_t i = 0; i < count; ++i) words[i] = mark;
  return {words, count, mark};
}

// Few objects of many sizes; some freed by their thread, some by the next one, the rest by nobody.
void allocate_a_little(std::size_t thread, std::size_t round, std::atomic<void*>* for_the_next) {
  constexpr std::size_t kObjects = 60;
  std::mt19937 random(static_cast<unsigned>(thread + round * 1000));
  std::array<Object, kObjects> objects{};
  for (std::size_t i = 0; i < kObjects; ++i) {
    // Even: no word looks like an address.
    objects[i] = make_object(&random, (round << 40) + (thread << 20) + i * 2);
    if (random() % 8 == 0) {
      const std::size_t which = random() % (i + 1);
      if (!objects[which].is_whole()) ++damaged;
      GC_free(objects[which].words);
      objects[which] = {};
    }
    if (random() % 16 == 0) GC_free(for_the_next->exchange(GC_malloc(48)));
    if (random() % 200 == 0) GC_gcollect();
  }
  for (const Object& object : objects) {
    if (object.count != 0 && !object.is_whole()) ++damaged;
  }
}

TEST(Pieces, NobodysSlotIsAnothers) {
  constexpr std::size_t kThreads = 24;
  const std::size_t rounds = allocations_are_dear() ? 2 : 12;
  damaged = 0;
  static std::array<std::atomic<void*>, kThreads> handed;
  for (std::size_t round = 1; round <= rounds; ++round) {
    run_threads(kThreads, [&](std::size_t thread) {
      for (int turn = 0; turn < 5; ++turn) {
        allocate_a_little(thread, round * 8 + static_cast<std::size_t>(turn),
                          &handed[(thread + 1) % kThreads]);
      }
    });
  }
  EXPECT_EQ(damaged.load(), 0u);
}

}  // namespace
}  // namespace jd::test
