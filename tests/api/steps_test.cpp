// Marking in steps (cycle.req.incremental): what a program may do between two of them. The steps
// are tiny here: JACKDAW_MARK_TURN says so.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iterator>
#include <vector>

#include "child.hpp"
#include "partial.hpp"

namespace jd::test::partial {
namespace {

// Which thread marks, and when, is to be known here (tests/api/beside_test.cpp has it otherwise).
const Environment tiny_steps = {{"JACKDAW_MARK_TURN", "3"},     {"JACKDAW_MARK_BESIDE", "0"},
                                {"JACKDAW_VERIFY", "1"},        {"JACKDAW_POISON", "1"},
                                {"JACKDAW_MARK_STACK", kUnset}, {"JACKDAW_COLLECT_EVERY", kUnset}};

void expect_well(const char* child) {
  const ChildResult r = run_child(child, tiny_steps);
  JD_SKIP_IF_CANNOT_TRY(r);
  EXPECT_TRUE(r.ok()) << r;
}

// Each collection is a full one, unless the test has it otherwise.
bool enable_steps() {
  GC_INIT();
  GC_set_time_limit(0);
  GC_set_full_freq(0);
  return enable();
}

bool start() {
  const GC_word before = GC_get_gc_no();
  clear_stack();
  GC_start_incremental_collection();
  return GC_get_gc_no() == before && GC_collect_a_little() != 0;
}
// None is under way that would end.
bool begin() {
  collect();
  return start();
}
// How many steps it took.
int end() {
  int steps = 1;
  clear_stack();
  while (GC_collect_a_little() != 0) ++steps;
  return steps;
}

// Enough to mark for many steps.
struct Lists : SameLists {
  Lists() : SameLists(3000, 3) {}
};

JD_CHILD(counts_steps) {
  if (!enable_steps()) return kCannotTry;
  const Lists lists;
  Old old;
  old.drop();
  const GC_word before = GC_get_gc_no();
  if (!start()) return 1;
  if (end() < 20) return 2;
  if (GC_get_gc_no() != before + 1) return 3;
  if (old.watch.count_alive() > kCount / 20) return 4;
  return lists.are_intact() ? 0 : 5;
}
TEST(Steps, ACollectionTakesThem) {
  JD_NEEDS_MODE();
  expect_well("counts_steps");
}

// Lists that take many steps, which are of some thousand objects here.
class LongLists {
 public:
  explicit LongLists(std::size_t lists) : count_(lists) {
    for (std::size_t i = 0; i < lists; ++i) table_.get()[i] = make_list(kObjects / lists);
  }
  void prepend_to_each() {
    for (std::size_t i = 0; i < count_; ++i) {
      auto** const head = static_cast<void**>(GC_malloc(16));
      *head = table_.get()[i];
      table_.get()[i] = head;
    }
  }
  [[nodiscard]] std::size_t objects() const {
    std::size_t objects = 0;
    for (std::size_t i = 0; i < count_; ++i) objects += list_length(table_.get()[i]);
    return objects;
  }

  static constexpr std::size_t kObjects = 600000;
  static constexpr int kSteps = 50;

