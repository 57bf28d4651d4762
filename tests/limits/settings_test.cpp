// Settings that a program makes by calls, and what the environment says of them.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "child.hpp"
#include "gc_test.hpp"

namespace jd::test {
namespace {

// --- How often a collection is a full one --------------------------------------------------------

JD_CHILD(print_full_frequency) {
  GC_INIT();
  std::printf("%d", GC_get_full_freq());
  return 0;
}
JD_CHILD(print_full_frequency_of_the_programs) {
  GC_set_full_freq(7);
  GC_INIT();
  std::printf("%d", GC_get_full_freq());
  return 0;
}

TEST(Settings, FullCollectionsAreAsFrequentAsTheEnvironmentSays) {
  const auto told = [](const char* value, const char* child = "print_full_frequency") {
    const ChildResult r = run_child(child, {{"GC_FULL_FREQUENCY", value}});
    EXPECT_TRUE(r.ok()) << r;
    EXPECT_EQ(r.err, "") << value;
    return r.out;
  };
  EXPECT_EQ(told(kUnset), "19");
  EXPECT_EQ(told("3"), "3");
  EXPECT_EQ(told(kUnset, "print_full_frequency_of_the_programs"), "7");
  EXPECT_EQ(told("3", "print_full_frequency_of_the_programs"), "3");
  // bdwgc ignores it.
  EXPECT_EQ(told("0"), kPeer ? "19" : "0");
}

TEST(Settings, ABadFrequencyOfFullCollectionsIsNamed) {
  JD_OURS_ONLY("bdwgc says little about bad values");
  for (const auto& [value, used] : {std::pair{"1000001", "1000000"}, std::pair{"often", "19"}}) {
    const ChildResult r = run_child("print_full_frequency", {{"GC_FULL_FREQUENCY", value}});
    EXPECT_TRUE(r.ok()) << r;
    EXPECT_EQ(r.out, used) << value;
    EXPECT_EQ(count_lines(r.err), 1u) << r;
    EXPECT_EQ(lines_with(r.err, "GC_FULL_FREQUENCY"), 1u) << r;
  }
}

// --- An environment that is gone
// ------------------------------------------------------------------

JD_CHILD(clear_the_environment) {
  const bool cleared = clearenv() == 0;
  GC_INIT();
  return cleared && environ == nullptr && std::getenv("JD_SECRET") == nullptr ? 0 : 1;
}
// Regression: the collector found it again, for all to see.
TEST(Environment, StaysClearedIfItIs) {
  const ChildResult r = run_child("clear_the_environment", {{"JD_SECRET", "known"}});
  EXPECT_TRUE(r.ok()) << r;
}

// --- Where the log goes --------------------------------------------------------------------------

JD_CHILD(log_to_a_file) {
  GC_INIT();
  const int file = open(std::getenv("JD_LOG"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  GC_set_log_fd(file);
  std::fputs("told\n", stderr);
  GC_gcollect();
  opaque(GC_malloc(opaque(std::size_t{1} << 60)));
  return 0;
}

TEST(Settings, TheLogGoesWhereTheProgramSays) {
  const std::string path =
      testing::TempDir() + "jackdaw-log-fd-" + std::to_string(getpid()) + ".txt";
  const ChildResult r =
      run_child("log_to_a_file", {{"JD_LOG", path.c_str()}, {"GC_PRINT_STATS", "1"}});
  EXPECT_TRUE(r.ok()) << r;
  std::ifstream file(path);
  std::stringstream stream;
  stream << file.rdbuf();
  std::remove(path.c_str());
  const std::string log = stream.str();
  const std::string after = r.err.substr(r.err.find("told\n") + 5);
  EXPECT_GT(count_lines(log), lines_with(log, "GC Warning")) << log << "has no statistics";
  // Warnings go to standard error as well, and they alone; bdwgc's go nowhere else.
  EXPECT_GE(lines_with(after, "GC Warning"), 1u) << r;
  EXPECT_EQ(count_lines(after), lines_with(after, "GC Warning")) << r;
  EXPECT_EQ(lines_with(log, "GC Warning"), kPeer ? 0 : lines_with(after, "GC Warning")) << log;
}

// --- What goes back to the system ----------------------------------------------------------------

template <int On>
int unmapped_if() {
  GC_INIT();
  GC_set_force_unmap_on_gcollect(On);
  far_away([] { opaque(make_list(200000, 100)); });
  GC_gcollect();
  return GC_get_unmapped_bytes() > (4U << 20) ? 1 : 0;
}
JD_CHILD(unmapped_where_forced) { return unmapped_if<1>(); }
JD_CHILD(unmapped_where_not_forced) { return unmapped_if<0>(); }

TEST(Settings, PagesGoBackWithEachCollectionIfTheProgramSaysSo) {
  JD_OURS_ONLY("how much stays mapped is each library's own rule");
  const Environment none = {{"GC_FORCE_UNMAP_ON_GCOLLECT", kUnset}};
  EXPECT_EQ(run_child("unmapped_where_forced", none).status, 1);
  EXPECT_EQ(run_child("unmapped_where_not_forced", none).status, 0);
}

}  // namespace
}  // namespace jd::test
