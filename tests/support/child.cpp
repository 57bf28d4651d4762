#include "child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <ostream>

namespace jd::test {
namespace {

#if defined(JD_SANITIZE_ADDRESS) || defined(JD_SANITIZE_THREAD) || \
    defined(JD_SANITIZE_UNDEFINED) || defined(JD_TEST_EMULATED)
constexpr int kSlowness = 4;
#else
constexpr int kSlowness = 1;
#endif

constexpr const char* kChildVariable = "JD_TEST_CHILD";

std::map<std::string, ChildFunction>& children() {
  static std::map<std::string, ChildFunction> all;
  return all;
}

// The program's own path, asked while /proc is certainly there.
const std::string& own_path() {
  static const std::string path = [] {
    char buffer[4096];
    const ssize_t length = readlink("/proc/self/exe", buffer, sizeof buffer - 1);
    return length > 0 ? std::string(buffer, static_cast<std::size_t>(length)) : std::string();
  }();
  return path;
}

std::vector<std::string> merged_environment(const Environment& changes) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const char* equals = std::strchr(*entry, '=');
    if (equals == nullptr) continue;
    const std::string name(*entry, static_cast<std::size_t>(equals - *entry));
    bool replaced = false;
    for (const auto& change : changes) replaced = replaced || name == change.first;
    if (!replaced) all.emplace_back(*entry);
  }
  for (const auto& [name, value] : changes) {
    if (value != kUnset) all.push_back(std::string(name) + "=" + value);
  }
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (std::string& s : strings) result.push_back(s.data());
  result.push_back(nullptr);
  return result;
}

// Reads both pipes until both are closed or the time is over; false if it is.
bool read_both(int out, int err, ChildResult* result, std::chrono::steady_clock::time_point end) {
  pollfd fds[2] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
  std::string* const texts[2] = {&result->out, &result->err};
  int open = 2;
  while (open > 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    if (poll(fds, 2, static_cast<int>(left.count())) < 0 && errno != EINTR) return false;
    for (int i = 0; i < 2; ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t n = read(fds[i].fd, buffer, sizeof buffer);
      if (n > 0) {
        texts[i]->append(buffer, static_cast<std::size_t>(n));
      } else if (n == 0 || errno != EINTR) {
        fds[i].fd = -1;
        --open;
      }
    }
  }
  return true;
}

}  // namespace

ChildRegistration::ChildRegistration(const char* name, ChildFunction function) {
  children()[name] = function;
  own_path();
}

std::ostream& operator<<(std::ostream& stream, const ChildResult& result) {
  if (result.timed_out) stream << "timed out";
  if (result.signal != 0) stream << "ended by signal " << result.signal;
  if (result.status >= 0) stream << "exit status " << result.status;
  return stream << "\n--- stdout\n" << result.out << "--- stderr\n" << result.err << "---\n";
}

namespace {

ChildResult run_for(std::chrono::seconds timeout, const std::vector<std::string>& arguments,
                    const Environment& environment) {
  ChildResult result;
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) {
    result.err = "pipe2 failed";
    return result;
  }
  std::vector<std::string> argument_strings = arguments;
  std::vector<std::string> environment_strings = merged_environment(environment);
  const std::vector<char*> argv = pointers(argument_strings);
  const std::vector<char*> envp = pointers(environment_strings);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  close(err[1]);
  if (error != 0) {
    result.err = std::string("cannot start ") + argv[0] + ": " + std::strerror(error);
  } else {
    const auto end = std::chrono::steady_clock::now() + timeout;
    // A grandchild may keep the pipes open; then only the time ends the wait.
    if (!read_both(out[0], err[0], &result, end)) {
      result.timed_out = true;
      kill(pid, SIGKILL);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status)) result.status = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  }
  close(out[0]);
  close(err[0]);
  return result;
}

Environment with_child(const char* name, Environment environment) {
  environment.emplace_back(kChildVariable, name);
  return environment;
}

}  // namespace

ChildResult run_program(const std::vector<std::string>& arguments, const Environment& environment,
                        int timeout_seconds) {
  return run_for(kSlowness * std::chrono::seconds(timeout_seconds), arguments, environment);
}

ChildResult run_child(const char* name, const Environment& environment, int timeout_seconds) {
  return run_program({own_path()}, with_child(name, environment), timeout_seconds);
}

ChildResult run_hanging_child(const char* name, int seconds) {
  return run_for(std::chrono::seconds(seconds), {own_path()}, with_child(name, {}));
}

int run_as_child() {
  const char* name = std::getenv(kChildVariable);
  if (name == nullptr) return -1;
  const auto found = children().find(name);
  if (found == children().end()) {
    std::fprintf(stderr, "no child function %s\n", name);
    return 99;
  }
  // Its own children are ordinary programs again.
  unsetenv(kChildVariable);
  return found->second();
}

std::size_t lines_with(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    count += text.compare(begin, end - begin, "") != 0 &&
             text.substr(begin, end - begin).find(word) != std::string::npos;
    begin = end + 1;
  }
  return count;
}

std::size_t count_lines(const std::string& text) {
  std::size_t lines = 0;
  for (const char c : text) lines += c == '\n';
  return lines + (!text.empty() && text.back() != '\n');
}

}  // namespace jd::test
