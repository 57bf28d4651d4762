// What is short. If it comes from a thread that is no worker, that thread runs it itself, and hands
// over what proves long after all; a worker cuts it into few pieces, and these where somebody wants
// a part.
#include <gc/gc.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <jackdaw/task.h>
#include <pthread.h>
#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <jackdaw/task.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using jd::task_detail::short_limit;
using jd::task_detail::Shortness;
using jd::task_detail::shortness;
using jd::task_detail::SortTimes;

// As after calls that were.
template <class Function>
void make_short() {
  // A thread that the collector does not know yet hands over everything.
  jd::run([] {});
  for (int i = 0; i < Shortness::kMostTimes; ++i) shortness<Function>.note(0);
}

void take_long() { std::this_thread::sleep_for(std::chrono::nanoseconds(2 * short_limit())); }

TEST(Shortness, IsExpectedAfterSeveralShortOnesAndNoLong) {
  Shortness past;
  for (int i = 0; i < Shortness::kTimes; ++i) {
    EXPECT_FALSE(past.is_expected());
    past.note(short_limit() - 1);
  }
  EXPECT_TRUE(past.is_expected());
  past.note(short_limit());
  EXPECT_FALSE(past.is_expected());
  past.note(0);
  EXPECT_FALSE(past.is_expected());
}

// A loop that forks into a scope, say, which takes longer than in a worker, was tried at each fifth
// call.
TEST(Shortness, IsTriedMoreRarelyAfterEachTryInVain) {
  Shortness past;
  const auto calls_until_tried = [&past] {
    int calls = 0;
    for (; !past.is_expected(); ++calls) past.note(0);
    return calls;
  };
  EXPECT_EQ(calls_until_tried(), Shortness::kTimes);
  past.note_here(short_limit());
  EXPECT_EQ(calls_until_tried(), 2 * Shortness::kTimes);
  for (int i = 0; i < 10; ++i) past.note_here(short_limit());
  EXPECT_EQ(calls_until_tried(), Shortness::kMostTimes);
  past.note_here(0);
  for (int i = 0; i < 2; ++i) past.note(short_limit());
  EXPECT_EQ(calls_until_tried(), Shortness::kTimes) << "a try was not in vain";
}

// One that was preempted cost as many hand-overs as one that has become long: on a busy host there
// was one again and again.
TEST(Shortness, ForgivesALongOneAmongManyShortOnes) {
  Shortness past;
  for (int i = 0; i < Shortness::kMostTimes; ++i) past.note(0);
  for (int round = 0; round < 3; ++round) {
    past.note_here(short_limit());
    EXPECT_FALSE(past.is_expected()) << "it has to be short once more";
    past.note(0);
    EXPECT_TRUE(past.is_expected());
    for (int i = 0; i < 10; ++i) past.note_here(0);
  }
  for (int i = 0; i < 2; ++i) {
    past.note_here(short_limit());
    EXPECT_FALSE(past.is_expected());
  }
  for (int i = 0; i < Shortness::kTimes; ++i) {
    past.note(0);
    EXPECT_FALSE(past.is_expected()) << "two in a row are not forgiven";
  }
}

TEST(Shortness, IsNeverExpectedOfWhatIsAlwaysLong) {
  Shortness past;
  for (int i = 0; i < Shortness::kMostTimes; ++i) past.note(0);
  for (int i = 0; i < 100; ++i) {
    past.note(short_limit());
    EXPECT_FALSE(past.is_expected());
  }
}

// Every other one.
TEST(Shortness, IsNotExpectedOfWhatIsOftenLong) {
  Shortness past;
  int tries = 0;
  for (int i = 0; i < 100; ++i) {
    const bool is_long = i % 2 == 0;
    if (past.is_expected()) {
      ++tries;
      past.note_here(is_long ? short_limit() : 0);
    } else {
      past.note(is_long ? short_limit() : 0);
    }
  }
  EXPECT_EQ(tries, 0);
}

TEST(Shortness, OfASortGoesByItsLength) {
  SortTimes past;
  EXPECT_FALSE(past.is_expected(1));
  past.note(5000, short_limit() / 2);
  EXPECT_TRUE(past.is_expected(5000));
  EXPECT_TRUE(past.is_expected(9000));
  EXPECT_FALSE(past.is_expected(11000));
  past.note(5000, 1000 * short_limit());
  EXPECT_TRUE(past.is_expected(4000)) << "once, by whatever came between";
  EXPECT_FALSE(past.is_expected(6000));
  for (int i = 0; i < 20; ++i) past.note(5000, 1000 * short_limit());
  EXPECT_FALSE(past.is_expected(100));
  for (int i = 0; i < 20; ++i) past.note(100, 1);
  EXPECT_TRUE(past.is_expected(5000));
}

