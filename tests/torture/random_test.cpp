// A random program of all allocation functions, checked word for word: what it keeps has its
// contents, what it gets is empty, and what it gets belongs to nobody else.
#include <atomic>
#include <cstdio>
#include <cstring>

#include "gc_test.hpp"
#include "threads.hpp"

namespace jd::test {
namespace {

enum Kind : std::uint32_t { kNormal, kAtomic, kUncollectable, kAtomicUncollectable, kKinds };

// Lives in an uncollectable table; the object's content is a pattern by its tag.
struct Entry {
  unsigned char* object;
  std::size_t size;
  std::uint32_t tag;
  Kind kind;
};

class Program {
 public:
  Program(std::uint64_t seed, std::size_t entries)
      : random_(seed),
        count_(entries),
        table_(static_cast<Entry*>(GC_malloc_uncollectable(entries * sizeof(Entry)))) {}
  ~Program() {
    for (std::size_t i = 0; i < count_; ++i) drop(&table_[i], true);
    GC_free(table_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // False, with a message, at the first thing that is wrong.
  bool run(std::size_t steps) {
    for (std::size_t i = 0; i < steps; ++i) {
      Entry* entry = &table_[random_.below(count_)];
      if (!check(*entry)) return false;
      switch (random_.below(10)) {
        case 0:
        case 1:
        case 2:
        case 3:
        case 4:
        case 5:
          drop(entry, random_.one_in(3));
          if (!fill(entry)) return false;
          break;
        case 6:
        case 7:
          if (!resize(entry)) return false;
          break;
        case 8:
          drop(entry, random_.one_in(2));
          break;
        default:
          garbage();
      }
      if (random_.one_in(steps / 8 + 1)) GC_gcollect();
    }
    for (std::size_t i = 0; i < count_; ++i) {
      if (!check(table_[i])) return false;
    }
    return true;
  }

 private:
  std::size_t some_size() {
    switch (random_.below(100)) {
      case 0:
        return random_.below(300000);
      case 1:
      case 2:
      case 3:
        return random_.below(20000);
      default:
        return random_.below(random_.one_in(4) ? 2500 : 200);
    }
  }

  static bool fail(const char* what, const Entry& entry) {
    std::fprintf(stderr, "%s: object %p, %zu bytes, kind %u, tag %u\n", what,
                 static_cast<void*>(entry.object), entry.size, entry.kind, entry.tag);
    return false;
  }

  static bool check(const Entry& entry) {
    if (entry.object == nullptr) return true;
    if (!holds_pattern(entry.object, entry.size, entry.tag)) return fail("wrong contents", entry);
    return true;
  }

  bool fill(Entry* entry) {
    const std::size_t size = some_size();
    const Kind kind = random_.one_in(20) ? static_cast<Kind>(random_.below(kKinds))
                                         : static_cast<Kind>(random_.below(2));
    void* p = nullptr;
    switch (kind) {
      case kNormal:
        p = random_.one_in(10) ? GC_malloc_ignore_off_page(size) : GC_malloc(size);
        break;
      case kAtomic:
        p = GC_malloc_atomic(size);
        break;
      case kUncollectable:
        p = GC_malloc_uncollectable(size);
        break;
      default:
        p = GC_malloc_atomic_uncollectable(size);
    }
    *entry = {static_cast<unsigned char*>(p), size, static_cast<std::uint32_t>(random_.next()),
              kind};
    if (p == nullptr) return fail("no memory", *entry);
    if (kind == kNormal || kind == kUncollectable) {
      for (std::size_t i = 0; i < size; ++i) {
        if (entry->object[i] != 0) return fail("not zeroed", *entry);
      }
    }
    fill_pattern(p, size, entry->tag);
    return true;
  }

  bool resize(Entry* entry) {
    if (entry->object == nullptr) return true;
    const std::size_t size = some_size() + 1;
    auto* p = static_cast<unsigned char*>(GC_realloc(entry->object, size));
    if (p == nullptr) return fail("no memory to resize", *entry);
    const std::size_t common = size < entry->size ? size : entry->size;
    if (!holds_pattern(p, common, entry->tag)) return fail("contents lost by realloc", *entry);
    entry->object = p;
    entry->size = size;
    fill_pattern(p, size, entry->tag);
    return true;
  }

  static void drop(Entry* entry, bool free_it) {
    if (entry->object == nullptr) return;
    if (free_it || entry->kind >= kUncollectable) GC_free(entry->object);
    *entry = {};
  }

  void garbage() {
    for (std::size_t i = random_.below(50); i > 0; --i) {
      std::memset(GC_malloc_atomic(some_size() % 1000 + 1), 0xff, 1);
    }
  }

  Random random_;
  std::size_t count_;
  Entry* table_;
};

TEST(RandomProgram, OneThread) {
  Program program(test_seed(), 2000);
  EXPECT_TRUE(program.run(rounds(300000)));
}

TEST(RandomProgram, FourThreads) {
  const std::uint64_t seed = test_seed();
  std::atomic<int> failures{0};
  run_threads(4, [&](std::size_t t) {
    Program program(seed + t, 500);
    if (!program.run(rounds(80000))) ++failures;
  });
  EXPECT_EQ(failures.load(), 0);
}

TEST(RandomProgram, ThreadsFreeEachOthersObjects) {
  constexpr std::size_t kSlots = 256;
  static std::atomic<void*> slots[kSlots];
  const std::uint64_t seed = test_seed();
  std::atomic<int> failures{0};
  const std::size_t steps = rounds(100000);
  run_threads(4, [&](std::size_t t) {
    Random random(seed + t);
    for (std::size_t i = 0; i < steps; ++i) {
      auto& slot = slots[random.below(kSlots)];
      const std::size_t size = 16 + random.below(500);
      auto* mine = static_cast<std::uint32_t*>(GC_malloc(size));
      mine[0] = static_cast<std::uint32_t>(size);
      std::memset(mine + 1, 0x3c, size - 4);
      auto* other = static_cast<std::uint32_t*>(slot.exchange(mine));
      if (other == nullptr) continue;
      const auto* bytes = reinterpret_cast<unsigned char*>(other + 1);
      for (std::size_t k = 0; k < other[0] - 4; ++k) {
        if (bytes[k] != 0x3c) {
          ++failures;
          break;
        }
      }
      if (random.one_in(2)) GC_free(other);
    }
  });
  for (auto& slot : slots) slot = nullptr;
  EXPECT_EQ(failures.load(), 0);
}

TEST(RandomProgram, LargeObjectChurn) {
  Random random(test_seed());
  constexpr std::size_t kKept = 20;
  auto** kept = static_cast<unsigned char**>(GC_malloc(kKept * sizeof(char*)));
  std::size_t sizes[kKept] = {};
  const std::size_t steps = rounds(3000);
  for (std::size_t i = 0; i < steps; ++i) {
    const std::size_t at = random.below(kKept);
    if (kept[at] != nullptr) {
      ASSERT_EQ(kept[at][0], static_cast<unsigned char>(at));
      ASSERT_EQ(kept[at][sizes[at] - 1], static_cast<unsigned char>(at));
      if (random.one_in(3)) GC_free(kept[at]);
      kept[at] = nullptr;
    }
    sizes[at] = 8192 + random.below(2000000);
    kept[at] = static_cast<unsigned char*>(random.one_in(2) ? GC_malloc(sizes[at])
                                                            : GC_malloc_atomic(sizes[at]));
    ASSERT_NE(kept[at], nullptr);
    kept[at][0] = kept[at][sizes[at] - 1] = static_cast<unsigned char>(at);
  }
  EXPECT_LT(GC_get_heap_size(), std::size_t{1} << 30);
}

}  // namespace
}  // namespace jd::test
