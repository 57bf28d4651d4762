// The command's parts that need no program to run: ELF files, the search for libraries, numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "failure.hpp"
#include "figures/statistics.hpp"
#include "figures/units.hpp"
#include "program/elf.hpp"
#include "program/loader.hpp"
#include "run_tool.hpp"

namespace {

using jackdaw::read_elf;
using testing::Contains;

TEST(Elf, ReadsADynamicProgram) {
  const auto elf = read_elf(JD_TEST_OUTER_RUNPATH);
  ASSERT_TRUE(elf);
  EXPECT_TRUE(elf->is_dynamic);
  EXPECT_FALSE(elf->foreign);
  EXPECT_NE(elf->interpreter, "");
  EXPECT_THAT(elf->needed, Contains("libmiddle.so"));
  ASSERT_TRUE(elf->runpath);
  EXPECT_FALSE(elf->rpath);
  const auto old = read_elf(JD_TEST_OUTER_RPATH);
  ASSERT_TRUE(old && old->rpath);
  EXPECT_FALSE(old->runpath);
}

TEST(Elf, ReadsALibraryAndAStaticProgram) {
  const auto library = read_elf(JD_TEST_LIBRARY);
  ASSERT_TRUE(library);
  EXPECT_EQ(library->soname, "libgc.so.1");
  const auto program = read_elf(JD_TEST_STATIC);
  ASSERT_TRUE(program);
  EXPECT_EQ(program->interpreter, "");
}

TEST(Elf, IsNotFooledByOtherFiles) {
  const Scratch scratch;
  write_file(scratch.path("text"), "#!/bin/sh\n");
  EXPECT_FALSE(read_elf(scratch.path("text")));
  write_file(scratch.path("empty"), "");
  EXPECT_FALSE(read_elf(scratch.path("empty")));
  EXPECT_THROW(read_elf(scratch.path("nothing")), jackdaw::Failure);
}

// Cut anywhere, a file must give an answer or a Failure, and never a read outside of it.
TEST(Elf, SurvivesDamagedFiles) {
  const Scratch scratch;
  const std::string whole = read_file(JD_TEST_OUTER_RUNPATH);
  for (std::size_t size = 4; size < whole.size(); size += size < 2000 ? 7 : 997) {
    write_file(scratch.path("cut"), whole.substr(0, size));
    try {
      (void)read_elf(scratch.path("cut"));
    } catch (const jackdaw::Failure&) {
      // Said so.
    }
  }
  for (std::size_t at = 16; at < 1024; ++at) {
    std::string bytes = whole;
    bytes[at] = '\377';
    write_file(scratch.path("bent"), bytes);
    try {
      (void)read_elf(scratch.path("bent"));
    } catch (const jackdaw::Failure&) {
      // Said so.
    }
  }
}

TEST(Loader, FindsLibgcThroughOtherLibraries) {
  for (const char* path : {JD_TEST_OUTER_RUNPATH, JD_TEST_OUTER_RPATH}) {
    const auto elf = read_elf(path);
    ASSERT_TRUE(elf);
    const auto search = jackdaw::search_libgc(path, *elf);
    EXPECT_TRUE(search.found);
    EXPECT_TRUE(search.missing.empty());
  }
  const auto plain = read_elf(JD_TEST_PLAIN);
  ASSERT_TRUE(plain);
  const auto search = jackdaw::search_libgc(JD_TEST_PLAIN, *plain);
  EXPECT_FALSE(search.found);
  EXPECT_TRUE(search.missing.empty()) << search.missing.front();
}

TEST(Loader, FindsASystemLibraryAndSkipsOne) {
  const auto libc = jackdaw::find_system_library("libc.so.6", {});
  ASSERT_TRUE(libc);
  EXPECT_FALSE(jackdaw::find_system_library("libc.so.6", {*libc}));
  EXPECT_FALSE(jackdaw::find_system_library("libnobody-has-this.so.0", {}));
}

TEST(Statistics, MedianAndSpread) {
  const auto odd = jackdaw::summarize({3, 1, 2});
  EXPECT_EQ(odd.median, 2);
  EXPECT_EQ(odd.least, 1);
  EXPECT_EQ(odd.most, 3);
  EXPECT_EQ(jackdaw::summarize({4, 1, 2, 3}).median, 2.5);
}

TEST(Statistics, RatiosAreOfAllPairsOrOfNone) {
  const auto ratio = jackdaw::ratio_of({1, 6}, {2, 3});
  ASSERT_TRUE(ratio);
  EXPECT_EQ(ratio->least, 0.5);
  EXPECT_EQ(ratio->most, 2);
  EXPECT_FALSE(jackdaw::ratio_of({}, {}));
  // Regression: of these, four pairs said 0.01, where ours has more in five of nine.
  const auto reversed =
      jackdaw::ratio_of({349, 1, 1, 1, 1, 349, 349, 1, 1}, {0, 0, 94, 94, 0, 0, 0, 0, 94});
  EXPECT_FALSE(reversed);
  EXPECT_TRUE(jackdaw::to_json(reversed).is_null());
}

TEST(Units, ShowThreeDigits) {
  EXPECT_EQ(jackdaw::show_bytes(0), "0 B");
  EXPECT_EQ(jackdaw::show_bytes(1023), "1023 B");
  EXPECT_EQ(jackdaw::show_bytes(1536), "1.50 KiB");
  EXPECT_EQ(jackdaw::show_bytes(64.0 * 1024 * 1024), "64.0 MiB");
  EXPECT_EQ(jackdaw::show_seconds(0), "0 s");
  EXPECT_EQ(jackdaw::show_seconds(0.0123), "12.3 ms");
  EXPECT_EQ(jackdaw::show_seconds(1.5), "1.50 s");
  EXPECT_EQ(jackdaw::show_seconds(123e-9), "123 ns");
  EXPECT_EQ(jackdaw::show_number(99.96), "100");
  EXPECT_EQ(jackdaw::show_number(0.1234), "0.123");
}

}  // namespace
