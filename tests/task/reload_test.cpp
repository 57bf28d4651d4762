// Libraries that are unloaded and others loaded in their place, beside thieves: what was known of
// code must not be believed of the code that stands there now (task.md, "What unwinders remember").
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <jackdaw/task.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>

#include "task/unwind.hpp"

namespace {

// A call, in a library that is loaded as long as this lives.
class Reloaded {
 public:
  using Call = unsigned long (*)(void (*function)(), void* task);

  explicit Reloaded(const char* path) : library_(dlopen(path, RTLD_NOW)) {
    if (library_ != nullptr) call_ = reinterpret_cast<Call>(dlsym(library_, "call_with"));
  }
  Reloaded(const Reloaded&) = delete;
  Reloaded& operator=(const Reloaded&) = delete;
  ~Reloaded() {
    if (library_ != nullptr) dlclose(library_);
  }
  Call call() const { return call_; }

 private:
  void* library_;
  Call call_ = nullptr;
};

constexpr const char* kForks = JD_RELOADED_FORKS;
// Ordinary calls: one where the fork was, in the same frame, and one in a larger frame.
constexpr std::array<const char*, 3> kAll = {kForks, JD_RELOADED_CALLS, JD_RELOADED_DEEP_CALLS};

// Long enough for a thief to come.
void spin() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(50);
  while (std::chrono::steady_clock::now() < end) {
  }
}

// Leaves 0 in rdx, as an un-stolen fork's first part does.
extern "C" void jd_test_spin_and_return_zero();
extern "C" [[gnu::used]] void jd_test_spin() { spin(); }
asm(R"(
  .text
  .type jd_test_spin_and_return_zero, @function
jd_test_spin_and_return_zero:
  .cfi_startproc
  subq $8, %rsp
  .cfi_def_cfa_offset 16
  call jd_test_spin
  addq $8, %rsp
  .cfi_def_cfa_offset 8
  xorl %edx, %edx
  ret
  .cfi_endproc
  .size jd_test_spin_and_return_zero, . - jd_test_spin_and_return_zero
)");

std::atomic<unsigned long> second_parts{0};
void run_second(jd_task*) { second_parts.fetch_add(1); }

constexpr unsigned long kStolen = 2;

// As a compiler would emit a fork. Was it stolen?
[[gnu::noinline]] bool fork_at(Reloaded::Call call) {
  jd_task task;
  std::memset(&task, 0, sizeof task);
  task.run = run_second;
  const unsigned long status = call(jd_test_spin_and_return_zero, &task);
  if ((status & kStolen) != 0) return true;
  task.run(&task);
  return false;
}

// An ordinary call with an array where a fork would have its task. Is the array what it was?
[[gnu::noinline]] bool call_at(Reloaded::Call call) {
  std::array<unsigned long, 32> values;
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i * 0x1111;
  auto* const data = values.data();
  asm volatile("" : : "r"(data) : "memory");
  const unsigned long status = call(jd_test_spin_and_return_zero, data);
  asm volatile("" : : "r"(data) : "memory");
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != i * 0x1111) return false;
  }
  return status == 0;
}

TEST(Reload, AWalkTakesNoCodeForWhatStoodThere) {
  using namespace jd::task;
  if (!unwinding_is_possible()) GTEST_SKIP() << "stacks can't be walked here";
  Unwinder unwinder;
  ASSERT_TRUE(unwinder.prepare());
  constexpr Word kFunctionBytes = 31;  // what reloaded.S comes to
  Word first = 0;
  int at_the_same_place = 0;
  for (int round = 0; round < 30; ++round) {
    const Reloaded library(kAll[static_cast<std::size_t>(round) % kAll.size()]);
    ASSERT_NE(library.call(), nullptr) << dlerror();
    const Word begin = reinterpret_cast<Word>(library.call());
    if (first == 0) first = begin;
    if (begin == first) ++at_the_same_place;
    unwinder.begin_walk();
    for (Word i = 1; i < kFunctionBytes; ++i) {
      for (const bool exactly : {false, true}) {
        Registers registers{};
        registers.value[kPc] = begin + i;
        const Rule* remembered = unwinder.rule_for(registers, exactly);
        const Rule now = read_rule(exactly ? begin + i : begin + i - 1);
        ASSERT_NE(remembered, nullptr) << i;
        EXPECT_EQ(remembered->kind, now.kind) << i;
        EXPECT_EQ(remembered->frame_offset, now.frame_offset) << i;
        EXPECT_TRUE(exactly || remembered->is_site == now.is_site) << i;
        EXPECT_FALSE(remembered->stays);
      }
    }
  }
  EXPECT_GT(at_the_same_place, 10) << "the loader puts them where nothing was: this shows nothing";
}

// With waits at the steps of the protocol (JACKDAW_TASK_DELAY), most reloads come while a thief is
// on its way.
TEST(Reload, BesideThievesIsSafe) {
  jd_task_start(2);
  unsigned long forked = 0;
  unsigned long stolen = 0;
  second_parts = 0;
  const bool may_steal = jd_task_get_mode() != JD_TASK_DEQUE;
  // Where the thief hardly ever gets a processor, until it has stolen something.
  const auto goes_on = [&](int round) {
    return round < 300 || (may_steal && stolen == 0 && round < 30000);
  };
  jd::run([&] {
    for (int round = 0; goes_on(round); ++round) {
      const Reloaded library(kAll[static_cast<std::size_t>(round) % kAll.size()]);
      ASSERT_NE(library.call(), nullptr) << dlerror();
      const bool forks = static_cast<std::size_t>(round) % kAll.size() == 0;
      for (int i = 0; i < 20; ++i) {
        if (forks) {
          ++forked;
          if (fork_at(library.call())) ++stolen;
        } else {
          ASSERT_TRUE(call_at(library.call())) << round;
        }
      }
    }
  });
  EXPECT_EQ(second_parts, forked);
  EXPECT_TRUE(stolen > 0 || !may_steal);
}

}  // namespace
