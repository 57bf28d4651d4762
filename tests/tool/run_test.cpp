// `jackdaw run`: what comes through to the program, and what comes back.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "failure.hpp"
#include "program/loader.hpp"
#include "program/program.hpp"
#include "run_tool.hpp"

namespace {

using testing::HasSubstr;

// Both ways of running: becoming the program, and waiting for it.
class Run : public testing::TestWithParam<bool> {
 protected:
  static std::vector<std::string> options() {
    return GetParam() ? std::vector<std::string>{"--stats"} : std::vector<std::string>{};
  }
};

TEST_P(Run, PassesTheExitStatus) {
  for (const int status : {0, 1, 42, 255}) {
    const Result r = run_client(options(), {"exit", std::to_string(status)});
    EXPECT_TRUE(r.exited_with(status)) << describe(r);
  }
}

TEST(RunStatistics, ThatNobodyCanReadLeaveTheStatusAlone) {
  for (const std::string standard_error : {"2>&-", "2>/dev/full"}) {
    const std::string command = std::string(JD_TEST_COMMAND) + " run --stats --library " +
                                JD_TEST_LIBRARY + " -- " + JD_TEST_CLIENT + " exit 42 " +
                                standard_error;
    const int status = std::system(command.c_str());  // NOLINT(cert-env33-c): for its redirection
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42) << command << ": " << status;
  }
}

// Regression: the status was 2 or 125, and the words were fmt's or ours.
TEST(Command, SaysThatItsOutputCannotBeWritten) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "there is no /dev/full";
  for (const char* arguments : {"--help", "--version", "run --help", "bench --help", "bench --list",
                                "options", "options --markdown", "options --man"}) {
    const std::string command =
        std::string("exec ") + JD_TEST_COMMAND + " " + arguments + " >/dev/full";
    const Result r = run_program({"/bin/sh", "-c", command});
    EXPECT_TRUE(r.exited_with(125)) << arguments << ": " << describe(r);
    EXPECT_EQ(r.err, "jackdaw: cannot write to the standard output\n") << arguments;
  }
}

// Regression: the file was called --.
TEST(Command, AskedForAValueDoesNotTakeTheDashesForIt) {
  const Scratch scratch;
  const Result r = run_program({"/bin/sh", "-c",
                                "cd '" + scratch.path("") + "' && exec '" + JD_TEST_COMMAND +
                                    "' run --malloc --stats-json -- echo hi"});
  EXPECT_TRUE(r.exited_with(125)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("--stats-json"));
  EXPECT_EQ(r.out, "");
}

TEST_P(Run, PassesDeathBySignal) {
  for (const int signal : {SIGKILL, SIGABRT, SIGSEGV, SIGTERM}) {
    const Result r = run_client(options(), {"die", std::to_string(signal)});
    EXPECT_TRUE(r.killed_by(signal)) << describe(r);
  }
}

TEST_P(Run, PassesArgumentsInputAndOutput) {
  const Result r = run_client(options(), {"allocate", "10", "100"});
  EXPECT_EQ(r.out, "allocated 10 objects\n") << describe(r);
  const Result counted = run_client(options(), {"count"}, std::string(100000, 'x'));
  EXPECT_EQ(counted.out, "100000\n") << describe(counted);
}

// Whatever they look like, with and without -- before the program.
TEST_P(Run, PassesArgumentsAsTheyAre) {
  const std::vector<std::string> words = {
      JD_TEST_CLIENT, "exec", "/usr/bin/printf", "<%s>", "[a,b]", "[]",
      "[x]",          "",     "--stats",         "--",   "{1,2}", "a b"};
  for (const bool dashes : {true, false}) {
    std::vector<std::string> all = {"run", "--library", JD_TEST_LIBRARY};
    for (const std::string& option : options()) all.push_back(option);
    if (dashes) all.emplace_back("--");
    all.insert(all.end(), words.begin(), words.end());
    const Result r = run_jackdaw(all);
    EXPECT_TRUE(r.exited_with(0)) << describe(r);
    EXPECT_EQ(r.out, "<[a,b]><[]><[x]><><--stats><--><{1,2}><a b>");
  }
}

