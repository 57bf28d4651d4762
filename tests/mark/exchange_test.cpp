// mark.req.exact-end: how markers pass work on and find the end, in every interleaving of small
// phases. The code that is run is the collector's own (Exchange); only what it is made of is not
// the machine's.
#include "mark/exchange.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "../support/interleaved_test.hpp"

namespace jd::test {
namespace {

constexpr unsigned kMost = 4;

// Markers whose objects are numbers: an object n leads to two of n - 1, and 0 to nothing.
template <class Lock, class Sync>
struct Markers {
  using TheExchange = mark::Exchange<int, 1, kMost, Sync, Lock>;
  struct Marker {
    std::vector<int> stack;
    bool works = false;
  };

  typename TheExchange::Packet packets[kMost];
  TheExchange exchange{packets};
  Marker markers[kMost];
  int marked = 0;
  int given = 0;

  void receive(Marker* marker, const int* entries, unsigned count) {
    marker->works = true;
    marker->stack.insert(marker->stack.end(), entries, entries + count);
  }
  void work(Marker* marker) {
    marker->works = true;
    while (!marker->stack.empty()) {
      if (exchange.hungry() && marker->stack.size() > 1 && exchange.give(&marker->stack[0], 1)) {
        marker->stack.erase(marker->stack.begin());
        ++given;
      }
      const int object = marker->stack.back();
      marker->stack.pop_back();
      ++marked;
      if (object > 0) marker->stack.insert(marker->stack.end(), 2, object - 1);
    }
    marker->works = false;
  }
  void lead(unsigned helpers, unsigned guests) {
    exchange.lead(
        helpers, guests, [=, this](const int* e, unsigned n) { receive(&markers[0], e, n); },
        [=, this] { work(&markers[0]); }, [] {});
  }
  // Guests' markers are the last.
  bool visit() {
    return exchange.help_as_guest(
        [this](unsigned g, const int* e, unsigned n) { receive(&markers[kMost - 1 - g], e, n); },
        [this](unsigned g) { work(&markers[kMost - 1 - g]); });
  }
  void help(unsigned number) {
    Marker* marker = &markers[number + 1];
    exchange.help(
        number, [=, this](const int* e, unsigned n) { receive(marker, e, n); },
        [=, this] { work(marker); });
  }
  // What lead() promises when it returns.
  void check_all_is_done(int expected) {
    check(marked == expected, "marking ended before everything was marked");
    for (const Marker& marker : markers) {
      check(marker.stack.empty() && !marker.works, "marking ended while somebody worked");
    }
  }
};

struct Phases {
  unsigned helpers;
  std::vector<int> objects;  // that the leader begins with
  int times;                 // that marking is shared
  unsigned seats = 0;        // guests that a phase may have
  unsigned guests = 0;       // guests that look in, each so often:
  int visits = 1;
};

int objects_of(const Phases& phases) {
  int all = 0;
  for (const int object : phases.objects) all += (2 << object) - 1;
  return all;
}

template <class Lock = Scheduled::Lock, class Sync = Scheduled>
Report run(const Limits& limits, const Phases& phases, int* given = nullptr,
           int* visited = nullptr) {
  return explore(limits, [=](Program* program) {
    auto shared = std::make_shared<Markers<Lock, Sync>>();
    program->add_thread([=] {
      for (int i = 0; i < phases.times; ++i) {
        shared->markers[0].stack = phases.objects;
        shared->marked = 0;
        shared->lead(phases.helpers, phases.seats);
        shared->check_all_is_done(objects_of(phases));
      }
    });
    for (unsigned h = 0; h < phases.helpers; ++h) {
      program->add_server([=] { shared->help(h); });
    }
    for (unsigned g = 0; g < phases.guests; ++g) {
      program->add_thread([=] {
        for (int i = 0; i < phases.visits; ++i) {
          if (shared->visit() && visited != nullptr) ++*visited;
        }
      });
    }
    program->at_end([=] {
      if (given != nullptr) *given += shared->given;
    });
  });
}

class ExchangeTest : public InterleavedTest {};

void expect_all(const Report& report, const char* what) {
  EXPECT_TRUE(report.passed()) << report;
  std::printf("%s: %llu executions, the longest of %llu steps\n", what,
              static_cast<unsigned long long>(report.executions),
              static_cast<unsigned long long>(report.longest));
}

TEST_F(ExchangeTest, EndsExactlyWithOneHelper) {
  int given = 0;
  expect_all(run({}, {1, {0, 0}, 1}, &given), "one helper, two objects");
  EXPECT_GT(given, 0) << "nothing was passed on, so nothing was tested";
}
TEST_F(ExchangeTest, EndsExactlyWithOneHelperAndMoreObjects) {
  expect_all(run({.preemptions = 4}, {1, {1}, 1}), "one helper, three objects");
}
TEST_F(ExchangeTest, EndsExactlyWithOneHelperThatLooksAgain) {
  Scheduled::most_looks = 1;
  expect_all(run({.preemptions = 3}, {1, {0, 0}, 1}), "one helper, looking twice");
}
TEST_F(ExchangeTest, EndsExactlyTwice) {
  expect_all(run({.preemptions = 3}, {1, {0, 0}, 2}), "one helper, two phases");
}
TEST_F(ExchangeTest, EndsExactlyWithTwoHelpers) {
  expect_all(run({.preemptions = 2}, {2, {1, 0}, 1}), "two helpers");
}
TEST_F(ExchangeTest, EndsExactlyWithoutHelp) { expect_all(run({}, {0, {1}, 1}), "no helper"); }

// Guests come at any time, or when it is too late, and nobody waits for them.
TEST_F(ExchangeTest, EndsExactlyWithAGuest) {
  int given = 0;
  int visited = 0;
  expect_all(
      run({.preemptions = 4},
          {.helpers = 0, .objects = {0, 0}, .times = 1, .seats = 1, .guests = 1}, &given, &visited),
      "one guest");
  EXPECT_GT(given, 0) << "nothing was passed on, so nothing was tested";
  EXPECT_GT(visited, 0);
}
TEST_F(ExchangeTest, EndsExactlyWithAGuestAndAHelper) {
  expect_all(run({.preemptions = 2},
                 {.helpers = 1, .objects = {1, 0}, .times = 1, .seats = 1, .guests = 1}),
             "a guest and a helper");
}
TEST_F(ExchangeTest, EndsExactlyWithMoreGuestsThanSeats) {
  expect_all(
      run({.preemptions = 2}, {.helpers = 0, .objects = {1}, .times = 1, .seats = 1, .guests = 2}),
      "two guests, one seat");
}
TEST_F(ExchangeTest, AGuestMayComeToSeveralPhases) {
  expect_all(
      run({.preemptions = 2},
          {.helpers = 0, .objects = {0, 0}, .times = 2, .seats = 1, .guests = 1, .visits = 2}),
      "a guest of two phases");
}

// That the exploration finds what is wrong.
struct OpenLock {
  void acquire() {}
  void release() {}
};
TEST_F(ExchangeTest, AMissingLockIsFound) {
  const Report report = run<OpenLock>({.preemptions = 3}, {1, {1}, 1});
  EXPECT_FALSE(report.failure.empty()) << report;
}
struct Forgetful : Scheduled {
  static int wake(Atomic<std::uint32_t>*, int) { return 0; }
};
TEST_F(ExchangeTest, AForgottenWakeIsFound) {
  const Report report = run<Scheduled::Lock, Forgetful>({.preemptions = 3}, {1, {1}, 1});
  EXPECT_NE(report.failure.find("nobody can go on"), std::string::npos) << report;
}

}  // namespace
}  // namespace jd::test
