// Scopes with more tasks than a deque has room for, and tasks of several scopes in one deque.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <jackdaw/task.hpp>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "counters.hpp"

namespace {

// The scheduler's deques hold as many.
constexpr int kDeque = 8192;

class Scopes : public testing::TestWithParam<unsigned> {
 protected:
  void SetUp() override {
    jd_task_stop();
    jd_task_start(GetParam());
  }
  void TearDown() override { jd_task_stop(); }
};

// A walk through a graph, with a task for each node in one scope. Each finds one or two new nodes,
// so that there are far more than a deque holds.
struct Grid {
  explicit Grid(int length) : side(length), seen(std::size_t(length) * std::size_t(length)) {}
  void visit(int x, int y) {
    if (x < 0 || y < 0 || x >= side || y >= side) return;
    if (seen[std::size_t(x) * std::size_t(side) + std::size_t(y)].exchange(true)) return;
    scope->fork([this, x, y] {
      ++visited;
      visit(x + 1, y);
      visit(x - 1, y);
      visit(x, y + 1);
      visit(x, y - 1);
    });
  }
  int side;
  std::vector<std::atomic<bool>> seen;
  std::atomic<int> visited{0};
  jd::scope* scope = nullptr;
};

TEST_P(Scopes, AGraphIsWalkedWithATaskForEachNode) {
  constexpr int kSide = 700;
  Grid grid(kSide);
  jd::run([&] {
    jd::scope scope;
    grid.scope = &scope;
    grid.visit(0, 0);
    scope.join();
  });
  EXPECT_EQ(grid.visited, kSide * kSide);
}

// A path, whose nodes are found below other forks: each is for later, not for the stack on which it
// was found.
constexpr int kPath = 100000;
struct Path {
  jd::scope* scope = nullptr;
  std::atomic<int> visited{0};
  void visit_in_pair(int node) {
    ++visited;
    jd::par(
        [=, this] {
          if (node + 1 < kPath) scope->fork([=, this] { visit_in_pair(node + 1); });
        },
        [] {});
  }
  void visit_in_loop(int node) {
    ++visited;
    jd::parallel_for(0, 4, [=, this](int side) {
      if (side == 0 && node + 1 < kPath) scope->fork([=, this] { visit_in_loop(node + 1); });
    });
  }
  // Beside a part that the node waits for.
  void visit_with_own_scope(int node) {
    ++visited;
    jd::scope own;
    own.fork([] {});
    if (node + 1 < kPath) scope->fork([=, this] { visit_with_own_scope(node + 1); });
    own.join();
  }
};
void walk_path(void (Path::*visit)(int)) {
  Path path;
  jd::run([&] {
    jd::scope scope;
    path.scope = &scope;
    (path.*visit)(0);
    scope.join();
  });
  EXPECT_EQ(path.visited, kPath);
}

TEST_P(Scopes, APathIsWalkedBelowPairs) { walk_path(&Path::visit_in_pair); }
TEST_P(Scopes, APathIsWalkedBelowLoops) { walk_path(&Path::visit_in_loop); }

// Joins nested two deep: no more than two stacks a worker.
TEST_P(Scopes, AJoinFindsItsOwnTasksBelowOthers) {
  const std::uint64_t before = counters_now().stacks_peak;
  walk_path(&Path::visit_with_own_scope);
  EXPECT_LE(counters_now().stacks_peak,
            std::max(before, std::uint64_t{GetParam()} * 2 + GetParam()));
}

// As above, with many of both in turn.
TEST_P(Scopes, AJoinFindsItsOwnTasksAmongOthers) {
  constexpr int kEach = 3000;
  std::atomic<int> own_run{0};
  std::atomic<int> others_run{0};
  jd::run([&] {
    jd::scope others;
    others.fork([&] {
      jd::scope own;
      for (int i = 0; i < kEach; ++i) {
        own.fork([&] { ++own_run; });
        others.fork([&] { ++others_run; });
      }
      own.join();
      EXPECT_EQ(own_run, kEach);
    });
    others.join();
  });
  EXPECT_EQ(others_run, kEach);
}

TEST_P(Scopes, WhoForksIntoItsOwnRunsWhatTheDequeHasNoRoomFor) {
  constexpr int kTasks = 20 * kDeque;
  std::atomic<int> ended{0};
  int most_left = 0;
  jd::run([&] {
    jd::scope scope;
    for (int i = 0; i < kTasks; ++i) {
      scope.fork([&] { ++ended; });
      most_left = std::max(most_left, i + 1 - ended.load());
    }
    scope.join();
  });
  EXPECT_EQ(ended, kTasks);
  EXPECT_LE(most_left, kDeque + static_cast<int>(GetParam()));
}

// The same with a scope on the heap, and no more than a stack for each join that waits.
TEST_P(Scopes, AScopeNeedNotLieInItsOwnersFrame) {
  constexpr int kTasks = 20 * kDeque;
  std::atomic<int> ended{0};
  int most_left = 0;
  const std::uint64_t before = counters_now().stacks_peak;
  jd::run([&] {
    const auto scope = std::make_unique<jd::scope>();
    for (int i = 0; i < kTasks; ++i) {
      scope->fork([&] {
        const auto own = std::make_unique<jd::scope>();
        own->fork([&] { ++ended; });
        own->join();
      });
      most_left = std::max(most_left, i + 1 - ended.load());
    }
    scope->join();
  });
  EXPECT_EQ(ended, kTasks);
  EXPECT_LE(most_left, kDeque + static_cast<int>(GetParam()));
  EXPECT_LE(counters_now().stacks_peak, std::max(before, std::uint64_t{GetParam()} * 3));
}

// In another's frame it is not that one's own: who runs its last task has to go on with its owner.
TEST_P(Scopes, AScopeMayLieInAnothersFrame) {
  if (GetParam() < 2) GTEST_SKIP() << "the two parts run at the same time";
  jd::run([&] {
    std::optional<jd::scope> of_second;
    std::atomic<bool> begun{false};
    std::atomic<bool> inside{false};
    jd::par(
        [&] {
          while (!begun) jd::poll();
          jd::scope own;
          for (int i = 0; i < kDeque; ++i) own.fork([] {});
          of_second->fork([&] {
            inside = true;
            usleep(20000);
          });
          own.join();
        },
        [&] {
          of_second.emplace();
          begun = true;
          while (!inside) usleep(100);
          of_second->join();
          of_second.reset();
        });
  });
}

// It is its task's own also where that has begun it deeper than it joins it; but not those tasks'
// that run on top, which would call one another.
[[gnu::noinline]] std::unique_ptr<jd::scope> begun_deep() {
  char room[1 << 20];
  asm volatile("" : : "r"(&room[0]) : "memory");
  return std::make_unique<jd::scope>();
}
TEST_P(Scopes, AScopeMayBeBegunDeeperThanItIsJoined) {
  constexpr int kTasks = 5 * kDeque;
  std::atomic<int> left{kTasks};
  std::atomic<int> depth{0};
  std::atomic<int> deepest{0};
  jd::run([&] {
    const auto scope = begun_deep();
    const std::function<void()> visit = [&] {
      const int now = ++depth;
      if (now > deepest) deepest = now;
      for (int i = 0; i < 2; ++i) {
        if (left.fetch_sub(1) > 0) scope->fork(visit);
      }
      --depth;
    };
    for (int i = 0; i < kDeque; ++i) scope->fork([] {});
    scope->fork(visit);
    scope->join();
  });
  EXPECT_LE(deepest, static_cast<int>(GetParam()));
}

// At each level of a recursion a task goes to an outer scope, and lies above those of the scopes
// that the levels further up have yet to join. Where each join moved them all, this took minutes.
void recurse(jd::scope* outer, int levels, std::atomic<int>* run) {
  if (levels == 0) return;
  jd::scope own;
  own.fork([=] { ++*run; });
  recurse(outer, levels - 1, run);
  outer->fork([=] { ++*run; });
  own.join();
}
TEST_P(Scopes, ADeepRecursionForksIntoAnOuterScope) {
  constexpr int kLevels = 4000;
  constexpr int kTimes = 20;
  std::atomic<int> run{0};
  jd::run([&] {
    for (int i = 0; i < kTimes; ++i) {
      jd::scope outer;
      recurse(&outer, kLevels, &run);
      outer.join();
    }
  });
  EXPECT_EQ(run, kTimes * 2 * kLevels);
}

// Other threads' work comes to its turn beside tasks that fork the next before they end.
TEST_P(Scopes, OthersWorkBeginsBesideTasksThatGoOnForEver) {
  std::atomic<bool> ends{false};
  std::thread outside([&] {
    usleep(1000);
    jd::run([&] { ends = true; });
  });
  jd::run([&] {
    jd::scope scope;
    const std::function<void()> go_on = [&] {
      if (!ends) scope.fork(go_on);
    };
    for (unsigned i = 0; i < 4 * GetParam(); ++i) scope.fork(go_on);
    scope.join();
  });
  outside.join();
  EXPECT_TRUE(ends);
}

// What a blocking section forks and waits for is other threads' work, and comes before what deques
// had no room for: else all workers that there can be would wait in such sections.
TEST_P(Scopes, WhatABlockingSectionWaitsForIsNotBehindTheRest) {
  constexpr int kTasks = 500;
  std::atomic<int> inner_run{0};
  jd::run([&] {
    jd::scope outer;
    outer.fork([&] {
      for (int i = 0; i < kDeque; ++i) outer.fork([] { usleep(1); });
      for (int i = 0; i < kTasks; ++i) {
        outer.fork([&] {
          jd::blocking([&] {
            jd::scope inner;
            inner.fork([&] { ++inner_run; });
            inner.join();
          });
        });
      }
    });
    outer.join();
  });
  EXPECT_EQ(inner_run, kTasks);
}

// Each join has its own tasks on top, and nothing to look for below them: where it looked through
// the deque, this took minutes.
TEST_P(Scopes, AJoinLeavesTheDequeAlone) {
  constexpr int kScopes = 100'000;
  std::atomic<int> ended{0};
  jd::run([&] {
    jd::scope others;
    for (int i = 0; i < kDeque - 10; ++i) others.fork([] {});
    for (int i = 0; i < kScopes; ++i) {
      jd::scope own;
      if (i % 2 == 0) own.fork([&] { ++ended; });
      own.join();
    }
    others.join();
  });
  EXPECT_EQ(ended, kScopes / 2);
}

// What waits in the deque when a task forks its process is the parent's.
TEST_P(Scopes, AChildOfAForkRunsNoneOfItsParents) {
#if defined(JD_SANITIZE_THREAD)
  GTEST_SKIP() << "such a child may not go on there";
#endif
  if (GetParam() < 2) GTEST_SKIP() << "the second part has to be stolen";
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t parent = getpid();
  int status = 0;
  jd::run([&] {
    jd::scope others;
    std::atomic<bool> stolen{false};
    std::atomic<bool> child_has_ended{false};
    jd::par(
        [&] {
          while (!stolen) jd::poll();
          for (int i = 0; i < 3; ++i) {
            others.fork([&] {
              if (getpid() != parent) static_cast<void>(!write(ends[1], "x", 1));
            });
          }
          const pid_t child = fork();
          if (child == 0) {
            close(STDERR_FILENO);
            return;  // to the join, where only the parent's other worker could go on
          }
          waitpid(child, &status, 0);
          child_has_ended = true;
        },
        [&] {
          stolen = true;
          while (!child_has_ended) usleep(100);
        });
    if (getpid() != parent) _exit(5);
    others.join();
  });
  close(ends[1]);
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 0) << "the child ran the parent's tasks";
  close(ends[0]);
  EXPECT_EQ(status, 1 << 8);
}