// The command's own status, if that is sent the signal for which the program waits.
int status_after_passing(int signal, bool with_stats) {
  std::array<int, 2> out{};
  if (pipe(out.data()) != 0) return -1;
  const std::string number = std::to_string(signal);
  const pid_t child = fork();
  if (child == 0) {
    dup2(out[1], 1);
    close(out[0]);
    close(out[1]);
    if (with_stats) {
      execl(JD_TEST_COMMAND, JD_TEST_COMMAND, "run", "--library", JD_TEST_LIBRARY, "--stats", "--",
            JD_TEST_CLIENT, "wait", number.c_str(), nullptr);
    } else {
      execl(JD_TEST_COMMAND, JD_TEST_COMMAND, "run", "--library", JD_TEST_LIBRARY, "--",
            JD_TEST_CLIENT, "wait", number.c_str(), nullptr);
    }
    _exit(96);
  }
  close(out[1]);
  std::array<char, 6> ready{};
  EXPECT_EQ(read(out[0], ready.data(), ready.size()), 6) << "the program did not start";
  kill(child, signal);
  int status = 0;
  waitpid(child, &status, 0);
  close(out[0]);
  return status;
}

TEST_P(Run, PassesSignals) {
  for (const int signal : {SIGTERM, SIGURG, SIGTRAP, SIGSYS, SIGABRT, SIGSEGV, SIGXCPU, SIGXFSZ,
                           SIGRTMIN, SIGRTMIN + 3, SIGRTMAX}) {
    const int status = status_after_passing(signal, GetParam());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7)
        << "signal " << signal << ": wait status " << status;
  }
}

// Regression: what the kernel sends was never passed on.
TEST_P(Run, EndsByAnAlarmThatWasSetBefore) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(1);
    execl(JD_TEST_COMMAND, JD_TEST_COMMAND, "run", "--library", JD_TEST_LIBRARY,
          GetParam() ? "--stats" : "--force", "--", JD_TEST_CLIENT, "sleep", "5", nullptr);
    _exit(96);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) << "wait status " << status;
}

// The same, where the command leads the session of a terminal that goes away.
TEST_P(Run, EndsWithItsTerminal) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(grantpt(terminal), 0);
  ASSERT_EQ(unlockpt(terminal), 0);
  std::array<int, 2> out{};
  ASSERT_EQ(pipe(out.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    // The first terminal that a session's leader opens is the session's.
    if (open(ptsname(terminal), O_RDWR | O_CLOEXEC) < 0) _exit(95);
    dup2(out[1], 1);
    execl(JD_TEST_COMMAND, JD_TEST_COMMAND, "run", "--library", JD_TEST_LIBRARY,
          GetParam() ? "--stats" : "--force", "--", JD_TEST_CLIENT, "sleep", "5", nullptr);
    _exit(96);
  }
  close(out[1]);
  std::array<char, 6> ready{};
  EXPECT_EQ(read(out[0], ready.data(), ready.size()), 6) << "the program did not start";
  close(terminal);
  int status = 0;
  waitpid(child, &status, 0);
  close(out[0]);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP) << "wait status " << status;
}

INSTANTIATE_TEST_SUITE_P(, Run, testing::Bool(),
                         [](const auto& info) { return info.param ? "WithStats" : "Plain"; });

// Stopped and continued with the program, as job control wants it.
TEST(RunStats, StopsAndContinuesWithTheProgram) {
  std::array<int, 2> out{};
  ASSERT_EQ(pipe(out.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    // A group of its own, with a parent outside: in an orphaned group, as that of a test run
    // without a terminal may be, the system drops SIGTSTP.
    setpgid(0, 0);
    dup2(out[1], 1);
    execl(JD_TEST_COMMAND, JD_TEST_COMMAND, "run", "--library", JD_TEST_LIBRARY, "--stats", "--",
          JD_TEST_CLIENT, "wait", std::to_string(SIGTERM).c_str(), nullptr);
    _exit(96);
  }
  close(out[1]);
  std::array<char, 6> ready{};
  ASSERT_EQ(read(out[0], ready.data(), ready.size()), 6);
  kill(child, SIGTSTP);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status)) << "wait status " << status;
  kill(child, SIGCONT);
  kill(child, SIGTERM);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  close(out[0]);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << "wait status " << status;
}

TEST(RunRefuses, AProgramWithoutLibgc) {
  const Result r = run_jackdaw({"run", "--library", JD_TEST_LIBRARY, "--", JD_TEST_PLAIN});
  EXPECT_TRUE(r.exited_with(125)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("does not use libgc"));
  EXPECT_EQ(r.out, "") << "it was started all the same";
}

