// Wrong pointers, and calls in wrong places: a clear line, never silence and corruption.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "child.hpp"
#include "gc_test.hpp"

namespace jd::test {
namespace {

// Whether a heap in use before and after the misuse is whole.
class HeapCheck {
 public:
  HeapCheck() : table_(static_cast<void**>(GC_malloc(kCount * sizeof(void*)))) {
    for (std::size_t i = 0; i < kCount; ++i) {
      table_[i] = GC_malloc(size_of(i));
      fill_pattern(table_[i], size_of(i), static_cast<std::uint32_t>(i));
    }
  }
  bool whole() {
    for (int round = 0; round < 3; ++round) {
      GC_gcollect();
      void* list = make_list(20000, 32);
      if (list_length(list) != 20000) return false;
      for (std::size_t i = 0; i < kCount; ++i) {
        if (!holds_pattern(table_[i], size_of(i), static_cast<std::uint32_t>(i))) return false;
      }
    }
    // Everything handed out belongs to one owner.
    auto** fresh = static_cast<void**>(GC_malloc(kCount * sizeof(void*)));
    for (std::size_t i = 0; i < kCount; ++i) {
      fresh[i] = GC_malloc(size_of(i));
      fill_pattern(fresh[i], size_of(i), static_cast<std::uint32_t>(i + 7));
    }
    for (std::size_t i = 0; i < kCount; ++i) {
      if (!holds_pattern(table_[i], size_of(i), static_cast<std::uint32_t>(i))) return false;
      if (!holds_pattern(fresh[i], size_of(i), static_cast<std::uint32_t>(i + 7))) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kCount = 2000;
  static std::size_t size_of(std::size_t i) { return i % 100 == 0 ? 30000 : 16 + i % 300; }
  void** table_;
};

int report(bool whole) {
  if (whole) return 0;
  std::puts("CORRUPT");
  return 1;
}

char in_static[256];

// A typed array whose last words, where the collector keeps what it knows of it, were overwritten.
int collect_overwritten_array(std::size_t elements, std::size_t element_size) {
  GC_INIT();
  const GC_word bitmap = 1;
  const GC_descr descriptor = GC_make_descriptor(&bitmap, 1);
  // volatile: the compiler knows how long the array is, and a sanitizer tells.
  void* volatile made = GC_calloc_explicitly_typed(4, 16, descriptor);
  auto* array = static_cast<std::size_t*>(made);
  const std::size_t words = GC_size(array) / sizeof(std::size_t);
  array[words - 3] = elements;
  array[words - 2] = element_size;
  GC_gcollect();
  GC_gcollect();
  return GC_base(array) == array ? 0 : 1;
}
JD_CHILD(overwritten_array_long) { return collect_overwritten_array(SIZE_MAX, 16); }
JD_CHILD(overwritten_array_wide) { return collect_overwritten_array(3, SIZE_MAX / 2); }
JD_CHILD(overwritten_array_of_nothing) { return collect_overwritten_array(SIZE_MAX, 0); }

TEST(Misuse, AnOverwrittenTypedArrayIsSurvived) {
  JD_OURS_ONLY("bdwgc keeps it elsewhere");
  for (const char* child :
       {"overwritten_array_long", "overwritten_array_wide", "overwritten_array_of_nothing"}) {
    const ChildResult r = run_child(child, {}, 10);
    EXPECT_TRUE(r.ok()) << child << ": " << r;
  }
}

JD_CHILD(free_static) {
  GC_INIT();
  HeapCheck check;
  GC_free(in_static + 16);
  return report(check.whole());
}
JD_CHILD(free_stack) {
  GC_INIT();
  HeapCheck check;
  char local[64];
  GC_free(opaque(&local[16]));
  return report(check.whole());
}
JD_CHILD(free_malloced) {
  GC_INIT();
  HeapCheck check;
  void* p = opaque(std::malloc(100));
  GC_free(p);
  return report(check.whole());
}
JD_CHILD(free_interior) {
  GC_INIT();
  HeapCheck check;
  auto* p = static_cast<char*>(GC_malloc(200));
  GC_free(opaque(p + 32));
  return report(check.whole());
}
JD_CHILD(free_misaligned) {
  GC_INIT();
  HeapCheck check;
  auto* p = static_cast<char*>(GC_malloc(200));
  GC_free(opaque(p + 3));
  return report(check.whole());
}
JD_CHILD(free_interior_of_large) {
  GC_INIT();
  HeapCheck check;
  auto* p = static_cast<char*>(GC_malloc(500000));
  GC_free(opaque(p + 200000));
  return report(check.whole());
}
JD_CHILD(free_twice) {
  GC_INIT();
  HeapCheck check;
  void* p = opaque(GC_malloc(200));
  void* volatile neighbour = GC_malloc(200);
  GC_free(p);
  GC_free(opaque(p));
  keep_here(neighbour);
  return report(check.whole());
}
JD_CHILD(free_twice_later) {
  GC_INIT();
  HeapCheck check;
  void* objects[50];
  for (void*& p : objects) p = GC_malloc(200);
  void* p = opaque(objects[20]);
  GC_free(p);
  GC_gcollect();
  GC_free(opaque(p));
  keep_here(objects);
  return report(check.whole());
}
JD_CHILD(free_twice_large) {
  GC_INIT();
  HeapCheck check;
  void* p = opaque(GC_malloc(100000));
  GC_free(p);
  GC_free(opaque(p));
  return report(check.whole());
}
JD_CHILD(free_wild) {
  GC_INIT();
  HeapCheck check;
  GC_free(reinterpret_cast<void*>(opaque(std::uintptr_t{0xdeadbeef000})));
  return report(check.whole());
}
JD_CHILD(free_never_allocated) {
  GC_INIT();
  HeapCheck check;
  // An address in a part of the heap that is in nobody's hands yet.
  auto* p = static_cast<char*>(GC_malloc(3000));
  if (GC_expand_hp(std::size_t{1} << 20) == 0) return 2;
  while (GC_is_heap_ptr(p) != 0 && GC_base(p) != nullptr) p += 4096;
  if (GC_is_heap_ptr(p) == 0) return 3;
  GC_free(opaque(p + 16));
  return report(check.whole());
}
JD_CHILD(free_next_slot) {
  GC_INIT();
  HeapCheck check;
  // The first object of its size: the thread has the next place in stock, and hands it out later.
  auto* p = static_cast<char*>(GC_malloc(3000));
  GC_free(opaque(p + GC_size(p)));
  void* q = GC_malloc(3000);
  void* r = GC_malloc(3000);
  return report(q != r && q != p && r != p && check.whole());
}

class BadFree : public testing::TestWithParam<const char*> {};

TEST_P(BadFree, SaysSoOrIsHarmless) {
  JD_OURS_ONLY("undefined with bdwgc");
  const ChildResult r = run_child(GetParam());
  EXPECT_FALSE(r.timed_out) << r;
  EXPECT_EQ(r.out.find("CORRUPT"), std::string::npos) << r;
  EXPECT_TRUE(r.ok() || r.signal == SIGABRT) << r;
  EXPECT_EQ(lines_with(r.err, "GC_free"), 1u) << r;
  EXPECT_EQ(count_lines(r.err), 1u) << r;
}

INSTANTIATE_TEST_SUITE_P(All, BadFree,
                         testing::Values("free_static", "free_stack", "free_malloced",
                                         "free_interior", "free_misaligned",
                                         "free_interior_of_large", "free_twice", "free_twice_later",
                                         "free_twice_large", "free_wild", "free_never_allocated",
                                         "free_next_slot"),
                         [](const auto& info) { return std::string(info.param); });

JD_CHILD(free_null) {
  GC_INIT();
  HeapCheck check;
  for (int i = 0; i < 100; ++i) GC_free(opaque(static_cast<void*>(nullptr)));
  return report(check.whole());
}

TEST(Misuse, FreeOfNullDoesNothing) {
  const ChildResult r = run_child("free_null");
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.err, "") << r;
}

JD_CHILD(free_before_init) {
  GC_free(opaque(static_cast<void*>(nullptr)));
  return list_length(make_list(100)) == 100 ? 0 : 1;
}

TEST(Misuse, AllocationInitialises) {
  const ChildResult r = run_child("free_before_init");
  EXPECT_TRUE(r.ok()) << r;
}

JD_CHILD(realloc_stack) {
  GC_INIT();
  HeapCheck check;
  char local[64];
  void* p = GC_realloc(opaque(&local[16]), 100);
  std::printf("%s\n", p == nullptr ? "null" : "object");
  return report(check.whole());
}
JD_CHILD(realloc_freed) {
  GC_INIT();
  HeapCheck check;
  void* p = opaque(GC_malloc(200));
  GC_free(p);
  void* q = GC_realloc(opaque(p), 3000);
  std::printf("%s\n", q == nullptr ? "null" : "object");
  return report(check.whole());
}

TEST(Misuse, ReallocOfAForeignPointer) {
  JD_OURS_ONLY("undefined with bdwgc");
  for (const char* name : {"realloc_stack", "realloc_freed"}) {
    const ChildResult r = run_child(name);
    EXPECT_FALSE(r.timed_out) << r;
    EXPECT_EQ(r.out.find("CORRUPT"), std::string::npos) << r;
    EXPECT_TRUE(r.ok() || r.signal == SIGABRT) << r;
    EXPECT_EQ(lines_with(r.err, "GC_realloc"), 1u) << r;
  }
}

JD_CHILD(size_of_nonsense) {
  GC_INIT();
  // GC_size of what is no object is undefined; GC_base is the question to ask.
  return GC_base(in_static) == nullptr && GC_is_heap_ptr(in_static) == 0 ? 0 : 1;
}

TEST(Misuse, QuestionsAboutForeignPointers) {
  const ChildResult r = run_child("size_of_nonsense");
  EXPECT_TRUE(r.ok()) << r;
}

// --- Threads that the collector does not know
// ---------------------------------------------------------

JD_CHILD(allocate_unregistered) {
  GC_INIT();
  GC_allow_register_threads();
  HeapCheck check;
  pthread_t thread;
  static std::size_t lengths[2];
  // Not a barrier of pthreads': within that, ThreadSanitizer lets no signal's handler run.
  static std::atomic<int> stage{0};
  static const auto wait_for_stage = [](int wanted) {
    while (stage != wanted) usleep(1000);
  };
  pthread_create(
      &thread, nullptr,
      [](void*) -> void* {
        // Nothing else holds it.
        void* volatile list = make_list(1000);
        GC_gcollect();
        lengths[0] = list_length(list);
        stage = 1;
        wait_for_stage(2);
        lengths[1] = list_length(list);
        return nullptr;
      },
      nullptr);
  wait_for_stage(1);
  GC_gcollect();
  stage = 2;
  pthread_join(thread, nullptr);
  if (lengths[0] != 1000 || lengths[1] != 1000) {
    std::printf("%zu and %zu of 1000\n", lengths[0], lengths[1]);
    return 2;
  }
  return report(check.whole());
}

TEST(Misuse, AllocationInAnUnregisteredThread) {
  JD_OURS_ONLY("bdwgc allocates without knowing the thread's stack");
  // What is lost is overwritten at once. (Another list in its place may well have its length.)
  const ChildResult r = run_child("allocate_unregistered", {{"JACKDAW_POISON", "1"}});
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.err, "") << r;
}

JD_CHILD(unregister_unregistered) {
  GC_INIT();
  GC_allow_register_threads();
  pthread_t thread;
  pthread_create(
      &thread, nullptr,
      [](void*) -> void* {
        GC_unregister_my_thread();
        return nullptr;
      },
      nullptr);
  pthread_join(thread, nullptr);
  return 0;
}

TEST(Misuse, UnregisteringAnUnknownThread) {
  JD_OURS_ONLY("bdwgc crashes");
  const ChildResult r = run_child("unregister_unregistered");
  EXPECT_TRUE(r.ok() || (r.signal == SIGABRT && count_lines(r.err) == 1)) << r;
}

JD_CHILD(link_outside_heap) {
  GC_INIT();
  static void* link;
  GC_register_disappearing_link(&link);
  return 0;
}
JD_CHILD(link_unaligned) {
  GC_INIT();
  static void* links[2];
  GC_general_register_disappearing_link(
      reinterpret_cast<void**>(opaque(reinterpret_cast<char*>(links) + 1)), GC_malloc(16));
  return 0;
}

TEST(Misuse, BadLinksAbort) {
  for (const char* name : {"link_outside_heap", "link_unaligned"}) {
    const ChildResult r = run_child(name);
    EXPECT_EQ(r.signal, SIGABRT) << r;
    EXPECT_NE(r.err.find("register_disappearing_link"), std::string::npos) << r;
  }
}

JD_CHILD(too_many_kinds) {
  GC_INIT();
  for (int i = 0; i < 300; ++i) GC_new_kind(GC_new_free_list(), GC_DS_LENGTH, 1, 1);
  return 0;
}
JD_CHILD(too_many_procs) {
  GC_INIT();
  for (int i = 0; i < 100; ++i) {
    GC_new_proc([](GC_word*, GC_ms_entry* msp, GC_ms_entry*, GC_word) { return msp; });
  }
  return 0;
}

TEST(Misuse, TooManyKindsOrProceduresAbort) {
  for (const char* name : {"too_many_kinds", "too_many_procs"}) {
    const ChildResult r = run_child(name);
    EXPECT_EQ(r.signal, SIGABRT) << r;
    EXPECT_NE(r.err.find("Too many"), std::string::npos) << r;
  }
}

JD_CHILD(enable_too_often) {
  GC_INIT();
  GC_enable();
  GC_enable();
  const GC_word before = GC_get_gc_no();
  GC_gcollect();
  return GC_get_gc_no() == before + 1 ? 0 : 1;
}

TEST(Misuse, EnableWithoutDisable) {
  JD_OURS_ONLY("bdwgc's counter goes below zero and disables collection");
  const ChildResult r = run_child("enable_too_often");
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_GE(lines_with(r.err, "GC_enable"), 1u) << r;
}

}  // namespace
}  // namespace jd::test
