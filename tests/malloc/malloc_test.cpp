// `jackdaw run --malloc` on a client that knows what is right (client.c).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>

#include "run_tool.hpp"
#include "variable.hpp"

namespace {

using testing::HasSubstr;

Result run(const std::string& mode, const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {"run", "--malloc=" + mode, "--", JD_TEST_MALLOC_CLIENT};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run_jackdaw(all);
}

long resident_kib(const Result& r) {
  std::smatch found;
  return std::regex_search(r.out, found, std::regex("resident ([0-9]+) KiB"))
             ? std::stol(found[1].str())
             : -1;
}

// Every case in every mode.
class Malloc : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(Malloc, ServesTheClient) {
  const auto& [mode, name] = GetParam();
  const Scratch scratch;
  const Variable log("GC_LOG_FILE", scratch.path("log"));
  const Result r = run(mode, {name, JD_TEST_MALLOC_PLUGIN});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_THAT(r.out, testing::EndsWith("ok\n"));
  EXPECT_EQ(r.err, "");
}

// The same where each collection checks itself, and what was reclaimed is overwritten at once.
TEST_P(Malloc, ReclaimsNothingThatIsNeeded) {
  const auto& [mode, name] = GetParam();
  const Variable verify("JACKDAW_VERIFY", "1");
  const Variable poison("JACKDAW_POISON", "1");
  const Variable every("JACKDAW_COLLECT_EVERY", "5000");
  const Scratch scratch;
  const Variable log("GC_LOG_FILE", scratch.path("log"));
  const Result r = run(mode, {name, JD_TEST_MALLOC_PLUGIN});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_THAT(r.out, testing::EndsWith("ok\n"));
}

INSTANTIATE_TEST_SUITE_P(
    , Malloc,
    testing::Combine(testing::Values("free", "ignore", "leak-check"),
                     testing::Values("entries", "limits", "places", "thread-places", "timers",
                                     "contexts", "threads", "fork", "children", "loading",
                                     "deep-binding", "signals", "waiting", "in-handler",
                                     "fork-in-handler", "collectors-signals", "main-ends", "vfork",
                                     "zeros-moved")),
    [](const auto& info) {
      std::string name = std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
      for (char& c : name) c = c == '-' ? '_' : c;
      return name;
    });

// malloc.req.garbage
TEST(MallocGarbage, IsCollected) {
  for (const char* mode : {"free", "ignore"}) {
    const Result r = run(mode, {"garbage"});
    EXPECT_TRUE(r.exited_with(0)) << describe(r);
    EXPECT_LT(resident_kib(r), 150 * 1024) << mode;
  }
}

// Regression: each was taken for a child of vfork(), which has its parent's memory.
TEST(MallocGarbage, IsCollectedInChildrenThatNoHandlerHeardOf) {
  for (const char* mode : {"free", "ignore"}) {
    const Result r = run(mode, {"unnoticed-children"});
    EXPECT_TRUE(r.exited_with(0)) << describe(r);
  }
}

// Regression: a line that nobody read ended the program.
TEST(MallocOutput, MayGoNowhere) {
  for (const char* mode : {"free", "ignore", "leak-check"}) {
    const Result r = run(mode, {"dead-output"});
    EXPECT_TRUE(r.exited_with(0)) << describe(r);
    EXPECT_EQ(r.out, "ok\n");
  }
}

// Regression: the options were read when libc did not know the environment yet.
TEST(MallocStart, MayComeBeforeLibcs) {
  const Result r = run_jackdaw({"run", "--malloc=leak-check", "--", JD_TEST_PREINIT});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_EQ(r.out, "ok\n");
  EXPECT_THAT(r.err, testing::ContainsRegex("leak check of process [0-9]+ .malloc_preinit.: "
                                            "([89]|10) objects"));
}

// Regression: only one that was there at the start was seen, and each waited for the other.
TEST(MallocStart, ACollectorMayComeLater) {
  const Variable every("JACKDAW_COLLECT_EVERY", "500");
  for (int i = 0; i < 3; ++i) {
    const Result r = run_jackdaw({"run", "--malloc", "--", JD_TEST_LOADS_COLLECTOR, JD_TEST_LIBGC});
    EXPECT_TRUE(r.exited_with(0)) << describe(r);
    EXPECT_EQ(r.out, "ok\n");
    EXPECT_THAT(r.err, HasSubstr("the program has a collector of its own"));
  }
}

// Regression: each collection told of all that the program had dropped, or freed in mode `ignore`.
TEST(MallocGarbage, IsNoLeak) {
  const Variable leaks("GC_FIND_LEAK", "1");
  for (const char* mode : {"free", "ignore"}) {
    const Result r = run(mode, {"garbage"});
    EXPECT_TRUE(r.exited_with(0)) << describe(r);
    EXPECT_EQ(r.err.find("leaked"), std::string::npos) << describe(r);
  }
}

// malloc.req.old-words, in slots, spans and runs of blocks. Regression: 200 MB, and more with each
// list.
TEST(MallocGarbage, IsNotHeldByWhatStoodInObjectsBefore) {
  for (const char* mode : {"free", "ignore"}) {
    for (const char* bytes : {"4096", "8192", "10000", "20000", "200000"}) {
      const Result r = run(mode, {"old-words", bytes});
      EXPECT_TRUE(r.exited_with(0)) << describe(r);
      EXPECT_LT(resident_kib(r), 40 * 1024) << mode << ", objects of " << bytes << " bytes";
    }
  }
}

// Regression: the place of the name was asked when the program had written its title over it.
TEST(MallocLeaks, AreOfTheProgramByItsFirstName) {
  const Result r = run("leak-check", {"renamed"});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr(" (malloc_client): "));
}