TEST(RunRefuses, AProgramOfAnotherLibc) {
  for (const char* how : {"--force", "--malloc"}) {
    const Result r = run_jackdaw({"run", how, "--", JD_TEST_MUSL});
    EXPECT_TRUE(r.exited_with(125)) << describe(r);
    EXPECT_THAT(r.err, HasSubstr("is linked with musl"));
  }
}

TEST(RunRefuses, AStaticProgram) {
  const Result r =
      run_jackdaw({"run", "--library", JD_TEST_LIBRARY, "--force", "--", JD_TEST_STATIC});
  EXPECT_TRUE(r.exited_with(125)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("statically linked"));
  EXPECT_EQ(r.out, "");
}

TEST(RunRefuses, ASetuidProgram) {
  const Scratch scratch;
  const std::string copy = scratch.path("client");
  std::filesystem::copy_file(JD_TEST_CLIENT, copy);
  ASSERT_EQ(chmod(copy.c_str(), 04755), 0);
  const Result r = run_jackdaw({"run", "--library", JD_TEST_LIBRARY, "--", copy, "exit", "0"});
  EXPECT_TRUE(r.exited_with(125)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("setuid"));
}

TEST(RunRefuses, WhatIsNotThereOrNoProgram) {
  const Scratch scratch;
  const auto run = [](const std::string& program) {
    return run_jackdaw({"run", "--library", JD_TEST_LIBRARY, "--", program});
  };
  Result r = run("no-such-program-anywhere");
  EXPECT_TRUE(r.exited_with(127)) << describe(r);
  r = run(scratch.path("nothing"));
  EXPECT_TRUE(r.exited_with(127)) << describe(r);
  r = run("/");
  EXPECT_TRUE(r.exited_with(126)) << describe(r);
  write_file(scratch.path("text"), "hello\n", true);
  r = run(scratch.path("text"));
  EXPECT_TRUE(r.exited_with(126)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("neither an ELF program nor a script"));
  write_file(scratch.path("unexecutable"), "#!/bin/sh\n");
  r = run(scratch.path("unexecutable"));
  EXPECT_TRUE(r.exited_with(126)) << describe(r);
  write_file(scratch.path("damaged"), std::string("\177ELF\2\1\1") + std::string(60, '\377'), true);
  r = run(scratch.path("damaged"));
  EXPECT_TRUE(r.exited_with(126)) << describe(r);
}

// It can be executed, so the status is not that of what cannot.
TEST(RunRefuses, AProgramThatCannotBeRead) {
  const Scratch scratch;
  const std::string copy = scratch.path("client");
  std::filesystem::copy_file(JD_TEST_CLIENT, copy);
  ASSERT_EQ(chmod(copy.c_str(), 0111), 0);
  ASSERT_EQ(chmod(scratch.path("").c_str(), 0755), 0);
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    // Root may read everything.
    if (geteuid() == 0 && seteuid(65534) != 0) _exit(1);
    try {
      jackdaw::examine_program(copy, false);
    } catch (const jackdaw::Failure& failure) {
      const std::string what = failure.what();
      if (write(ends[1], what.data(), what.size()) < 0) _exit(2);
      _exit(failure.exit_status());
    }
    _exit(0);
  }
  close(ends[1]);
  std::array<char, 500> said{};
  EXPECT_GT(read(ends[0], said.data(), said.size() - 1), 0);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 125) << "wait status " << status;
  EXPECT_THAT(said.data(), HasSubstr("cannot read " + copy));
}

// The dynamic linker would take it for two libraries that are not there, and run the program on
// another libgc.
TEST(RunRefuses, ALibraryWhosePathHasABlank) {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path("a b"));
  std::filesystem::create_symlink(JD_TEST_LIBRARY, scratch.path("a b/libgc.so.1"));
  const Result r = run_jackdaw(
      {"run", "--library", scratch.path("a b/libgc.so.1"), "--", JD_TEST_CLIENT, "exit", "0"});
  EXPECT_TRUE(r.exited_with(125)) << describe(r);
  EXPECT_THAT(r.err,
              testing::HasSubstr("has a blank, a colon or a $ in it, which LD_PRELOAD cannot"));
  std::filesystem::create_symlink(JD_TEST_LIBRARY, scratch.path("libgc.so.1"));
  EXPECT_TRUE(run_jackdaw({"run", "--library", scratch.path("libgc.so.1"), "--", JD_TEST_CLIENT,
                           "exit", "42"})
                  .exited_with(42));
}

