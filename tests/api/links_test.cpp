// Disappearing links, short and long, and toggle references.
#include <cstdlib>
#include <vector>

#include "gc_test.hpp"

namespace jd::test {
namespace {

using Link = int (*)(void**, const void*);
using Unlink = int (*)(void**);
using Move = int (*)(void**, void**);

struct Functions {
  const char* name;
  Link link;
  Unlink unlink;
  Move move;
};

class Links : public testing::TestWithParam<Functions> {
 protected:
  static constexpr std::size_t kCount = 1000;
  const Functions& f() const { return GetParam(); }
};

TEST_P(Links, AreClearedWhenTheObjectDies) {
  auto** links = static_cast<void**>(GC_malloc_atomic(kCount * sizeof(void*)));
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      void* object = GC_malloc(32);
      links[i] = object;
      ASSERT_EQ(f().link(&links[i], object), GC_SUCCESS);
    }
  });
  collect_all();
  std::size_t cleared = 0;
  for (std::size_t i = 0; i < kCount; ++i) cleared += links[i] == nullptr;
  EXPECT_GE(cleared, kCount * 95 / 100);
}

TEST_P(Links, StayWhileTheObjectLives) {
  auto** links = static_cast<void**>(GC_malloc_atomic(kCount * sizeof(void*)));
  auto** held = static_cast<void**>(GC_malloc(kCount * sizeof(void*)));
  for (std::size_t i = 0; i < kCount; ++i) {
    held[i] = links[i] = GC_malloc(32);
    ASSERT_EQ(f().link(&links[i], held[i]), GC_SUCCESS);
  }
  collect_all();
  for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(links[i], held[i]);
  keep_here(held);
}

TEST_P(Links, RegisteringTwiceIsADuplicateAndTakesTheNewObject) {
  auto** link = static_cast<void**>(std::calloc(1, sizeof(void*)));
  void* first = GC_malloc(32);
  void* second = GC_malloc(32);
  EXPECT_EQ(f().link(link, first), GC_SUCCESS);
  EXPECT_EQ(f().link(link, second), GC_DUPLICATE);
  EXPECT_EQ(f().unlink(link), 1);
  EXPECT_EQ(f().unlink(link), 0);
  keep_here(first);
  keep_here(second);
  std::free(link);
}

TEST_P(Links, UnregisteredOnesAreLeftAlone) {
  auto** links = static_cast<void**>(std::malloc(kCount * sizeof(void*)));
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      void* object = GC_malloc(32);
      links[i] = reinterpret_cast<void*>(GC_HIDE_POINTER(object));
      ASSERT_EQ(f().link(&links[i], object), GC_SUCCESS);
      ASSERT_EQ(f().unlink(&links[i]), 1);
    }
  });
  collect_all();
  for (std::size_t i = 0; i < kCount; ++i) ASSERT_NE(links[i], nullptr);
  std::free(links);
}

TEST_P(Links, UnregisteringNonsenseReturnsZero) {
  void* word = nullptr;
  EXPECT_EQ(f().unlink(&word), 0);
  EXPECT_EQ(f().unlink(nullptr), 0);
  EXPECT_EQ(f().unlink(reinterpret_cast<void**>(reinterpret_cast<char*>(&word) + 1)), 0);
}

TEST_P(Links, CanBeMoved) {
  auto** from = static_cast<void**>(GC_malloc_atomic(kCount * sizeof(void*)));
  auto** to = static_cast<void**>(GC_malloc_atomic(kCount * sizeof(void*)));
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      void* object = GC_malloc(32);
      from[i] = to[i] = object;
      ASSERT_EQ(f().link(&from[i], object), GC_SUCCESS);
      ASSERT_EQ(f().move(&from[i], &to[i]), GC_SUCCESS);
      from[i] = reinterpret_cast<void*>(1);
    }
  });
  collect_all();
  std::size_t cleared = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(from[i], reinterpret_cast<void*>(1));
    cleared += to[i] == nullptr;
  }
  EXPECT_GE(cleared, kCount * 95 / 100);
}

