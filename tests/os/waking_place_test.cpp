// A thread that is woken elsewhere may afterwards run wherever it might before.
#include "os/waking_place.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "os/thread.hpp"

namespace {

using jd::os::WakingPlace;

cpu_set_t mask_of(int thread) {
  cpu_set_t set;
  EXPECT_EQ(sched_getaffinity(thread, sizeof set, &set), 0);
  return set;
}

bool equal(const cpu_set_t& a, const cpu_set_t& b) { return CPU_EQUAL(&a, &b); }

// A thread between begin_sleep() and end_sleep().
class Sleeper {
 public:
  Sleeper()
      : thread_([this] {
          place.begin_sleep(jd::os::thread_id());
          id_ = jd::os::thread_id();
          while (!woken_) std::this_thread::yield();
          place.end_sleep();
          after_ = mask_of(0);
        }) {
    while (id_ == 0) std::this_thread::yield();
  }
  [[nodiscard]] int id() const { return id_; }
  // Its mask after the sleep.
  cpu_set_t wake() {
    woken_ = true;
    thread_.join();
    return after_;
  }

  WakingPlace place;

 private:
  std::atomic<int> id_{0};
  std::atomic<bool> woken_{false};
  cpu_set_t after_{};
  std::thread thread_;
};

class WakingPlaceTest : public testing::Test {
 protected:
  void SetUp() override {
    if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "one processor";
    // So that this thread stays where it says that it is.
    here = sched_getcpu();
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(here, &own);
    ASSERT_EQ(sched_setaffinity(0, sizeof own, &own), 0);
  }
  void TearDown() override { sched_setaffinity(0, sizeof before, &before); }

  // Threads inherit their maker's mask.
  void give_all(int thread) const {
    ASSERT_EQ(sched_setaffinity(thread, sizeof before, &before), 0);
  }

  const cpu_set_t before = mask_of(0);
  int here = -1;
};

TEST_F(WakingPlaceTest, TheWakersProcessorIsLeftForTheWake) {
  Sleeper sleeper;
  give_all(sleeper.id());
  EXPECT_TRUE(sleeper.place.leave_this_cpu());
  cpu_set_t expected = before;
  CPU_CLR(here, &expected);
  EXPECT_TRUE(equal(mask_of(sleeper.id()), expected));
  EXPECT_FALSE(sleeper.place.leave_this_cpu()) << "a second waker has nothing to do";
  sleeper.place.put_back();
  EXPECT_TRUE(equal(sleeper.wake(), before));
}

// Threads that it made before kept to the other processors for good.
TEST_F(WakingPlaceTest, TheSleeperGoesOnOnlyWithItsWholeMask) {
  Sleeper sleeper;
  give_all(sleeper.id());
  EXPECT_TRUE(sleeper.place.leave_this_cpu());
  std::thread waker([&sleeper] {
    // As long as it takes to see that it would not have waited.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    sleeper.place.put_back();
  });
  EXPECT_TRUE(equal(sleeper.wake(), before));
  waker.join();
}

TEST_F(WakingPlaceTest, WhoMayRunNowhereElseStays) {
  Sleeper sleeper;
  const cpu_set_t own = mask_of(sleeper.id());
  EXPECT_TRUE(sleeper.place.leave_this_cpu());
  EXPECT_TRUE(equal(mask_of(sleeper.id()), own));
  sleeper.place.put_back();
  EXPECT_TRUE(equal(sleeper.wake(), own));
}

TEST_F(WakingPlaceTest, AMaskOfTheProgramsStays) {
  Sleeper sleeper;
  give_all(sleeper.id());
  EXPECT_TRUE(sleeper.place.leave_this_cpu());
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(here, &own);
  ASSERT_EQ(sched_setaffinity(sleeper.id(), sizeof own, &own), 0);
  sleeper.place.put_back();
  EXPECT_TRUE(equal(sleeper.wake(), own));
}

// The sleeper took it for the waker's doing, and undid it, when it was awake at last.
TEST_F(WakingPlaceTest, AMaskThatTheProgramSetsAfterTheWakeStays) {
  Sleeper sleeper;
  give_all(sleeper.id());
  EXPECT_TRUE(sleeper.place.leave_this_cpu());
  const cpu_set_t as_the_wakers = mask_of(sleeper.id());
  sleeper.place.put_back();
  ASSERT_EQ(sched_setaffinity(sleeper.id(), sizeof as_the_wakers, &as_the_wakers), 0);
  EXPECT_TRUE(equal(sleeper.wake(), as_the_wakers));
}

TEST_F(WakingPlaceTest, AThreadThatSleepsAgainBeforeItIsPutBackStaysForThatSleep) {
  WakingPlace place;
  place.begin_sleep(jd::os::thread_id());
  EXPECT_TRUE(place.leave_this_cpu());
  place.end_sleep();
  place.begin_sleep(jd::os::thread_id());
  EXPECT_FALSE(place.leave_this_cpu());
  place.put_back();
  place.end_sleep();
  place.begin_sleep(jd::os::thread_id());
  EXPECT_TRUE(place.leave_this_cpu());
  place.put_back();
  place.end_sleep();
}

TEST_F(WakingPlaceTest, WhoIsAwakeStays) {
  WakingPlace place;
  EXPECT_FALSE(place.leave_this_cpu());
}

// Many wakes at the very end of sleeps.
TEST_F(WakingPlaceTest, NobodyIsLeftBehind) {
  WakingPlace place;
  std::atomic<bool> over{false};
  std::atomic<bool> looked{false};
  std::atomic<int> wakes{0};
  cpu_set_t after{};
  std::thread sleeper([&] {
    give_all(0);
    for (int i = 0; i < 2000 || wakes < 20; ++i) {
      place.begin_sleep(jd::os::thread_id());
      if (i % 16 == 0) std::this_thread::yield();
      place.end_sleep();
    }
    over = true;
    while (!looked) std::this_thread::yield();
    after = mask_of(0);
  });
  while (!over) {
    if (!place.leave_this_cpu()) continue;
    ++wakes;
    place.put_back();
  }
  looked = true;
  sleeper.join();
  EXPECT_TRUE(equal(after, before));
}

}  // namespace