TEST(RunRefuses, ALibraryThatIsNone) {
  const Scratch scratch;
  Result r =
      run_jackdaw({"run", "--library", scratch.path("libgc.so.1"), "--", JD_TEST_CLIENT, "idle"});
  EXPECT_TRUE(r.exited_with(125)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("there is no library"));
  write_file(scratch.path("libgc.so.1"), "not a library");
  r = run_jackdaw({"run", "--library", scratch.path("libgc.so.1"), "--", JD_TEST_CLIENT, "idle"});
  EXPECT_TRUE(r.exited_with(125)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("is not a usable libgc"));
  r = run_jackdaw({"run", "--library", "libc.so.6", "--", JD_TEST_CLIENT, "idle"});
  EXPECT_TRUE(r.exited_with(125)) << describe(r);
}

TEST(RunFollows, ScriptsToTheirInterpreter) {
  const Scratch scratch;
  const std::string direct = scratch.path("direct");
  write_file(direct, std::string("#!") + JD_TEST_CLIENT + " exit\n", true);
  // The kernel runs: client exit SCRIPT, so the status is atoi of a path: 0.
  Result r = run_jackdaw({"run", "--library", JD_TEST_LIBRARY, "--", direct});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  const std::string by_env = scratch.path("by-env");
  write_file(by_env, std::string("#!/usr/bin/env -S ") + JD_TEST_CLIENT + " exit\n", true);
  r = run_jackdaw({"run", "--library", JD_TEST_LIBRARY, "--", by_env});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  // Options of env's that have a value, in each form.
  for (const char* options : {"-S -u HOME", "-S -C / -uHOME", "-S --unset HOME --chdir=/", "-S -i",
                              "-iS", "-S -iu HOME A=1", "--split-string=--chdir / "}) {
    write_file(by_env, std::string("#!/usr/bin/env ") + options + " " + JD_TEST_CLIENT + " exit\n",
               true);
    r = run_jackdaw({"run", "--library", JD_TEST_LIBRARY, "--", by_env});
    EXPECT_TRUE(r.exited_with(0)) << options << describe(r);
  }
  const std::string shell = scratch.path("shell");
  write_file(shell, "#!/bin/sh\nexit 5\n", true);
  r = run_jackdaw({"run", "--library", JD_TEST_LIBRARY, "--", shell});
  EXPECT_TRUE(r.exited_with(125)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("which runs the script"));
  r = run_jackdaw({"run", "--library", JD_TEST_LIBRARY, "--force", "--", shell});
  EXPECT_TRUE(r.exited_with(5)) << describe(r);
}

// An empty part of PATH is the current folder.
TEST(RunFollows, ThePathAsTheShellDoes) {
  const std::filesystem::path client(JD_TEST_CLIENT);
  for (const char* path : {"PATH=", "PATH=/nowhere:", "PATH=:/nowhere", "PATH=/nowhere::/no"}) {
    const Result r = run_program({"/usr/bin/env", "-C", client.parent_path().string(), path,
                                  JD_TEST_COMMAND, "run", "--library", JD_TEST_LIBRARY, "--",
                                  client.filename().string(), "exit", "3"});
    EXPECT_TRUE(r.exited_with(3)) << path << describe(r);
  }
  const Result r = run_program({"/usr/bin/env", "PATH=/nowhere", "-C",
                                client.parent_path().string(), JD_TEST_COMMAND, "run", "--library",
                                JD_TEST_LIBRARY, "--", client.filename().string(), "exit", "3"});
  EXPECT_TRUE(r.exited_with(127)) << describe(r);
}

TEST(RunFollows, LibrariesBetweenTheProgramAndLibgc) {
  const Scratch scratch;
  const std::string json = scratch.path("stats.json");
  for (const char* program : {JD_TEST_OUTER_RUNPATH, JD_TEST_OUTER_RPATH}) {
    const Result r =
        run_jackdaw({"run", "--library", JD_TEST_LIBRARY, "--stats-json", json, "--", program});
    EXPECT_TRUE(r.exited_with(0)) << program << "\n" << describe(r);
    EXPECT_THAT(read_file(json), HasSubstr(JD_TEST_LIBRARY)) << "it must get the chosen library";
  }
}