// Regression: the places that the object had left before stayed resident.
TEST(MallocObjects, ThatGrowAreNotThereTwice) {
  const Result r = run("free", {"regrown"});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_LT(resident_kib(r), 160 * 1024 * 2);
}

// Regression: each collection read all of it, and so gave every page of it page tables.
TEST(MallocObjects, AreScannedWhereTheyWereWritten) {
  const Variable every("JACKDAW_COLLECT_EVERY", "10000");
  // A check of the collection reads everything.
  const Variable verify("JACKDAW_VERIFY", "0");
  for (const char* mode : {"free", "ignore", "leak-check"}) {
    const Result r = run(mode, {"sparse"});
    EXPECT_TRUE(r.exited_with(0)) << mode << describe(r);
  }
}

TEST(MallocObjects, OfMuchMemoryAreNotTouchedToBeCleared) {
  for (const char* mode : {"free", "ignore", "leak-check"}) {
    const Result r = run(mode, {"clear"});
    EXPECT_TRUE(r.exited_with(0)) << mode << describe(r);
  }
}

// malloc.req.figures
TEST(MallocFigures, AreTheHeapsAndFreeBlocksGoBack) {
  for (const char* mode : {"free", "ignore"}) {
    const Result r = run(mode, {"trim"});
    EXPECT_TRUE(r.exited_with(0)) << mode << describe(r);
    EXPECT_THAT(r.err, HasSubstr("bytes, of which"));
  }
}

TEST(MallocGarbage, StaysWhereLeaksAreLookedFor) {
  const Scratch scratch;
  const Variable log("GC_LOG_FILE", scratch.path("log"));
  const Result r = run("leak-check", {"garbage"});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_GT(resident_kib(r), 600 * 1024);
}

// malloc.req.signals
TEST(MallocSignals, WhereTheHandlerIsReplacedNothingIsReclaimed) {
  const Result r = run("free", {"replaced-handler"});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("not collecting any more"));
  EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
}

TEST(MallocSignals, WhereTheQueueIsFullThreadsRunOnAndOnceItHasRoomCollectionsGoOn) {
  const Result r = run("free", {"full-queue"});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("no room for signal 60"));
  EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
  EXPECT_LT(resident_kib(r), 300 * 1024);
}

