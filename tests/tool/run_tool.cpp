#include "run_tool.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

bool Result::exited_with(int code) const {
  return WIFEXITED(status) && WEXITSTATUS(status) == code;
}

bool Result::killed_by(int signal) const {
  return WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

std::string describe(const Result& r) {
  return "wait status " + std::to_string(r.status) + "\nstdout:\n" + r.out + "\nstderr:\n" + r.err;
}

namespace {

std::string drain(int fd) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t n = 0; (n = read(fd, buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  close(fd);
  return text;
}

}  // namespace

Result run_program(const std::vector<std::string>& arguments, const std::string& input) {
  std::array<std::array<int, 2>, 3> pipes{};
  for (auto& p : pipes) {
    if (pipe2(p.data(), O_CLOEXEC) != 0) abort();
  }
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipes[0][0], 0);
    dup2(pipes[1][1], 1);
    dup2(pipes[2][1], 2);
    execv(argv[0], argv.data());
    _exit(96);
  }
  close(pipes[0][0]);
  close(pipes[1][1]);
  close(pipes[2][1]);
  Result result;
  std::thread feeder([&] {
    std::size_t done = 0;
    while (done < input.size()) {
      const ssize_t n = write(pipes[0][1], input.data() + done, input.size() - done);
      if (n < 0) break;
      done += static_cast<std::size_t>(n);
    }
    close(pipes[0][1]);
  });
  std::thread errors([&] { result.err = drain(pipes[2][0]); });
  result.out = drain(pipes[1][0]);
  feeder.join();
  errors.join();
  waitpid(child, &result.status, 0);
  return result;
}

Result run_jackdaw(std::vector<std::string> arguments, const std::string& input) {
  arguments.insert(arguments.begin(), JD_TEST_COMMAND);
  return run_program(arguments, input);
}

Result run_client(const std::vector<std::string>& options,
                  const std::vector<std::string>& arguments, const std::string& input) {
  std::vector<std::string> all = {"run", "--library", JD_TEST_LIBRARY};
  all.insert(all.end(), options.begin(), options.end());
  all.insert(all.end(), {"--", JD_TEST_CLIENT});
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run_jackdaw(all, input);
}

Scratch::Scratch() : folder_(testing::TempDir() + "jackdaw-test-XXXXXX") {
  if (mkdtemp(folder_.data()) == nullptr) abort();
}

Scratch::~Scratch() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::string& path, const std::string& text, bool executable) {
  std::ofstream(path, std::ios::binary) << text;
  if (executable) chmod(path.c_str(), 0755);
}