TEST(Short, IsOnlyWhatComesFromAThreadThatIsNoWorker) {
  jd::run([] { EXPECT_EQ(jd_task_may_run_here(), 0); });
  jd::run([] { jd::blocking([] { EXPECT_EQ(jd_task_may_run_here(), 0); }); });
  EXPECT_EQ(jd_task_may_run_here(), 1);
}

// A stack of the program's own whose end it has told: how far it reaches down is not known. In a
// thread of its own, for which it is not known any more afterwards.
void run_on_own_stack(int* may_run_there) {
  static ucontext_t caller;
  static int may_run = -1;
  alignas(16) static char stack[std::size_t{256} << 10];
  jd::run([] {});
  GC_stack_base own;
  void* const thread = GC_get_my_stackbottom(&own);
  const auto set_bottom = [](void* of_thread, const GC_stack_base* bottom) {
    GC_alloc_lock();
    GC_set_stackbottom(of_thread, bottom);
    GC_alloc_unlock();
  };
  GC_stack_base told = own;
  told.mem_base = stack + sizeof stack;
  ucontext_t fiber;
  getcontext(&fiber);
  fiber.uc_stack.ss_sp = stack;
  fiber.uc_stack.ss_size = sizeof stack;
  fiber.uc_link = &caller;
  makecontext(
      &fiber, [] { may_run = jd_task_may_run_here(); }, 0);
  set_bottom(thread, &told);
  swapcontext(&caller, &fiber);
  set_bottom(thread, &own);
  *may_run_there = may_run;
}

TEST(Short, RunsOnNoStackOfUnknownSize) {
#if defined(JD_SANITIZE_ADDRESS) || defined(JD_SANITIZE_THREAD)
  GTEST_SKIP() << "the sanitizer does not follow to a stack of the program's own";
#endif
  int may_run = -1;
  std::thread(run_on_own_stack, &may_run).join();
  EXPECT_EQ(may_run, 0);
}

TEST(Short, NeedsAboutTheStackOfATask) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 1024 * 1024);
  pthread_t thread;
  static int may;
  may = 2;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void*) -> void* {
                  jd::run([] {});
                  may = jd_task_may_run_here();
                  return nullptr;
                },
                nullptr),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_EQ(may, 0);
}

// Notes which indices were whose.
struct Body {
  std::vector<std::atomic<int>>* calls;
  std::vector<std::atomic<int>>* in_workers;
  int long_index;
  int throws;
  void operator()(int i) const {
    const auto at = static_cast<std::size_t>(i);
    ++(*calls)[at];
    (*in_workers)[at] = jd_task_in_worker();
    if (i == long_index) take_long();
    if (i == throws) throw std::runtime_error(std::to_string(i));
  }
};

class ShortLoop : public testing::Test {
 protected:
  void run(int long_index, int throws = -1) {
    make_short<Body>();
    const Body body{&calls, &in_workers, long_index, throws};
    Body copy = body;
    jd::parallel_for(0, 1000, copy);
  }
  void expect_all_called_once() {
    for (const auto& count : calls) ASSERT_EQ(count.load(), 1);
  }

  std::vector<std::atomic<int>> calls = std::vector<std::atomic<int>>(1000);
  std::vector<std::atomic<int>> in_workers = std::vector<std::atomic<int>>(1000);
};

TEST_F(ShortLoop, IsTheCallers) {
  run(-1);
  expect_all_called_once();
  EXPECT_EQ(in_workers[0].load(), 0);
}

TEST_F(ShortLoop, ThatIsLongThisTimeIsHandedOver) {
  run(0);
  expect_all_called_once();
  EXPECT_EQ(in_workers[0].load(), 0);
  for (std::size_t i = 1; i < 1000; ++i) ASSERT_EQ(in_workers[i].load(), 1) << i;
}

TEST_F(ShortLoop, ThrowsWhatWasThrownFirstWhenAllHaveEnded) {
  EXPECT_THROW(run(-1, 0), std::runtime_error);
  expect_all_called_once();
}

TEST_F(ShortLoop, ThrowsWhatWasThrownBeforeTheRestWasHandedOver) {
  EXPECT_THROW(run(0, 0), std::runtime_error);
  expect_all_called_once();
}

TEST_F(ShortLoop, ThrowsWhatIsThrownWhereItIsHandedOver) {
  EXPECT_THROW(run(0, 999), std::runtime_error);
  expect_all_called_once();
}

struct Digit {
  int long_index;
  std::string operator()(int i) const {
    if (i == long_index) take_long();
    return std::to_string(i % 10);
  }
};
struct Append {
  std::string operator()(std::string a, const std::string& b) const { return a += b; }
};

