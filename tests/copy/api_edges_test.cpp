// Where typed objects meet the rest: finalizers, disclaim functions, mark procedures, explicit
// frees, objects of which only the first page counts, and whoever looks at all objects.
#include <gc/gc_disclaim.h>
#include <gc/gc_mark.h>
#include <gc/gc_typed.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <set>
#include <vector>

#include "api_support.hpp"
#include "child.hpp"

namespace jd::test {
namespace {

struct Pair {
  std::uint64_t of_runtime;  // where the object describes itself
  long number;
  long same;
  void* next;
};

jd_layout* define_pair(jd_source source) {
  static const std::uint64_t next_is_pointer = 8;
  return jd_layout_define(
      std::array{info_of("pair", source, sizeof(Pair), &next_is_pointer)}.data());
}

Pair* make_pair(jd_layout* layout, long number) {
  auto* pair = static_cast<Pair*>(jd_new(layout));
  pair->number = pair->same = number;
  return pair;
}

std::size_t finalized;
std::size_t damaged;

// Due, and nobody has asked where the objects of their blocks begin: their memory is not free.
TEST(Edges, DueObjectsKeepTheirMemory) {
  GC_set_finalize_on_demand(1);
  for (const jd_source source : {JD_SELF, JD_HEADER}) {
    jd_layout* layout = define_pair(source);
    constexpr long kObjects = 3000;
    finalized = damaged = 0;
    far_away([&] {
      for (long i = 0; i < kObjects; ++i) {
        make_pair(layout, -1);
        GC_register_finalizer_ignore_self(
            make_pair(layout, 42),
            [](void* object, void*) {
              const auto* pair = static_cast<Pair*>(object);
              ++finalized;
              if (pair->number != 42 || pair->same != 42) ++damaged;
            },
            nullptr, nullptr, nullptr);
      }
    });
    GC_gcollect();
    for (long i = 0; i < kObjects; ++i) make_pair(layout, 7);
    GC_invoke_finalizers();
    EXPECT_GT(finalized, 0u);
    EXPECT_EQ(damaged, 0u);
  }
  GC_set_finalize_on_demand(0);
}

int keep_it(void* /*object*/) { return 1; }

// In a process of its own: what is kept is kept for ever.
JD_CHILD(kept_by_disclaim) {
  GC_INIT();
  jd_layout* layout = define_pair(JD_HOMOGENEOUS);
  const auto kind = static_cast<int>(GC_new_kind(GC_new_free_list(), 0, 1, 1));
  GC_register_disclaim_proc(kind, keep_it, 0);
  constexpr std::size_t kHolders = 500;
  auto* roots = static_cast<void**>(std::calloc(kHolders, sizeof(void*)));
  std::vector<GC_word> holders(kHolders);
  for (std::size_t i = 0; i < kHolders; ++i) {
    for (int k = 0; k < 20; ++k) make_pair(layout, -1);
    roots[i] = make_pair(layout, static_cast<long>(i));
    jd_root_add(&roots[i]);
    auto** holder = static_cast<void**>(GC_generic_malloc(32, kind));
    holder[0] = roots[i];
    holders[i] = ~reinterpret_cast<GC_word>(holder);
  }
  compact();
  for (std::size_t i = 0; i < kHolders; ++i) {
    if (*reinterpret_cast<void**>(~holders[i]) != roots[i]) return 1;
  }
  return 0;
}
TEST(Edges, WhatADisclaimFunctionKeepsHoldsItsObjectsInPlace) {
  const ChildResult r = run_child("kept_by_disclaim");
  EXPECT_TRUE(r.ok()) << r;
}

JD_CHILD(weak_to_freed) {
  GC_INIT();
  constexpr std::size_t kWeak = 2000;
  auto** weak = static_cast<jd_weak**>(GC_malloc_uncollectable(kWeak * sizeof(jd_weak*)));
  auto** freed = static_cast<void**>(GC_malloc_uncollectable(2 * kWeak * sizeof(void*)));
  for (std::size_t i = 0; i < 2 * kWeak; ++i) freed[i] = GC_malloc(24);
  for (std::size_t i = 0; i < kWeak; ++i) weak[i] = jd_weak_new(freed[2 * i]);
  for (std::size_t i = 0; i < kWeak; ++i) {
    GC_free(freed[2 * i]);
    freed[2 * i] = nullptr;
  }
  GC_gcollect();
  for (std::size_t i = 0; i < kWeak; ++i) {
    if (jd_weak_get(weak[i]) != nullptr) return 1;
  }
  compact();
  return 0;
}
TEST(Edges, WeakReferencesToFreedObjectsAreNull) {
  const ChildResult r = run_child("weak_to_freed");
  EXPECT_TRUE(r.ok()) << r;
}

JD_CHILD(ephemeron_of_inner_pointer) {
  GC_INIT();
  static char key;
  static jd_ephemeron* ephemerons[20];
  far_away([] {
    for (jd_ephemeron*& ephemeron : ephemerons) {
      auto* large = static_cast<char*>(GC_malloc_ignore_off_page(200000));
      ephemeron = jd_ephemeron_new(&key, large + 100000);
    }
  });
  GC_gcollect();
  for (const jd_ephemeron* ephemeron : ephemerons) {
    if (jd_ephemeron_value(ephemeron) != nullptr) return 1;
  }
  return 0;
}
TEST(Edges, AnEphemeronsValueThatHoldsNothingEndsTheRounds) {
  const ChildResult r = run_child("ephemeron_of_inner_pointer", {}, 30);
  EXPECT_TRUE(r.ok()) << r;
}

// With objects from GC_debug_malloc, each collection looks at all survivors.
JD_CHILD(survivors_beside_holes) {
  GC_INIT();
  jd_layout* small = jd_layout_define(std::array{info_of("small", JD_HEADER, 24)}.data());
  jd_layout* large = jd_layout_define(std::array{info_of("large", JD_HEADER, 104)}.data());
  if (GC_debug_malloc(10, __FILE__, __LINE__) == nullptr) return 1;
  static void* kept[400];
  for (std::size_t i = 0; i < 20000; ++i) {
    auto* words = static_cast<std::uint64_t*>(jd_new(large));
    for (int k = 0; k < 13; ++k) words[k] = 0x1111111111111111;
    if (i % 50 == 0) kept[i / 50] = words;
  }
  GC_gcollect();
  for (int i = 0; i < 500; ++i) {
    static_cast<void>(jd_new(small));
    GC_gcollect();
    GC_call_with_alloc_lock(
        [](void*) -> void* {
          GC_enumerate_reachable_objects_inner([](void*, std::size_t, void*) {}, nullptr);
          return nullptr;
        },
        nullptr);
  }
  asm volatile("" : : "r"(kept) : "memory");
  return 0;
}
TEST(Edges, NobodyVisitsWhereAHoleBegins) {
  const ChildResult r = run_child("survivors_beside_holes");
  EXPECT_TRUE(r.ok()) << r;
}

GC_ms_entry* mark_disguised(GC_word* object, GC_ms_entry* top, GC_ms_entry* limit, GC_word) {
  if (object[0] == 0) return top;
  return GC_mark_and_push(reinterpret_cast<void*>(~object[0]), top, limit, nullptr);
}

TEST(Edges, MarkProceduresOfArraysPin) {
  jd_layout* layout = define_pair(JD_HOMOGENEOUS);
  const GC_word descriptor = GC_MAKE_PROC(GC_new_proc(mark_disguised), 0);
  constexpr std::size_t kArrays = 1000;
  for (const std::size_t elements : {std::size_t{1}, std::size_t{2}}) {
    auto** arrays = static_cast<GC_word**>(GC_malloc_uncollectable(kArrays * sizeof(GC_word*)));
    far_away([&] {
      for (std::size_t i = 0; i < kArrays; ++i) {
        arrays[i] = static_cast<GC_word*>(GC_calloc_explicitly_typed(elements, 32, descriptor));
        for (int k = 0; k < 5; ++k) make_pair(layout, -1);
        arrays[i][0] = ~reinterpret_cast<GC_word>(make_pair(layout, static_cast<long>(i)));
      }
    });
    compact();
    for (int i = 0; i < 20000; ++i) make_pair(layout, -2);
    for (std::size_t i = 0; i < kArrays; ++i) {
      const auto* pair = reinterpret_cast<const Pair*>(~arrays[i][0]);
      ASSERT_EQ(pair->number, static_cast<long>(i)) << elements << " elements";
    }
    GC_free(arrays);
  }
}

// What only a mark procedure finds is as much to be seen by a finalizer as the rest.
TEST(Edges, FinalizersSeeWhatMarkProceduresFind) {
  jd_layout* layout = define_pair(JD_HEADER);
  const int kind = static_cast<int>(
      GC_new_kind(GC_new_free_list(), GC_MAKE_PROC(GC_new_proc(mark_disguised), 0), 0, 1));
  constexpr long kCount = 500;
  finalized = damaged = 0;
  Cell list;
  far_away([&] {
    for (long i = 0; i < kCount; ++i) {
      Pair* pair = make_pair(layout, i);  // lives on, and moves
      pair->next = list.get();
      list.set(pair);
      for (int k = 0; k < 5; ++k) make_pair(layout, -1);
    }
    auto* shared = static_cast<Pair*>(list.get());
    for (long i = kCount; i-- > 0; shared = static_cast<Pair*>(shared->next)) {
      Pair* between = make_pair(layout, i);
      between->next = shared;
      auto* holder = static_cast<GC_word*>(GC_generic_malloc(32, kind));
      holder[0] = ~reinterpret_cast<GC_word>(between);
      GC_reachable_here(between);  // until here: the compiler may have kept only what is disguised
      GC_register_finalizer(
          holder,
          [](void* object, void*) {
            const auto* seen = reinterpret_cast<const Pair*>(~static_cast<GC_word*>(object)[0]);
            const auto* shared = static_cast<const Pair*>(seen->next);
            ++finalized;
            if (seen->number != seen->same || shared->number != seen->number) ++damaged;
          },
          nullptr, nullptr, nullptr);
    }
  });
  for (int i = 0; i < 3; ++i) collect();
  GC_invoke_finalizers();
  EXPECT_GT(finalized, 0u);
  EXPECT_EQ(damaged, 0u);
}

// A number that is the address of an object that has moved is a number all the same.
JD_CHILD(numbers_ignored) {
  GC_INIT();
  GC_set_finalize_on_demand(1);
  for (const jd_source source : {JD_HOMOGENEOUS, JD_SELF, JD_HEADER}) {
    jd_layout* layout = define_pair(source);
    constexpr long kCount = 500;
    finalized = 0;
    Cell list;
    far_away([&] {
      for (long i = 0; i < kCount; ++i) {
        Pair* living = make_pair(layout, i);
        living->next = list.get();
        list.set(living);
        for (int k = 0; k < 5; ++k) make_pair(layout, -1);
        Pair* dying = make_pair(layout, static_cast<long>(reinterpret_cast<GC_word>(living)));
        GC_register_finalizer_ignore_self(
            dying, [](void*, void*) { ++finalized; }, nullptr, nullptr, nullptr);
      }
    });
    for (int i = 0; i < 3; ++i) collect();
    GC_invoke_finalizers();
    if (finalized == 0) return 1;
    long expected = kCount;
    for (auto* at = static_cast<Pair*>(list.get()); at != nullptr;
         at = static_cast<Pair*>(at->next)) {
      if (at->number != --expected) return 2;
    }
    if (expected != 0) return 3;
  }
  return 0;
}
TEST(Edges, FinalizersThatIgnoreSelfIgnoreNumbers) {
  const ChildResult r = run_child("numbers_ignored");
  EXPECT_TRUE(r.ok()) << r;
}

// A pointer word that leads to memory that no object has.
JD_CHILD(stray_pointer) {
  GC_INIT();
  jd_layout* layout = define_pair(JD_HOMOGENEOUS);
  // Less than a block.
  static void* pairs[200];
  for (void*& pair : pairs) {
    pair = make_pair(layout, 0);
    jd_root_add(&pair);
  }
  jd_collect(1);
  auto* highest = static_cast<Pair*>(*std::max_element(std::begin(pairs), std::end(pairs)));
  static_cast<Pair*>(pairs[0])->next = highest + 1;
  highest = nullptr;
  jd_collect(1);
  return 0;
}
TEST(Edges, AStrayPointerIsNamedWithItsPlaceAndLayout) {
  const ChildResult r =
      run_child("stray_pointer",
                {{"JACKDAW_MOVE", "1"}, {"JACKDAW_POLICY", "evacuate"}, {"JACKDAW_VERIFY", "0"}});
  EXPECT_EQ(r.signal, SIGABRT) << r;
  EXPECT_NE(r.err.find("an object that does not exist: 0x"), std::string::npos) << r;
  EXPECT_NE(r.err.find(" at 0x"), std::string::npos) << r;
  EXPECT_NE(r.err.find("(layout pair)"), std::string::npos) << r;
}

struct Watcher {
  jd_weak* weak;
  long number;
};

TEST(Edges, FinalizersSeeWhatTheirWeakReferencesMean) {
  static const std::uint64_t first = 1;
  jd_layout* watcher_layout =
      jd_layout_define(std::array{info_of("watcher", JD_HEADER, sizeof(Watcher), &first)}.data());
  jd_layout* layout = define_pair(JD_HEADER);
  constexpr long kCount = 500;
  finalized = damaged = 0;
  Cell list;
  far_away([&] {
    for (long i = 0; i < kCount; ++i) {
      Pair* pair = make_pair(layout, i);
      pair->next = list.get();
      list.set(pair);
      auto* watcher = static_cast<Watcher*>(jd_new(watcher_layout));
      watcher->number = i;
      watcher->weak = jd_weak_new(pair);
      jd_finalizer(
          watcher,
          [](void* object, void*) {
            const auto* own = static_cast<Watcher*>(object);
            const auto* seen = static_cast<Pair*>(jd_weak_get(own->weak));
            ++finalized;
            if (seen == nullptr || seen->number != own->number) ++damaged;
          },
          nullptr);
    }
  });
  for (int i = 0; i < 3; ++i) GC_gcollect();
  GC_invoke_finalizers();
  EXPECT_GT(finalized, 0u);
  EXPECT_EQ(damaged, 0u);
}

// A typed heap begins while objects are marked in steps.
JD_CHILD(types_objects_between_steps) {
  GC_INIT();
  GC_enable_incremental();
  if (GC_is_incremental_mode() == 0) return kCannotTry;
  GC_set_full_freq(0);
  Root<void*> table(static_cast<void**>(GC_malloc(3000 * sizeof(void*))));
  for (std::size_t i = 0; i < 3000; ++i) table.get()[i] = make_list(3);
  GC_start_incremental_collection();
  for (int i = 0; i < 20; ++i) {
    if (GC_collect_a_little() == 0) return 1;
  }
  jd_layout* layout = define_pair(JD_HEADER);
  Cell list;
  for (long i = 0; i < 1000; ++i) {
    Pair* pair = make_pair(layout, i);
    pair->next = list.get();
    list.set(pair);
  }
  const GC_word before = GC_get_gc_no();
  if (GC_collect_a_little() != 0 || GC_get_gc_no() != before + 1) return 2;
  GC_gcollect();
  for (std::size_t i = 0; i < 3000; ++i) {
    if (list_length(table.get()[i]) != 3) return 3;
  }
  long expected = 1000;
  for (auto* pair = static_cast<Pair*>(list.get()); pair != nullptr;
       pair = static_cast<Pair*>(pair->next)) {
    if (pair->number != --expected || pair->same != expected) return 4;
  }
  return expected == 0 ? 0 : 5;
}
TEST(Edges, ATypedHeapMayBeginBetweenSteps) {
  const ChildResult r = run_child("types_objects_between_steps", {{"GC_PAUSE_TIME_TARGET", "0"},
                                                                  {"JACKDAW_MARK_TURN", "3"},
                                                                  {"JACKDAW_COLLECT_EVERY", kUnset},
                                                                  {"JACKDAW_POLICY", kUnset}});
  JD_SKIP_IF_CANNOT_TRY(r);
  EXPECT_TRUE(r.ok()) << r;
}

JD_CHILD(hashes_alone) {
  GC_INIT();
  std::set<std::uint64_t> seen;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 2000; ++i) {
      if (!seen.insert(jd_address_hash(GC_malloc(32))).second) return 1;
    }
    GC_gcollect();
  }
  return 0;
}
TEST(Edges, HashesAloneAreNotInherited) {
  const ChildResult r = run_child("hashes_alone");
  EXPECT_TRUE(r.ok()) << r;
}

}  // namespace
}  // namespace jd::test
