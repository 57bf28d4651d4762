// Partial collections, the incremental mode's (cycle.req.partial): what they free, and when they
// come.
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <iterator>
#include <string>

#include "child.hpp"
#include "partial.hpp"

namespace jd::test::partial {
namespace {

TEST(Partial, OldGarbageStaysUntilAFullCollection) {
  JD_NEEDS_MODE();
  Old old;
  old.drop();
  collect_partially();
  collect_partially();
  EXPECT_TRUE(all_alive(old.watch));
  EXPECT_TRUE(most_collected(old.watch));
}

TEST(Partial, NewGarbageGoes) {
  JD_NEEDS_MODE();
  collect();
  Watch watch;
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) watch.add(GC_malloc(32));
  });
  collect_partially();
  EXPECT_LE(watch.count_alive(), kCount / 20);
}

TEST(Partial, TheTimeOfFullCollectionsIsTheirsAlone) {
  JD_NEEDS_MODE();
  collect();
  GC_start_performance_measurement();
  const auto measured = [] {
    return GC_get_full_gc_total_time() * 1000000 + GC_get_full_gc_total_ns_frac();
  };
  const unsigned long before = measured();
  for (int i = 0; i < 3; ++i) collect_partially();
  EXPECT_EQ(measured(), before);
  collect();
  EXPECT_GT(measured(), before);
}

TEST(Partial, AFullFrequencyOfZeroHasOnlyFullOnes) {
  JD_NEEDS_MODE();
  const int before = GC_get_full_freq();
  GC_set_full_freq(0);
  Old old;
  old.drop();
  collect_partially();
  EXPECT_LE(old.watch.count_alive(), kCount / 20);
  GC_set_full_freq(before);
}

TEST(Partial, OneInSoManyIsFull) {
  JD_NEEDS_MODE();
  const int before = GC_get_full_freq();
  GC_set_full_freq(3);
  Old old;
  old.drop();
  for (int i = 0; i < 3; ++i) collect_partially();
  EXPECT_TRUE(all_alive(old.watch));
  collect_partially();
  EXPECT_LE(old.watch.count_alive(), kCount / 20);
  GC_set_full_freq(before);
}

// A freed object's slot was marked; what is made there next is new all the same.
TEST(Partial, WhatTakesAFreedObjectsPlaceIsNew) {
  JD_NEEDS_MODE();
  Old old;
  old.watch.forget();
  for (std::size_t i = 0; i < kCount; ++i) {
    GC_free(old.table.get()[i]);
    old.table.get()[i] = nullptr;
  }
  Watch watch;
  far_away([&] {
    for (std::size_t i = 0; i < 2 * kCount; ++i) watch.add(GC_malloc(32));
  });
  collect_partially();
  EXPECT_LE(watch.count_alive(), kCount / 10);
}

// Where a partial collection makes no room, a full one comes before memory has run out.
JD_CHILD(fills_its_heap_with_old_garbage) {
  constexpr std::size_t kMiB = 1 << 20;
  GC_set_max_heap_size(64 * kMiB);
  GC_INIT();
  if (!enable()) return 77;
  constexpr std::size_t kSlots = 40 * kMiB / 1000;
  Root<void*> table(static_cast<void**>(GC_malloc(kSlots * sizeof(void*))));
  for (int round = 0; round < 10; ++round) {
    for (std::size_t k = 0; k < kSlots; ++k) {
      table.get()[k] = nullptr;
      table.get()[k] = GC_malloc(1000);
      if (table.get()[k] == nullptr) return 1;
    }
    if (round == 0) collect();
  }
  return 0;
}
TEST(Partial, AFullOneComesBeforeMemoryHasRunOut) {
  JD_NEEDS_MODE();
  const ChildResult r = run_child("fills_its_heap_with_old_garbage");
  EXPECT_TRUE(r.ok()) << r;
}

// The sweep of kinds that disclaim comes while other threads run, and what is marked stays. So a
// thread that frees an object meanwhile must leave its mark: or two would get its place.
namespace disclaiming {

struct Object {
  std::uintptr_t state;
  void* next;
  std::uintptr_t unused[6];
};
constexpr std::uintptr_t kHeld = 2;
constexpr std::size_t kFreed = 13;
int kind;
std::atomic<bool> is_armed;
std::atomic<bool> is_disclaiming;
std::atomic<bool> has_freed;
std::atomic<std::size_t> held_disclaimed;
Object* objects[4 * kCount];
Object* made_again[kFreed];

// The first waits until the other thread has freed some.
int disclaim(void* object) {
  if (is_armed.exchange(false)) {
    is_disclaiming = true;
    // Not for ever: should that thread need the lock, this one has it.
    for (int i = 0; i < 100000 && !has_freed; ++i) usleep(10);
  }
  if (static_cast<Object*>(object)->state == kHeld) ++held_disclaimed;
  return 0;
}

Object* make() { return static_cast<Object*>(GC_generic_malloc(sizeof(Object), kind)); }

void* free_and_make(void*) {
  // From now on it keeps what it frees.
  make();
  GC_free(objects[2]);
  objects[2] = nullptr;
  while (!is_disclaiming) sched_yield();
  std::uintptr_t hidden[kFreed];
  for (std::size_t i = 0; i < kFreed; ++i) {
    hidden[i] = ~reinterpret_cast<std::uintptr_t>(objects[8 * i]);
    GC_free(objects[8 * i]);
    objects[8 * i] = nullptr;
  }
  // What the thread's hole has left, then what it has freed; the lock is another's.
  std::size_t found = 0;
  Object* others = nullptr;
  for (std::size_t i = 0; i < 2000 && found < kFreed; ++i) {
    Object* const object = make();
    bool again = false;
    for (const std::uintptr_t word : hidden) {
      again |= ~word == reinterpret_cast<std::uintptr_t>(object);
    }
    if (again) {
      object->state = kHeld;
      made_again[found++] = object;
    } else {
      object->next = others;
      others = object;
    }
  }
  has_freed = true;
  return nullptr;
}

}  // namespace disclaiming