TEST(ShortReduction, KeepsTheOrder) {
  std::string expected;
  for (int i = 0; i < 1000; ++i) expected += std::to_string(i % 10);
  for (const int long_index : {-1, 0, 20, 999}) {
    make_short<std::pair<Digit, Append>>();
    Digit map{long_index};
    Append combine;
    EXPECT_EQ(jd::parallel_reduce(0, 1000, std::string(), map, combine), expected);
  }
}

struct First {
  int* in_worker;
  bool is_long;
  int throws;
  int operator()() const {
    *in_worker = jd_task_in_worker();
    if (is_long) take_long();
    if (throws != 0) throw throws;
    return 1;
  }
};
struct Second {
  int* in_worker;
  int throws;
  int operator()() const {
    *in_worker = jd_task_in_worker();
    if (throws != 0) throw throws;
    return 2;
  }
};

TEST(ShortPair, IsTheCallers) {
  make_short<std::pair<First, Second>>();
  int first_in_worker = 2;
  int second_in_worker = 2;
  First first{&first_in_worker, false, 0};
  Second second{&second_in_worker, 0};
  EXPECT_EQ(jd::par(first, second), std::make_pair(1, 2));
  EXPECT_EQ(first_in_worker, 0);
}

TEST(ShortPair, ThatIsLongThisTimeIsHandedOver) {
  make_short<std::pair<First, Second>>();
  int first_in_worker = 2;
  int second_in_worker = 2;
  First first{&first_in_worker, true, 0};
  Second second{&second_in_worker, 0};
  EXPECT_EQ(jd::par(first, second), std::make_pair(1, 2));
  EXPECT_EQ(first_in_worker, 0);
  EXPECT_EQ(second_in_worker, 1);
  EXPECT_EQ(jd::par(first, second), std::make_pair(1, 2));
  EXPECT_EQ(first_in_worker, 1) << "it has to prove short anew";
}

TEST(ShortPair, CallsBothAndThrowsTheFirst) {
  for (const bool is_long : {false, true}) {
    make_short<std::pair<First, Second>>();
    int first_in_worker = 2;
    int second_in_worker = 2;
    First first{&first_in_worker, is_long, 5};
    Second second{&second_in_worker, 6};
    int thrown = 0;
    try {
      jd::par(first, second);
    } catch (int number) {
      thrown = number;
    }
    EXPECT_EQ(thrown, 5);
    EXPECT_NE(second_in_worker, 2) << "it was not called";
    if (is_long) {
      EXPECT_EQ(second_in_worker, 1);
    }
  }
}

// With one worker the parts of such a pair went to it, one by one.
TEST(ShortLoops, ForkByCallsWhereThereIsOneWorker) {
#if !defined(JD_TASK_DIRECT_FORKS)
  GTEST_SKIP() << "forks are no calls here";
#else
  for (const unsigned workers : {1u, 2u}) {
    jd_task_stop();
    ASSERT_EQ(jd_task_start(workers), workers);
    std::atomic<int> in_worker{0};
    std::atomic<int> direct{0};
    const auto count = [&in_worker, &direct] {
      in_worker += jd_task_in_worker();
      direct += jd_task_direct != 0 && jd_task_in_worker() == 0 ? 1 : 0;
    };
    auto body = [&count](int) { jd::par(count, count); };
    make_short<decltype(body)>();
    jd::parallel_for(0, 1, body);
    EXPECT_EQ(direct.load(), workers == 1 ? 2 : 0);
    EXPECT_EQ(in_worker.load(), workers == 1 ? 0 : 2);
    EXPECT_EQ(jd_task_direct, 0);
  }
  jd_task_stop();
#endif
}

// In a worker each loop was 64 pieces a worker, however short.
struct Number {
  int operator()(int i) const { return i; }
};
struct Pieces {
  long sum = 0;
  int joins = 0;
};
struct AddNumbers {
  Pieces operator()(Pieces a, int i) const { return {a.sum + i, a.joins}; }
  Pieces operator()(Pieces a, Pieces b) const { return {a.sum + b.sum, a.joins + b.joins + 1}; }
};
TEST(ShortInAWorker, IsFewPieces) {
  jd_task_stop();
  ASSERT_EQ(jd_task_start(1), 1u);
  for (const bool is_short : {false, true}) {
    if (is_short) make_short<std::pair<Number, AddNumbers>>();
    const Pieces pieces = jd::run([] {
      Number map;
      AddNumbers combine;
      return jd::parallel_reduce(0, 1000, Pieces(), map, combine);
    });
    EXPECT_EQ(pieces.sum, 999 * 1000 / 2);
    if (is_short) {
      EXPECT_LE(pieces.joins, 15);
    } else {
      EXPECT_GE(pieces.joins, 63);
    }
  }
  jd_task_stop();
}

