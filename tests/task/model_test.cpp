// Every order of the steps of a steal, a return, the barrier and a join, on a model of them.
//
// One stack runs a script of four forks (three inside each other, then one more); four threads, of
// which the first begins on the stack and the others steal. A step of the model is one that no
// other thread can divide: an access to a shared word, what the signal's handler does (the victim
// stands still, and the thief waits), what is done under the lock between two accesses that others
// make without it. The names are those of docs/design/task.md and src/task/.
//
// The rules can be broken one at a time; each test of a broken rule shows that the search would see
// such an error.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "states.hpp"

namespace {

enum class Break : std::uint8_t {
  Nothing,
  SuspensionOverwritesEnd,  // an exchange where the code compares first
  SuspendBeforeLeaving,     // the stack is offered while its worker is still on it
  BarrierWithoutLock,       // a return does not wait for the thief (task.req.barrier-waits)
  BarrierStaysUp,           // the next older fork does not get the barrier
  TakeNewest,               // a thief takes the newest fork, not the oldest
  LookInBarrier,            // the handler looks for forks inside the barrier's code, too
  TakeGivenBlindly,         // the forker looks and then stores where the code exchanges
  TakeBackBlindly,          // the giver stores where the code compares
};

constexpr int kForks = 4;
constexpr int kThreads = 4;

// What the stack's code does: positive: fork number n - 1 begins its child; negative: that returns.
constexpr std::array<std::int8_t, 8> kScript = {1, 2, 3, -3, -2, 4, -4, -1};

enum Slot : std::uint8_t { Dead, Address, Barrier };
enum Join : std::uint8_t { Garbage, Fresh, Running, Ended, Suspended };
// Where the code on the stack stands, in the operation at `at`.
enum Stage : std::uint8_t { Plain, AtLock, Popping, Unlocking, Joining, Second };
enum Doing : std::uint8_t {
  Idle,       // in the scheduler; may steal
  Seeing,     // in the scheduler; has seen that it was given the stack back (broken)
  OnStack,    // runs the script
  Leaving,    // off the stack, about to offer it
  Locked,     // thief: has the lock, decides
  Asking,     // thief: waits for the handler's answer
  Walking,    // thief: publishes older forks
  Taking,     // thief: marks a fork as stolen
  Releasing,  // thief: lets the lock go
  InSecond,   // runs a stolen second part
  Telling,    // has run it
  Last,       // and is the last to arrive
  Giving,     // has given the stack to its forker, and waits for that to take it
};

enum AnswerState : std::uint8_t { NotYet, AtBarrier, Given };

struct Fork {
  std::uint8_t slot = Dead;
  std::uint8_t join = Garbage;
  std::int8_t older = kNone;
  std::int8_t newer = kNone;
  std::uint8_t seconds = 0;    // how often its second part ran
  std::uint8_t continued = 0;  // how often the forker went on behind it
};
struct Thread {
  std::uint8_t doing = Idle;
  std::int8_t fork = kNone;  // that it is concerned with
  // Thief: the fork up to which it has published; giver: whom it has given the stack.
  std::int8_t cursor = kNone;
};
struct State {
  std::uint8_t at = 0;
  std::uint8_t stage = Plain;
  std::int8_t runner = 0;
  std::int8_t lock = kNone;
  std::int8_t top = kNone;
  std::int8_t oldest = kNone;
  std::uint8_t answered = NotYet;  // to the thread that asks
  std::uint8_t borrowed = 0;       // the barrier's code runs under the asking thread's lock
  std::int8_t asked = kNone;       // the thread that is to answer
  std::int8_t newest = kNone;      // what it found
  std::uint8_t stolen = 0;         // the barrier's code: was it?
  std::int8_t left_by = kNone;     // who ran the stack last, from its suspension on
  std::int8_t given = kNone;       // who has been given it back, and has not taken it yet
  std::array<Fork, kForks> forks;
  std::array<Thread, kThreads> threads;
};

class Search {
 public:
  explicit Search(Break broken) : broken_(broken) {}

