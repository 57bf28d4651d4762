// What bdwgc has as of 8.3: Debian's library lacks it.
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <ctime>
#include <vector>

#include "finalizers.hpp"
#include "gc_test.hpp"
#include "threads.hpp"

namespace jd::test {
namespace {

// --- The lock, for readers
// --------------------------------------------------------------------------------------

void* read(void* (*function)(void*), void* argument) {
  return GC_call_with_reader_lock(function, argument, 0);
}

bool is_past(std::time_t end) { return std::time(nullptr) >= end; }

TEST(ReaderLock, ReadersAreTogether) {
  struct Meeting {
    std::atomic<int> inside{0};
    std::atomic<bool> met{false};
    std::time_t end = std::time(nullptr) + 60;
    // Somebody else may want the lock just now, and lets nobody join.
    static void* meet(void* argument) {
      auto* meeting = static_cast<Meeting*>(argument);
      meeting->inside.fetch_add(1);
      const std::time_t patience = std::time(nullptr) + 2;
      while (meeting->inside.load() < 2 && !meeting->met.load() && !is_past(patience)) {
      }
      if (meeting->inside.load() >= 2) meeting->met.store(true);
      meeting->inside.fetch_sub(1);
      return meeting;
    }
  } meeting;
  run_threads(2, [&meeting](std::size_t) {
    while (!meeting.met.load() && !is_past(meeting.end)) {
      EXPECT_EQ(read(Meeting::meet, &meeting), &meeting);
    }
  });
  EXPECT_TRUE(meeting.met.load()) << "no reader was beside another for a minute";
}

TEST(ReaderLock, NothingChangesMeanwhile) {
  struct Counted {
    long a = 0;
    long b = 0;
    static void* are_same(void* argument) {
      const auto* counted = static_cast<const Counted*>(argument);
      const GC_word collections = GC_get_gc_no();
      for (int i = 0; i < 200; ++i) {
        if (*const_cast<const volatile long*>(&counted->a) != counted->b) return nullptr;
      }
      // Nor may a writer come in between.
      const long a = *const_cast<const volatile long*>(&counted->a);
      sched_yield();
      if (*const_cast<const volatile long*>(&counted->b) != a) return nullptr;
      return GC_get_gc_no() == collections ? argument : nullptr;
    }
  } counted;
  std::atomic<int> wrong{0};
  run_threads(4, [&](std::size_t number) {
    for (std::size_t i = 0; i < rounds(4000); ++i) {
      if (number < 2) {
        if (read(Counted::are_same, &counted) != &counted) wrong.fetch_add(1);
      } else {
        GC_alloc_lock();
        ++counted.a;
        // Whoever reads all the same is to come in between.
        for (int turn = 0; i % 8 == 0 && turn < 50; ++turn) sched_yield();
        ++counted.b;
        GC_alloc_unlock();
        opaque(GC_malloc(200));
        if (i % 50 == 0) GC_gcollect();
      }
    }
  });
  EXPECT_EQ(wrong.load(), 0);
}

// What the reader lock is for most of all.
TEST(ReaderLock, HiddenPointersAreRevealed) {
  constexpr std::size_t kCells = 100;
  // Hidden, in memory that holds nothing.
  static GC_hidden_pointer* hidden;
  hidden = static_cast<GC_hidden_pointer*>(GC_malloc_atomic_uncollectable(kCells * sizeof(void*)));
  std::memset(hidden, 0, kCells * sizeof(void*));
  static std::atomic<int> changed;
  changed = 0;
  const auto reveal = [](void* cell) -> void* {
    const auto* word = static_cast<const volatile GC_hidden_pointer*>(cell);
    const GC_hidden_pointer seen = *word;
    // A collection, or who stores another, is to come in between if it may.
    for (int turn = 0; (seen >> 4) % 4 == 0 && turn < 8; ++turn) sched_yield();
    if (*word != seen) changed.fetch_add(1);
    return seen == 0 ? nullptr : GC_REVEAL_POINTER(seen);
  };
  std::atomic<int> wrong{0};
  run_threads(3, [&](std::size_t number) {
    Random random(number);
    for (std::size_t i = 0; i < rounds(3000); ++i) {
      GC_hidden_pointer* const cell = hidden + random.below(kCells);
      auto* object = static_cast<std::size_t*>(read(reveal, cell));
      if (object != nullptr && *object != 12345) wrong.fetch_add(1);
      if (object == nullptr && number == 0) {
        auto* fresh = static_cast<std::size_t*>(GC_malloc_atomic(64));
        *fresh = 12345;
        GC_alloc_lock();
        *cell = GC_HIDE_POINTER(fresh);
        GC_alloc_unlock();
        GC_general_register_disappearing_link(reinterpret_cast<void**>(cell), fresh);
        GC_reachable_here(fresh);
      }
      if (i % 40 == 0) GC_gcollect();
    }
  });
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(changed.load(), 0);
  for (std::size_t i = 0; i < kCells; ++i) {
    GC_unregister_disappearing_link(reinterpret_cast<void**>(hidden + i));
  }
  GC_free(hidden);
}

TEST(ReaderLock, AForksChildHasIt) {
  JD_SKIP_UNDER_TSAN("does not support threads after a fork of several");
  std::atomic<bool> over{false};
  const auto nothing = [](void* argument) -> void* { return argument; };
  std::vector<GcThread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&over, nothing] {
      while (!over.load()) read(nothing, &over);
    });
  }
  for (std::size_t i = 0; i < rounds(40); ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);
      int token = 0;
      const bool reads = read(nothing, &token) == &token;
      GC_gcollect();
      _exit(reads && GC_malloc(100) != nullptr && read(nothing, &token) == &token ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  over.store(true);
}