TEST(Partial, WhatIsFreedWhileOthersAreDisclaimedHasOneOwner) {
  JD_NEEDS_MODE();
  using namespace disclaiming;
  kind = static_cast<int>(GC_new_kind(GC_new_free_list(), GC_DS_LENGTH, 1, 1));
  GC_register_disclaim_proc(kind, disclaim, 0);
  // More than once: a small heap has other sizes of slots.
  for (int i = 0; i < 3; ++i) {
    for (Object*& object : objects) object = make();
    collect();
  }
  for (std::size_t i = 1; i < std::size(objects); i += 4) objects[i] = nullptr;
  pthread_t thread;
  ASSERT_EQ(GC_pthread_create(&thread, nullptr, free_and_make, nullptr), 0);
  usleep(10000);
  is_armed = true;
  collect();
  is_disclaiming = true;  // had there been nothing to disclaim
  GC_pthread_join(thread, nullptr);
  EXPECT_EQ(held_disclaimed, 0u);
  std::size_t twice = 0;
  for (Object*& object : objects) {
    object = make();
    for (const Object* other : made_again) twice += object == other;
  }
  EXPECT_EQ(twice, 0u);
}

// --- When ---------------------------------------------------------------------------------------

JD_CHILD(allocates_beside_an_old_list) {
  GC_INIT();
  if (!enable()) return 77;
  void* const old = make_list(200000);
  for (int i = 0; i < 3000; ++i) {
    if (list_length(make_list(1000)) != 1000) return 1;
  }
  return list_length(old) == 200000 ? 0 : 1;
}
std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++found;
  }
  return found;
}
TEST(Partial, MostCollectionsOfAllocationAre) {
  JD_NEEDS_MODE();
  const ChildResult r = run_child("allocates_beside_an_old_list",
                                  {{"GC_PRINT_STATS", "1"}, {"GC_PAUSE_TIME_TARGET", kUnset}});
  EXPECT_TRUE(r.ok()) << r;
  const std::size_t partial = count(r.err, " (partial): pause");
  const std::size_t all = count(r.err, ": pause");
  EXPECT_GE(all, 10u);
  EXPECT_GE(partial, all / 2) << "of " << all;
  EXPECT_LT(partial, all);
}

JD_CHILD(starts_without_the_mode) {
  GC_INIT();
  const GC_word before = GC_get_gc_no();
  GC_start_incremental_collection();
  return GC_is_incremental_mode() == 0 && GC_get_gc_no() == before ? 0 : 1;
}
TEST(Partial, ThereAreNoneOutsideOfTheMode) {
  JD_OURS_ONLY("starts a collection");
  const ChildResult r = run_child("starts_without_the_mode", {{"GC_ENABLE_INCREMENTAL", kUnset}});
  EXPECT_TRUE(r.ok()) << r;
}

JD_CHILD(says_whether_it_is_on) {
  GC_INIT();
  return GC_is_incremental_mode();
}
TEST(Partial, TheEnvironmentSwitchesTheModeOn) {
  JD_NEEDS_MODE();
  EXPECT_EQ(run_child("says_whether_it_is_on", {{"GC_ENABLE_INCREMENTAL", "1"}}).status, 1);
  EXPECT_EQ(run_child("says_whether_it_is_on", {{"GC_ENABLE_INCREMENTAL", "0"}}).status, 0);
}

TEST(Partial, NewObjectsAreFinalized) {
  JD_NEEDS_MODE();
  collect_all();
  static std::size_t finalized;
  finalized = 0;
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      void* const object = GC_malloc(32);
      GC_register_finalizer(
          object, [](void*, void*) { ++finalized; }, nullptr, nullptr, nullptr);
    }
  });
  collect_partially();
  GC_invoke_finalizers();
  EXPECT_GE(finalized, kCount * 95 / 100);
}

}  // namespace
}  // namespace jd::test::partial