TEST(MallocSignals, WhereTheQueueIsFullAtTheEndTheLeakCheckSaysSo) {
  const Result r = run("leak-check", {"full-queue-at-the-end"});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("not all threads could be stopped"));
}

// Regression: it advised a function that the program does not have.
TEST(MallocSignals, WhereTheSystemRefusesAHandlerTheLineSaysWhatAProgramCanDo) {
  const Result r = run("free", {"refused-handler", JD_TEST_MALLOC_CLIENT});
  if (r.exited_with(77)) GTEST_SKIP() << "no seccomp filters";
  EXPECT_THAT(r.err, HasSubstr("the system refuses a handler for signal 60"));
  EXPECT_THAT(r.err, HasSubstr("without --malloc"));
  EXPECT_THAT(r.err, testing::Not(HasSubstr("GC_set_suspend_signal")));
}

// malloc.req.no-proc
TEST(MallocRoots, WithoutProcNothingIsReclaimed) {
  const Variable poison("JACKDAW_POISON", "1");
  const Result r = run("free", {"no-proc"});
  if (r.exited_with(77)) GTEST_SKIP() << "this user may not chroot";
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("the roots are not known"));
  EXPECT_EQ(r.err.find('\n'), r.err.size() - 1) << "more than one line:\n" << r.err;
}

// Regression: the line said that /proc/self/maps couldn't be read.
TEST(MallocRoots, WithoutMemoryForTheListOfMappingsThatIsSaid) {
  const Result r = run("free", {"full-mappings"});
  if (r.exited_with(77)) GTEST_SKIP() << "this system allows very many mappings";
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("there is no memory for a copy of /proc/self/maps"));
}

// Regression: a process that may not read its page tables had each page of its mappings tried. That
// took seconds, and page tables, of a large one that nobody had touched.
TEST(MallocRoots, OfLittleInALargeMappingAreFoundWithoutThePageTables) {
  const Variable poison("JACKDAW_POISON", "1");
  for (const char* untold : {"-", "no-sysinfo", "no-mincore", "idle-mincore"}) {
    const Result r = run("free", {"untouched", untold});
    if (r.exited_with(77)) GTEST_SKIP() << "this user may not become another";
    EXPECT_TRUE(r.exited_with(0)) << untold << describe(r);
    EXPECT_EQ(r.out, "ok\n") << untold;
  }
}

// Regression: it waited for ever for the stopped thread that was to serve the page.
TEST(MallocRoots, InPagesThatAThreadServesAreFoundWithoutThePageTables) {
  const Variable poison("JACKDAW_POISON", "1");
  for (const char* untold : {"-", "no-sysinfo"}) {
    const Result r = run("free", {"userfault", untold});
    if (r.exited_with(77)) GTEST_SKIP() << "no userfaultfd, or this user may not become another";
    EXPECT_TRUE(r.exited_with(0)) << untold << describe(r);
    EXPECT_EQ(r.out, "ok\n") << untold;
  }
}

TEST(MallocFree, TellsWhatIsWrongWithAPointer) {
  for (const char* mode : {"free", "leak-check"}) {
    const Scratch scratch;
    const Variable log("GC_LOG_FILE", scratch.path("log"));
    const Result r = run(mode, {"wrong-free"});
    EXPECT_TRUE(r.exited_with(0)) << describe(r);
    EXPECT_THAT(r.err, HasSubstr("not an object of the collector's heap"));
    EXPECT_THAT(r.err, HasSubstr("not the beginning of an object"));
    EXPECT_THAT(r.err, HasSubstr("already free; "));
    EXPECT_THAT(r.err, HasSubstr("already free, or never an object"));
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 5) << r.err;
  }
}

// --- malloc.req.hiding --------------------------------------------------------------------------

// By the library's name, and of a program by its function's.
class MallocHiding : public testing::TestWithParam<const char*> {};