  // The first violation found, or none; afterwards states() says how many there were.
  std::optional<std::string> run() {
    State first;
    first.threads[0].doing = OnStack;
    visit(first);
    while (states_.are_left() && !violation_) {
      const State state = states_.take();
      bool any = false;
      for (int t = 0; t < kThreads && !violation_; ++t) any |= step(state, t);
      if (!any && !violation_) check_end(state);
    }
    return violation_;
  }
  std::size_t states() const { return states_.count(); }
  bool reached(Doing doing) const { return (doings_ >> doing & 1) != 0; }
  bool reached_suspension() const { return suspended_; }
  bool reached_borrowing() const { return borrows_; }

 private:
  void visit(const State& state) {
    states_.reach(state);
    for (const Thread& thread : state.threads) doings_ |= 1u << thread.doing;
    for (const Fork& fork : state.forks) suspended_ |= fork.join == Suspended;
  }
  void fail(const char* what) {
    if (!violation_) violation_ = what;
  }
  void check_end(const State& state) {
    if (state.at != kScript.size()) return fail("nobody can go on");
    for (const Fork& fork : state.forks) {
      if (fork.seconds != 1) return fail("a second part did not run exactly once");
      if (fork.continued != 1) return fail("a forker did not go on exactly once");
    }
  }

  // One step of one thread, in all ways in which it can go; false if it can't go at all.
  bool step(const State& state, int number) {
    State next = state;
    Thread& self = next.threads[subscript(number)];
    const auto me = static_cast<std::int8_t>(number);
    bool any = false;
    // A signal comes at any time.
    if (state.asked == me && state.answered == NotYet) {
      answer(&next, me);
      visit(next);
      any = true;
      next = state;
    }
    switch (state.threads[subscript(number)].doing) {
      case OnStack:
        if (!run_stack(&next, me)) return any;
        break;
      case Leaving: {
        Fork& fork = next.forks[subscript(self.fork)];
        const bool ended = fork.join == Ended;
        if (!ended || broken_ == Break::SuspensionOverwritesEnd) fork.join = Suspended;
        if (ended) {
          enter(&next, me);
        } else {
          self = {};
        }
        break;
      }
      case Idle:
        if (state.given == me) {
          if (broken_ == Break::TakeGivenBlindly) {
            self.doing = Seeing;
          } else {
            next.given = kNone;
            enter(&next, me);
          }
          visit(next);
          any = true;
          next = state;
        }
        // A glance: is there a task on the stack? Then its lock, if it is free.
        if (state.lock != kNone || state.at == kScript.size()) return any;
        if (state.oldest == kNone && state.runner == kNone) return any;
        next.lock = me;
        self.doing = Locked;
        break;
      case Locked:
        if (next.oldest != kNone) {
          self.doing = Taking;
        } else if (next.runner == kNone || next.asked != kNone) {
          self.doing = Releasing;
        } else {
          next.asked = next.runner;
          next.answered = NotYet;
          self.doing = Asking;
        }
        break;
      case Asking:
        if (next.answered != Given) return any;
        next.asked = kNone;
        next.answered = NotYet;
        if (next.newest == kNone) {
          self.doing = Releasing;
        } else {
          self.cursor = next.newest;
          self.doing = Walking;
        }
        break;
      case Walking: {
        // The next older fork whose child has not returned, unless its slot holds a barrier.
        Fork& newer = next.forks[subscript(self.cursor)];
        const std::int8_t older = older_alive(next, self.cursor);
        if (older == kNone || next.forks[subscript(older)].slot == Barrier) {
          next.oldest = self.cursor;
          self.doing = Taking;
        } else {
          Fork& fork = next.forks[subscript(older)];
          fork.join = Fresh;
          fork.newer = self.cursor;
          fork.older = newer.older;
          newer.older = older;
          self.cursor = older;
        }
        break;
      }
      case Taking: {
        const std::int8_t taken = broken_ == Break::TakeNewest ? next.top : next.oldest;
        if (taken == kNone) {
          fail("nothing to take");
          return true;
        }
        Fork& fork = next.forks[subscript(taken)];
        if (broken_ == Break::TakeNewest) {
          next.oldest = next.oldest == taken ? kNone : next.oldest;
        } else {
          next.oldest = fork.newer;
        }
        fork.join = Running;
        self.fork = taken;
        self.doing = Releasing;
        break;
      }
      case Releasing:
        next.lock = kNone;
        next.newest = kNone;
        self.cursor = kNone;
        self.doing = self.fork != kNone ? InSecond : Idle;
        break;
      case InSecond:
        if (++next.forks[subscript(self.fork)].seconds > 1) {
          fail("a second part ran twice");
        }
        self.doing = Telling;
        break;
      case Telling: {
        Fork& fork = next.forks[subscript(self.fork)];
        const bool waits = fork.join == Suspended;
        fork.join = Ended;
        self = {};
        if (waits) self.doing = Last;
        break;
      }
      case Last:
        // Whether the forker looks for work is a guess: it may be right or wrong.
        if (next.left_by != me && next.given == kNone) {
          next.given = next.left_by;
          self = {Giving, kNone, next.left_by};
          visit(next);
          next = state;
        }
        enter(&next, me);
        break;
      case Seeing:
        next.given = kNone;
        enter(&next, me);
        break;
      case Giving:
        if (state.given == self.cursor || broken_ == Break::TakeBackBlindly) {
          next.given = kNone;
          enter(&next, me);
        } else {
          self = {};
        }
        break;
      default:
        return any;
    }
    visit(next);
    return true;
  }