// It holds nothing that others need.
TEST(ReaderLock, OneThatIsSuspendedAsItWaitsKeepsNobodyOut) {
  JD_SKIP_UNDER_TSAN("delivers no signal to a thread that waits for a lock");
  const auto nothing = [](void* argument) -> void* { return argument; };
  std::atomic<bool> runs{false};
  std::atomic<bool> may_read{false};
  std::atomic<bool> reads{false};
  std::atomic<pthread_t> reader{};
  GcThread waiting([&, nothing] {
    reader.store(pthread_self());
    runs.store(true);
    while (!may_read.load()) usleep(100);
    reads.store(true);
    read(nothing, &reads);
  });
  while (!runs.load()) usleep(100);
  GC_alloc_lock();
  may_read.store(true);
  while (!reads.load()) usleep(100);
  usleep(20000);
  GC_alloc_unlock();
  // Before it has the lock, as a rule: it sleeps.
  GC_suspend_thread(reader.load());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(read(nothing, &reads), &reads);
    GC_gcollect();
  }
  GC_resume_thread(reader.load());
}

// --- Allocation
// --------------------------------------------------------------------------------------

TEST(Newer, ReallocfIsReallocThatFreesOnFailure) {
  auto* object = static_cast<char*>(GC_reallocf(nullptr, 40));
  ASSERT_NE(object, nullptr);
  std::strcpy(object, "kept");
  object = static_cast<char*>(GC_reallocf(object, 4000));
  EXPECT_STREQ(object, "kept");
  EXPECT_EQ(GC_reallocf(object, 0), nullptr);
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{100000}}) {
    void* const lost = GC_malloc_uncollectable(bytes);
    const std::size_t before = GC_get_non_gc_bytes();
    EXPECT_EQ(GC_reallocf(lost, SIZE_MAX / 2), nullptr);
    EXPECT_LE(GC_get_non_gc_bytes() + bytes, before) << "it was not freed";
  }
}