TEST_P(MallocHiding, WhatItHidesIsKept) {
  const Variable poison("JACKDAW_POISON", "1");
  const Variable every("JACKDAW_COLLECT_EVERY", "100");
  for (const char* mode : {"--malloc=free", "--malloc=ignore"}) {
    const Result r = run_jackdaw({"run", mode, "--", std::string(JD_TEST_HIDING_IN) + GetParam()});
    EXPECT_TRUE(r.exited_with(0)) << mode << describe(r);
    EXPECT_EQ(r.err, "");
  }
}

TEST_P(MallocHiding, WhatItHidesIsFreedByHand) {
  for (const char* mode : {"--malloc=free", "--malloc=ignore"}) {
    const Result r =
        run_jackdaw({"run", mode, "--", std::string(JD_TEST_HIDING_IN) + GetParam(), "2000"});
    EXPECT_TRUE(r.exited_with(0)) << mode << describe(r);
    EXPECT_LT(resident_kib(r), 40 * 1024) << mode;
  }
}

INSTANTIATE_TEST_SUITE_P(Libraries, MallocHiding,
                         testing::Values("fontconfig", "ruby-9.9", "swipl", "program"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return !isalnum(c); }, '_');
                           return name;
                         });

TEST(MallocHidingLate, NothingIsReclaimed) {
  const Variable poison("JACKDAW_POISON", "1");
  const Variable every("JACKDAW_COLLECT_EVERY", "100");
  for (const char* mode : {"--malloc=free", "--malloc=ignore"}) {
    for (const std::string library : {JD_TEST_HIDING, JD_TEST_HIDING_RUBY}) {
      const Result r = run_jackdaw({"run", mode, "--", JD_TEST_HIDING_LOADING, library});
      EXPECT_TRUE(r.exited_with(0)) << mode << describe(r);
      EXPECT_THAT(r.err, HasSubstr("not collecting any more"));
      EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
    }
  }
}

// --- malloc.req.leaks ---------------------------------------------------------------------------

TEST(MallocLeaks, TheUnwinderMayAllocate) {
  const Result r = run_jackdaw({"run", "--malloc=leak-check", "--", JD_TEST_UNWINDING});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
}

struct Group {
  long objects = 0;
  long bytes = 0;
};

// The group whose stack's lines have the text in them.
Group find_group_by(const std::string& report, const std::string& text) {
  const std::regex head("leak in process [0-9]+: ([0-9]+) objects?, ([0-9]+) bytes");
  Group group;
  std::istringstream lines(report);
  Group found;
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_search(line, match, head)) {
      found = {std::stol(match[1].str()), std::stol(match[2].str())};
    } else if (line.find(text) != std::string::npos) {
      group.objects += found.objects;
      group.bytes += found.bytes;
    }
  }
  return group;
}

// The group whose stack's lines name the function.
Group find_group(const std::string& report, const std::string& function) {
  return find_group_by(report, "(" + function + "+");
}

void expect_known_leaks(const std::string& report) {
  // A stale word may hold a few.
  const Group small = find_group(report, "lose_hundred_of_64");
  EXPECT_LE(small.objects, 100) << report;
  EXPECT_GE(small.objects, 97) << report;
  EXPECT_EQ(small.bytes, 64 * small.objects) << report;
  const Group resized = find_group(report, "lose_in_realloc");
  EXPECT_LE(resized.objects, 50) << report;
  EXPECT_GE(resized.objects, 48) << report;
  EXPECT_EQ(resized.bytes, 1000 * resized.objects) << report;
  const Group large = find_group(report, "lose_large");
  EXPECT_LE(large.objects, 20) << report;
  EXPECT_GE(large.objects, 18) << report;
  EXPECT_EQ(large.bytes, 100000 * large.objects) << report;
  const Group list = find_group(report, "lose_list");
  EXPECT_LE(list.objects, 200) << report;
  EXPECT_GE(list.objects, 190) << report;
}

