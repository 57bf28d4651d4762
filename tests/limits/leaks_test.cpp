// Leak finding (GC_find_leak): what nothing reaches and nobody freed is told, and nothing else is.
#define GC_DEBUG
#include <sstream>
#include <string>

#include "child.hpp"
#include "gc_test.hpp"

namespace jd::test {
namespace {

constexpr int kChecked = 7;
constexpr int kPlain = 60;
int line_of_checked;
void* volatile held[2];

void leak() {
  for (int i = 0; i < kChecked; ++i) {
    line_of_checked = __LINE__ + 1;
    opaque(GC_MALLOC(100));
  }
  for (int i = 0; i < kPlain; ++i) opaque((GC_malloc_atomic)(300));
  opaque((GC_malloc)(100000));
  // Neither of these is a leak.
  for (int i = 0; i < 200; ++i) GC_FREE(GC_MALLOC(100));
  for (int i = 0; i < 200; ++i) (GC_free)((GC_malloc)(48));
  held[0] = GC_MALLOC(20);
  held[1] = (GC_malloc_uncollectable)(20);
}

JD_CHILD(leak_and_collect) {
  GC_INIT();
  far_away(leak);
  std::printf("%d\n", line_of_checked);
  std::fflush(stdout);
  collect_all();
  return 0;
}
JD_CHILD(leak_and_end) {
  GC_INIT();
  far_away(leak);
  std::printf("%d\n", line_of_checked);
  return 0;
}
JD_CHILD(leak_where_asked) {
  GC_set_find_leak(1);
  GC_INIT();
  far_away(leak);
  collect_all();
  return 0;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

std::size_t objects_found(const std::string& text) {
  std::size_t found = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find("found ");
    if (at != std::string::npos) found += std::stoul(line.substr(at + 6));
  }
  return found;
}

// All but a few, which stale words may hold.
constexpr int kLeaked = kChecked + kPlain + 1;
constexpr int kStale = 3;

void expect_leaks(const ChildResult& r) {
  ASSERT_TRUE(r.ok()) << r;
  EXPECT_GE(objects_found(r.err), kLeaked - kStale) << r;
  EXPECT_LE(objects_found(r.err), kLeaked) << r;
  const std::string line = r.out.substr(0, r.out.find('\n'));
  const std::string place = "leaks_test.cpp:" + line + ", 100 bytes)";
  EXPECT_GE(count(r.err, place), kChecked - kStale) << r;
  EXPECT_LE(count(r.err, "(atomic)"), 40U) << r;
  EXPECT_NE(r.err.find(" more"), std::string::npos) << r;
}

TEST(LeakFinding, EachCollectionTells) {
  expect_leaks(run_child("leak_and_collect", {{"GC_FIND_LEAK", "1"}}));
}

TEST(LeakFinding, TheEndTells) { expect_leaks(run_child("leak_and_end", {{"GC_FIND_LEAK", "1"}})); }

TEST(LeakFinding, IsOnWhereTheProgramSaysSo) {
  const ChildResult r = run_child("leak_where_asked", {{"GC_FIND_LEAK", kUnset}});
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_GE(objects_found(r.err), kLeaked - kStale) << r;
}

// A checked object that the program gave no file for.
JD_CHILD(leak_of_no_file) {
  GC_INIT();
  far_away([] {
    for (int i = 0; i < 10; ++i) opaque(GC_debug_malloc(20, nullptr, 0));
  });
  collect_all();
  return 0;
}
TEST(LeakFinding, TellsOfACheckedObjectWithoutAFile) {
  const ChildResult r = run_child("leak_of_no_file", {{"GC_FIND_LEAK", "1"}});
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_GE(count(r.err, "(null):0, "), 10U - kStale) << r;
}

TEST(LeakFinding, IsOffByDefault) {
  const ChildResult r = run_child("leak_and_collect", {{"GC_FIND_LEAK", kUnset}});
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.err.find("leaked"), std::string::npos) << r;
}

// The program ends where the collector has its lock.
JD_CHILD(leak_and_end_in_a_callback) {
  GC_INIT();
  GC_set_start_callback([] { exit(3); });
  collect_all();
  return 1;
}
TEST(LeakFinding, IsNotDoneAtTheEndWhereACollectionEndsTheProgram) {
  const ChildResult r = run_child("leak_and_end_in_a_callback", {{"GC_FIND_LEAK", "1"}});
  EXPECT_EQ(r.status, 3) << r;
  EXPECT_NE(r.err.find("leaks are not looked for at the end"), std::string::npos) << r;
}

}  // namespace
}  // namespace jd::test