TEST(Newer, CheckedReallocf) {
  auto* object = static_cast<char*>(GC_debug_reallocf(nullptr, 40, "new.c", 1));
  ASSERT_NE(object, nullptr);
  std::strcpy(object, "kept");
  object = static_cast<char*>(GC_debug_reallocf(object, 4000, "new.c", 2));
  EXPECT_STREQ(object, "kept");
  EXPECT_EQ(GC_debug_reallocf(object, SIZE_MAX / 2, "new.c", 3), nullptr);
}

TEST(Newer, FinalizeAllRunsWhatAPortionLeft) {
  finalized.store(0);
  const int on_demand = GC_get_finalize_on_demand();
  GC_set_finalize_on_demand(1);
  make_finalizable(100);
  for (int i = 0; i < 3; ++i) collect();
  GC_set_interrupt_finalizers(1);
  GC_invoke_finalizers();
  GC_finalize_all();
  EXPECT_EQ(finalized.load(), 100u);
  EXPECT_EQ(GC_get_interrupt_finalizers(), 0u);
  GC_set_finalize_on_demand(on_demand);
}

// What was there is gone from the slot that others get.
TEST(Newer, FreezeroClearsWhatItFrees) {
  GC_freezero(nullptr, 10);
  GC_debug_freezero(nullptr, 10);
  for (const std::size_t bytes : {24, 100, 2000, 100000}) {
    for (const std::size_t cleared : {std::size_t{10}, bytes, SIZE_MAX}) {
      auto* object = static_cast<unsigned char*>(GC_malloc_atomic(bytes));
      const std::size_t size = GC_size(object);
      auto* next = static_cast<unsigned char*>(GC_malloc_atomic(bytes));
      std::memset(next, 0x55, GC_size(next));
      std::memset(object, 0xaa, size);
      GC_freezero(object, cleared);
      for (std::size_t i = 0; i < GC_size(next); ++i) ASSERT_EQ(next[i], 0x55);
      // The heap's memory can be read until it is given back. Two words are its own.
      if (GC_is_heap_ptr(object) == 0) continue;
      for (std::size_t i = 16; i < std::min(cleared, size); ++i) ASSERT_NE(object[i], 0xaa) << i;
    }
  }
  for (const std::size_t cleared : {std::size_t{10}, SIZE_MAX}) {
    auto* object = static_cast<char*>(GC_debug_malloc_atomic(100, "new.c", 4));
    std::memset(object, 0x77, 100);
    GC_debug_freezero(object, cleared);
  }
}

TEST(Newer, ArraysArePreparedOnce) {
  const GC_word bitmap[1] = {2};
  const GC_descr descriptor = GC_make_descriptor(bitmap, 2);
  for (const std::size_t elements : {0, 1, 3, 500}) {
    GC_calloc_typed_descr_s prepared;
    std::memset(&prepared, 0xff, sizeof prepared);
    ASSERT_EQ(GC_calloc_prepare_explicitly_typed(&prepared, sizeof prepared, elements,
                                                 2 * sizeof(void*), descriptor),
              1);
    Watch held;
    Root<void> arrays[3];
    far_away([&] {
      for (Root<void>& root : arrays) {
        auto** words =
            static_cast<void**>(GC_calloc_do_explicitly_typed(&prepared, sizeof prepared));
        ASSERT_NE(words, nullptr);
        root.set(words);
        for (std::size_t i = 0; i < elements; ++i) {
          ASSERT_EQ(words[2 * i], nullptr);
          words[2 * i + 1] = GC_malloc(16);
          held.add(words[2 * i + 1]);
        }
      }
    });
    collect();
    EXPECT_TRUE(all_alive(held)) << elements;
  }
  GC_calloc_typed_descr_s absurd;
  EXPECT_EQ(
      GC_calloc_prepare_explicitly_typed(&absurd, sizeof absurd, SIZE_MAX / 8, 16, descriptor), 0);
  EXPECT_EQ(GC_calloc_do_explicitly_typed(&absurd, sizeof absurd), nullptr);
}

