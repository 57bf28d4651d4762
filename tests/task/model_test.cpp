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
#include <cstring>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace {

enum class Break : std::uint8_t {
  Nothing,
  SuspensionOverwritesEnd,  // an exchange where the code compares first
  SuspendBeforeLeaving,     // the stack is offered while its worker is still on it
  BarrierWithoutLock,       // a return does not wait for the thief
  BarrierStaysUp,           // the next older fork does not get the barrier
  TakeNewest,               // a thief takes the newest fork, not the oldest
  LookInBarrier,            // the handler looks for forks inside the barrier's code, too
};

constexpr int kForks = 4;
constexpr int kThreads = 4;
constexpr std::int8_t kNone = -1;
std::size_t subscript(int number) { return static_cast<std::size_t>(number); }

// What the stack's code does: positive: fork number n - 1 begins its child; negative: that returns.
constexpr std::array<std::int8_t, 8> kScript = {1, 2, 3, -3, -2, 4, -4, -1};

enum Slot : std::uint8_t { Dead, Address, Barrier };
enum Join : std::uint8_t { Garbage, Fresh, Running, Ended, Suspended };
// Where the code on the stack stands, in the operation at `at`.
enum Stage : std::uint8_t { Plain, AtLock, Popping, Unlocking, Joining, Second };
enum Doing : std::uint8_t {
  Idle,       // in the scheduler; may steal
  OnStack,    // runs the script
  Leaving,    // off the stack, about to offer it
  Locked,     // thief: has the lock, decides
  Asking,     // thief: waits for the handler's answer
  Walking,    // thief: publishes older forks
  Taking,     // thief: marks a fork as stolen
  Releasing,  // thief: lets the lock go
  InSecond,   // runs a stolen second part
  Telling,    // has run it
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
  std::int8_t fork = kNone;    // that it is concerned with
  std::int8_t cursor = kNone;  // thief: the fork up to which it has published
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
  std::array<Fork, kForks> forks;
  std::array<Thread, kThreads> threads;
};
static_assert(std::is_trivially_copyable_v<State>);

class Search {
 public:
  explicit Search(Break broken) : broken_(broken) {}

  // The first violation found, or none; afterwards states() says how many there were.
  std::optional<std::string> run() {
    State first;
    first.threads[0].doing = OnStack;
    visit(first);
    while (!open_.empty() && !violation_) {
      const State state = open_.back();
      open_.pop_back();
      bool any = false;
      for (int t = 0; t < kThreads && !violation_; ++t) any |= step(state, t);
      if (!any && !violation_) check_end(state);
    }
    return violation_;
  }
  std::size_t states() const { return seen_.size(); }
  bool reached(Doing doing) const { return (doings_ >> doing & 1) != 0; }
  bool reached_suspension() const { return suspended_; }
  bool reached_borrowing() const { return borrows_; }

 private:
  void visit(const State& state) {
    std::string key(sizeof state, '\0');
    std::memcpy(key.data(), &state, sizeof state);
    if (seen_.insert(std::move(key)).second) open_.push_back(state);
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
        if (waits) {
          enter(&next, me);
        } else {
          self = {};
        }
        break;
      }
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
          fork.join = Suspended;
          state->threads[subscript(me)].fork = index;
          return true;
        }
        state->runner = kNone;
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
  std::vector<State> open_;
  std::unordered_set<std::string> seen_;
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
  for (const Doing doing :
       {Idle, OnStack, Leaving, Locked, Asking, Walking, Taking, Releasing, InSecond, Telling}) {
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
                                         Break::LookInBarrier));

// ---- The request ----

// Two thieves ask one victim, which goes from one stack to another and back. They know it by the
// stack that they have locked, and any of them may take its request back before it is looked at (as
// a thief that is to stop does); then its signal still comes, some time.

enum class BreakRequest : std::uint8_t {
  Nothing,
  AnswerEndsRequest,  // the victim, not the thief, makes the word None
  StackAfterAsking,   // the request can be answered before it says which stack is meant
};

enum Word : std::uint8_t { WordNone, Claimed, Asked, Looking, Answered };
enum Step : std::uint8_t { Start, HasLock, Naming, Sending, Waiting, GivesUp };
constexpr int kThieves = 2;

struct RequestState {
  std::uint8_t stack = 0;  // the victim's: 0 or 1
  std::uint8_t moves = 3;  // that it will make
  std::uint8_t word = WordNone;
  std::uint8_t asked = 0;
  std::uint8_t signalled = 0;
  std::uint8_t in_handler = 0;
  std::uint8_t found = 0;  // the answer: 0 nothing, else 1 + the stack that was looked at
  std::array<std::int8_t, 2> lock = {kNone, kNone};
  std::array<std::uint8_t, kThieves> step = {};
  std::array<std::uint8_t, kThieves> wants = {0, 1};
  std::array<std::uint8_t, kThieves> tries = {3, 3};
};
static_assert(std::is_trivially_copyable_v<RequestState>);