TEST(MallocLeaks, AreReportedWithTheirStacks) {
  const Result r = run("leak-check", {"leaks"});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_EQ(r.out, "ok\n");
  EXPECT_THAT(r.err, HasSubstr("leak check of process "));
  expect_known_leaks(r.err);
}

TEST(MallocLeaks, AreNotChangedByTrimming) {
  const Result r = run("leak-check", {"leaks", "trim"});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  expect_known_leaks(r.err);
}

TEST(MallocLeaks, GoToTheLogFile) {
  const Scratch scratch;
  const Variable log("GC_LOG_FILE", scratch.path("log"));
  const Result r = run("leak-check", {"leaks"});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_EQ(r.err, "");
  expect_known_leaks(read_file(scratch.path("log")));
}

TEST(MallocLeaks, HaveTheSizeThatLargeObjectsWereShrunkTo) {
  const Result r = run("leak-check", {"shrunk-leaks"});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  for (const long mebibytes : {60, 98, 6}) {
    EXPECT_THAT(r.err, HasSubstr(": 1 object, " + std::to_string(mebibytes << 20) + " bytes, "));
  }
  EXPECT_THAT(r.err, HasSubstr(": 1 object, 10 bytes, "));
}

TEST(MallocLeaks, AreThoseOfTheLibraryThatWasLoadedThen) {
  const Scratch scratch;
  const std::string first = scratch.path("plugin.so");
  const std::string second = first + "2";
  std::filesystem::copy_file(JD_TEST_MALLOC_PLUGIN, first);
  std::filesystem::copy_file(JD_TEST_MALLOC_PLUGIN, second);
  const Result r = run("leak-check", {"plugins-leaks", first});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  const auto expect_group = [&r](const std::string& text, long objects, long each) {
    // A stale word may hold one.
    const Group group = find_group_by(r.err, text);
    EXPECT_LE(group.objects, objects) << text << r.err;
    EXPECT_GE(group.objects, objects - 2) << text << r.err;
    EXPECT_EQ(group.bytes, each * group.objects) << text << r.err;
  };
  // In one group, though it was loaded again and again.
  EXPECT_TRUE(std::regex_search(r.err, std::regex(": (19[89]|200) objects, [0-9]+ bytes")))
      << r.err;
  const auto unloaded = [&r](const std::string& path) {
    std::smatch match;
    EXPECT_TRUE(std::regex_search(r.err, match, std::regex(path + "\\+0x[0-9a-f]+ .unloaded.")))
        << r.err;
    return match.str();
  };
  expect_group(unloaded(first), 200, 50);
  expect_group(unloaded(second), 10, 70);
  expect_group("(plugin_allocate+", 10, 90);
}

TEST(MallocLeaks, OfSeveralProcessesStayApartInOneFile) {
  const Scratch scratch;
  const Variable log("GC_LOG_FILE", scratch.path("log"));
  const Result r = run("leak-check", {"children-leaks"});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  // Each leak's lines: as many as its stack has frames, of which the functions' own are told apart
  // by their depth.
  std::istringstream lines(read_file(scratch.path("log")));
  const std::regex head("leak in process [0-9]+: 1 object, 100 bytes");
  std::vector<long> frames;
  bool in_leak = false;
  for (std::string line; std::getline(lines, line);) {
    const bool is_frame = line.starts_with("jackdaw:   ");
    if (!is_frame) in_leak = std::regex_search(line, head);
    if (!is_frame && in_leak) frames.push_back(0);
    if (is_frame && in_leak) ++frames.back();
  }
  EXPECT_GE(frames.size(), 50u);
  ASSERT_FALSE(frames.empty());
  // Depths 0 to 9 and no others.
  EXPECT_LE(*std::max_element(frames.begin(), frames.end()),
            *std::min_element(frames.begin(), frames.end()) + 9);
}