TEST_P(Links, MovingReportsWhatItFinds) {
  auto** words = static_cast<void**>(GC_malloc_atomic(3 * sizeof(void*)));
  void* object = GC_malloc(32);
  EXPECT_EQ(f().move(&words[0], &words[1]), GC_NOT_FOUND);
  EXPECT_EQ(f().link(&words[0], object), GC_SUCCESS);
  EXPECT_EQ(f().move(&words[0], &words[0]), GC_SUCCESS);
  EXPECT_EQ(f().link(&words[1], object), GC_SUCCESS);
  EXPECT_EQ(f().move(&words[0], &words[1]), GC_DUPLICATE);
  EXPECT_EQ(f().unlink(&words[0]), 1);
  EXPECT_EQ(f().move(&words[1], &words[2]), GC_SUCCESS);
  EXPECT_EQ(f().unlink(&words[1]), 0);
  EXPECT_EQ(f().unlink(&words[2]), 1);
  keep_here(object);
}

TEST_P(Links, DieWithTheObjectTheyAreIn) {
  // A link in a dead object must not be written to later: its memory belongs to somebody else.
  for (int round = 0; round < 10; ++round) {
    auto** held = static_cast<void**>(GC_malloc(kCount * sizeof(void*)));
    far_away([&] {
      for (std::size_t i = 0; i < kCount; ++i) {
        held[i] = GC_malloc(32);
        auto** holder = static_cast<void**>(GC_malloc_atomic(32));
        holder[1] = held[i];
        ASSERT_EQ(f().link(&holder[1], held[i]), GC_SUCCESS);
      }
    });
    collect();
    auto** kept = static_cast<void**>(GC_malloc(kCount * sizeof(void*)));
    for (std::size_t i = 0; i < kCount; ++i) {
      kept[i] = GC_malloc_atomic(32);
      fill_pattern(kept[i], 32, static_cast<std::uint32_t>(i));
    }
    for (std::size_t i = 0; i < kCount; ++i) held[i] = nullptr;
    collect();
    collect();
    for (std::size_t i = 0; i < kCount; ++i) {
      ASSERT_TRUE(holds_pattern(kept[i], 32, static_cast<std::uint32_t>(i)));
    }
  }
}

TEST_P(Links, ALinkInsideTheObjectItWatches) {
  Watch watch;
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      auto** object = static_cast<void**>(GC_malloc(32));
      object[0] = object;
      ASSERT_EQ(f().link(&object[0], object), GC_SUCCESS);
      watch.add(object);
    }
  });
  EXPECT_TRUE(most_collected(watch));
}

TEST_P(Links, ManyGrowTheTable) {
  const std::size_t many = rounds(200000);
  auto** links = static_cast<void**>(GC_malloc_atomic(many * sizeof(void*)));
  auto** held = static_cast<void**>(GC_malloc(many * sizeof(void*)));
  for (std::size_t i = 0; i < many; ++i) {
    held[i] = links[i] = GC_malloc(16);
    ASSERT_EQ(f().link(&links[i], held[i]), GC_SUCCESS);
  }
  // Every other one dies.
  far_away([&] {
    for (std::size_t i = 0; i < many; i += 2) held[i] = nullptr;
  });
  collect_all();
  std::size_t cleared = 0;
  for (std::size_t i = 0; i < many; ++i) {
    if (i % 2 == 0) {
      cleared += links[i] == nullptr;
    } else {
      ASSERT_EQ(links[i], held[i]);
    }
  }
  EXPECT_GE(cleared, many / 2 * 95 / 100);
  for (std::size_t i = 1; i < many; i += 2) ASSERT_EQ(f().unlink(&links[i]), 1);
  keep_here(held);
}

// More than a table has room for that another test may have made.
constexpr std::size_t kTableFuls = 600'000;

TEST_P(Links, AFullTableIsAReasonToCollect) {
  ASSERT_EQ(GC_expand_hp(128 << 20), 1);  // so that nothing else is
  const GC_word before = GC_get_gc_no();
  auto** link = static_cast<void**>(std::calloc(kTableFuls, sizeof(void*)));
  std::size_t cleared = 0;
  far_away([&] {
    for (std::size_t i = 0; i < kTableFuls; ++i) {
      void* object = GC_malloc(64);
      link[i] = object;
      ASSERT_EQ(f().link(&link[i], object), GC_SUCCESS);
    }
  });
  EXPECT_GT(GC_get_gc_no(), before);
  for (std::size_t i = 0; i < kTableFuls; ++i) {
    cleared += link[i] == nullptr;
    f().unlink(&link[i]);
  }
  EXPECT_GT(cleared, 0);
  std::free(link);
}

