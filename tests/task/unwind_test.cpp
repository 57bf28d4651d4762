// What the unwinder remembers of code is what the code's tables say (src/task/unwind.hpp).
#include "task/unwind.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace jd::task {
namespace {

Word address_of(void (*function)()) { return reinterpret_cast<Word>(function); }

// Functions of the C library, with frames of many shapes, and what follows them in memory.
std::vector<Word> code_addresses() {
  constexpr Word kBytes = 1500;
  std::vector<Word> list;
  for (const Word begin : {address_of(reinterpret_cast<void (*)()>(qsort)),
                           address_of(reinterpret_cast<void (*)()>(strtod)),
                           address_of(reinterpret_cast<void (*)()>(realloc))}) {
    for (Word i = 0; i < kBytes; ++i) list.push_back(begin + i);
  }
  return list;
}

struct Seen {
  bool known = false;
  Rule rule;
};

Seen look_afresh(Word address, bool exactly) {
  const Rule rule = read_rule(exactly ? address : address - 1);
  return rule.kind == Rule::None ? Seen{} : Seen{true, rule};
}

Seen look(Unwinder* unwinder, Word address, bool exactly) {
  Registers registers{};
  registers.value[kPc] = address;
  const Rule* rule = unwinder->rule_for(registers, exactly);
  return rule == nullptr ? Seen{} : Seen{true, *rule};
}

void expect_same(const Seen& fresh, const Seen& remembered, Word address, bool exactly) {
  ASSERT_EQ(fresh.known, remembered.known) << address;
  if (!fresh.known) return;
  EXPECT_EQ(fresh.rule.kind, remembered.rule.kind) << address;
  EXPECT_EQ(fresh.rule.frame_register, remembered.rule.frame_register) << address;
  EXPECT_EQ(fresh.rule.frame_offset, remembered.rule.frame_offset) << address;
  EXPECT_EQ(fresh.rule.returns_oddly, remembered.rule.returns_oddly) << address;
  // Of an interrupted instruction it means nothing.
  EXPECT_TRUE(exactly || fresh.rule.is_site == remembered.rule.is_site) << address;
  EXPECT_EQ(std::memcmp(fresh.rule.saved, remembered.rule.saved, sizeof fresh.rule.saved), 0)
      << address;
}

class Unwind : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!unwinding_is_possible()) GTEST_SKIP() << "stacks can't be walked here";
    ASSERT_TRUE(warm_.prepare());
    warm_.begin_walk();
  }
  void compare(const std::vector<Word>& addresses) {
    for (const Word address : addresses) {
      expect_same(look_afresh(address, GetParam()), look(&warm_, address, GetParam()), address,
                  GetParam());
      if (HasFatalFailure()) return;
    }
  }
  Unwinder warm_;
};

TEST_P(Unwind, RemembersWhatTheTablesSayInOrder) { compare(code_addresses()); }

TEST_P(Unwind, RemembersWhatTheTablesSayInAnyOrder) {
  std::vector<Word> addresses = code_addresses();
  std::shuffle(addresses.begin(), addresses.end(), std::mt19937(1));
  compare(addresses);
}

TEST_P(Unwind, KnowsSomethingOfMostCode) {
  const std::vector<Word> addresses = code_addresses();
  const auto known = std::count_if(addresses.begin(), addresses.end(), [&](Word address) {
    return look(&warm_, address, GetParam()).known;
  });
  EXPECT_GT(known, static_cast<std::ptrdiff_t>(addresses.size() / 2));
}

INSTANTIATE_TEST_SUITE_P(Kinds, Unwind, testing::Bool(),
                         [](const auto& info) { return info.param ? "Interrupted" : "Returns"; });

}  // namespace
}  // namespace jd::task
