// Partial collections, the incremental mode's (cycle.req.partial).
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "child.hpp"
#include "gc_test.hpp"

namespace jd::test {
namespace {

bool enable() {
  GC_enable_incremental();
  return GC_is_incremental_mode() != 0;
}

#define JD_NEEDS_MODE()                                                                           \
  do {                                                                                            \
    JD_OURS_ONLY("its partial collections are steps of a collection");                            \
    if (!enable()) GTEST_SKIP() << "this system has no partial collections (Linux 6.7 has them)"; \
  } while (0)

void collect_partially() {
  clear_stack();
  GC_start_incremental_collection();
}

constexpr std::size_t kCount = 1000;

// Has the places of dead objects of 48 bytes.
void take_free_places() {
  far_away([] {
    for (std::size_t k = 0; k < 3 * kCount; ++k) std::memset(GC_malloc_atomic(48), 0x55, 48);
  });
}

// Objects that the last collection marked, in a table that it marked as well.
struct Old {
  Root<void*> table{static_cast<void**>(GC_malloc(kCount * sizeof(void*)))};
  Watch watch;

  explicit Old(std::size_t size = 32) {
    far_away([&] {
      for (std::size_t i = 0; i < kCount; ++i) {
        table.get()[i] = GC_malloc(size);
        watch.add(table.get()[i]);
      }
    });
    collect();
  }
  void drop() { std::memset(table.get(), 0, kCount * sizeof(void*)); }
};

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

// --- What changed in old objects ------------------------------------------------------------

GC_word half_of_them() {
  // Every second word of 32 is a pointer.
  static GC_word bitmap = 0x55555555;
  static const GC_descr descriptor = GC_make_descriptor(&bitmap, 32);
  return descriptor;
}

struct ExternalCell {
  void* object;
};
GC_ms_entry* mark_external(GC_word* object, GC_ms_entry* top, GC_ms_entry* limit, GC_word) {
  auto* const cell = reinterpret_cast<ExternalCell*>(object[0]);
  if (cell == nullptr) return top;
  return GC_MARK_AND_PUSH(cell->object, top, limit, reinterpret_cast<void**>(object));
}
int external_kind() {
  static const unsigned procedure = GC_new_proc(mark_external);
  static const auto kind =
      static_cast<int>(GC_new_kind(GC_new_free_list(), GC_MAKE_PROC(procedure, 0), 0, 1));
  return kind;
}

struct Holder {
  const char* name;
  void* (*make)();
  // Where to store in the k-th holder.
  void** (*place)(void* holder, std::size_t k);
};
std::ostream& operator<<(std::ostream& stream, const Holder& holder) {
  return stream << holder.name;
}
void** first_word(void* holder, std::size_t) { return static_cast<void**>(holder); }
void** any_even_word(void* holder, std::size_t k) {
  return static_cast<void**>(holder) + k % 16 * 2;
}

constexpr Holder kHolders[] = {
    {"small", [] { return GC_malloc(32); }, first_word},
    {"of_many_words", [] { return GC_malloc(256); }, any_even_word},
    {"half_a_block", [] { return GC_malloc(8000); },
     [](void* holder, std::size_t k) { return static_cast<void**>(holder) + k % 1000; }},
    {"large", [] { return GC_malloc(50000); },
     [](void* holder, std::size_t k) { return static_cast<void**>(holder) + k * 37 % 6250; }},
    {"uncollectable", [] { return GC_malloc_uncollectable(48); }, first_word},
    {"typed", [] { return GC_malloc_explicitly_typed(256, half_of_them()); }, any_even_word},
    {"typed_array", [] { return GC_calloc_explicitly_typed(300, 256, half_of_them()); },
     [](void* holder, std::size_t k) { return static_cast<void**>(holder) + k * 32 % 9600; }},
    {"with_a_procedure_that_looks_elsewhere",
     [] {
       auto** const object = static_cast<void**>(GC_generic_malloc(32, external_kind()));
       object[0] = std::calloc(1, sizeof(ExternalCell));
       return static_cast<void*>(object);
     },
     [](void* holder, std::size_t) { return &(*static_cast<ExternalCell**>(holder))->object; }},
};

class Changed : public testing::TestWithParam<Holder> {};

std::size_t holders_for(const Holder& holder) {
  return std::string(holder.name) == "large" || std::string(holder.name) == "typed_array" ? 50
                                                                                          : 1000;
}

TEST_P(Changed, ObjectsHoldWhatIsNew) {
  JD_NEEDS_MODE();
  const Holder& holder = GetParam();
  const std::size_t count = holders_for(holder);
  Root<void*> table(static_cast<void**>(GC_malloc(count * sizeof(void*))));
  for (std::size_t k = 0; k < count; ++k) table.get()[k] = holder.make();
  collect();
  const std::size_t times = rounds(8);
  for (std::size_t round = 0; round < times; ++round) {
    far_away([&] {
      for (std::size_t k = round % 3; k < count; k += 3) {
        void* const object = GC_malloc_atomic(48);
        fill_pattern(object, 48, static_cast<std::uint32_t>(k));
        *holder.place(table.get()[k], k) = object;
      }
    });
    collect_partially();
    take_free_places();
    collect_partially();
    take_free_places();
    for (std::size_t k = round % 3; k < count; k += 3) {
      ASSERT_TRUE(
          holds_pattern(*holder.place(table.get()[k], k), 48, static_cast<std::uint32_t>(k)))
          << k << " in round " << round;
    }
  }
  for (std::size_t k = 0; k < count; ++k) {
    if (GC_base(table.get()[k]) == nullptr) ADD_FAILURE() << "holder " << k << " is gone";
  }
}
INSTANTIATE_TEST_SUITE_P(Holders, Changed, testing::ValuesIn(kHolders),
                         [](const auto& param) { return std::string(param.param.name); });

// The kernel's stores are stores.
TEST(Partial, WhatASystemCallWritesIsSeen) {
  JD_NEEDS_MODE();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Old holders(64);
  far_away([&] {
    for (std::size_t k = 0; k < kCount; ++k) {
      void* object = GC_malloc_atomic(48);
      fill_pattern(object, 48, static_cast<std::uint32_t>(k));
      ASSERT_EQ(write(ends[1], &object, sizeof object), static_cast<ssize_t>(sizeof object));
      ASSERT_EQ(read(ends[0], holders.table.get()[k], sizeof object),
                static_cast<ssize_t>(sizeof object));
    }
  });
  collect_partially();
  take_free_places();
  for (std::size_t k = 0; k < kCount; ++k) {
    ASSERT_TRUE(holds_pattern(*static_cast<void**>(holders.table.get()[k]), 48,
                              static_cast<std::uint32_t>(k)))
        << k;
  }
  close(ends[0]);
  close(ends[1]);
}

// Stores new objects into old ones and collects. True if all are as they were.
bool new_objects_survive(const Old& holders) {
  for (std::size_t round = 0; round < 3; ++round) {
    far_away([&] {
      for (std::size_t k = 0; k < kCount; ++k) {
        void* const object = GC_malloc_atomic(48);
        fill_pattern(object, 48, static_cast<std::uint32_t>(k + round));
        *static_cast<void**>(holders.table.get()[k]) = object;
      }
    });
    collect_partially();
    take_free_places();
    for (std::size_t k = 0; k < kCount; ++k) {
      if (!holds_pattern(*static_cast<void**>(holders.table.get()[k]), 48,
                         static_cast<std::uint32_t>(k + round))) {
        return false;
      }
    }
  }
  return true;
}

TEST(Partial, AForksChildHasThem) {
  JD_NEEDS_MODE();
  Old holders;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const bool survived = new_objects_survive(holders);
      _exit(survived && GC_is_incremental_mode() != 0 ? 0 : 1);
    }
    EXPECT_TRUE(new_objects_survive(holders));
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

// As programs do that become servers. The collector's own file is among them.
JD_CHILD(closes_all_files) {
  GC_INIT();
  if (!enable()) return 77;
  Old holders;
  if (!new_objects_survive(holders)) return 1;
  for (int file = 3; file < 1024; ++file) close(file);
  for (int i = 0; i < 3; ++i) {
    if (!new_objects_survive(holders)) return 2;
  }
  return GC_is_incremental_mode() != 0 ? 0 : 3;
}
TEST(Partial, ProgramsMayCloseAllFiles) {
  JD_NEEDS_MODE();
  const ChildResult r = run_child("closes_all_files");
  EXPECT_TRUE(r.ok()) << r;
}

// The number of what it has closed may be another file by then, which stays open.
JD_CHILD(takes_all_numbers) {
  GC_INIT();
  if (!enable()) return 77;
  Old holders;
  for (int file = 3; file < 1024; ++file) close(file);
  int ends[2];
  if (pipe(ends) != 0) return 1;
  for (int file = 3; file < 1024; ++file) {
    if (file != ends[0] && file != ends[1]) dup2(ends[1], file);
  }
  for (int i = 0; i < 3; ++i) {
    if (!new_objects_survive(holders)) return 2;
  }
  for (int file = 3; file < 1024; ++file) {
    if (file == ends[0]) continue;
    char byte = 'x';
    if (write(file, &byte, 1) != 1 || read(ends[0], &byte, 1) != 1) return 3;
  }
  return 0;
}
TEST(Partial, FilesOfTheProgramStayOpen) {
  JD_NEEDS_MODE();
  const ChildResult r = run_child("takes_all_numbers");
  EXPECT_TRUE(r.ok()) << r;
}

// The table of what was marked before grows with the heap, if it can.
JD_CHILD(has_no_memory_for_tables) {
  GC_INIT();
  if (!enable()) return 77;
  collect();
  collect_partially();
  GC_expand_hp(std::size_t{64} << 20);
  const rlimit none = {std::size_t{1} << 20, RLIM_INFINITY};
  if (setrlimit(RLIMIT_DATA, &none) != 0) return 1;
  Root<void*> table(static_cast<void**>(GC_malloc(kCount * sizeof(void*))));
  for (std::size_t k = 0; k < kCount; ++k) table.get()[k] = GC_malloc(32);
  clear_stack();
  collect_partially();
  for (std::size_t round = 0; round < 3; ++round) {
    far_away([&] {
      for (std::size_t k = 0; k < kCount; ++k) {
        void* const object = GC_malloc_atomic(48);
        fill_pattern(object, 48, static_cast<std::uint32_t>(k));
        *static_cast<void**>(table.get()[k]) = object;
      }
    });
    collect_partially();
    take_free_places();
    for (std::size_t k = 0; k < kCount; ++k) {
      if (!holds_pattern(*static_cast<void**>(table.get()[k]), 48, static_cast<std::uint32_t>(k))) {
        return 2;
      }
    }
  }
  return 0;
}
TEST(Partial, WithoutMemoryForTheirTablesNothingIsLost) {
  JD_NEEDS_MODE();
  JD_SKIP_UNDER_ASAN("needs memory, too");
  JD_SKIP_UNDER_TSAN("needs memory, too");
  const ChildResult r = run_child("has_no_memory_for_tables");
  EXPECT_TRUE(r.ok()) << r;
}

// For a moment: then full collections come, and partial ones again.
JD_CHILD(runs_out_of_files) {
  GC_INIT();
  if (!enable()) return 77;
  Old holders;
  const rlimit few = {64, 64};
  if (setrlimit(RLIMIT_NOFILE, &few) != 0) return 1;
  std::vector<int> files;
  for (int file = dup(1); file >= 0; file = dup(1)) files.push_back(file);
  if (!new_objects_survive(holders)) return 2;
  for (const int file : files) close(file);
  if (!new_objects_survive(holders)) return 3;
  holders.drop();
  collect_partially();
  return GC_is_incremental_mode() != 0 && holders.watch.count_alive() == kCount ? 0 : 4;
}
TEST(Partial, ProgramsMayRunOutOfFilesForAWhile) {
  JD_NEEDS_MODE();
  const ChildResult r = run_child("runs_out_of_files");
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.err, "");
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

TEST(Partial, AStoppedCollectionForgetsNothing) {
  JD_NEEDS_MODE();
  Old holders;
  GC_set_stop_func([] { return 1; });
  EXPECT_TRUE(new_objects_survive(holders));
  GC_set_stop_func([] { return 0; });
  EXPECT_TRUE(new_objects_survive(holders));
}

// What was queued is forgotten with the collection: the objects may be gone by the next.
std::size_t procedure_calls;
GC_ms_entry* count_call(GC_word*, GC_ms_entry* top, GC_ms_entry*, GC_word) {
  ++procedure_calls;
  return top;
}
TEST(Partial, AStoppedCollectionLeavesNothingToMark) {
  JD_NEEDS_MODE();
  const unsigned procedure = GC_new_proc(count_call);
  const auto kind =
      static_cast<int>(GC_new_kind(GC_new_free_list(), GC_MAKE_PROC(procedure, 0), 0, 1));
  Root<void*> table(static_cast<void**>(GC_malloc(kCount * sizeof(void*))));
  static int questions;
  for (int allowed = 0; allowed < 4; ++allowed) {
    for (std::size_t k = 0; k < kCount; ++k) table.get()[k] = GC_generic_malloc(64, kind);
    collect();
    questions = allowed;
    GC_set_stop_func([] { return questions-- <= 0 ? 1 : 0; });
    collect_partially();
    GC_set_stop_func([] { return 0; });
    for (std::size_t k = 0; k < kCount; ++k) {
      GC_free(table.get()[k]);
      table.get()[k] = nullptr;
    }
    clear_stack();
    procedure_calls = 0;
    collect();
    EXPECT_EQ(procedure_calls, 0u) << "asked " << allowed << " times before";
  }
}

// A stop function that has no time for a full collection, once after another.
TEST(Partial, AStoppedFullCollectionForgetsNothing) {
  JD_NEEDS_MODE();
  Old holders;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(new_objects_survive(holders));
    GC_set_stop_func([] { return 1; });
    GC_gcollect();
    GC_set_stop_func([] { return 0; });
  }
  EXPECT_TRUE(new_objects_survive(holders));
}

TEST(Partial, ThreadsStoresAreSeen) {
  JD_NEEDS_MODE();
  static Old* holders;
  Old here;
  holders = &here;
  static bool survived[4];
  pthread_t threads[4];
  struct Part {
    std::size_t number;
  };
  static Part parts[4];
  for (std::size_t t = 0; t < 4; ++t) {
    parts[t].number = t;
    const auto body = [](void* part) -> void* {
      const std::size_t number = static_cast<Part*>(part)->number;
      survived[number] = true;
      for (std::size_t round = 0; round < rounds(20); ++round) {
        far_away([&] {
          for (std::size_t k = number; k < kCount; k += 4) {
            void* const object = GC_malloc_atomic(48);
            fill_pattern(object, 48, static_cast<std::uint32_t>(k + round));
            *static_cast<void**>(holders->table.get()[k]) = object;
          }
        });
        collect_partially();
        take_free_places();
        for (std::size_t k = number; k < kCount; k += 4) {
          survived[number] &= holds_pattern(*static_cast<void**>(holders->table.get()[k]), 48,
                                            static_cast<std::uint32_t>(k + round));
        }
      }
      return nullptr;
    };
    ASSERT_EQ(GC_pthread_create(&threads[t], nullptr, body, &parts[t]), 0);
  }
  for (std::size_t t = 0; t < 4; ++t) {
    GC_pthread_join(threads[t], nullptr);
    EXPECT_TRUE(survived[t]) << t;
  }
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
  const ChildResult r = run_child("allocates_beside_an_old_list", {{"GC_PRINT_STATS", "1"}});
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
}  // namespace jd::test