TEST_P(Links, AFullTableIsNoneWhereLittleWasAllocated) {
  auto** link = static_cast<void**>(std::calloc(kTableFuls, sizeof(void*)));
  void* object = GC_malloc(64);
  collect();
  const GC_word before = GC_get_gc_no();
  for (std::size_t i = 0; i < kTableFuls; ++i) {
    ASSERT_EQ(f().link(&link[i], object), GC_SUCCESS);
  }
  EXPECT_EQ(GC_get_gc_no(), before);
  for (std::size_t i = 0; i < kTableFuls; ++i) EXPECT_EQ(f().unlink(&link[i]), 1);
  keep_here(object);
  std::free(link);
}

INSTANTIATE_TEST_SUITE_P(All, Links,
                         testing::Values(Functions{"short", GC_general_register_disappearing_link,
                                                   GC_unregister_disappearing_link,
                                                   GC_move_disappearing_link},
                                         Functions{"long", GC_register_long_link,
                                                   GC_unregister_long_link, GC_move_long_link}),
                         [](const auto& info) { return info.param.name; });

TEST(ShortLinks, TheSimpleFormWatchesItsOwnObject) {
  Watch watch;
  far_away([&] {
    for (int i = 0; i < 200; ++i) {
      auto** object = static_cast<void**>(GC_malloc(48));
      object[2] = object;
      ASSERT_EQ(GC_register_disappearing_link(&object[2]), GC_SUCCESS);
      watch.add(object);
    }
  });
  EXPECT_TRUE(most_collected(watch));
}

// volatile: nothing reads it, and a compiler may drop the stores that clear it.
void* volatile saved[1000];
std::size_t saved_count;
void save(void* object, void*) { saved[saved_count++] = object; }

TEST(ShortLinks, AreClearedBeforeTheFinalizerAndLongOnesAfter) {
  constexpr std::size_t kCount = 500;
  auto** short_links = static_cast<void**>(GC_malloc_atomic(kCount * sizeof(void*)));
  auto** long_links = static_cast<void**>(GC_malloc_atomic(kCount * sizeof(void*)));
  saved_count = 0;
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      void* object = GC_malloc(32);
      short_links[i] = long_links[i] = object;
      GC_general_register_disappearing_link(&short_links[i], object);
      GC_register_long_link(&long_links[i], object);
      GC_register_finalizer_no_order(object, save, nullptr, nullptr, nullptr);
    }
  });
  GC_set_finalize_on_demand(1);
  collect();
  GC_invoke_finalizers();
  GC_set_finalize_on_demand(0);
  ASSERT_GE(saved_count, kCount * 95 / 100);
  std::size_t short_cleared = 0;
  std::size_t long_cleared = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    short_cleared += short_links[i] == nullptr;
    long_cleared += long_links[i] == nullptr;
  }
  EXPECT_EQ(short_cleared, saved_count);
  EXPECT_EQ(long_cleared, 0u);
  // The finalizer saved them all; the long links follow when they are dropped.
  for (void* volatile& p : saved) p = nullptr;
  collect_all();
  long_cleared = 0;
  for (std::size_t i = 0; i < kCount; ++i) long_cleared += long_links[i] == nullptr;
  EXPECT_GE(long_cleared, kCount * 95 / 100);
}

TEST(ShortLinks, ToInteriorOfWeakVectorSlots) {
  // Links inside large atomic arrays, moved along, as weak vectors and tables do.
  constexpr std::size_t kSlots = 5000;
  auto** vector = static_cast<void**>(GC_malloc_atomic(kSlots * sizeof(void*)));
  auto** held = static_cast<void**>(GC_malloc(kSlots * sizeof(void*)));
  for (std::size_t i = 0; i < kSlots; ++i) vector[i] = nullptr;
  Random random(test_seed());
  const std::size_t steps = rounds(40000);
  for (std::size_t step = 0; step < steps; ++step) {
    const std::size_t at = random.below(kSlots);
    switch (random.below(4)) {
      case 0:
      case 1:
        if (vector[at] == nullptr) {
          held[at] = GC_malloc(32);
          vector[at] = held[at];
          ASSERT_EQ(GC_general_register_disappearing_link(&vector[at], held[at]), GC_SUCCESS);
        }
        break;
      case 2: {
        const std::size_t to = random.below(kSlots);
        if (vector[at] != nullptr && held[at] != nullptr && vector[to] == nullptr) {
          vector[to] = vector[at];
          held[to] = held[at];
          ASSERT_EQ(GC_move_disappearing_link(&vector[at], &vector[to]), GC_SUCCESS);
          vector[at] = held[at] = nullptr;
        }
        break;
      }
      default:
        held[at] = nullptr;
    }
    if (random.one_in(2000)) {
      collect();
      for (std::size_t i = 0; i < kSlots; ++i) {
        if (held[i] == nullptr) continue;
        ASSERT_EQ(vector[i], held[i]);
      }
    }
  }
  collect_all();
  std::size_t stale = 0;
  for (std::size_t i = 0; i < kSlots; ++i) stale += held[i] == nullptr && vector[i] != nullptr;
  EXPECT_LE(stale, kSlots / 20);
  for (std::size_t i = 0; i < kSlots; ++i) {
    if (vector[i] != nullptr) GC_unregister_disappearing_link(&vector[i]);
  }
}

