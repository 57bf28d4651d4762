// Every order of the steps of a request and its answer, on a model of them, as model_test.cpp does
// it for a steal as a whole.
//
// Two thieves ask one victim, which goes from one stack to another and back. They know it by the
// stack that they have locked, and any of them may take its request back before it is looked at (as
// a thief that is to stop does, or one that was given its frame back); then its signal still comes,
// some time.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

#include "states.hpp"

namespace {

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

class RequestSearch {
 public:
  explicit RequestSearch(BreakRequest broken) : broken_(broken) {}

  std::string run() {
    states_.reach({});
    while (states_.are_left() && violation_.empty()) {
      const RequestState state = states_.take();
      bool any = victim(state);
      for (int t = 0; t < kThieves; ++t) any |= thief(state, subscript(t));
      if (any) continue;
      for (const std::uint8_t step : state.step) {
        if (step != Start) violation_ = "a thief waits for ever";
      }
    }
    return violation_;
  }
  std::size_t states() const { return states_.count(); }
  bool was_answered() const { return answered_; }

 private:
  bool victim(const RequestState& state) {
    RequestState next = state;
    switch (state.in_handler) {
      case 0:
        if (state.signalled != 0) {
          next.signalled = 0;
          next.in_handler = 1;
          states_.reach(next);
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
    states_.reach(next);
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
          states_.reach(next);
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
    states_.reach(next);
    return true;
  }

  BreakRequest broken_;
  States<RequestState> states_;
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
