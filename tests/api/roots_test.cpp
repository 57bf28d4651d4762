// Static data, explicit roots, exclusions, and the hook for roots of the client's own.
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "child.hpp"
#include "gc_test.hpp"

namespace jd::test {
namespace {

constexpr std::size_t kSlots = 500;

void* bss_slots[kSlots];
void* data_slots[kSlots] = {&bss_slots[0]};

// Fills the slots with objects that nothing else holds.
void fill(void** slots, std::size_t count, Watch* watch) {
  far_away([&] {
    for (std::size_t i = 0; i < count; ++i) {
      // Two objects apart: a word in static data may also hold its object's neighbour.
      opaque(GC_malloc(40));
      slots[i] = GC_malloc(40);
      opaque(GC_malloc(40));
      watch->add(slots[i]);
    }
  });
}

// Zeroes the slots but leaves no other trace.
void wipe(void** slots, std::size_t count) { std::memset(slots, 0, count * sizeof(void*)); }

TEST(Roots, StaticDataHoldsAndReleases) {
  for (void** slots : {bss_slots, data_slots}) {
    Watch watch;
    fill(slots, kSlots, &watch);
    collect();
    collect();
    EXPECT_TRUE(all_alive(watch));
    wipe(slots, kSlots);
    EXPECT_TRUE(most_collected(watch));
  }
}

TEST(Roots, FunctionLocalStaticHolds) {
  static void* slots[kSlots];
  Watch watch;
  fill(slots, kSlots, &watch);
  collect();
  EXPECT_TRUE(all_alive(watch));
  wipe(slots, kSlots);
}

TEST(Roots, MallocedMemoryIsNoRoot) {
  auto** slots = static_cast<void**>(std::malloc(kSlots * sizeof(void*)));
  Watch watch;
  fill(slots, kSlots, &watch);
  EXPECT_TRUE(most_collected(watch));
  std::free(slots);
}

TEST(Roots, AddedRangesHoldUntilRemoved) {
  auto** slots = static_cast<void**>(std::calloc(kSlots, sizeof(void*)));
  GC_add_roots(slots, slots + kSlots);
  Watch watch;
  fill(slots, kSlots, &watch);
  collect();
  collect();
  EXPECT_TRUE(all_alive(watch));
  GC_remove_roots(slots, slots + kSlots);
  EXPECT_TRUE(most_collected(watch));
  std::free(slots);
}

TEST(Roots, HundredsOfRanges) {
  constexpr std::size_t kRanges = 1000;
  constexpr std::size_t kEach = 3;
  // Gaps between the ranges, so that they cannot be joined.
  auto** memory = static_cast<void**>(std::calloc(kRanges * 8, sizeof(void*)));
  for (std::size_t i = 0; i < kRanges; ++i) {
    GC_add_roots(memory + 8 * i, memory + 8 * i + kEach);
  }
  Watch held;
  Watch in_gaps;
  far_away([&] {
    for (std::size_t i = 0; i < kRanges; ++i) {
      for (std::size_t k = 0; k < 8; k += 2) {
        void* p = GC_malloc(40);
        opaque(GC_malloc(40));
        memory[8 * i + k] = p;
        (k < kEach ? held : in_gaps).add(p);
      }
    }
  });
  collect();
  EXPECT_TRUE(all_alive(held));
  EXPECT_TRUE(most_collected(in_gaps));
  for (std::size_t i = 0; i < kRanges; i += 2) {
    GC_remove_roots(memory + 8 * i, memory + 8 * i + kEach);
  }
  collect();
  collect();
  EXPECT_LE(held.count_alive(), held.count() * 55 / 100);
  EXPECT_GE(held.count_alive(), held.count() / 2);
  for (std::size_t i = 1; i < kRanges; i += 2) {
    GC_remove_roots(memory + 8 * i, memory + 8 * i + kEach);
  }
  EXPECT_TRUE(most_collected(held));
  std::free(memory);
}

TEST(Roots, DuplicatesAndEmptyRangesAreHarmless) {
  auto** slots = static_cast<void**>(std::calloc(kSlots, sizeof(void*)));
  GC_add_roots(slots, slots);
  for (int i = 0; i < 5; ++i) GC_add_roots(slots, slots + kSlots);
  Watch watch;
  fill(slots, kSlots, &watch);
  collect();
  EXPECT_TRUE(all_alive(watch));
  GC_remove_roots(slots, slots + kSlots);
  EXPECT_TRUE(most_collected(watch));
  std::free(slots);
}

// Another part of the program may have added the rest, or the same words again.
TEST(Roots, RangesThatLieInsideOnlyInPartStay) {
  constexpr std::size_t kThird = kSlots / 3;
  auto** slots = static_cast<void**>(std::calloc(kSlots, sizeof(void*)));
  GC_add_roots(slots, slots + kSlots);
  GC_add_roots(slots + kThird, slots + 2 * kThird);
  Watch watch;
  fill(slots, kSlots, &watch);
  GC_remove_roots(slots + kThird, slots + 2 * kThird);
  GC_remove_roots(slots, slots + kThird);
  GC_remove_roots(slots + kThird, slots + kSlots);
  collect();
  collect();
  EXPECT_TRUE(all_alive(watch));
  GC_remove_roots(slots, slots + kSlots);
  EXPECT_TRUE(most_collected(watch));
  std::free(slots);
}

TEST(Roots, BoundsNeedNotBeAligned) {
  auto** slots = static_cast<void**>(std::calloc(kSlots + 2, sizeof(void*)));
  GC_add_roots(reinterpret_cast<char*>(slots) + 3, reinterpret_cast<char*>(slots + kSlots + 1) + 5);
  Watch watch;
  fill(slots + 1, kSlots, &watch);
  collect();
  EXPECT_TRUE(all_alive(watch));
  GC_remove_roots(slots, slots + kSlots + 2);
  std::free(slots);
}

TEST(Roots, ALargeSparseMappingAsRoot) {
  // As coroutine stacks are registered: 64 MiB of which little was ever touched.
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto** slots = static_cast<void**>(memory);
  const std::size_t words = kBytes / sizeof(void*);
  GC_add_roots(slots, slots + words);
  Watch watch;
  far_away([&] {
    for (std::size_t i = 0; i < 100; ++i) {
      void*& slot = slots[i * (words / 100) + 7];
      slot = GC_malloc(64);
      watch.add(slot);
    }
  });
  collect();
  collect();
  EXPECT_TRUE(all_alive(watch));
  GC_remove_roots(slots, slots + words);
  ASSERT_EQ(munmap(memory, kBytes), 0);
  EXPECT_TRUE(most_collected(watch));
}

// These change what the whole process treats as roots, so each has a process of its own.

void* cleared_slots[kSlots];

// A child's exit status: 0 if nearly all of the first were collected, and none of the second.
template <class Watched>
int check_child(Watched& dead, const char* dead_name, Watched& alive, const char* alive_name) {
  if (testing::AssertionResult r = most_collected(dead); !r) {
    std::fprintf(stderr, "%s: %s\n", dead_name, r.message());
    return 1;
  }
  if (testing::AssertionResult r = all_alive(alive); !r) {
    std::fprintf(stderr, "%s: %s\n", alive_name, r.message());
    return 2;
  }
  return 0;
}

JD_CHILD(clear_roots) {
  GC_set_no_dls(1);
  GC_INIT();
  GC_clear_roots();
  auto** slots = static_cast<void**>(std::calloc(kSlots, sizeof(void*)));
  GC_add_roots(slots, slots + kSlots);
  Watch by_static;
  Watch by_added;
  fill(cleared_slots, kSlots, &by_static);
  fill(slots, kSlots, &by_added);
  return check_child(by_static, "static data", by_added, "added roots");
}

// What counts is whether libraries are ignored when it collects: otherwise all is looked at anew.
JD_CHILD(clear_roots_before_ignoring) {
  GC_INIT();
  GC_clear_roots();
  Watch watch;
  fill(cleared_slots, kSlots, &watch);
  collect();
  if (testing::AssertionResult r = all_alive(watch); !r) return 1;
  GC_set_no_dls(1);
  return most_collected(watch) ? 0 : 2;
}
JD_CHILD(clear_roots_while_ignoring) {
  GC_set_no_dls(1);
  GC_INIT();
  GC_clear_roots();
  GC_set_no_dls(0);
  Watch watch;
  fill(cleared_slots, kSlots, &watch);
  collect();
  return all_alive(watch) ? 0 : 1;
}

TEST(Roots, WhatClearRootsForgetsMayComeBack) {
  for (const char* child : {"clear_roots_before_ignoring", "clear_roots_while_ignoring"}) {
    const ChildResult r = run_child(child);
    EXPECT_TRUE(r.ok()) << child << r;
  }
}

TEST(Roots, ClearRootsForgetsStaticData) {
  const ChildResult r = run_child("clear_roots");
  EXPECT_TRUE(r.ok()) << r;
}

void* excluded_slots[kSlots];

JD_CHILD(exclude_roots) {
  GC_INIT();
  // Page-sized arrays would share words with neighbours; the inner part is what counts.
  GC_exclude_static_roots(excluded_slots, excluded_slots + kSlots);
  Watch excluded;
  Watch other;
  fill(excluded_slots, kSlots, &excluded);
  fill(bss_slots, kSlots, &other);
  return check_child(excluded, "excluded", other, "not excluded");
}

TEST(Roots, ExcludedStaticDataHoldsNothing) {
  const ChildResult r = run_child("exclude_roots");
  EXPECT_TRUE(r.ok()) << r;
}

JD_CHILD(exclude_and_forget) {
  GC_INIT();
  GC_exclude_static_roots(bss_slots, bss_slots + kSlots);
  GC_clear_exclusion_table();
  GC_exclude_static_roots(excluded_slots, excluded_slots + kSlots);
  Watch excluded;
  Watch other;
  fill(excluded_slots, kSlots, &excluded);
  fill(bss_slots, kSlots, &other);
  return check_child(excluded, "excluded", other, "not excluded");
}

TEST(Roots, ForgottenExclusionsHoldAgain) {
  const ChildResult r = run_child("exclude_and_forget");
  EXPECT_TRUE(r.ok()) << r;
}

JD_CHILD(exclude_added_roots) {
  GC_INIT();
  auto** slots = static_cast<void**>(std::calloc(3 * kSlots, sizeof(void*)));
  GC_add_roots(slots, slots + 3 * kSlots);
  GC_exclude_static_roots(slots + kSlots, slots + 2 * kSlots);
  Watch excluded;
  Watch other;
  fill(slots, kSlots, &other);
  fill(slots + kSlots, kSlots, &excluded);
  fill(slots + 2 * kSlots, kSlots, &other);
  return check_child(excluded, "excluded", other, "not excluded");
}

TEST(Roots, AnExcludedPartOfAnAddedRangeHoldsNothing) {
  const ChildResult r = run_child("exclude_added_roots");
  EXPECT_TRUE(r.ok()) << r;
}

// Every other slot by itself, from the last to the first, and some twice; the collecting thread has
// a small stack.
JD_CHILD(exclude_slot_by_slot) {
  GC_INIT();
  constexpr std::size_t kAll = 4 * kSlots;
  auto** slots = static_cast<void**>(std::calloc(kAll, sizeof(void*)));
  GC_add_roots(slots, slots + kAll);
  for (std::size_t i = kAll - 1; i < kAll; i -= 2)
    GC_exclude_static_roots(slots + i, slots + i + 1);
  for (std::size_t i = 1; i < kAll; i += 10) GC_exclude_static_roots(slots + i, slots + i + 1);
  GC_exclude_static_roots(slots + 4, slots + 4);
  Watch excluded;
  Watch other;
  for (std::size_t i = 0; i < kAll; i += 2) fill(slots + i, 1, &other);
  for (std::size_t i = 1; i < kAll; i += 2) fill(slots + i, 1, &excluded);
#if !defined(JD_SANITIZE_ADDRESS) && !defined(JD_SANITIZE_THREAD)
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 * 1024);
  pthread_t thread;
  const auto collect_here = [](void*) -> void* {
    GC_gcollect();
    return nullptr;
  };
  if (GC_pthread_create(&thread, &attributes, collect_here, nullptr) != 0) return 3;
  GC_pthread_join(thread, nullptr);
#endif
  return check_child(excluded, "excluded", other, "not excluded");
}

// Regression: each took a frame of the collecting thread's stack.
TEST(Roots, ManyPartsOfARangeMayBeExcluded) {
  JD_OURS_ONLY("aborts at 2000 exclusions");
  const ChildResult r = run_child("exclude_slot_by_slot");
  EXPECT_TRUE(r.ok()) << r;
}

// --- The hook ------------------------------------------------------------------------------------

void** hook_slots;
std::size_t hook_calls;
GC_push_other_roots_proc previous_hook;

void push_hook_slots() {
  ++hook_calls;
  GC_push_all(hook_slots, hook_slots + kSlots);
  previous_hook();
}

void push_hook_slots_eagerly() {
  ++hook_calls;
  GC_push_all_eager(hook_slots, hook_slots + kSlots);
  previous_hook();
}

void push_hook_slots_conditionally() {
  ++hook_calls;
  GC_push_conditional(hook_slots, hook_slots + kSlots, 1);
  previous_hook();
}

class PushOtherRoots : public testing::TestWithParam<GC_push_other_roots_proc> {};

TEST_P(PushOtherRoots, HoldsWhatItPushes) {
  hook_slots = static_cast<void**>(std::calloc(kSlots, sizeof(void*)));
  previous_hook = GC_get_push_other_roots();
  ASSERT_NE(previous_hook, nullptr);
  hook_calls = 0;
  GC_set_push_other_roots(GetParam());
  Watch watch;
  fill(hook_slots, kSlots, &watch);
  collect();
  EXPECT_TRUE(all_alive(watch));
  EXPECT_GE(hook_calls, 1u);
  // The stack still counts.
  Watch on_stack;
  void* volatile held = GC_malloc(100);
  on_stack.add(held);
  collect();
  EXPECT_TRUE(all_alive(on_stack));
  keep_here(held);
  GC_set_push_other_roots(previous_hook);
  EXPECT_TRUE(most_collected(watch));
  std::free(hook_slots);
}

INSTANTIATE_TEST_SUITE_P(All, PushOtherRoots,
                         testing::Values(push_hook_slots, push_hook_slots_eagerly,
                                         push_hook_slots_conditionally));

// An atomic object, held by nothing but the mark bit that the hook sets, is a stack of the
// client's.
void** marked_stack_hidden;

void push_marked_stack() {
  auto** stack = static_cast<void**>(GC_REVEAL_POINTER(marked_stack_hidden));
  GC_push_conditional(stack, stack + kSlots, 1);
  GC_set_mark_bit(stack);
  previous_hook();
}

TEST(Roots, TheHookMayMarkAnObjectItself) {
  previous_hook = GC_get_push_other_roots();
  Watch watch;
  far_away([&] {
    auto** stack = static_cast<void**>(GC_malloc_atomic(kSlots * sizeof(void*)));
    std::memset(stack, 0, kSlots * sizeof(void*));
    marked_stack_hidden = reinterpret_cast<void**>(GC_HIDE_POINTER(stack));
    watch.add(stack);
    for (std::size_t i = 0; i < kSlots; ++i) {
      stack[i] = GC_malloc(40);
      watch.add(stack[i]);
    }
  });
  GC_set_push_other_roots(push_marked_stack);
  collect();
  collect();
  EXPECT_TRUE(all_alive(watch));
  GC_set_push_other_roots(previous_hook);
  EXPECT_TRUE(most_collected(watch));
}

// A hook that names the whole stack it runs on. What is in its own frames is another thing each
// time it is called: the second time, in the verifier, the ends of objects that died.
constexpr std::size_t kDead = 100;
GC_hidden_pointer dead_ends[kDead];
char* stack_to_push_low;
char* stack_to_push_high;

[[gnu::no_sanitize_address]] void push_whole_stack() {
  void* volatile in_frame[kDead] = {};
  if (++hook_calls % 2 == 0) {
    for (std::size_t i = 0; i < kDead; ++i) in_frame[i] = GC_REVEAL_POINTER(dead_ends[i]);
  }
  GC_push_all_eager(stack_to_push_low, stack_to_push_high);
  keep_here(const_cast<void*>(in_frame[0]));
  previous_hook();
}

JD_CHILD(push_whole_stack) {
  GC_INIT();
  GC_stack_base base;
  GC_get_stack_base(&base);
  stack_to_push_low = static_cast<char*>(__builtin_frame_address(0)) - 16 * 1024;
  stack_to_push_high = static_cast<char*>(base.mem_base);
  far_away([] {
    for (GC_hidden_pointer& end : dead_ends) {
      end = GC_HIDE_POINTER(static_cast<char*>(GC_malloc(32)) + 32);
    }
  });
  clear_stack();
  previous_hook = GC_get_push_other_roots();
  GC_set_push_other_roots(push_whole_stack);
  GC_gcollect();
  return hook_calls == 2 ? 0 : 1;
}

// Regression: the verifier took what had changed in the collector's frames for roots that were not
// marked from.
TEST(Roots, TheHookMayNameTheStackThatItRunsOn) {
  JD_OURS_ONLY("it has no verifier");
  const ChildResult r =
      run_child("push_whole_stack", {{"JACKDAW_VERIFY", "1"}, {"JACKDAW_COLLECT_EVERY", kUnset}});
  EXPECT_TRUE(r.ok()) << r;
}

}  // namespace
}  // namespace jd::test
