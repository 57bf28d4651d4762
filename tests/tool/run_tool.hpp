// Runs the jackdaw command, or any program, and keeps what it did.
#pragma once

#include <string>
#include <vector>

struct Result {
  int status = 0;  // of wait()
  std::string out;
  std::string err;

  [[nodiscard]] bool exited_with(int code) const;
  [[nodiscard]] bool killed_by(int signal) const;
};

// A message for a failed assertion.
std::string describe(const Result& r);

// arguments[0] is a path. `input` becomes its standard input, as a pipe.
Result run_program(const std::vector<std::string>& arguments, const std::string& input = "");

// The jackdaw command of this build.
Result run_jackdaw(std::vector<std::string> arguments, const std::string& input = "");

// jackdaw run with the library under test, `options`, and the test client with `arguments`.
Result run_client(const std::vector<std::string>& options,
                  const std::vector<std::string>& arguments, const std::string& input = "");

// A folder that goes away with the object.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }

 private:
  std::string folder_;
};

std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& text, bool executable = false);