// A run path that leads to another libgc.so.1 must not win.
TEST(RunFollows, NoRunPathToAnotherLibgc) {
  const auto other = jackdaw::find_system_library("libgc.so.1", {JD_TEST_LIBRARY});
  if (!other) GTEST_SKIP() << "this system has no libgc.so.1 but the one under test";
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path("middle"));
  for (const char* program : {JD_TEST_OUTER_RUNPATH, JD_TEST_OUTER_RPATH}) {
    const std::filesystem::path file(program);
    const auto replace = std::filesystem::copy_options::overwrite_existing;
    std::filesystem::copy_file(file, scratch.path("program"), replace);
    std::filesystem::copy_file(file.parent_path() / "middle/libmiddle.so",
                               scratch.path("middle/libmiddle.so"), replace);
    std::filesystem::copy_file(*other, scratch.path("middle/libgc.so.1"), replace);
    const std::string json = scratch.path("stats.json");
    const Result r = run_jackdaw(
        {"run", "--library", JD_TEST_LIBRARY, "--stats-json", json, "--", scratch.path("program")});
    EXPECT_TRUE(r.exited_with(0)) << describe(r);
    EXPECT_THAT(read_file(json), HasSubstr(JD_TEST_LIBRARY));
  }
}

TEST(RunFollows, ADlopenedLibgcWhenForced) {
  const Scratch scratch;
  const std::string json = scratch.path("stats.json");
  const Result r = run_jackdaw({"run", "--library", JD_TEST_LIBRARY, "--force", "--stats-json",
                                json, "--", JD_TEST_DLOPEN, "libgc.so.1"});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_EQ(r.out, "loaded\n");
  EXPECT_THAT(read_file(json), HasSubstr(JD_TEST_LIBRARY)) << "it must get the chosen library";
}

TEST(RunUsage, BadOptionsAreNamed) {
  Result r = run_jackdaw({"run", "--colour", "--", JD_TEST_CLIENT});
  EXPECT_TRUE(r.exited_with(125)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("--colour"));
  r = run_jackdaw({"run"});
  EXPECT_TRUE(r.exited_with(125)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("PROGRAM"));
  r = run_jackdaw({"options", "--colour"});
  EXPECT_TRUE(r.exited_with(2)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("unknown option --colour\nTry: jackdaw options --help"));
  r = run_jackdaw({"jump", "--help"});
  EXPECT_TRUE(r.exited_with(2)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("'jump'"));
  r = run_jackdaw({"run", "--runs", "3", "--", JD_TEST_CLIENT});
  EXPECT_TRUE(r.exited_with(125)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("--compare"));
  r = run_jackdaw({"run", "--compare", "--runs", "none", "--", JD_TEST_CLIENT});
  EXPECT_TRUE(r.exited_with(125)) << describe(r);
  r = run_jackdaw({"jump"});
  EXPECT_TRUE(r.exited_with(2)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("'jump'"));
  r = run_jackdaw({});
  EXPECT_TRUE(r.exited_with(2)) << describe(r);
}

TEST(RunUsage, EmptyNamesAreRefused) {
  for (const char* option : {"--json", "--markdown", "--library", "--peer"}) {
    const Result r = run_jackdaw({"bench", option, "", "--list"});
    EXPECT_TRUE(r.exited_with(2)) << describe(r);
    EXPECT_THAT(r.err, HasSubstr(option));
    EXPECT_THAT(r.err, HasSubstr("empty"));
  }
  for (const char* option : {"--stats-json", "--library"}) {
    const Result r = run_jackdaw({"run", option, "", "--", JD_TEST_CLIENT});
    EXPECT_TRUE(r.exited_with(125)) << describe(r);
    EXPECT_THAT(r.err, HasSubstr("empty"));
  }
  const Result r = run_jackdaw({"bench", "--json", "./f", "--markdown", "f", "--list"});
  EXPECT_TRUE(r.exited_with(2)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("same file"));
}

TEST(RunUsage, HelpAndVersion) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--help"},
                                                    {"run", "--help"},
                                                    {"bench", "--help"},
                                                    {"options", "--help"}}) {
    const Result r = run_jackdaw(arguments);
    EXPECT_TRUE(r.exited_with(0)) << describe(r);
    EXPECT_THAT(r.out, HasSubstr("Usage")) << describe(r);
    EXPECT_EQ(r.err, "");
  }
  EXPECT_THAT(run_jackdaw({"--version"}).out, HasSubstr("jackdaw " JD_TEST_VERSION));
}

}  // namespace
