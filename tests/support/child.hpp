// Tests of what ends a process, or has to be said before the collector starts, run in a child: the
// test program starts itself anew, with an environment of its own, and calls one named function.
//
//   JD_CHILD(aborts_on_nonsense) {
//     GC_INIT();
//     ...
//     return 0;  // the exit status
//   }
//   TEST(Misuse, Aborts) {
//     const ChildResult r = run_child("aborts_on_nonsense", {{"GC_DONT_GC", "1"}});
//     EXPECT_EQ(r.signal, SIGABRT) << r;
//   }
#pragma once

#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

namespace jd::test {

using ChildFunction = int (*)();

struct ChildRegistration {
  ChildRegistration(const char* name, ChildFunction function);
};

#define JD_CHILD(name)                                                                           \
  static int jd_child_##name();                                                                  \
  static const jd::test::ChildRegistration jd_child_registration_##name(#name, jd_child_##name); \
  static int jd_child_##name()

struct ChildResult {
  int status = -1;  // exit status, or -1 if it did not exit
  int signal = 0;   // the signal that ended it, or 0
  bool timed_out = false;
  std::string out;
  std::string err;

  bool ok() const { return status == 0; }
};

std::ostream& operator<<(std::ostream& stream, const ChildResult& result);

// A variable is removed from the child's environment when its value is this.
inline constexpr const char* kUnset = nullptr;

using Environment = std::vector<std::pair<const char*, const char*>>;

// The timeout is for what hangs; with a sanitizer it is four times as long.
ChildResult run_child(const char* name, const Environment& environment = {},
                      int timeout_seconds = 60);

// For a child that is meant to hang: it is ended after so long, with any sanitizer.
ChildResult run_hanging_child(const char* name, int seconds);

// Runs another program in the same way.
ChildResult run_program(const std::vector<std::string>& arguments,
                        const Environment& environment = {}, int timeout_seconds = 60);

// A child's exit status that says "this cannot be tried here"; its stderr says why.
inline constexpr int kCannotTry = 77;

// Visible as skipped, never as passed.
#define JD_SKIP_IF_CANNOT_TRY(result)                                          \
  do {                                                                         \
    if ((result).status == jd::test::kCannotTry) GTEST_SKIP() << (result).err; \
  } while (0)

// For main(): the status of the child function that the environment names, or -1 if it names none.
int run_as_child();

// Lines of text that contain the word.
std::size_t lines_with(const std::string& text, const std::string& word);
std::size_t count_lines(const std::string& text);

}  // namespace jd::test
