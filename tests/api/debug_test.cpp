// The debugging allocators: contents, bounds, finalizers, and what they report.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "child.hpp"
#include "gc_test.hpp"
#include "threads.hpp"

// Behind the header that has GC_THREADS.
#include "gc/gc_disclaim.h"
#include "gc/gc_mark.h"

namespace jd::test {
namespace {

constexpr const char* kFile = "somewhere.c";

TEST(Debug, AllocatesZeroedObjectsWithAHeader) {
  for (std::size_t size = 0; size < 9000; size += size < 100 ? 1 : 311) {
    auto* p = static_cast<unsigned char*>(GC_debug_malloc(size, kFile, 1));
    ASSERT_NE(p, nullptr);
    for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(p[i], 0);
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(p) % 16, 0u);
    ASSERT_EQ(static_cast<char*>(GC_base(p)) + GC_get_debug_header_size(),
              reinterpret_cast<char*>(p));
    std::memset(p, 0x5a, size);
    if (size % 3 == 0) GC_debug_free(p);
  }
  collect();
}

// As bdwgc's own test of bit-fields asks.
TEST(Debug, TheLastWordIsTheProgramsAndZeroAtFirst) {
  const auto check = [](std::size_t bytes, void* object) {
    auto* p = static_cast<char*>(object);
    const std::size_t whole = (bytes + sizeof(void*) - 1) / sizeof(void*) * sizeof(void*);
    for (std::size_t i = bytes; i < whole; ++i) EXPECT_EQ(p[i], 0) << bytes;
    std::memset(p, 'x', whole);
    GC_debug_free(object);
  };
  testing::internal::CaptureStderr();
  for (int round = 0; round < 3; ++round) {
    for (std::size_t bytes = 1; bytes <= 100; ++bytes) {
      check(bytes, GC_debug_malloc(bytes, "words.c", 1));
      check(bytes, GC_debug_malloc_atomic(bytes, "words.c", 2));
      check(bytes, GC_debug_malloc_uncollectable(bytes, "words.c", 3));
      check(bytes, GC_debug_realloc(GC_debug_malloc_atomic(200, "words.c", 4), bytes, "w.c", 5));
    }
    GC_gcollect();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Debug, KindsAreKept) {
  auto kind_of = [](void* p) { return GC_get_kind_and_size(GC_base(p), nullptr); };
  EXPECT_EQ(kind_of(GC_debug_malloc(20, kFile, 1)), 1);
  EXPECT_EQ(kind_of(GC_debug_malloc_atomic(20, kFile, 1)), 0);
  EXPECT_EQ(kind_of(GC_debug_malloc_ignore_off_page(20, kFile, 1)), 1);
  EXPECT_EQ(kind_of(GC_debug_malloc_atomic_ignore_off_page(20, kFile, 1)), 0);
  void* u = GC_debug_malloc_uncollectable(20, kFile, 1);
  EXPECT_EQ(kind_of(u), 2);
  GC_debug_free(u);
  void* au = GC_debug_malloc_atomic_uncollectable(20, kFile, 1);
  EXPECT_EQ(kind_of(au), 3);
  GC_debug_free(au);
}

TEST(Debug, ObjectsLiveAndDie) {
  Watch held;
  Watch dropped;
  auto** roots = static_cast<void**>(GC_malloc_uncollectable(500 * sizeof(void*)));
  far_away([&] {
    for (int i = 0; i < 500; ++i) {
      roots[i] = GC_debug_malloc(40, kFile, 1);
      held.add(GC_base(roots[i]));
      dropped.add(GC_base(GC_debug_malloc(40, kFile, 1)));
    }
  });
  collect();
  EXPECT_TRUE(all_alive(held));
  EXPECT_TRUE(most_collected(dropped));
  GC_free(roots);
}

TEST(Debug, StringsAreCopied) {
  EXPECT_STREQ(GC_debug_strdup("collector", kFile, 1), "collector");
  EXPECT_STREQ(GC_debug_strndup("collector", 4, kFile, 1), "coll");
  EXPECT_EQ(GC_debug_strdup(nullptr, kFile, 1), nullptr);
}

TEST(Debug, ReallocKeepsContents) {
  for (const std::size_t from : {1, 40, 1000, 20000}) {
    for (const std::size_t to : {1, 41, 999, 30000}) {
      void* p = GC_debug_malloc(from, kFile, 1);
      fill_pattern(p, from, 2);
      void* q = GC_debug_realloc(p, to, kFile, 2);
      ASSERT_NE(q, nullptr);
      ASSERT_TRUE(holds_pattern(q, from < to ? from : to, 2));
    }
  }
  EXPECT_NE(GC_debug_realloc(nullptr, 10, kFile, 1), nullptr);
  EXPECT_EQ(GC_debug_realloc(GC_debug_malloc(10, kFile, 1), 0, kFile, 1), nullptr);
  EXPECT_NE(GC_debug_malloc_replacement(10), nullptr);
  EXPECT_NE(GC_debug_realloc_replacement(nullptr, 10), nullptr);
  GC_debug_free(nullptr);
}

std::size_t finalized;
void finalize(void* object, void* data) {
  finalized += holds_pattern(object, 40, 4) && data == &finalized;
}

using Register = void (*)(void*, GC_finalization_proc, void*, GC_finalization_proc*, void**);

TEST(Debug, FinalizersGetTheUsersAddressAndData) {
  for (const Register reg :
       {GC_debug_register_finalizer, GC_debug_register_finalizer_ignore_self,
        GC_debug_register_finalizer_no_order, GC_debug_register_finalizer_unreachable}) {
    finalized = 0;
    far_away([&] {
      for (int i = 0; i < 500; ++i) {
        void* p = GC_debug_malloc(40, kFile, 1);
        fill_pattern(p, 40, 4);
        reg(p, finalize, &finalized, nullptr, nullptr);
      }
    });
    for (int i = 0; i < 10 && finalized < 475; ++i) collect_all();
    EXPECT_GE(finalized, 475u);
  }
  void* p = GC_debug_malloc(40, kFile, 1);
  GC_finalization_proc fn = nullptr;
  void* data = nullptr;
  GC_debug_register_finalizer(p, finalize, &finalized, nullptr, nullptr);
  GC_debug_register_finalizer(p, nullptr, nullptr, &fn, &data);
  EXPECT_EQ(fn, finalize);
  EXPECT_EQ(data, &finalized);
}

TEST(Debug, AFinalizerOfWhatIsNotTheBeginningOfACheckedObjectIsTold) {
  auto* checked = static_cast<char*>(GC_debug_malloc(40, kFile, 1));
  void* plain = GC_malloc(40);
  for (void* wrong : {static_cast<void*>(checked + 8), plain}) {
    testing::internal::CaptureStderr();
    GC_debug_register_finalizer(wrong, finalize, &finalized, nullptr, nullptr);
    EXPECT_NE(testing::internal::GetCapturedStderr().find("GC_debug_register_finalizer"),
              std::string::npos);
  }
  // It gets the object's address all the same.
  finalized = 0;
  testing::internal::CaptureStderr();
  far_away([] {
    for (int i = 0; i < 500; ++i) {
      auto* p = static_cast<char*>(GC_debug_malloc(40, kFile, 1));
      fill_pattern(p, 40, 4);
      GC_debug_register_finalizer(p + 8, finalize, &finalized, nullptr, nullptr);
    }
  });
  testing::internal::GetCapturedStderr();
  for (int i = 0; i < 10 && finalized < 475; ++i) collect_all();
  EXPECT_GE(finalized, 475u);
  keep_here(plain);
}

TEST(Debug, CopiesOfTextThatDoNotFitSayWhy) {
  GC_set_oom_fn([](size_t) -> void* { return nullptr; });
  GC_set_max_heap_size(GC_get_heap_size() + 1024 * 1024);
  const std::string text(16 * 1024 * 1024, 'x');
  errno = 0;
  EXPECT_EQ(GC_debug_strdup(text.c_str(), kFile, 1), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  errno = 0;
  EXPECT_EQ(GC_debug_strndup(text.c_str(), text.size(), kFile, 1), nullptr);
  EXPECT_EQ(errno, ENOMEM);
}

JD_CHILD(smash_end) {
  GC_INIT();
  auto* p = opaque(static_cast<volatile char*>(GC_debug_malloc(20, "smashed.c", 1234)));
  for (int i = 20; i < 28; ++i) p[i] = 'x';
  GC_debug_free(const_cast<char*>(p));
  return 0;
}

JD_CHILD(smash_end_found_by_collection) {
  GC_INIT();
  static void* held;
  held = GC_debug_malloc(20, "smashed.c", 1234);
  for (int i = 20; i < 28; ++i) opaque(static_cast<volatile char*>(held))[i] = 'x';
  GC_gcollect();
  GC_gcollect();
  return 0;
}

void* kept_by_disclaim;
int keep_once(void* base) {
  if (kept_by_disclaim != nullptr) return 0;
  kept_by_disclaim = GC_USR_PTR_FROM_BASE(base);
  return 1;
}
JD_CHILD(smash_end_of_one_that_was_kept) {
  GC_INIT();
  const unsigned kind = GC_new_kind(GC_new_free_list(), 0, 1, 1);
  GC_register_disclaim_proc(static_cast<int>(kind), keep_once, 0);
  far_away([&] {
    opaque(GC_debug_generic_or_special_malloc(20, static_cast<int>(kind), "smashed.c", 1234));
  });
  for (int i = 0; i < 5 && kept_by_disclaim == nullptr; ++i) collect();
  if (kept_by_disclaim == nullptr) return 1;
  for (int i = 20; i < 28; ++i) opaque(static_cast<volatile char*>(kept_by_disclaim))[i] = 'x';
  GC_gcollect();
  return 0;
}

// Regression: it had lost its header when it was asked whether it goes.
TEST(Debug, WhatADisclaimFunctionKeepsIsStillChecked) {
  const ChildResult r = run_child("smash_end_of_one_that_was_kept");
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_NE(r.err.find("smashed.c:1234"), std::string::npos) << r;
}

JD_CHILD(smash_start) {
  GC_INIT();
  auto* p = opaque(static_cast<volatile char*>(GC_debug_malloc(20, "smashed.c", 1234)));
  for (int i = 1; i <= 8; ++i) p[-i] = 'x';
  GC_debug_free(const_cast<char*>(p));
  return 0;
}

// Overwrites the word of the header that says how long the object is.
volatile char* smash_length(volatile char* p) {
  for (int i = 9; i <= 16; ++i) p[-i] = 'x';
  return p;
}

JD_CHILD(smash_length_then_free) {
  GC_INIT();
  auto* p = opaque(static_cast<volatile char*>(GC_debug_malloc(20, "smashed.c", 1234)));
  GC_debug_free(const_cast<char*>(smash_length(p)));
  return 0;
}

JD_CHILD(smash_length_then_realloc) {
  GC_INIT();
  auto* p = opaque(static_cast<volatile char*>(GC_debug_malloc(20, "smashed.c", 1234)));
  fill_pattern(const_cast<char*>(p), 20, 3);
  void* moved = GC_debug_realloc(const_cast<char*>(smash_length(p)), 200, "moved.c", 5);
  return holds_pattern(moved, 20, 3) ? 0 : 1;
}

JD_CHILD(smash_length_found_by_collection) {
  GC_INIT();
  auto* p = opaque(static_cast<volatile char*>(GC_debug_malloc(20, "smashed.c", 1234)));
  smash_length(p);
  GC_gcollect();
  keep_here(const_cast<char*>(p));
  return 0;
}

// Dead objects with headers become free blocks, and these objects without, which may hold anything.
JD_CHILD(other_objects_in_the_place_of_checked_ones) {
  GC_INIT();
  constexpr std::size_t kBytes = 2000;
  constexpr std::size_t kObjects = 2000;
  Root<void*> table(static_cast<void**>(GC_malloc_uncollectable(kObjects * sizeof(void*))));
  std::size_t bytes = 0;  // with header and guard
  far_away([&] {
    for (std::size_t i = 0; i < kObjects; ++i) {
      bytes = GC_size(GC_base(GC_debug_malloc(kBytes, "dead.c", 1))) - 8;
    }
  });
  collect();
  for (std::size_t i = 0; i < kObjects; ++i) {
    auto* object = static_cast<char*>(GC_malloc_atomic(bytes));
    std::memset(object + bytes / 2, 'x', bytes / 2);
    table.get()[i] = object;
  }
  collect();
  return 0;
}
TEST(Debug, ADeadHeaderSaysNothingOfTheNextObjectThere) {
  const ChildResult r = run_child("other_objects_in_the_place_of_checked_ones");
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.err.find("smashed"), std::string::npos) << r;
}

TEST(Debug, AnOverwrittenLengthIsReportedAndNotUsed) {
  JD_OURS_ONLY("bdwgc's header is another");
  for (const char* name : {"smash_length_then_free", "smash_length_then_realloc",
                           "smash_length_found_by_collection"}) {
    const ChildResult r = run_child(name);
    EXPECT_TRUE(r.ok()) << name << " " << r;
    EXPECT_NE(r.err.find("smashed"), std::string::npos) << name << " " << r;
  }
}

// Makes checked objects, in places where dead ones still have their guards.
void* make_checked(void*) {
  for (std::size_t size = 1;; size = size % 64 + 1) {
    auto* object = opaque(static_cast<char*>(GC_debug_malloc_atomic(size, kFile, 1)));
    std::memset(object, 0x55, size);
  }
}

JD_CHILD(collect_while_making_checked_objects) {
  GC_INIT();
  for (int i = 0; i < 3; ++i) {
    pthread_t thread;
    if (GC_pthread_create(&thread, nullptr, make_checked, nullptr) != 0) return 9;
  }
  for (int i = 0; i < 1000; ++i) {
    GC_gcollect();
    usleep(100);
  }
  _exit(0);
}

TEST(Debug, AnObjectInTheMakingIsNotSmashed) {
  const ChildResult r = run_child("collect_while_making_checked_objects");
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.err, "") << r;
}

JD_CHILD(smash_start_found_by_collection) {
  GC_INIT();
  auto* p = opaque(static_cast<volatile char*>(GC_debug_malloc_atomic(40, "smashed.c", 1234)));
  p[-1] = 1;
  GC_gcollect();
  // And none that is not checked any more.
  GC_debug_free(const_cast<char*>(p));
  for (int i = 0; i < 1000; ++i) opaque(GC_malloc_atomic(64));
  GC_gcollect();
  return 0;
}

// GC_ABORT_ON_LEAK
JD_CHILD(leak_checked) {
  GC_set_find_leak(1);
  GC_INIT();
  far_away([] {
    for (int i = 0; i < 100; ++i) opaque(GC_debug_malloc(20, "leaked.c", 5));
  });
  collect();
  return 0;
}

TEST(Debug, AProgramMayEndWhereFaultsAreFound) {
  for (const char* name : {"leak_checked", "smash_start_found_by_collection"}) {
    const ChildResult plain = run_child(name, {{"GC_ABORT_ON_LEAK", kUnset}});
    EXPECT_TRUE(plain.ok()) << plain;
    const ChildResult ending = run_child(name, {{"GC_ABORT_ON_LEAK", "1"}});
    EXPECT_EQ(ending.signal, SIGABRT) << ending;
  }
}

JD_CHILD(leak_told_to_the_program) {
  GC_set_abort_func([](const char* message) {
    std::fprintf(stdout, "told: %s\n", message);
    std::fflush(stdout);
  });
  GC_set_find_leak(1);
  GC_INIT();
  far_away([] {
    for (int i = 0; i < 100; ++i) opaque(GC_malloc(20));
  });
  collect();
  return 0;
}

JD_CHILD(leaked_with_closures) {
  static int closures = 0;
  static const GC_finalizer_closure closure = {[](void*, void*) { ++closures; }, nullptr};
  GC_set_find_leak(1);
  GC_INIT();
  far_away([] {
    for (int i = 0; i < 100; ++i) opaque(GC_finalized_malloc(20, &closure));
  });
  collect();
  far_away([] {
    for (int i = 0; i < 1000; ++i) opaque(GC_finalized_malloc(20, &closure));
  });
  return closures;
}

TEST(Debug, ClosuresAreOffWhereLeaksAreLookedFor) {
  const ChildResult r = run_child("leaked_with_closures");
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_NE(r.err.find("eaked"), std::string::npos) << r;
}

TEST(Debug, TheAbortFunctionIsToldOfTheCollectorsOwnReasons) {
  const ChildResult r = run_child("leak_told_to_the_program", {{"GC_ABORT_ON_LEAK", "1"}});
  EXPECT_EQ(r.signal, SIGABRT) << r;
  EXPECT_NE(r.out.find("told: "), std::string::npos) << r;
  EXPECT_NE(r.out.find("GC_ABORT_ON_LEAK"), std::string::npos) << r;
}

TEST(Debug, OverrunsAreReportedWithTheirPlace) {
  for (const char* name :
       {"smash_end", "smash_end_found_by_collection", "smash_start_found_by_collection"}) {
    const ChildResult r = run_child(name);
    EXPECT_FALSE(r.timed_out);
    EXPECT_NE(r.err.find("smashed.c:1234"), std::string::npos) << name << " " << r;
  }
  const ChildResult r = run_child("smash_start");
  EXPECT_FALSE(r.timed_out);
  EXPECT_FALSE(r.err.empty()) << r;
}

// Whatever the kind: text that is read after it was freed shows.
TEST(Debug, FreedMemoryIsFilled) {
  for (const bool atomic : {false, true}) {
    for (const std::size_t bytes : {5, 8, 13, 40}) {
      auto* const text = static_cast<volatile char*>(
          atomic ? GC_debug_malloc_atomic(bytes, GC_EXTRAS) : GC_debug_malloc(bytes, GC_EXTRAS));
      for (std::size_t i = 0; i < bytes; ++i) text[i] = 'x';
      GC_debug_free(const_cast<char*>(text));
      for (std::size_t i = 0; i < bytes; ++i) {
        EXPECT_NE(text[i], 'x') << atomic << ", " << i << " of " << bytes;
        EXPECT_NE(text[i], 0) << atomic << ", " << i << " of " << bytes;
      }
    }
  }
}

JD_CHILD(debug_double_free) {
  GC_INIT();
  auto* p = opaque(static_cast<volatile char*>(GC_debug_malloc(20, "twice.c", 77)));
  GC_debug_free(const_cast<char*>(p));
  GC_debug_free(const_cast<char*>(p));
  return 0;
}

TEST(Debug, ADoubleFreeIsReported) {
  const ChildResult r = run_child("debug_double_free");
  EXPECT_FALSE(r.timed_out);
  EXPECT_FALSE(r.err.empty()) << r;
}

// Which is free at once, and its header with it.
JD_CHILD(debug_double_free_uncollectable) {
  GC_INIT();
  auto* p = opaque(GC_debug_malloc_uncollectable(20, "twice.c", 77));
  GC_debug_free(p);
  GC_debug_free(p);
  return 0;
}

TEST(Debug, ADoubleFreeOfAnUncollectableObjectIsReported) {
  JD_OURS_ONLY("bdwgc takes what was freed for an object still, and names a place that is none");
  const ChildResult r = run_child("debug_double_free_uncollectable");
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_NE(r.err.find("already free"), std::string::npos) << r;
}

JD_CHILD(debug_free_of_plain) {
  GC_INIT();
  GC_debug_free(GC_malloc(100));
  return 0;
}

JD_CHILD(debug_free_of_stack) {
  GC_INIT();
  int word = 0;
  GC_debug_free(opaque(&word));
  return 0;
}

TEST(Debug, ForeignPointersAreReported) {
  const ChildResult plain = run_child("debug_free_of_plain");
  EXPECT_NE(plain.err.find("GC_debug_free"), std::string::npos) << plain;
  const ChildResult stack = run_child("debug_free_of_stack");
  EXPECT_EQ(stack.signal, SIGABRT) << stack;
  EXPECT_NE(stack.err.find("Invalid pointer passed to free"), std::string::npos) << stack;
}

TEST(Debug, PointerChecksPassGoodPointers) {
  auto** object = static_cast<void**>(GC_malloc(64));
  EXPECT_EQ(GC_same_obj(object, object + 3), static_cast<void*>(object));
  for (const std::size_t size : {16, 24, 48, 512, 2048, 8192, 40000}) {
    // Fills its slot, or not; and where it does, others begin at its end.
    char* first = nullptr;
    for (int i = 0; i < 20; ++i) {
      first = static_cast<char*>(GC_malloc(size));
      EXPECT_EQ(GC_same_obj(first, first + size), first) << size;
      EXPECT_EQ(GC_same_obj(first + size, first), first + size) << size;
    }
  }
  EXPECT_EQ(GC_is_visible(object), static_cast<void*>(object));
  static void* in_static;
  EXPECT_EQ(GC_is_visible(&in_static), static_cast<void*>(&in_static));
  EXPECT_EQ(GC_is_valid_displacement(object), static_cast<void*>(object));
  EXPECT_EQ(GC_is_valid_displacement(nullptr), nullptr);
  void* cursor = object;
  EXPECT_EQ(GC_pre_incr(&cursor, 16), static_cast<void*>(object + 2));
  EXPECT_EQ(GC_post_incr(&cursor, 8), static_cast<void*>(object + 2));
  EXPECT_EQ(cursor, static_cast<void*>(object + 3));
}

int refused;

bool is_visible(void* p) {
  refused = 0;
  EXPECT_EQ(GC_is_visible(p), p);
  return refused == 0;
}

thread_local void* in_thread_local;

TEST(Debug, WhatNoCollectionLooksAtIsNotVisible) {
  JD_OURS_ONLY("bdwgc says so of any place outside its heap, with threads");
  void (*old)(void*) = GC_is_visible_print_proc;
  GC_is_visible_print_proc = [](void*) { ++refused; };
  auto** foreign = static_cast<void**>(std::malloc(64));
  EXPECT_FALSE(is_visible(foreign));
  GC_add_roots(foreign, foreign + 8);
  EXPECT_TRUE(is_visible(foreign + 7));
  GC_remove_roots(foreign, foreign + 8);
  EXPECT_FALSE(is_visible(foreign + 7));
  auto** object = static_cast<void**>(GC_malloc(64));
  EXPECT_TRUE(is_visible(object + 7));
  EXPECT_FALSE(is_visible(reinterpret_cast<char*>(object) + 1));
  auto** without_pointers = static_cast<void**>(GC_malloc_atomic(64));
  // As bdwgc has it: links lie there, and hidden pointers.
  EXPECT_TRUE(is_visible(without_pointers));
  EXPECT_TRUE(is_visible(without_pointers + 1));
  auto** freed = static_cast<void**>(GC_malloc(100000));
  EXPECT_TRUE(is_visible(freed + 1));
  GC_free(freed);
  EXPECT_FALSE(is_visible(freed + 1));
  void* in_frame = nullptr;
  EXPECT_TRUE(is_visible(&in_frame));
  static void* in_static;
  EXPECT_TRUE(is_visible(&in_static));
  EXPECT_TRUE(is_visible(&in_thread_local));
  run_threads(1, [&](std::size_t) {
    void* in_other_frame = nullptr;
    EXPECT_TRUE(is_visible(&in_other_frame));
    EXPECT_TRUE(is_visible(&in_frame));
    EXPECT_TRUE(is_visible(&in_thread_local));
    // While the main thread has the heap's lock, in making this one, nothing is looked up.
    bool visible = true;
    for (int i = 0; i < 1000 && visible; ++i) {
      visible = is_visible(foreign);
      if (visible) sched_yield();
    }
    EXPECT_FALSE(visible);
  });
  std::free(foreign);
  GC_is_visible_print_proc = old;
}

JD_CHILD(same_obj_fails) {
  GC_INIT();
  GC_same_obj(GC_malloc(64), GC_malloc(5000));
  return 0;
}

TEST(Debug, PointerChecksRefuseBadOnes) {
  const ChildResult r = run_child("same_obj_fails");
  EXPECT_EQ(r.signal, SIGABRT) << r;
  EXPECT_NE(r.err.find("GC_same_obj"), std::string::npos) << r;
}

}  // namespace
}  // namespace jd::test