// --- Toggle references
// ------------------------------------------------------------------------------

struct Toggled {
  GC_ToggleRefStatus status;
  long pattern;
};

GC_ToggleRefStatus status_of(void* object) { return static_cast<Toggled*>(object)->status; }

TEST(ToggleRefs, StrongHoldsWeakDoesNot) {
  GC_set_toggleref_func(status_of);
  EXPECT_EQ(GC_get_toggleref_func(), status_of);
  Watch strong;
  Watch weak;
  Watch dropped;
  std::vector<GC_hidden_pointer> hidden;
  far_away([&] {
    for (int i = 0; i < 300; ++i) {
      auto make = [&](GC_ToggleRefStatus status, int is_strong, Watch* watch) {
        auto* t = static_cast<Toggled*>(GC_malloc(sizeof(Toggled)));
        t->status = status;
        t->pattern = 77;
        ASSERT_EQ(GC_toggleref_add(t, is_strong), GC_SUCCESS);
        watch->add(t);
        if (status == GC_TOGGLE_REF_STRONG) hidden.push_back(GC_HIDE_POINTER(t));
      };
      make(GC_TOGGLE_REF_STRONG, 1, &strong);
      make(GC_TOGGLE_REF_WEAK, 0, &weak);
      make(GC_TOGGLE_REF_DROP, 1, &dropped);
    }
  });
  collect();
  collect();
  EXPECT_TRUE(all_alive(strong));
  EXPECT_TRUE(most_collected(weak));
  EXPECT_TRUE(most_collected(dropped));
  far_away([&] {
    for (const GC_hidden_pointer p : hidden) {
      auto* t = static_cast<Toggled*>(GC_REVEAL_POINTER(p));
      ASSERT_EQ(t->pattern, 77);
      t->status = GC_TOGGLE_REF_WEAK;
    }
  });
  EXPECT_TRUE(most_collected(strong));
  GC_set_toggleref_func(nullptr);
}

int asked_about;
GC_ToggleRefStatus count_and_tell_status(void* object) {
  ++asked_about;
  return status_of(object);
}

TEST(ToggleRefs, LastUntilFinalizersHaveRun) {
  collect_all();
  GC_set_toggleref_func(count_and_tell_status);
  GC_set_finalize_on_demand(1);
  static int finalized;
  finalized = 0;
  constexpr int kObjects = 300;
  far_away([&] {
    for (int i = 0; i < kObjects; ++i) {
      auto* t = static_cast<Toggled*>(GC_malloc(sizeof(Toggled)));
      t->status = GC_TOGGLE_REF_WEAK;
      ASSERT_EQ(GC_toggleref_add(t, 0), GC_SUCCESS);
      GC_register_finalizer_no_order(
          t, [](void*, void*) { ++finalized; }, nullptr, nullptr, nullptr);
    }
  });
  for (int i = 0; i < 3; ++i) {
    asked_about = 0;
    collect();
    EXPECT_EQ(asked_about, kObjects) << i;
  }
  GC_invoke_finalizers();
  EXPECT_GE(finalized, kObjects * 9 / 10);
  // The objects go, and the references with them.
  for (int i = 0; i < 3; ++i) {
    asked_about = 0;
    collect();
    GC_invoke_finalizers();
  }
  EXPECT_LE(asked_about, kObjects / 10);
  GC_set_finalize_on_demand(0);
  GC_set_toggleref_func(nullptr);
}

}  // namespace
}  // namespace jd::test
