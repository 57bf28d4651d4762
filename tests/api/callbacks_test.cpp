// Functions of the client's that the collector calls: events, start, resize, warnings, memory
// shortage.
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "child.hpp"
#include "gc_test.hpp"
#include "threads.hpp"

namespace jd::test {
namespace {

struct Trace {
  int events[64];
  std::size_t count;
};
Trace trace;

constexpr int kStartCallback = 100;

void note(int event) {
  if (trace.count < 64) trace.events[trace.count++] = event;
}
void on_event(GC_EventType event) { note(event); }
void on_start() { note(kStartCallback); }

// cycle.req.order
TEST(Callbacks, EventsComeInOrder) {
  GC_set_on_collection_event(on_event);
  EXPECT_EQ(GC_get_on_collection_event(), on_event);
  GC_set_start_callback(on_start);
  EXPECT_EQ(GC_get_start_callback(), on_start);
  trace.count = 0;
  GC_gcollect();
  GC_set_on_collection_event(nullptr);
  GC_set_start_callback(nullptr);
  const std::vector<int> expected = {GC_EVENT_START,
                                     kStartCallback,
                                     GC_EVENT_PRE_STOP_WORLD,
                                     GC_EVENT_POST_STOP_WORLD,
                                     GC_EVENT_MARK_START,
                                     GC_EVENT_MARK_END,
                                     GC_EVENT_PRE_START_WORLD,
                                     GC_EVENT_POST_START_WORLD,
                                     GC_EVENT_RECLAIM_START,
                                     GC_EVENT_RECLAIM_END,
                                     GC_EVENT_END};
  EXPECT_EQ(std::vector<int>(trace.events, trace.events + trace.count), expected);
}

// bdwgc's count goes up when everything is marked.
TEST(Callbacks, TheNumberOfACollectionChangesWhenItHasMarked) {
  static GC_word numbers[64];
  static GC_word bytes_at_end;
  GC_set_on_collection_event([](GC_EventType event) {
    numbers[event] = GC_get_gc_no();
    if (event == GC_EVENT_RECLAIM_END) bytes_at_end = GC_get_bytes_since_gc();
  });
  opaque(GC_malloc(100000));
  const GC_word before = GC_get_gc_no();
  GC_gcollect();
  GC_set_on_collection_event(nullptr);
  for (const int event : {GC_EVENT_START, GC_EVENT_POST_STOP_WORLD, GC_EVENT_MARK_START}) {
    EXPECT_EQ(numbers[event], before) << event;
  }
  for (const int event : {GC_EVENT_MARK_END, GC_EVENT_POST_START_WORLD, GC_EVENT_RECLAIM_START,
                          GC_EVENT_RECLAIM_END, GC_EVENT_END}) {
    EXPECT_EQ(numbers[event], before + 1) << event;
  }
  EXPECT_EQ(bytes_at_end, 0u);
}

TEST(Callbacks, EveryAutomaticCollectionHasEvents) {
  static std::size_t starts;
  static std::size_t ends;
  starts = ends = 0;
  GC_set_on_collection_event([](GC_EventType event) {
    starts += event == GC_EVENT_START;
    ends += event == GC_EVENT_END;
  });
  const GC_word before = GC_get_gc_no();
  for (int i = 0; i < 10000000 && GC_get_gc_no() < before + 5; ++i) opaque(GC_malloc(1000));
  GC_set_on_collection_event(nullptr);
  EXPECT_GE(ends, 5u);
  EXPECT_EQ(starts, ends);
}

TEST(Callbacks, ThreadEventsNameTheStoppedThread) {
  static std::atomic<int> suspended;
  static std::atomic<int> resumed;
  static pthread_t seen;
  suspended = resumed = 0;
  std::atomic<bool> finish{false};
  std::atomic<bool> started{false};
  GcThread other([&] {
    started = true;
    while (!finish.load()) opaque(GC_malloc(16));
  });
  while (!started.load()) {
  }
  GC_set_on_thread_event([](GC_EventType event, void* thread) {
    if (event == GC_EVENT_THREAD_SUSPENDED) {
      ++suspended;
      std::memcpy(&seen, &thread, sizeof seen);
    }
    if (event == GC_EVENT_THREAD_UNSUSPENDED) ++resumed;
  });
  GC_gcollect();
  EXPECT_GE(suspended.load(), 1);
  EXPECT_EQ(suspended.load(), resumed.load());
  suspended = resumed = 0;
  GC_stop_world_external();
  // The other thread may have collected right before.
  EXPECT_GE(suspended.load(), 1);
  EXPECT_EQ(resumed.load(), suspended.load() - 1);
  GC_start_world_external();
  EXPECT_EQ(suspended.load(), resumed.load());
  GC_set_on_thread_event(nullptr);
  finish = true;
  other.join();
  EXPECT_EQ(GC_get_on_thread_event(), nullptr);
}

TEST(Callbacks, HeapResizeTellsTheNewSize) {
  static GC_word last;
  static int calls;
  last = 0;
  calls = 0;
  GC_set_on_heap_resize([](GC_word size) {
    last = size;
    ++calls;
  });
  ASSERT_EQ(GC_expand_hp(std::size_t{8} << 20), 1);
  GC_set_on_heap_resize(nullptr);
  EXPECT_GE(calls, 1);
  EXPECT_GE(last, GC_word{8} << 20);
  // bdwgc counts what it gave back.
  EXPECT_EQ(last, GC_get_heap_size() + (kPeer ? GC_get_unmapped_bytes() : 0));
}

std::string last_warning;
int warnings;

void keep_warning(char* format, GC_word argument) {
  // The argument belongs to a format with one conversion, or to none.
  char text[300];
  std::snprintf(text, sizeof text, format, argument);
  last_warning = text;
  ++warnings;
}

TEST(Callbacks, WarningsGoToTheWarnProc) {
  const GC_warn_proc before = GC_get_warn_proc();
  ASSERT_NE(before, nullptr);
  GC_set_warn_proc(keep_warning);
  EXPECT_EQ(GC_get_warn_proc(), keep_warning);
  warnings = 0;
  EXPECT_EQ(GC_malloc(opaque(std::size_t{1} << 60)), nullptr);
  EXPECT_GE(warnings, 1);
  EXPECT_EQ(last_warning.rfind("GC Warning: ", 0), 0u) << last_warning;
  GC_set_warn_proc(before);
}

// One that leaves by longjmp is called the next time, too.
std::jmp_buf out_of_warning;
TEST(Callbacks, AWarnProcMayLeave) {
  const GC_warn_proc before = GC_get_warn_proc();
  warnings = 0;
  GC_set_warn_proc([](char*, GC_word) {
    ++warnings;
    std::longjmp(out_of_warning, 1);
  });
  static int call;
  for (call = 0; call < 3; ++call) {
    if (setjmp(out_of_warning) == 0) opaque(GC_malloc(opaque(std::size_t{1} << 60)));
  }
  EXPECT_EQ(warnings, 3);
  GC_set_warn_proc(before);
}

// Programs' own go on to it with texts of their own.
TEST(Callbacks, TheDefaultWarnProcTakesAnyFormatOfAWord) {
  const GC_warn_proc warn = GC_get_warn_proc();
  const auto told = [warn](const char* format) {
    testing::internal::CaptureStderr();
    warn(const_cast<char*>(format), 42);
    return testing::internal::GetCapturedStderr();
  };
  for (const char* format : {"a %ld b", "a %lu b", "a %zu b", "a %5lu b\n", "100%% of 42\n"}) {
    char expected[40];
    std::snprintf(expected, sizeof expected, format, 42ul);
    if (char* end = std::strchr(expected, '\n')) *end = '\0';
    EXPECT_NE(told(format).find(expected), std::string::npos) << told(format);
  }
  EXPECT_NE(told("%p").find("0x2a"), std::string::npos) << told("%p");
  EXPECT_NE(told("%lx").find("2a"), std::string::npos) << told("%lx");
}

TEST(Callbacks, IgnoredWarningsAreSilent) {
  GC_set_warn_proc(GC_ignore_warn_proc);
  testing::internal::CaptureStderr();
  EXPECT_EQ(GC_malloc(opaque(std::size_t{1} << 60)), nullptr);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

std::size_t asked_for;
int oom_calls;
char substitute[64];

void* oom_null(std::size_t bytes) {
  asked_for = bytes;
  ++oom_calls;
  return nullptr;
}
void* oom_substitute(std::size_t bytes) {
  asked_for = bytes;
  ++oom_calls;
  return substitute;
}

TEST(Callbacks, TheOutOfMemoryFunctionsResultIsReturned) {
  GC_set_warn_proc(GC_ignore_warn_proc);
  const GC_oom_func before = GC_get_oom_fn();
  ASSERT_NE(before, nullptr);
  constexpr std::size_t kTooMuch = std::size_t{1} << 60;
  GC_set_oom_fn(oom_null);
  EXPECT_EQ(GC_get_oom_fn(), oom_null);
  oom_calls = 0;
  EXPECT_EQ(GC_malloc(opaque(kTooMuch)), nullptr);
  EXPECT_GE(oom_calls, 1);
  EXPECT_GE(asked_for, kTooMuch);
  GC_set_oom_fn(oom_substitute);
  EXPECT_EQ(opaque(GC_malloc(opaque(kTooMuch))), static_cast<void*>(substitute));
  EXPECT_EQ(opaque(GC_malloc_atomic(opaque(kTooMuch))), static_cast<void*>(substitute));
  // bdwgc takes the result for an object of its own and crashes.
  if (!kPeer) {
    EXPECT_EQ(opaque(GC_malloc_uncollectable(opaque(kTooMuch))), static_cast<void*>(substitute));
  }
  EXPECT_EQ(opaque(GC_malloc_ignore_off_page(opaque(kTooMuch))), static_cast<void*>(substitute));
  GC_set_oom_fn(before);
}

// Regression: the promise to keep a pointer to the beginning was taken to be of that object.
char* inside_reserve;
constexpr std::size_t kReserve = 100000;

TEST(Callbacks, AnObjectOfTheOutOfMemoryFunctionsIsHeldAsBefore) {
  GC_set_warn_proc(GC_ignore_warn_proc);
  const GC_oom_func before = GC_get_oom_fn();
  Watch watch;
  far_away([&] {
    auto* reserve = static_cast<char*>(GC_malloc(kReserve));
    watch.add(reserve);
    inside_reserve = reserve + kReserve / 2;
    GC_set_oom_fn([](std::size_t) -> void* { return inside_reserve - kReserve / 2; });
    EXPECT_EQ(GC_malloc_ignore_off_page(opaque(std::size_t{1} << 60)), reserve);
  });
  collect_all();
  EXPECT_TRUE(all_alive(watch));
  inside_reserve = nullptr;
  GC_set_oom_fn(before);
}

TEST(Callbacks, TheOutOfMemoryFunctionMayCollectAndAllocate) {
  GC_set_warn_proc(GC_ignore_warn_proc);
  const GC_oom_func before = GC_get_oom_fn();
  GC_set_oom_fn([](std::size_t) -> void* {
    GC_set_oom_fn(GC_get_oom_fn());
    GC_gcollect();
    return GC_malloc(64);
  });
  void* p = GC_malloc(opaque(std::size_t{1} << 60));
  EXPECT_NE(p, nullptr);
  EXPECT_EQ(GC_base(p), p);
  GC_set_oom_fn(before);
}

JD_CHILD(abort_func) {
  GC_INIT();
  GC_set_abort_func([](const char* message) {
    std::fprintf(stderr, "[%s]\n", message != nullptr ? message : "none");
  });
  // Not allowed before GC_allow_register_threads().
  GC_stack_base base;
  GC_get_stack_base(&base);
  GC_register_my_thread(&base);
  return 0;
}

TEST(Callbacks, TheAbortFunctionGetsTheMessage) {
  const ChildResult r = run_child("abort_func");
  EXPECT_EQ(r.signal, SIGABRT) << r;
  EXPECT_EQ(r.err.rfind('[', 0), 0u) << r;
  EXPECT_NE(r.err.find("explicit registering"), std::string::npos) << r;
}

JD_CHILD(abort_on_oom) {
  GC_INIT();
  GC_set_oom_fn([](std::size_t) -> void* {
    GC_abort_on_oom();
    return nullptr;
  });
  opaque(GC_malloc(opaque(std::size_t{1} << 60)));
  return 0;
}

TEST(Callbacks, AbortOnOomEndsTheProgramWithALine) {
  const ChildResult r = run_child("abort_on_oom");
  EXPECT_NE(r.status, 0) << r;
  EXPECT_NE(r.err.find("Insufficient memory"), std::string::npos) << r;
}

}  // namespace
}  // namespace jd::test