  void enter(State* state, std::int8_t me) {
    if (state->runner != kNone) fail("two threads on one stack");
    state->runner = me;
    state->threads[subscript(me)] = {OnStack, kNone, kNone};
  }

  // The newest fork older than `than` whose child has not returned.
  static std::int8_t older_alive(const State& state, int than) {
    for (int i = than - 1; i >= 0; --i) {
      if (state.forks[subscript(i)].slot != Dead) return static_cast<std::int8_t>(i);
    }
    return kNone;
  }

  // The handler.
  void answer(State* state, std::int8_t me) {
    state->answered = Given;
    state->newest = kNone;
    if (state->runner != me) return;
    const bool in_barrier = state->stage == AtLock || state->stage == Popping ||
                            state->stage == Unlocking || state->stage == Joining;
    if (in_barrier && broken_ != Break::LookInBarrier) return;
    const std::int8_t newest = older_alive(*state, kForks);
    if (newest == kNone) return;
    Fork& fork = state->forks[subscript(newest)];
    if (fork.slot == Barrier) return;
    fork.join = Fresh;
    fork.older = state->top;
    fork.newer = kNone;
    fork.slot = Barrier;
    state->top = newest;
    state->newest = newest;
  }

  // The script, in the thread that runs it. False if it waits for the lock, or has ended.
  bool run_stack(State* state, std::int8_t me) {
    if (state->at == kScript.size()) return false;
    const std::int8_t operation = kScript[state->at];
    const auto index = static_cast<std::int8_t>((operation > 0 ? operation : -operation) - 1);
    Fork& fork = state->forks[subscript(index)];
    switch (state->stage) {
      case Plain:
        if (operation > 0) {
          fork.slot = Address;
          ++state->at;
        } else {
          // The `ret`: from here on the slot is free.
          const bool barrier = fork.slot == Barrier;
          fork.slot = Dead;
          state->stolen = 0;
          state->stage = barrier ? AtLock : Second;
        }
        return true;
      case AtLock:
        if (state->lock != kNone && state->asked == me && state->answered == NotYet) {
          // The thief waits for this very thread: its lock will do.
          state->answered = AtBarrier;
          state->newest = kNone;
          state->borrowed = 1;
          state->stage = Popping;
          return true;
        }
        if (state->lock != kNone && broken_ != Break::BarrierWithoutLock) return false;
        if (broken_ != Break::BarrierWithoutLock) state->lock = me;
        state->stage = Popping;
        return true;
      case Popping:
        if (state->top != index) fail("a return past a barrier");
        state->stolen = fork.join != Fresh ? 1 : 0;
        state->top = fork.older;
        if (state->stolen == 0 && state->oldest == index) state->oldest = kNone;
        if (fork.older != kNone) {
          Fork& older = state->forks[subscript(fork.older)];
          older.newer = kNone;
          if (broken_ != Break::BarrierStaysUp) older.slot = Barrier;
        }
        state->stage = Unlocking;
        return true;
      case Unlocking:
        if (state->borrowed != 0) {
          state->answered = Given;
          state->borrowed = 0;
          borrows_ = true;
        } else if (broken_ != Break::BarrierWithoutLock) {
          state->lock = kNone;
        }
        state->stage = state->stolen != 0 ? Joining : Second;
        return true;
      case Joining:
        if (fork.join == Ended) {
          state->stage = Second;
          return true;
        }
        // Off the stack; whoever enters it goes on behind the join.
        state->stage = Second;
        if (broken_ == Break::SuspendBeforeLeaving) {
          state->left_by = me;
          fork.join = Suspended;
          state->threads[subscript(me)].fork = index;
          return true;
        }
        state->runner = kNone;
        state->left_by = me;
        state->threads[subscript(me)] = {Leaving, index, kNone};
        return true;
      case Second:
        if (broken_ == Break::SuspendBeforeLeaving && state->threads[subscript(me)].fork == index) {
          state->runner = kNone;
          state->threads[subscript(me)] = {};
          return true;
        }
        // As jd_task_fork does, by the join word.
        if (state->stolen == 0 || fork.join != Ended) {
          if (++fork.seconds > 1) fail("a second part ran twice");
        } else if (fork.seconds != 1) {
          fail("a forker went on before its second part had run");
        }
        ++fork.continued;
        state->stage = Plain;
        state->stolen = 0;
        ++state->at;
        return true;
      default:
        return false;
    }
  }

