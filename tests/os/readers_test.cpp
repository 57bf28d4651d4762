// Readers of a lock in every interleaving of a few threads.
#include "os/readers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "../support/interleaved_test.hpp"

namespace jd::test {
namespace {

// What the threads share; a new one for each execution.
struct Shared {
  os::LockOver<Scheduled> lock;
  os::ReadersOver<Scheduled> readers{lock};
  Scheduled::Atomic<int> data{0};
  // Of the threads' own, between two steps.
  int reading = 0;
  int most_reading = 0;
  int writing = 0;
  bool has_written = false;

  void read() {
    const bool is_wanted = lock.is_wanted() && reading != 0;
    readers.enter();
    check(writing == 0, "a reader is beside a writer");
    most_reading = std::max(most_reading, ++reading);
    check(!is_wanted || reading == 1 || has_written, "a reader came in before a writer");
    const int before = data.load();
    check(data.load() == before, "what a reader reads has changed");
    --reading;
    readers.leave();
  }
  void write() {
    lock.acquire();
    check(reading == 0 && ++writing == 1, "a writer is not alone");
    const int before = data.load();
    data.store(before + 1);
    --writing;
    lock.release();
  }
};

// So many threads read and write so many times each.
Report run(const Limits& limits, int readers, int writers, int times, int* most_reading) {
  return explore(limits, [=](Program* program) {
    auto shared = std::make_shared<Shared>();
    for (int r = 0; r < readers; ++r) {
      program->add_thread([=] {
        for (int i = 0; i < times; ++i) shared->read();
      });
    }
    for (int w = 0; w < writers; ++w) {
      program->add_thread([=] {
        for (int i = 0; i < times; ++i) shared->write();
      });
    }
    program->at_end([=] {
      check(shared->data.load() == writers * times, "two wrote at the same time");
      *most_reading = std::max(*most_reading, shared->most_reading);
    });
  });
}

class ReadersTest : public InterleavedTest {};

TEST_F(ReadersTest, AreTogether) {
  int most_reading = 0;
  const Report report = run({.preemptions = 3}, 3, 0, 1, &most_reading);
  EXPECT_TRUE(report.passed()) << report;
  EXPECT_EQ(most_reading, 3);
}

TEST_F(ReadersTest, AreNeverBesideAWriter) {
  int most_reading = 0;
  for (const int writers : {1, 2}) {
    const Report report = run({.preemptions = 3}, 2, writers, 1, &most_reading);
    EXPECT_TRUE(report.passed()) << report;
    EXPECT_EQ(report.timeouts, 0u);
    std::printf("%d writers: %llu executions\n", writers,
                static_cast<unsigned long long>(report.executions));
  }
  EXPECT_EQ(most_reading, 2);
  const Report again = run({.preemptions = 2}, 2, 1, 2, &most_reading);
  EXPECT_TRUE(again.passed()) << again;
}

// Readers of whom there is always one would keep the lock for ever.
TEST_F(ReadersTest, LetAWriterInThatWaits) {
  std::uint64_t waited = 0;
  const Report report = explore({.preemptions = 3}, [&waited](Program* program) {
    auto shared = std::make_shared<Shared>();
    program->add_thread([=, &waited] {
      shared->write();
      shared->has_written = true;
      waited += Scheduled::waits[0] != 0 ? 1 : 0;
    });
    for (int r = 0; r < 2; ++r) {
      program->add_thread([=] {
        for (int i = 0; i < 3; ++i) shared->read();
      });
    }
  });
  EXPECT_TRUE(report.passed()) << report;
  EXPECT_GT(waited, 0u) << "the writer never waited, so nothing was tested";
}

// A reader that waits for the lock is suspended there: thread 0.
struct Suspending : Scheduled {
  static bool wait_stoppably(Atomic<std::uint32_t>* word, std::uint32_t expected,
                             std::uint64_t nanoseconds) {
    if (running_thread() != 0) return Scheduled::wait_stoppably(word, expected, nanoseconds);
    ++suspended;
    for (;;) Scheduled::wait(gate.get(), 0);
  }
  static inline std::shared_ptr<Atomic<std::uint32_t>> gate;
  static inline std::uint64_t suspended;
};

TEST_F(ReadersTest, DontWaitForOneThatIsSuspended) {
  Suspending::suspended = 0;
  const Report report = explore({.preemptions = 2}, [](Program* program) {
    Suspending::gate = std::make_shared<Suspending::Atomic<std::uint32_t>>(0);
    struct Both {
      os::LockOver<Suspending> lock;
      os::ReadersOver<Suspending> readers{lock};
    };
    auto both = std::make_shared<Both>();
    const auto read = [=] {
      both->readers.enter();
      both->readers.leave();
    };
    program->add_server(read);
    program->add_thread([=] {
      both->lock.acquire();
      both->lock.release();
    });
    program->add_thread([=] {
      read();
      read();
    });
  });
  EXPECT_TRUE(report.passed()) << report;
  EXPECT_GT(Suspending::suspended, 0u) << "none was suspended, so nothing was tested";
  Suspending::gate = nullptr;
}

// That the exploration finds what is wrong: readers that leave too early.
TEST_F(ReadersTest, OneThatReleasesForAllIsFound) {
  const Report report = explore({}, [](Program* program) {
    auto shared = std::make_shared<Shared>();
    for (int r = 0; r < 2; ++r) {
      program->add_thread([=] {
        shared->readers.enter();
        check(shared->writing == 0, "a reader is beside a writer");
        ++shared->reading;
        static_cast<void>(shared->data.load());
        --shared->reading;
        if (r == 0) shared->lock.release();
      });
    }
    program->add_thread([=] { shared->write(); });
  });
  EXPECT_FALSE(report.failure.empty());
}

}  // namespace
}  // namespace jd::test