// The last task of a scope whose owner waits is forked by a task that is not of that scope, and
// whose worker's deque is full: whoever ends it has to go on with the owner.
TEST_P(Scopes, TheLastTaskOfAWaitingOwnersBesideAFullDeque) {
  if (GetParam() < 3) GTEST_SKIP() << "the three parts run at the same time";
  std::atomic<jd::scope*> of_owner{nullptr};
  std::atomic<int> first_began{0};
  std::atomic<int> last_began{0};
  std::atomic<int> fillers_began{0};
  std::atomic<bool> fillers_end{false};
  const auto wait = [](const auto& until) {
    while (!until()) usleep(100);
  };
  jd::run([&] {
    jd::par(
        [&] {
          jd::scope scope;
          scope.fork([&] {
            first_began = 1;
            wait([&] { return last_began != 0; });
          });
          of_owner = &scope;
          scope.join();
          EXPECT_EQ(last_began, 1);
        },
        [&] {
          wait([&] { return of_owner != nullptr && first_began != 0; });
          usleep(20000);  // now the owner waits
          jd::scope fillers;
          const auto filler = [&] {
            ++fillers_began;
            wait([&] { return fillers_end.load(); });
          };
          fillers.fork(filler);
          wait([&] { return fillers_began != 0; });
          for (int i = 0; i < kDeque; ++i) fillers.fork(filler);
          of_owner.load()->fork([&] {
            last_began = 1;
            usleep(20000);
          });
          fillers_end = true;
          fillers.join();
        });
  });
}

TEST_P(Scopes, TasksHaveNothingOfTheJoinerTheyRunOn) {
  const int before = std::fegetround();
  int strange = 0;
  std::atomic<int> strange_tasks{0};
  jd::run([&] {
    try {
      throw std::runtime_error("mine");
    } catch (const std::runtime_error&) {
      std::fesetround(FE_UPWARD);
      jd::scope scope;
      for (int i = 0; i < 2 * kDeque; ++i) {
        scope.fork([&] {
          if (std::current_exception() != nullptr || std::fegetround() != before) ++strange_tasks;
          std::fesetround(FE_DOWNWARD);
        });
        if (std::fegetround() != FE_UPWARD) ++strange;
      }
      scope.join();
      if (std::fegetround() != FE_UPWARD || std::current_exception() == nullptr) ++strange;
      std::fesetround(before);
    }
  });
  EXPECT_EQ(strange, 0);
  EXPECT_EQ(strange_tasks, 0);
}

INSTANTIATE_TEST_SUITE_P(Workers, Scopes, testing::Values(1U, 2U, 3U));

}  // namespace