 private:
  std::size_t count_;
  Root<void*> table_{static_cast<void**>(GC_malloc(count_ * sizeof(void*)))};
};
void expect_well_with_rings(const char* child) {
  const ChildResult r = run_child(child, {{"JACKDAW_MARK_TURN", "0"},
                                          {"JACKDAW_MARK_BESIDE", "0"},
                                          {"JACKDAW_MARK_STACK", kUnset},
                                          {"JACKDAW_COLLECT_EVERY", kUnset}});
  JD_SKIP_IF_CANNOT_TRY(r);
  EXPECT_TRUE(r.ok()) << r;
}

// More lists than the marker's rings have room for: none of them goes to its stack again.
JD_CHILD(has_many_lists) {
  if (!enable_steps()) return kCannotTry;
  const LongLists lists(300);
  if (!start()) return 1;
  if (end() < LongLists::kSteps) return 2;
  return lists.objects() == LongLists::kObjects ? 0 : 3;
}
TEST(Steps, AreShortAmongManyLists) {
  JD_NEEDS_MODE();
  expect_well_with_rings("has_many_lists");
}

// All that is old is reached through what was made after the beginning. So it is not marked before
// the last pause looks for it; and that is to be no longer than another step.
JD_CHILD(hides_what_is_old) {
  if (!enable_steps()) return kCannotTry;
  LongLists lists(3);
  collect();
  GC_start_incremental_collection();
  lists.prepend_to_each();
  if (end() < LongLists::kSteps) return 1;
  return lists.objects() == LongLists::kObjects + 3 ? 0 : 2;
}
TEST(Steps, TheLastPauseIsOne) {
  JD_NEEDS_MODE();
  expect_well_with_rings("hides_what_is_old");
}

// What was made after it began is not marked for that.
JD_CHILD(makes_garbage_meanwhile) {
  if (!enable_steps()) return kCannotTry;
  const Lists lists;
  Watch small;
  Watch large;
  if (!begin()) return 1;
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) small.add(GC_malloc(48));
    for (std::size_t i = 0; i < 20; ++i) large.add(GC_malloc(100000));
  });
  end();
  if (small.count_alive() > kCount / 20) return 2;
  return large.count_alive() <= 2 ? 0 : 3;
}
TEST(Steps, NewGarbageGoesWithTheCollectionThatWasUnderWay) {
  JD_NEEDS_MODE();
  expect_well("makes_garbage_meanwhile");
}

// The only pointer to an object moves all the time, between what was looked at and what was not.
JD_CHILD(moves_pointers_meanwhile) {
  if (!enable_steps()) return kCannotTry;
  constexpr std::size_t kCells = 3000;
  Root<void*> first(static_cast<void**>(GC_malloc(kCells * sizeof(void*))));
  const Lists between;
  Root<void*> last(static_cast<void**>(GC_malloc(kCells * sizeof(void*))));
  for (std::size_t i = 0; i < kCells; ++i) last.get()[i] = make_list(3);
  std::size_t moved = 0;
  for (int round = 0; round < 6; ++round) {
    GC_set_full_freq(round % 2 == 0 ? 0 : 19);
    if (!begin()) return 1;
    do {
      for (int k = 0; k < 50; ++k) {
        const std::size_t i = moved * 7919 % kCells;
        const std::size_t j = ++moved * 104729 % kCells;
        std::swap(first.get()[i], last.get()[j]);
        // Some are replaced by new ones, with an old tail.
        if (last.get()[i] != nullptr && moved % 5 == 0) {
          auto** const head = static_cast<void**>(GC_malloc(16));
          *head = *static_cast<void**>(last.get()[i]);
          last.get()[i] = head;
        }
      }
    } while (GC_collect_a_little() != 0);
    std::size_t lists = 0;
    for (void** const cells : {first.get(), last.get()}) {
      for (std::size_t i = 0; i < kCells; ++i) {
        if (cells[i] == nullptr) continue;
        ++lists;
        if (list_length(cells[i]) != 3) return 2;
      }
    }
    if (lists != kCells) return 3;
  }
  return between.are_intact() ? 0 : 4;
}
TEST(Steps, WhatMovesBetweenOldObjectsIsKept) {
  JD_NEEDS_MODE();
  expect_well("moves_pointers_meanwhile");
}

JD_CHILD(collects_fully_meanwhile) {
  if (!enable_steps()) return kCannotTry;
  const Lists lists;
  Old old;
  old.drop();
  if (!start()) return 1;
  const GC_word before = GC_get_gc_no();
  collect();
  if (GC_get_gc_no() != before + 1) return 2;
  if (old.watch.count_alive() > kCount / 20) return 3;
  return lists.are_intact() ? 0 : 4;
}
TEST(Steps, AFullCollectionTakesTheirPlace) {
  JD_NEEDS_MODE();
  expect_well("collects_fully_meanwhile");
}

JD_CHILD(is_disabled_meanwhile) {
  if (!enable_steps()) return kCannotTry;
  const Lists lists;
  if (!begin()) return 1;
  GC_disable();
  const GC_word before = GC_get_gc_no();
  for (int i = 0; i < 200; ++i) {
    if (GC_collect_a_little() != 0) return 2;
    make_list(1000);
  }
  GC_enable();
  if (GC_get_gc_no() != before) return 3;
  end();
  if (GC_get_gc_no() != before + 1) return 4;
  return lists.are_intact() ? 0 : 5;
}
TEST(Steps, NoneComesWhileCollectionsAreOff) {
  JD_NEEDS_MODE();
  expect_well("is_disabled_meanwhile");
}