// GNU's programs close standard error in a function of exit's, and daemons close all there is.
TEST(MallocLeaks, AreReportedWhereTheProgramClosedItsFiles) {
  const Scratch scratch;
  {
    const Result r = run("leak-check", {"closed-files", scratch.path("data")});
    EXPECT_TRUE(r.exited_with(0)) << describe(r);
    expect_known_leaks(r.err);
  }
  const Variable log("GC_LOG_FILE", scratch.path("log"));
  const Result r = run("leak-check", {"closed-files", scratch.path("data")});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  expect_known_leaks(read_file(scratch.path("log")));
  EXPECT_EQ(read_file(scratch.path("data")), "");
}

TEST(MallocLeaks, AreReportedWhereTheProgramClosedOtherFiles) {
  const Scratch scratch;
  const Result r = run("leak-check", {"closed-others", scratch.path("data")});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("not an object of the collector's heap"));
  expect_known_leaks(r.err);
  EXPECT_EQ(read_file(scratch.path("data")), "");
}

// A program without a place of its own is linked for the addresses that it is loaded at.
TEST(MallocLeaks, NamePlacesAsTheFilesHaveThem) {
  const Result r = run_jackdaw({"run", "--malloc=leak-check", "--", JD_TEST_FIXED, "leaks"});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  std::smatch match;
  ASSERT_TRUE(std::regex_search(r.err, match,
                                std::regex("  (/[^ ]*)\\+0x([0-9a-f]+) \\(lose_hundred_of_64")))
      << r.err;
  EXPECT_EQ(match[1].str(), std::filesystem::canonical(JD_TEST_FIXED).string());
  EXPECT_GE(std::stoul(match[2].str(), nullptr, 16), 0x400000u);
}

TEST(MallocLeaks, AreReportedWhereTheirTagsAreOverwritten) {
  const Result r = run("leak-check", {"overrun"});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  std::smatch match;
  ASSERT_TRUE(std::regex_search(
      r.err, match,
      std::regex("leak in process [0-9]+: ([0-9]+) objects, [0-9]+ bytes, allocated nobody "
                 "knows where: something was written beyond")))
      << r.err;
  EXPECT_GE(std::stol(match[1].str()), 27);
  EXPECT_LE(std::stol(match[1].str()), 30);
  EXPECT_GE(find_group(r.err, "lose_hundred_of_64").objects, 97) << r.err;
}

TEST(MallocLeaks, AreNotInventedWhereThereAreNone) {
  for (int i = 0; i < 3; ++i) {
    const Result r = run("leak-check", {"no-leaks"});
    EXPECT_TRUE(r.exited_with(0)) << describe(r);
    EXPECT_THAT(r.err,
                testing::MatchesRegex(
                    "jackdaw: leak check of process [0-9]+ .malloc_client.: nothing is lost\n"));
  }
}

// --- the command --------------------------------------------------------------------------------

TEST(MallocCommand, MeasuresTheCollector) {
  const Scratch scratch;
  const Result r = run_jackdaw({"run", "--malloc", "--stats", "--stats-json", scratch.path("json"),
                                "--", JD_TEST_MALLOC_CLIENT, "garbage"});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("libjackdaw-malloc.so"));
  EXPECT_THAT(r.err, testing::Not(HasSubstr("not measured"))) << r.err;
  EXPECT_THAT(read_file(scratch.path("json")), testing::Not(HasSubstr("\"collections\": 0,")));
}

// A request for more than there can be is no reason to collect.
TEST(MallocLimits, WhatCannotBeHadIsRefusedAtOnce) {
  const Scratch scratch;
  const Result r = run_jackdaw({"run", "--malloc", "--stats-json", scratch.path("json"), "--",
                                JD_TEST_MALLOC_CLIENT, "refused"});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  const std::string figures = read_file(scratch.path("json"));
  std::smatch found;
  ASSERT_TRUE(std::regex_search(figures, found, std::regex("\"collections\": ([0-9]+),")));
  EXPECT_LT(std::stol(found[1].str()), 10);
}

}  // namespace
