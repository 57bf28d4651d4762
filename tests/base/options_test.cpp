// The table of options: every row can be set, every bad value is named and leaves the default.
#include "base/options.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace {

using jd::base::kOptions;
using jd::base::OptionInfo;
using jd::base::Options;
using jd::base::OptionType;

std::vector<std::string> complaints;

void complain(const OptionInfo& option, const char* value) {
  complaints.push_back(std::string(option.name) + "=" + value);
}

Options read_with(const char* name, const char* value) {
  complaints.clear();
  setenv(name, value, 1);
  Options options;
  jd::base::read_options(&options, complain);
  unsetenv(name);
  return options;
}

TEST(Options, SizesTakeSuffixes) {
  EXPECT_EQ(read_with("GC_INITIAL_HEAP_SIZE", "123").initial_heap_size, 123u);
  EXPECT_EQ(read_with("GC_INITIAL_HEAP_SIZE", "3k").initial_heap_size, 3072u);
  EXPECT_EQ(read_with("GC_INITIAL_HEAP_SIZE", "5M").initial_heap_size, 5u << 20);
  EXPECT_EQ(read_with("GC_INITIAL_HEAP_SIZE", "2G").initial_heap_size, std::uint64_t{2} << 30);
  EXPECT_TRUE(complaints.empty());
}

TEST(Options, BadValuesAreNamedAndIgnored) {
  for (const char* bad :
       {"", "abc", "-1", "12x", "5MM", "99999999999999999999999", "1 2", "18446744073709551615k"}) {
    const Options options = read_with("GC_MAXIMUM_HEAP_SIZE", bad);
    EXPECT_EQ(options.maximum_heap_size, Options{}.maximum_heap_size) << bad;
    ASSERT_EQ(complaints.size(), 1u) << bad;
    EXPECT_EQ(complaints[0], std::string("GC_MAXIMUM_HEAP_SIZE=") + bad);
  }
}

TEST(Options, RangesAreKept) {
  EXPECT_EQ(read_with("GC_FREE_SPACE_DIVISOR", "0").free_space_divisor, 3u);
  EXPECT_EQ(complaints.size(), 1u);
  EXPECT_EQ(read_with("GC_FREE_SPACE_DIVISOR", "1000").free_space_divisor, 1000u);
  EXPECT_EQ(read_with("GC_FREE_SPACE_DIVISOR", "1001").free_space_divisor, 3u);
}

TEST(Options, FlagsAreOnByPresence) {
  EXPECT_EQ(read_with("GC_DONT_GC", "").dont_gc, 1u);
  EXPECT_EQ(read_with("GC_DONT_GC", "1").dont_gc, 1u);
  EXPECT_EQ(read_with("GC_DONT_GC", "0").dont_gc, 0u);
  EXPECT_EQ(read_with("GC_RETRY_SIGNALS", "no").retry_signals, 0u);
}

TEST(Options, ChoicesMatchWholeWords) {
  EXPECT_EQ(read_with("JACKDAW_MARK_STRATEGY", "none").mark_strategy, 0u);
  EXPECT_EQ(read_with("JACKDAW_MARK_STRATEGY", "on-grey").mark_strategy, 1u);
  EXPECT_EQ(read_with("JACKDAW_MARK_STRATEGY", "ring").mark_strategy, 2u);
  for (const char* bad : {"rin", "rings", "", "none,", "on"}) {
    EXPECT_EQ(read_with("JACKDAW_MARK_STRATEGY", bad).mark_strategy, 2u) << bad;
    EXPECT_EQ(complaints.size(), 1u) << bad;
  }
}

TEST(Options, EveryRowIsDescribedAndHasOnePlaceForItsValue) {
  for (const OptionInfo& option : kOptions) {
    EXPECT_GT(std::string(option.help).size(), 10u) << option.name;
    EXPECT_NE(option.default_text[0], '\0') << option.name;
    EXPECT_EQ(option.type == OptionType::Path, option.text != nullptr) << option.name;
    EXPECT_EQ(option.type == OptionType::Path, option.number == nullptr) << option.name;
  }
}

}  // namespace