// --- Freed between steps
// --------------------------------------------------------------------------

struct VTable {
  void* other;
  GC_word descriptor;
};
GC_ms_entry* never_called(GC_word*, GC_ms_entry* stack, GC_ms_entry*, GC_word) { return stack; }

// Objects that wait to be scanned are freed, their descriptor's memory goes, and others take their
// places; or none, and the program keeps the addresses.
JD_CHILD(frees_described_objects) {
  if (!enable_steps()) return kCannotTry;
  GC_init_gcj_malloc(GC_GCJ_RESERVED_MARK_PROC_INDEX, reinterpret_cast<void*>(never_called));
  constexpr std::size_t kObjects = 2000;
  constexpr std::size_t kPage = 4096;
  for (int round = 0; round < 12; ++round) {
    const std::size_t size = 32 + 16 * static_cast<std::size_t>(round % 4);
    auto* const vtable = static_cast<VTable*>(
        mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (vtable == MAP_FAILED) return 1;
    vtable->descriptor = (GC_word{3} << 61) | GC_DS_BITMAP;
    Root<void*> table(static_cast<void**>(GC_malloc(kObjects * sizeof(void*))));
    Root<void*> stale(static_cast<void**>(GC_malloc(kObjects * sizeof(void*))));
    for (std::size_t i = 0; i < kObjects; ++i) {
      // Some stay, and so do their blocks.
      static VTable staying = {nullptr, (GC_word{3} << 61) | GC_DS_BITMAP};
      const bool stays = round % 3 == 1 && i % 50 == 0;
      table.get()[i] = GC_gcj_malloc(size, stays ? &staying : vtable);
      static_cast<void**>(table.get()[i])[1] = GC_malloc(16);
    }
    GC_set_full_freq(round % 3 == 0 ? 0 : 19);
    if (!begin()) return 2;
    for (int i = 0; i < round * 5; ++i) GC_collect_a_little();
    for (std::size_t i = 0; i < kObjects; ++i) {
      if (*static_cast<void**>(table.get()[i]) != vtable) continue;
      stale.get()[i] = table.get()[i];
      GC_free(table.get()[i]);
      table.get()[i] = nullptr;
    }
    munmap(vtable, kPage);
    if (round % 2 == 0) {
      // One in each block has the blocks again, whose other slots hold anything.
      static VTable none = {nullptr, GC_DS_LENGTH};
      for (std::size_t i = 0; i < 3; ++i) table.get()[i] = GC_gcj_malloc(size + 64 + 64 * i, &none);
      end();
      continue;
    }
    // Some of what is in their places looks like anything.
    for (std::size_t i = 0; i < kObjects; ++i) {
      void* const atomic = GC_malloc_atomic(size + 16);
      std::memset(atomic, static_cast<int>(0x40 + i % 7), size + 16);
      table.get()[i] = i % 2 == 0 ? atomic : GC_malloc(size);
    }
    end();
  }
  return 0;
}
TEST(Steps, WhatIsFreedIsNotAskedForItsDescriptor) {
  JD_NEEDS_MODE();
  expect_well("frees_described_objects");
  // Poisoned, they have none.
  const ChildResult r = run_child("frees_described_objects", {{"JACKDAW_MARK_TURN", "3"},
                                                              {"JACKDAW_POISON", "0"},
                                                              {"JACKDAW_MARK_STACK", kUnset},
                                                              {"JACKDAW_COLLECT_EVERY", kUnset}});
  EXPECT_TRUE(r.ok()) << r;
}

// Also parts of large ones, and wholes.
JD_CHILD(resizes_large_objects) {
  if (!enable_steps()) return kCannotTry;
  constexpr std::size_t kObjects = 12;
  constexpr std::size_t kWords = 40000;
  Root<void**> table(static_cast<void***>(GC_malloc(kObjects * sizeof(void*))));
  const auto fill = [&](std::size_t k) {
    table.get()[k] = static_cast<void**>(GC_malloc(kWords * sizeof(void*)));
    for (std::size_t i = 0; i < kWords; i += 100) table.get()[k][i] = make_list(2);
  };
  for (std::size_t k = 0; k < kObjects; ++k) fill(k);
  for (int round = 0; round < 12; ++round) {
    if (!begin()) return 1;
    for (int i = 0; i < round * 8; ++i) GC_collect_a_little();
    for (std::size_t k = static_cast<std::size_t>(round) % 3; k < kObjects; k += 3) {
      table.get()[k] = static_cast<void**>(GC_realloc(table.get()[k], kWords * 2));
      GC_collect_a_little();
      table.get()[k] = static_cast<void**>(GC_realloc(table.get()[k], kWords * sizeof(void*)));
      for (std::size_t i = 0; i < kWords; i += 100) {
        if (table.get()[k][i] == nullptr) table.get()[k][i] = make_list(2);
      }
    }
    const std::size_t freed = static_cast<std::size_t>(round) % kObjects;
    GC_free(table.get()[freed]);
    table.get()[freed] = nullptr;
    GC_collect_a_little();
    fill(freed);
    end();
    for (std::size_t k = 0; k < kObjects; ++k) {
      for (std::size_t i = 0; i < kWords; i += 100) {
        if (list_length(table.get()[k][i]) != 2) return 2;
      }
    }
  }
  return 0;
}
TEST(Steps, LargeObjectsMayChangeTheirSize) {
  JD_NEEDS_MODE();
  expect_well("resizes_large_objects");
}

// What is freed and made again lives, or is garbage, like anything new.
JD_CHILD(makes_again_what_it_freed) {
  if (!enable_steps()) return kCannotTry;
  Root<void*> table(static_cast<void**>(GC_malloc(kCount * sizeof(void*))));
  for (std::size_t i = 0; i < kCount; ++i) table.get()[i] = make_list(2, 48);
  for (int round = 0; round < 8; ++round) {
    Watch dropped;
    if (!begin()) return 1;
    for (int i = 0; i < round * 4; ++i) GC_collect_a_little();
    far_away([&] {
      for (std::size_t i = 0; i < kCount; ++i) {
        void* const tail = *static_cast<void**>(table.get()[i]);
        GC_free(table.get()[i]);
        auto** const head = static_cast<void**>(GC_malloc(48));
        *head = tail;
        table.get()[i] = head;
        if (i % 4 == 0) dropped.add(GC_malloc(48));
      }
    });
    end();
    for (std::size_t i = 0; i < kCount; ++i) {
      if (list_length(table.get()[i]) != 2) return 2;
    }
    if (dropped.count_alive() > kCount / 40) return 3;
  }
  return 0;
}
TEST(Steps, FreedPlacesAreUsedAgain) {
  JD_NEEDS_MODE();
  expect_well("makes_again_what_it_freed");
}

// --- The system between steps
// -----------------------------------------------------------------------

bool goes_on(const Lists& lists, const Watch& alive) {
  for (int i = 0; i < 3; ++i) {
    end();
    make_list(2000);
    clear_stack();
    GC_start_incremental_collection();
  }
  collect();
  return lists.are_intact() && alive.count_alive() == kCount;
}

JD_CHILD(forks_between_steps) {
  if (!enable_steps()) return kCannotTry;
  const Lists lists;
  Old old;
  for (int steps = 0; steps < 60; steps += 20) {
    if (!begin()) return 1;
    for (int i = 0; i < steps; ++i) GC_collect_a_little();
    const pid_t child = fork();
    if (child < 0) return 2;
    const bool good = goes_on(lists, old.watch);
    if (child == 0) _exit(good ? 0 : 1);
    int status = -1;
    if (waitpid(child, &status, 0) != child || status != 0 || !good) return 3;
  }
  return 0;
}
TEST(Steps, AForkInBetweenLosesNothing) {
  JD_NEEDS_MODE();
  JD_SKIP_UNDER_TSAN("does not follow threads through a fork");
  expect_well("forks_between_steps");
}

JD_CHILD(closes_files_between_steps) {
  if (!enable_steps()) return kCannotTry;
  const Lists lists;
  Old old;
  if (!begin()) return 1;
  for (int i = 0; i < 10; ++i) GC_collect_a_little();
  for (int file = 3; file < 1024; ++file) close(file);
  return goes_on(lists, old.watch) ? 0 : 2;
}
TEST(Steps, AllFilesMayBeClosedInBetween) {
  JD_NEEDS_MODE();
  expect_well("closes_files_between_steps");
}

JD_CHILD(looks_for_leaks_in_between) {
  if (!enable_steps()) return kCannotTry;
  const Lists lists;
  Old old;
  if (!begin()) return 1;
  for (int i = 0; i < 10; ++i) GC_collect_a_little();
  GC_set_find_leak(1);
  const GC_word before = GC_get_gc_no();
  for (int i = 0; i < 3; ++i) GC_start_incremental_collection();
  if (GC_get_gc_no() != before + 3) return 2;
  GC_set_find_leak(0);
  return goes_on(lists, old.watch) ? 0 : 3;
}
TEST(Steps, LeakFindingEndsThem) {
  JD_NEEDS_MODE();
  expect_well("looks_for_leaks_in_between");
}

// A step whose mark stack is full is the last: the rest is done at once.
JD_CHILD(has_a_small_mark_stack) {
  if (!enable_steps()) return kCannotTry;
  const Lists lists;
  Old old;
  for (int i = 0; i < 3; ++i) {
    const GC_word before = GC_get_gc_no();
    GC_start_incremental_collection();
    end();
    if (GC_get_gc_no() == before) return 1;
  }
  return lists.are_intact() && old.watch.count_alive() == kCount ? 0 : 2;
}
TEST(Steps, AFullMarkStackEndsThem) {
  JD_NEEDS_MODE();
  const ChildResult r = run_child("has_a_small_mark_stack",
                                  {{"JACKDAW_MARK_TURN", "3"}, {"JACKDAW_MARK_STACK", "16"}}, 20);
  EXPECT_TRUE(r.ok()) << r;
}

// --- What the program is told
// ----------------------------------------------------------------------

std::vector<GC_EventType> events;
JD_CHILD(listens_to_events) {
  if (!enable_steps()) return kCannotTry;
  const Lists lists;
  collect();
  static int started = 0;
  static int rooted = 0;
  GC_set_start_callback([] { ++started; });
  GC_set_push_other_roots([] { ++rooted; });
  GC_set_on_collection_event([](GC_EventType event) { events.push_back(event); });
  if (!start()) return 1;
  end();
  GC_set_on_collection_event(nullptr);
  // At the beginning, and whenever the end is tried. (The verifier asks for roots, too.)
  if (started < 2 || rooted < started) return 2;
  bool stands = false;
  int stops = 0;
  int begun = 0;
  int ended = 0;
  for (const GC_EventType event : events) {
    if (event == GC_EVENT_PRE_STOP_WORLD) {
      if (stands) return 3;
      stands = true;
      ++stops;
    } else if (event == GC_EVENT_POST_START_WORLD) {
      if (!stands) return 4;
      stands = false;
    } else if (event == GC_EVENT_START) {
      ++begun;
    } else if (event == GC_EVENT_END) {
      ++ended;
    }
  }
  return !stands && stops > 10 && begun == started && ended == started ? 0 : 5;
}
TEST(Steps, EachIsAStopThatTheProgramHearsOf) {
  JD_NEEDS_MODE();
  expect_well("listens_to_events");
}

JD_CHILD(finalizes_after_steps) {
  if (!enable_steps()) return kCannotTry;
  const Lists lists;
  static std::size_t finalized = 0;
  far_away([] {
    for (std::size_t i = 0; i < kCount; ++i) {
      GC_register_finalizer(
          GC_malloc(32), [](void*, void*) { ++finalized; }, nullptr, nullptr, nullptr);
    }
  });
  if (!start()) return 1;
  if (finalized != 0) return 2;
  end();
  GC_invoke_finalizers();
  return finalized >= kCount * 95 / 100 ? 0 : 3;
}
TEST(Steps, FinalizersComeAfterTheLast) {
  JD_NEEDS_MODE();
  expect_well("finalizes_after_steps");
}

}  // namespace
}  // namespace jd::test::partial