  Break broken_;
  States<State> states_;
  std::optional<std::string> violation_;
  unsigned doings_ = 0;
  bool suspended_ = false;
  bool borrows_ = false;
};

TEST(Model, HoldsInEveryOrder) {
  Search search(Break::Nothing);
  EXPECT_EQ(search.run().value_or(""), "");
  // The search has seen something: every kind of step, and enough of them.
  EXPECT_GT(search.states(), 10000u);
  for (const Doing doing : {Idle, OnStack, Leaving, Locked, Asking, Walking, Taking, Releasing,
                            InSecond, Telling, Last, Giving}) {
    EXPECT_TRUE(search.reached(doing)) << static_cast<int>(doing);
  }
  EXPECT_TRUE(search.reached_suspension());
  EXPECT_TRUE(search.reached_borrowing());
  std::printf("%zu states\n", search.states());
}

class BrokenModel : public testing::TestWithParam<Break> {};
TEST_P(BrokenModel, IsFound) {
  Search search(GetParam());
  EXPECT_NE(search.run().value_or(""), "");
}
INSTANTIATE_TEST_SUITE_P(Rules, BrokenModel,
                         testing::Values(Break::SuspensionOverwritesEnd,
                                         Break::SuspendBeforeLeaving, Break::BarrierWithoutLock,
                                         Break::BarrierStaysUp, Break::TakeNewest,
                                         Break::LookInBarrier, Break::TakeGivenBlindly,
                                         Break::TakeBackBlindly));

}  // namespace
