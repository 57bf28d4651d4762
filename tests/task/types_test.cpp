// Closures and results of odd types.
#include <gtest/gtest.h>
#include <jackdaw/task.hpp>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>

namespace {

int three() { return 3; }
int four() { return 4; }

TEST(Closures, MayBeFunctions) {
  const auto [a, b] = jd::par(three, four);
  EXPECT_EQ(a * 10 + b, 34);
  const auto [c, d] = jd::par(three, [] { return 5; });
  EXPECT_EQ(c * 10 + d, 35);
  EXPECT_EQ(jd::run(three), 3);
}

// As small as a closure that travels in registers, and not to be copied.
struct Handle {
  explicit Handle(int n) : number(n) {}
  Handle(Handle&&) = default;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  int number;
};
static_assert(std::is_trivially_copyable_v<Handle>);

TEST(Closures, MayHoldWhatOnlyMoves) {
  const auto [a, b] =
      jd::par([h = Handle(3)] { return h.number; }, [h = Handle(4)] { return h.number; });
  EXPECT_EQ(a * 10 + b, 34);
}

TEST(Results, MayBeConst) {
  const auto text = []() -> const std::string { return std::string(100, 'x'); };  // NOLINT
  const auto [a, b] = jd::par(text, text);
  EXPECT_EQ(a + b, std::string(200, 'x'));
  EXPECT_EQ(jd::run(text), a);
}

struct HidesItsAddress {
  int number;
  HidesItsAddress* operator&() { return nullptr; }              // NOLINT
  const HidesItsAddress* operator&() const { return nullptr; }  // NOLINT
};

TEST(Results, MayHideTheirAddresses) {
  auto [a, b] = jd::par([] { return HidesItsAddress{3}; }, [] { return HidesItsAddress{4}; });
  EXPECT_EQ(a.number * 10 + b.number, 34);
}

// As small as a result that travels in a register: it is not made a second time.
struct ThrowsWhenMadeOfNothing {
  ThrowsWhenMadeOfNothing() { throw std::runtime_error("made of nothing"); }
  explicit ThrowsWhenMadeOfNothing(int n) : number(n) {}
  int number;
};
static_assert(std::is_trivially_copyable_v<ThrowsWhenMadeOfNothing>);

TEST(Results, AreMadeByTheirTasksAlone) {
  jd::run([] {
    for (int i = 0; i < 1000; ++i) {
      const auto [a, b] = jd::par([] { return ThrowsWhenMadeOfNothing(3); },
                                  [] { return ThrowsWhenMadeOfNothing(4); });
      ASSERT_EQ(a.number * 10 + b.number, 34);
      const auto [c, d] = jd::par([] { return Handle(3); }, [] { return Handle(4); });
      ASSERT_EQ(c.number * 10 + d.number, 34);
    }
  });
}

// Where the other part was stolen, or throws.
TEST(Results, AreMadeByTheirTasksAloneAlsoWhereThatIsSeldom) {
  jd::run([] {
    std::atomic<bool> second{false};
    jd::par(three, four);  // wakes who sleeps, so that the next fork is a call
    const auto [a, b] = jd::par(
        [&] {
          if (jd_task_get_mode() != JD_TASK_DEQUE) {
            jd::blocking([&] {
              while (!second.load()) std::this_thread::yield();
            });
          }
          return ThrowsWhenMadeOfNothing(3);
        },
        [&] {
          second = true;
          return ThrowsWhenMadeOfNothing(4);
        });
    EXPECT_EQ(a.number * 10 + b.number, 34);
    const auto throws = []() -> ThrowsWhenMadeOfNothing { throw std::logic_error("b"); };
    EXPECT_THROW(jd::par([] { return ThrowsWhenMadeOfNothing(3); }, throws), std::logic_error);
  });
}

struct ThrowsWhenMoved {
  explicit ThrowsWhenMoved(bool does) : throws(does) { ++alive; }
  ThrowsWhenMoved(ThrowsWhenMoved&& other) : throws(other.throws) {  // NOLINT
    if (throws) throw std::runtime_error("moved");
    ++alive;
  }
  ThrowsWhenMoved& operator=(ThrowsWhenMoved&&) = delete;
  ~ThrowsWhenMoved() { --alive; }
  bool throws;
  static inline std::atomic<int> alive{0};
};

TEST(Results, AreDestroyedAlsoIfMovingThemThrows) {
  for (const bool first : {true, false}) {
    for (const bool second : {true, false}) {
      if (!first && !second) continue;
      EXPECT_THROW(
          jd::par([=] { return ThrowsWhenMoved(first); }, [=] { return ThrowsWhenMoved(second); }),
          std::runtime_error);
      EXPECT_EQ(ThrowsWhenMoved::alive.load(), 0) << first << second;
    }
  }
  EXPECT_THROW(jd::run([] { return ThrowsWhenMoved(true); }), std::runtime_error);
  EXPECT_EQ(ThrowsWhenMoved::alive.load(), 0);
}

struct ThrowsWhenCopied {
  ThrowsWhenCopied() = default;
  ThrowsWhenCopied(const ThrowsWhenCopied&) { throw std::runtime_error("copied"); }  // NOLINT
  ThrowsWhenCopied& operator=(const ThrowsWhenCopied&) = delete;
  void operator()() const {}
};

TEST(Scope, AClosureThatCannotBeCopiedIsNoTask) {
  jd::scope scope;
  const ThrowsWhenCopied closure;
  EXPECT_THROW(scope.fork(closure), std::runtime_error);
  scope.join();
}

TEST(Scope, AClosureMayBeConstAndChangeItsCopy) {
  int seen = 0;
  const auto closure = [n = 0, &seen]() mutable { seen = ++n; };
  jd::scope scope;
  for (int i = 0; i < 2; ++i) {
    scope.fork(closure);
    scope.join();
  }
  EXPECT_EQ(seen, 1) << "each fork has a copy of its own";
}

TEST(Scope, StaysCancelled) {
  std::atomic<int> calls{0};
  jd::scope scope;
  scope.cancel();
  scope.join();
  scope.fork([&] { ++calls; });
  scope.join();
  EXPECT_TRUE(scope.cancelled());
  EXPECT_EQ(calls.load(), 0);
}

}  // namespace
