// What `jackdaw run --malloc` does with programs of several sorts: those that it refuses, and those
// that have a malloc of their own or another's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "run_tool.hpp"
#include "variable.hpp"

namespace {

using testing::HasSubstr;

TEST(MallocCommand, RefusesWhatCannotBeServed) {
  Result r = run_jackdaw({"run", "--malloc", "--", JD_TEST_STATIC});
  EXPECT_TRUE(r.exited_with(125)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("statically linked"));
  r = run_jackdaw({"run", "--malloc", "--", JD_TEST_CLIENT, "exit", "0"});
  EXPECT_TRUE(r.exited_with(125)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("uses libgc"));
  EXPECT_THAT(r.err, HasSubstr("jackdaw run -- "));
  r = run_jackdaw({"run", "--malloc", "--", JD_TEST_ASAN});
  EXPECT_TRUE(r.exited_with(125)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("a sanitizer (libasan.so)"));
  r = run_jackdaw({"run", "--malloc", "--", JD_TEST_LSAN});
  EXPECT_TRUE(r.exited_with(125)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("a sanitizer (liblsan.so)"));
  const Scratch scratch;
  const std::string copy = scratch.path("client");
  std::filesystem::copy_file(JD_TEST_MALLOC_CLIENT, copy);
  ASSERT_EQ(chmod(copy.c_str(), 04755), 0);
  r = run_jackdaw({"run", "--malloc", "--", copy, "entries"});
  EXPECT_TRUE(r.exited_with(125)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("setuid"));
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"run", "--malloc=sometimes", "--", JD_TEST_MALLOC_CLIENT},
        {"run", "--malloc=", "--", JD_TEST_MALLOC_CLIENT},
        {"run", "--malloc", "--compare", "--", JD_TEST_MALLOC_CLIENT},
        {"run", "--malloc", "--force", "--", JD_TEST_MALLOC_CLIENT}}) {
    r = run_jackdaw(arguments);
    EXPECT_TRUE(r.exited_with(125)) << describe(r);
    EXPECT_THAT(r.err, HasSubstr("--malloc"));
  }
}

TEST(MallocCommand, TheDynamicLinkerMayBeTheProgram) {
  const char* linker = nullptr;
  for (const char* path : {"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"}) {
    if (std::filesystem::exists(path)) linker = path;
  }
  if (linker == nullptr) GTEST_SKIP() << "this system's dynamic linker has another name";
  const Scratch scratch;
  const Variable log("GC_LOG_FILE", scratch.path("log"));
  const Result r =
      run_jackdaw({"run", "--malloc=leak-check", "--", linker, JD_TEST_MALLOC_CLIENT, "entries"});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_EQ(r.out, "ok\n");
  EXPECT_THAT(read_file(scratch.path("log")), HasSubstr("leak check of process"));
}

// Where the preloaded library can't be named, what is advised is possible with --malloc.
TEST(MallocCommand, RefusesAPlaceOfItsOwnThatCannotBeNamed) {
  const Scratch scratch;
  const std::string folder = scratch.path("a folder");
  const std::filesystem::path build = std::filesystem::path(JD_TEST_COMMAND).parent_path();
  std::filesystem::create_directories(folder + "/bin");
  std::filesystem::create_directories(folder + "/lib");
  std::filesystem::copy_file(JD_TEST_COMMAND, folder + "/bin/jackdaw");
  std::filesystem::copy_file(build.parent_path() / "lib/libjackdaw-malloc.so",
                             folder + "/lib/libjackdaw-malloc.so");
  const Result r = run_program({folder + "/bin/jackdaw", "run", "--malloc", "--", "/bin/true"});
  EXPECT_TRUE(r.exited_with(125)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("a blank, a colon or a $"));
  EXPECT_THAT(r.err, HasSubstr("move Jackdaw"));
  EXPECT_THAT(r.err, testing::Not(HasSubstr("--library")));
}

TEST(MallocCommand, AProgramKeepsAMallocOfItsOwn) {
  for (const char* mode : {"--malloc=free", "--malloc=ignore"}) {
    const Result r = run_jackdaw({"run", mode, "--", JD_TEST_OWN_MALLOC, JD_TEST_MALLOC_PLUGIN});
    EXPECT_TRUE(r.exited_with(0)) << describe(r);
    EXPECT_EQ(r.out, "ok\n");
    EXPECT_EQ(r.err, "");
  }
  const Result r =
      run_jackdaw({"run", "--malloc=leak-check", "--", JD_TEST_OWN_MALLOC, JD_TEST_MALLOC_PLUGIN});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("a malloc of its own"));
}

TEST(MallocCommand, OneThatPassesRequestsOnIsServed) {
  for (const char* mode : {"--malloc=free", "--malloc=ignore", "--malloc=leak-check"}) {
    const Result r = run_jackdaw({"run", mode, "--", JD_TEST_PASSING_MALLOC});
    EXPECT_TRUE(r.exited_with(0)) << describe(r);
    EXPECT_EQ(r.out, "ok\n");
    EXPECT_THAT(r.err, testing::Not(HasSubstr("of its own")));
  }
}

// Regression: what the library's operator new had made was never freed where its operator delete
// calls free (libjemalloc's does), and each was told of.
TEST(MallocCommand, AnotherMallocsObjectsGoBackToIt) {
  for (const char* mode : {"--malloc=free", "--malloc=ignore", "--malloc=leak-check"}) {
    const Scratch scratch;
    const Variable log("GC_LOG_FILE", scratch.path("log"));
    const Result r = run_jackdaw({"run", mode, "--", JD_TEST_OTHER_MALLOC});
    EXPECT_TRUE(r.exited_with(0)) << mode << describe(r);
    EXPECT_EQ(r.err, "");
  }
}

// The address of malloc is one in a program that is linked for fixed ones and takes it.
TEST(MallocCommand, AProgramMayTakeItsAddress) {
  for (const char* mode : {"--malloc=free", "--malloc=ignore", "--malloc=leak-check"}) {
    const Scratch scratch;
    const Variable log("GC_LOG_FILE", scratch.path("log"));
    const Result r = run_jackdaw({"run", mode, "--", JD_TEST_FIXED, "entries"});
    EXPECT_TRUE(r.exited_with(0)) << describe(r);
    EXPECT_EQ(r.err, "");
    EXPECT_THAT(read_file(scratch.path("log")), testing::Not(HasSubstr("of its own")));
  }
}

// Regression: the command looked for its own file in /proc alone.
TEST(MallocCommand, RunsWithoutProc) {
  const Result r = run_program(
      {"/bin/sh", "-c", "exec unshare -m sh -c 'umount -l /proc || exit 77; exec \"$@\"' \"$@\"",
       "sh", "sh", JD_TEST_COMMAND, "run", "--malloc", "--", JD_TEST_MALLOC_CLIENT, "entries"});
  if (r.exited_with(77) || r.err.starts_with("unshare:")) {
    GTEST_SKIP() << "this user may not unmount /proc: " << r.err;
  }
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("the roots are not known"));
  EXPECT_THAT(r.out, testing::EndsWith("ok\n"));
}

TEST(MallocCommand, PlainMeansFree) {
  const Result r = run_jackdaw({"run", "--malloc", "--", JD_TEST_MALLOC_CLIENT, "entries"});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_EQ(r.out, "ok\n");
}

}  // namespace
