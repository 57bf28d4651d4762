// Functions that are exported but not written yet: src/libgc/pending.def, the list in
// docs/guide/libgc.md and what the library really does must be one and the same.
//
// The build passes JD_ROOT (the source tree), JD_LIBGC and JD_FIXTURE (two shared objects).
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

namespace {

using Names = std::set<std::string>;

Names pending_functions() {
  return {
#define JD_PENDING(name) #name,
#include "libgc/pending.def"
#undef JD_PENDING
  };
}
Names fixture_functions() {
  return {
#define JD_PENDING(name) #name,
#include "pending_fixture.def"
#undef JD_PENDING
  };
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << "cannot read " << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// How a child process ended that did nothing but call a function without arguments.
struct Ending {
  int status;
  std::string said;  // on standard error
};

Ending call_in_child(void* function) {
  int ends[2];
  if (pipe(ends) != 0) return {-1, "no pipe"};
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    // A SIGABRT handler of a sanitizer would add lines of its own.
    std::signal(SIGABRT, SIG_DFL);
    reinterpret_cast<void (*)()>(function)();
    _exit(0);
  }
  close(ends[1]);
  Ending ending{};
  char chunk[512];
  for (ssize_t n; (n = read(ends[0], chunk, sizeof chunk)) > 0;)
    ending.said.append(chunk, static_cast<size_t>(n));
  close(ends[0]);
  waitpid(child, &ending.status, 0);
  return ending;
}

void expect_pending(const char* library, const Names& names) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << dlerror();
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    void* function = dlsym(handle, name.c_str());
    if (function == nullptr) {
      ADD_FAILURE() << library << " does not export it";
      continue;
    }
    const Ending ending = call_in_child(function);
    EXPECT_TRUE(WIFSIGNALED(ending.status) && WTERMSIG(ending.status) == SIGABRT)
        << "wait status " << ending.status;
    EXPECT_EQ(ending.said,
              "jackdaw: " + name + " is not supported yet (see docs/guide/libgc.md)\n");
  }
}

// The names between the markers of the guide; "None." there means what it says.
Names names_in_guide() {
  const std::string guide = read_file(JD_ROOT "/docs/guide/libgc.md");
  const std::string begin = "<!-- pending: begin -->\n";
  const std::string end = "<!-- pending: end -->";
  const size_t from = guide.find(begin);
  const size_t to = guide.find(end);
  if (from == std::string::npos || to == std::string::npos || to < from) {
    ADD_FAILURE() << "docs/guide/libgc.md has no marked list of pending functions";
    return {};
  }
  Names names;
  std::istringstream section(guide.substr(from + begin.size(), to - from - begin.size()));
  bool none = false;
  for (std::string line; std::getline(section, line);) {
    if (line.starts_with("- `") && line.ends_with("`")) {
      names.insert(line.substr(3, line.size() - 4));
    } else if (line == "None.") {
      none = true;
    } else {
      EXPECT_EQ(line, "") << "each line of the marked list is \"- `GC_name`\"";
    }
  }
  EXPECT_EQ(none, names.empty()) << "an empty list says \"None.\", another does not";
  return names;
}

TEST(Pending, GuideListsExactlyTheListOfTheSources) {
  EXPECT_THAT(names_in_guide(), testing::ContainerEq(pending_functions()));
}

TEST(Pending, EachFunctionOfTheListSaysSoAndAborts) {
  expect_pending(JD_LIBGC, pending_functions());
}

TEST(Pending, NoOtherSourceSaysSo) {
  Names speakers;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(JD_ROOT "/src")) {
    if (!entry.is_regular_file()) continue;
    if (read_file(entry.path()).find("not supported yet") != std::string::npos)
      speakers.insert(std::filesystem::relative(entry.path(), JD_ROOT "/src"));
  }
  EXPECT_EQ(speakers, Names{"libgc/pending.cpp"});
}

// The real list may be empty, so the mechanism is tested with a list that is not.
TEST(Pending, MechanismWorks) { expect_pending(JD_FIXTURE, fixture_functions()); }

}  // namespace
