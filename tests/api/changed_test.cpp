// What changed in old objects, a partial collection finds (cycle.req.partial).
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "child.hpp"
#include "partial.hpp"

namespace jd::test::partial {
namespace {

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

}  // namespace
}  // namespace jd::test::partial