// --- Finalizers, settings, figures
// --------------------------------------------------------------------------------------

TEST(Newer, FinalizersRunInPortions) {
  constexpr unsigned kMost = 7;
  finalized.store(0);
  const int on_demand = GC_get_finalize_on_demand();
  GC_set_finalize_on_demand(1);
  make_finalizable(500);
  for (int i = 0; i < 3; ++i) collect();
  EXPECT_EQ(GC_get_interrupt_finalizers(), 0u);
  GC_set_interrupt_finalizers(kMost);
  EXPECT_EQ(GC_get_interrupt_finalizers(), kMost);
  ASSERT_TRUE(GC_should_invoke_finalizers());
  for (unsigned i = 1; i <= 20; ++i) {
    EXPECT_EQ(GC_invoke_finalizers(), static_cast<int>(kMost));
    EXPECT_EQ(finalized.load(), kMost * i);
  }
  GC_set_interrupt_finalizers(0);
  EXPECT_GE(GC_invoke_finalizers(), 475 - 20 * static_cast<int>(kMost));
  GC_set_finalize_on_demand(on_demand);
}

TEST(Newer, WhoReportsWrongPointersCanBeSet) {
  static int reports;
  reports = 0;
  const GC_same_obj_print_proc_t same = GC_get_same_obj_print_proc();
  const GC_valid_ptr_print_proc_t displacement = GC_get_is_valid_displacement_print_proc();
  const GC_valid_ptr_print_proc_t visible = GC_get_is_visible_print_proc();
  EXPECT_EQ(same, GC_same_obj_print_proc);
  EXPECT_EQ(displacement, GC_is_valid_displacement_print_proc);
  EXPECT_EQ(visible, GC_is_visible_print_proc);
  GC_set_same_obj_print_proc([](void*, void*) { ++reports; });
  GC_set_is_valid_displacement_print_proc([](void*) { ++reports; });
  GC_set_is_visible_print_proc([](void*) { ++reports; });
  auto* object = static_cast<char*>(GC_malloc(64));
  void* const other = GC_malloc(64);
  EXPECT_EQ(GC_same_obj(object, other), object);
  EXPECT_EQ(reports, 1);
  EXPECT_EQ(GC_is_visible(object + 1), object + 1);
  EXPECT_EQ(reports, 2);
  GC_set_same_obj_print_proc(same);
  GC_set_is_valid_displacement_print_proc(displacement);
  GC_set_is_visible_print_proc(visible);
  EXPECT_EQ(GC_same_obj_print_proc, same);
}

TEST(Newer, TimeOfFullCollectionsToTheNanosecond) {
  GC_start_performance_measurement();
  for (int i = 0; i < 3; ++i) {
    GC_gcollect();
    EXPECT_LT(GC_get_full_gc_total_ns_frac(), 1000000u);
  }
  const auto measured = [] {
    return GC_get_full_gc_total_time() * 1000000 + GC_get_full_gc_total_ns_frac();
  };
  const unsigned long before = measured();
  EXPECT_GT(before, 0u);
  GC_start_performance_measurement();
  EXPECT_EQ(measured(), before) << "from the first call on";
}

TEST(Newer, ABlocksSize) {
  const std::size_t size = GC_get_hblk_size();
  EXPECT_GE(size, 4096u);
  EXPECT_EQ(size & (size - 1), 0u);
}

TEST(Newer, DisabledWhenDone) {
  EXPECT_EQ(GC_is_disabled(), 0);
  GC_finish_and_disable();
  EXPECT_NE(GC_is_disabled(), 0);
  const GC_word before = GC_get_gc_no();
  for (int i = 0; i < 10000; ++i) opaque(GC_malloc(100));
  EXPECT_EQ(GC_get_gc_no(), before);
  GC_enable();
  EXPECT_EQ(GC_is_disabled(), 0);
}

}  // namespace
}  // namespace jd::test