struct Nothing {
  std::atomic<int>* calls;
  void operator()(int) const { calls->fetch_add(1, std::memory_order_relaxed); }
};
TEST(ShortInAWorker, PushesFewPieces) {
  if (jd_task_get_mode() != JD_TASK_DEQUE) GTEST_SKIP() << "nothing is pushed here";
  jd_task_stop();
  ASSERT_EQ(jd_task_start(1), 1u);
  make_short<Nothing>();
  std::atomic<int> calls{0};
  jd_task_counters before;
  jd_task_get_counters(&before);
  jd::run([&calls] { jd::parallel_for(0, 1000, Nothing{&calls}); });
  jd_task_counters after;
  jd_task_get_counters(&after);
  EXPECT_EQ(calls.load(), 1000);
  EXPECT_LE(after.pushed - before.pushed, 15u);
  jd_task_stop();
}

// Where all that is long is in one of the few pieces, that is shared.
struct LongFrom {
  std::vector<std::atomic<std::thread::id>>* threads;
  int from;
  int operator()(int i) const {
    (*threads)[static_cast<std::size_t>(i)] = std::this_thread::get_id();
    if (i >= from) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return i;
  }
};
class ShortInWorkers : public testing::Test {
 protected:
  static constexpr int kLength = 1000;
  static constexpr int kFrom = 900;

  void SetUp() override {
    jd_task_stop();
    ASSERT_EQ(jd_task_start(2), 2u);
  }
  void TearDown() override { jd_task_stop(); }
  void expect_shared() {
    EXPECT_THAT(std::vector<std::thread::id>(threads.begin() + kFrom, threads.end()),
                testing::Contains(testing::Ne(threads.back().load())));
  }

  std::vector<std::atomic<std::thread::id>> threads =
      std::vector<std::atomic<std::thread::id>>(kLength);
};
TEST_F(ShortInWorkers, ALoopThatIsLongThisTimeIsShared) {
  make_short<LongFrom>();
  LongFrom body{&threads, kFrom};
  jd::run([&body] { jd::parallel_for(0, kLength, body); });
  expect_shared();
}
TEST_F(ShortInWorkers, AReductionThatIsLongThisTimeIsSharedAndKeepsTheOrder) {
  struct Append {
    std::string operator()(std::string a, int i) const { return a += ' ' + std::to_string(i); }
    std::string operator()(std::string a, const std::string& b) const { return a += b; }
  };
  make_short<std::pair<LongFrom, Append>>();
  LongFrom map{&threads, kFrom};
  Append combine;
  std::string expected;
  for (int i = 0; i < kLength; ++i) expected = combine(std::move(expected), i);
  EXPECT_EQ(jd::run([&] { return jd::parallel_reduce(0, kLength, std::string(), map, combine); }),
            expected);
  expect_shared();
}
TEST_F(ShortInWorkers, ALoopThrowsAndIsCancelledAsOthers) {
  make_short<Body>();
  std::vector<std::atomic<int>> calls(kLength);
  std::vector<std::atomic<int>> in_workers(kLength);
  Body throws{&calls, &in_workers, -1, kFrom};
  EXPECT_THROW(jd::run([&throws] { jd::parallel_for(0, kLength, throws); }), std::runtime_error);
  EXPECT_EQ(calls[0].load(), 1);
  EXPECT_EQ(calls[kFrom].load(), 1);

  jd::cancellation cancel;
  std::atomic<int> count{0};
  std::atomic<bool> cancelled{false};
  std::atomic<int> begun_since{0};
  auto body = [&](int) {
    if (cancelled) ++begun_since;
    if (++count != 3) return;
    cancel.cancel();
    cancelled = true;
  };
  make_short<decltype(body)>();
  jd::run([&] { jd::parallel_for(0, kLength, body, {.cancel = &cancel}); });
  EXPECT_LE(begun_since.load(), 1) << "the other worker may have been on its way to an index";
}

struct Less {
  std::atomic<int>* in_workers;
  bool operator()(int a, int b) const {
    *in_workers += jd_task_in_worker();
    return a < b;
  }
};

TEST(ShortSort, IsTheCallersIfItIsNotTooLong) {
  jd::run([] {});
  using Iterator = std::vector<int>::iterator;
  std::vector<int> falling(5000);
  for (std::size_t i = 0; i < falling.size(); ++i) falling[i] = -static_cast<int>(i);
  for (const bool is_short : {false, true}) {
    for (int i = 0; i < 40; ++i) {
      jd::task_detail::sort_times<Iterator, Less>.note(5000, is_short ? 1 : 1000 * short_limit());
    }
    std::atomic<int> in_workers{0};
    std::vector<int> values = falling;
    jd::parallel_sort(values, Less{&in_workers});
    EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
    EXPECT_EQ(in_workers.load() == 0, is_short);
  }
}

}  // namespace