class RequestSearch {
 public:
  explicit RequestSearch(BreakRequest broken) : broken_(broken) {}

  std::string run() {
    visit({});
    while (!open_.empty() && violation_.empty()) {
      const RequestState state = open_.back();
      open_.pop_back();
      bool any = victim(state);
      for (int t = 0; t < kThieves; ++t) any |= thief(state, subscript(t));
      if (any) continue;
      for (const std::uint8_t step : state.step) {
        if (step != Start) violation_ = "a thief waits for ever";
      }
    }
    return violation_;
  }
  std::size_t states() const { return seen_.size(); }
  bool was_answered() const { return answered_; }

 private:
  void visit(const RequestState& state) {
    std::string key(sizeof state, '\0');
    std::memcpy(key.data(), &state, sizeof state);
    if (seen_.insert(std::move(key)).second) open_.push_back(state);
  }

  bool victim(const RequestState& state) {
    RequestState next = state;
    switch (state.in_handler) {
      case 0:
        if (state.signalled != 0) {
          next.signalled = 0;
          next.in_handler = 1;
          visit(next);
          next = state;
        }
        if (state.moves == 0) return state.signalled != 0;
        next.stack = state.stack == 0 ? 1 : 0;
        --next.moves;
        break;
      case 1:  // takes the request, if there is one
        next.in_handler = state.word == Asked ? 2 : 0;
        if (state.word == Asked) next.word = Looking;
        break;
      case 2:  // looks, and writes to the stack that it was asked about
        next.found = 0;
        if (state.asked == state.stack) {
          next.found = static_cast<std::uint8_t>(1 + state.stack);
          const std::int8_t holder = state.lock[state.stack];
          if (holder == kNone || state.step[subscript(holder)] < Naming) {
            violation_ = "a stack was written to whose lock nobody that asked holds";
          }
        }
        next.in_handler = 3;
        break;
      default:
        next.word = broken_ == BreakRequest::AnswerEndsRequest ? WordNone : Answered;
        next.in_handler = 0;
        break;
    }
    visit(next);
    return true;
  }

  bool thief(const RequestState& state, std::size_t t) {
    RequestState next = state;
    const std::uint8_t stack = state.wants[t];
    switch (state.step[t]) {
      case Start:
        if (state.tries[t] == 0 || state.lock[stack] != kNone) return false;
        --next.tries[t];
        next.lock[stack] = static_cast<std::int8_t>(t);
        next.step[t] = HasLock;
        break;
      case HasLock:
        if (state.word != WordNone) {
          next.step[t] = GivesUp;
        } else if (broken_ == BreakRequest::StackAfterAsking) {
          next.word = Asked;
          next.step[t] = Naming;
        } else {
          next.word = Claimed;
          next.step[t] = Naming;
        }
        break;
      case Naming:
        next.asked = stack;
        next.step[t] = Sending;
        break;
      case Sending:
        if (broken_ != BreakRequest::StackAfterAsking) next.word = Asked;
        next.signalled = 1;
        next.step[t] = Waiting;
        break;
      case Waiting: {
        bool any = false;
        if (state.word == Asked) {
          next.word = WordNone;
          next.step[t] = GivesUp;
          visit(next);
          next = state;
          any = true;
        }
        const Word end = broken_ == BreakRequest::AnswerEndsRequest ? WordNone : Answered;
        if (state.word != end) return any;
        answered_ |= state.found != 0;
        if (state.found != 0 && state.found != 1 + stack) {
          violation_ = "a thief took an answer about another stack";
        }
        next.word = WordNone;
        next.step[t] = GivesUp;
        break;
      }
      default:
        next.lock[stack] = kNone;
        // The other stack next time.
        next.wants[t] = stack == 0 ? 1 : 0;
        next.step[t] = Start;
        break;
    }
    visit(next);
    return true;
  }

  BreakRequest broken_;
  std::vector<RequestState> open_;
  std::unordered_set<std::string> seen_;
  std::string violation_;
  bool answered_ = false;
};

TEST(RequestModel, HoldsInEveryOrder) {
  RequestSearch search(BreakRequest::Nothing);
  EXPECT_EQ(search.run(), "");
  EXPECT_GT(search.states(), 1000u);
  EXPECT_TRUE(search.was_answered());
  std::printf("%zu states\n", search.states());
}

TEST(RequestModel, SeesAnAnswerThatIsFreeTooEarly) {
  EXPECT_NE(RequestSearch(BreakRequest::AnswerEndsRequest).run(), "");
}

TEST(RequestModel, SeesARequestThatIsReadyTooEarly) {
  EXPECT_NE(RequestSearch(BreakRequest::StackAfterAsking).run(), "");
}

}  // namespace
