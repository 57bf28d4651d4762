// The table of options: every row can be set, every bad value is named and leaves the default
// (base.req.options).
#include "base/options.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace {
bool has_others_privileges = false;
}
// Stands before libc's, and says what that says in a setuid program.
extern "C" char* secure_getenv(const char* name) noexcept {
  return has_others_privileges ? nullptr : getenv(name);
}

namespace {

using jd::base::kOptions;
using jd::base::OptionInfo;
using jd::base::Options;
using jd::base::OptionType;

std::vector<std::string> complaints;
bool was_out_of_range = false;  // the last of them

void complain(const OptionInfo& option, const char* value, bool is_out_of_range) {
  was_out_of_range = is_out_of_range;
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
  for (const char* bad : {"", "abc", "-1", "12x", "5MM", "99999999999999999999999x", "1 2"}) {
    const Options options = read_with("GC_MAXIMUM_HEAP_SIZE", bad);
    EXPECT_EQ(options.maximum_heap_size, Options{}.maximum_heap_size) << bad;
    ASSERT_EQ(complaints.size(), 1u) << bad;
    EXPECT_EQ(complaints[0], std::string("GC_MAXIMUM_HEAP_SIZE=") + bad);
  }
}

TEST(Options, UnknownOnesOfOursAreFound) {
  static std::vector<std::string> found;
  const auto find = [] {
    found.clear();
    jd::base::find_unknown_options([](const char* variable) { found.push_back(variable); });
  };
  setenv("JACKDAW_MARK_STRATEGIES", "ring", 1);
  setenv("JACKDAW_MARK_STRATEGY", "ring", 1);
  setenv("JACKDAW_", "", 1);
  setenv("GC_NO_SUCH_OPTION", "1", 1);
  find();
  EXPECT_EQ(found, (std::vector<std::string>{"JACKDAW_MARK_STRATEGIES=ring", "JACKDAW_="}));
  for (const char* name :
       {"JACKDAW_MARK_STRATEGIES", "JACKDAW_MARK_STRATEGY", "JACKDAW_", "GC_NO_SUCH_OPTION"}) {
    unsetenv(name);
  }
  find();
  EXPECT_TRUE(found.empty());
}

// Regression: a program with its file's privileges printed text of whoever called it.
TEST(Options, UnknownOnesAreNotToldOfWithOthersPrivileges) {
  static int found;
  setenv("JACKDAW_NO_SUCH_OPTION", "1", 1);
  const auto find = [] {
    found = 0;
    jd::base::find_unknown_options([](const char*) { ++found; });
    return found;
  };
  EXPECT_EQ(find(), 1);
  has_others_privileges = true;
  EXPECT_EQ(find(), 0);
  has_others_privileges = false;
  unsetenv("JACKDAW_NO_SUCH_OPTION");
}

TEST(Options, RangesAreKept) {
  EXPECT_EQ(read_with("GC_FREE_SPACE_DIVISOR", "0").free_space_divisor, 1u);
  EXPECT_EQ(complaints.size(), 1u);
  EXPECT_EQ(read_with("GC_FREE_SPACE_DIVISOR", "1000").free_space_divisor, 1000u);
  EXPECT_EQ(read_with("GC_FREE_SPACE_DIVISOR", "1001").free_space_divisor, 1000u);
  EXPECT_EQ(complaints.size(), 1u);
}

// Regression: the size in bytes wrapped around, and the stack had one entry.
TEST(Options, NoMarkStackIsLargerThanTheAddressSpace) {
  constexpr std::uint64_t kEntryBytes = 16;
  const std::uint64_t entries = read_with("JACKDAW_MARK_STACK", "1152921504606846977").mark_stack;
  EXPECT_EQ(complaints.size(), 1u);
  EXPECT_GT(entries, 1u);
  EXPECT_LE(entries, (std::uint64_t{1} << 47) / kEntryBytes);
}

bool is_number(const OptionInfo& option) {
  return option.type == OptionType::Count || option.type == OptionType::Size;
}

TEST(Options, BlanksAroundNumbersAreSkipped) {
  EXPECT_EQ(read_with("GC_MAXIMUM_HEAP_SIZE", " 1M").maximum_heap_size, 1u << 20);
  EXPECT_EQ(read_with("GC_FREE_SPACE_DIVISOR", "\t5 ").free_space_divisor, 5u);
  EXPECT_TRUE(complaints.empty());
}

// Regression: of choices and switches they were not.
TEST(Options, BlanksAroundWordsAreSkipped) {
  EXPECT_EQ(read_with("JACKDAW_MARK_STRATEGY", " ring\t").mark_strategy,
            static_cast<std::uint64_t>(jd::base::MarkStrategy::Ring));
  EXPECT_EQ(read_with("JACKDAW_SWEEP", "eager ").sweep_time,
            static_cast<std::uint64_t>(jd::base::SweepTime::Eager));
  EXPECT_TRUE(complaints.empty());
  EXPECT_EQ(read_with("JACKDAW_HUGE_PAGES", "off ").huge_pages, 0u);
  EXPECT_EQ(read_with("JACKDAW_HUGE_PAGES", "\tno\t").huge_pages, 0u);
  EXPECT_EQ(read_with("JACKDAW_POISON", " ").poison, 1u);
  EXPECT_TRUE(complaints.empty());
  // A blank within is none around.
  static_cast<void>(read_with("JACKDAW_SWEEP", "ea ger"));
  EXPECT_EQ(complaints.size(), 1u);
}

TEST(Options, ThoseThatWereGivenAreKnown) {
  using jd::base::was_given;
  static_cast<void>(read_with("GC_FREE_SPACE_DIVISOR", "3"));
  EXPECT_TRUE(was_given(&Options::free_space_divisor));
  EXPECT_FALSE(was_given(&Options::unmap_on_gcollect));
}

// A limit is a limit, also one that is below the least.
TEST(Options, OfValuesOutsideTheirBoundsTheNearestIsTaken) {
  for (const OptionInfo& option : kOptions) {
    if (!is_number(option)) continue;
    const auto read = [&](std::uint64_t value) {
      return read_with(option.name, std::to_string(value).c_str()).*option.number;
    };
    EXPECT_EQ(read(option.least), option.least) << option.name;
    EXPECT_TRUE(complaints.empty()) << option.name;
    if (option.least > 1) {
      EXPECT_EQ(read(option.least - 1), option.least) << option.name;
      EXPECT_EQ(complaints.size(), 1u) << option.name;
    }
    // Regression: of 0 it was the default's.
    if (option.least > 0) {
      EXPECT_EQ(read(0), option.zero_allowed ? 0 : option.least) << option.name;
      EXPECT_EQ(complaints.size(), option.zero_allowed ? 0u : 1u) << option.name;
    }
    if (option.most != jd::base::kNoLimit) {
      EXPECT_EQ(read(option.most), option.most) << option.name;
      EXPECT_EQ(read(option.most + 1), option.most) << option.name;
      EXPECT_EQ(complaints.size(), 1u) << option.name;
    }
  }
}

// Regression: they were not understood, and a limit that was meant to be large was the default's.
TEST(Options, NumbersOf65BitsAreOutOfRange) {
  const auto is_above = [](const OptionInfo& option, const char* digits) {
    EXPECT_EQ(read_with(option.name, digits).*option.number, option.most)
        << option.name << "=" << digits;
    EXPECT_EQ(complaints.size(), 1u) << option.name << "=" << digits;
    EXPECT_TRUE(was_out_of_range) << option.name << "=" << digits;
  };
  for (const OptionInfo& option : kOptions) {
    if (!is_number(option)) continue;
    is_above(option, "18446744073709551616");
    is_above(option, "99999999999999999999999 ");
    if (option.type == OptionType::Size) is_above(option, "18014398509481984k");
  }
  EXPECT_EQ(read_with("JACKDAW_HUGE_PAGES", "18446744073709551616").huge_pages, 1u);
  EXPECT_TRUE(complaints.empty());
}

// The numbers in the texts that people read: "64k or more; 0: no limit", "0 to 255", "3".
TEST(Options, TextsSayWhatTheParserTakes) {
  const auto number = [](std::string text, std::uint64_t* value) {
    while (!text.empty() && (text.back() == ';' || text.back() == ':')) text.pop_back();
    return jd::base::parse_size(text.c_str(), value);
  };
  int bounds = 0;
  int defaults = 0;
  for (const OptionInfo& option : kOptions) {
    if (!is_number(option)) continue;
    std::istringstream range(option.range);
    std::string first;
    std::string between;
    std::string last;
    range >> first >> between >> last;
    std::uint64_t value = 0;
    if (number(first, &value)) {
      EXPECT_EQ(value, option.least) << option.name;
      ++bounds;
    }
    if (between == "to" && number(last, &value)) {
      EXPECT_EQ(value, option.most) << option.name;
      ++bounds;
    }
    const bool says_zero = std::string(option.range).find("; 0:") != std::string::npos;
    EXPECT_EQ(option.zero_allowed, says_zero && option.least > 0) << option.name;
    if (number(option.default_text, &value)) {
      EXPECT_EQ(value, Options{}.*option.number) << option.name;
      ++defaults;
    }
  }
  EXPECT_GE(bounds, 12);
  EXPECT_GE(defaults, 8);
}

TEST(Options, FlagsAreOnByPresence) {
  EXPECT_EQ(read_with("GC_DONT_GC", "").dont_gc, 1u);
  EXPECT_EQ(read_with("GC_DONT_GC", "1").dont_gc, 1u);
  EXPECT_EQ(read_with("GC_DONT_GC", "0").dont_gc, 0u);
  EXPECT_EQ(read_with("GC_RETRY_SIGNALS", "no").retry_signals, 0u);
}

TEST(Options, ChoicesMatchWholeWords) {
  EXPECT_EQ(read_with("JACKDAW_MARK_STRATEGY", "none").mark_strategy, 0u);
  EXPECT_EQ(read_with("JACKDAW_MARK_STRATEGY", "grey").mark_strategy, 1u);
  EXPECT_EQ(read_with("JACKDAW_MARK_STRATEGY", "on-grey").mark_strategy, 2u);
  EXPECT_EQ(read_with("JACKDAW_MARK_STRATEGY", "ring").mark_strategy, 3u);
  EXPECT_EQ(read_with("JACKDAW_MARK_STRATEGY", "measured").mark_strategy, 4u);
  for (const char* bad : {"rin", "rings", "", "none,", "none, on-grey", "on"}) {
    EXPECT_EQ(read_with("JACKDAW_MARK_STRATEGY", bad).mark_strategy, 4u) << bad;
    EXPECT_EQ(complaints.size(), 1u) << bad;
  }
}

TEST(Options, SweepSettings) {
  EXPECT_EQ(read_with("JACKDAW_SWEEP", "eager").sweep_time, 1u);
  EXPECT_EQ(read_with("JACKDAW_SWEEP", "lazy").sweep_time, 0u);
  EXPECT_EQ(read_with("JACKDAW_NEARLY_FULL", "0").nearly_full, 0u);
  EXPECT_EQ(read_with("JACKDAW_CLEAR_AHEAD", "4k").clear_ahead, 4096u);
  EXPECT_EQ(complaints.size(), 0u);
  EXPECT_EQ(read_with("JACKDAW_CLEAR_AHEAD", "32k").clear_ahead, 16384u);
  EXPECT_EQ(complaints.size(), 1u);
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
