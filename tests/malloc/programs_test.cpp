// Programs that everybody has, with the same output on our malloc as on libc's.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "run_tool.hpp"

namespace {

namespace fs = std::filesystem;

// Debian's own where there are several: others' may be scripts around them.
std::string find_program(const std::string& name) {
  const fs::path usual = fs::path("/usr/bin") / name;
  return fs::exists(usual) ? usual.string() : "";
}

struct Work {
  const char* name;
  const char* program;
  // OUT is replaced by a folder for output, IN by that of the inputs.
  std::vector<std::string> arguments;
  const char* input;  // a file for standard input; may be null
};

const Work works[] = {
    {"gs",
     "gs",
     {"-q", "-dNOPAUSE", "-dBATCH", "-sDEVICE=ppmraw", "-r40", "-sOutputFile=OUT/page%d.ppm",
      "IN/pages.ps"},
     nullptr},
    {"gs_pdf", "gs", {"-q", "-dNOPAUSE", "-dBATCH", "-sDEVICE=bbox", "IN/pages.ps"}, nullptr},
    {"python3", "python3", {"-X", "utf8", "IN/work.py"}, nullptr},
    {"sqlite3", "sqlite3", {":memory:"}, "work.sql"},
    {"gcc", "gcc", {"-O2", "-Wall", "-S", "-o", "OUT/work.s", "IN/client.c"}, nullptr},
    {"gcc_link", "gcc", {"-O1", "-o", "OUT/plain", "IN/../tool/plain.c"}, nullptr},
};

struct Output {
  int status = 0;
  std::string out;
  std::string files;
};

std::string replace(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// `mode` empty: on libc's malloc.
Output run(const Work& work, const std::string& mode) {
  const Scratch scratch;
  std::vector<std::string> command;
  if (!mode.empty()) command = {JD_TEST_COMMAND, "run", "--malloc=" + mode, "--"};
  command.push_back(find_program(work.program));
  // The same name for each run of a test, since some write it into what they make.
  const std::string folder =
      testing::TempDir() + "jackdaw-malloc-" + work.name + "-" + std::to_string(getpid());
  fs::remove_all(folder);
  fs::create_directory(folder);
  for (const std::string& argument : work.arguments) {
    command.push_back(replace(replace(argument, "OUT", folder), "IN", JD_TEST_INPUTS));
  }
  setenv("GC_LOG_FILE", scratch.path("log").c_str(), 1);
  const Result r = run_program(
      command,
      work.input != nullptr ? read_file(std::string(JD_TEST_INPUTS "/") + work.input) : "");
  unsetenv("GC_LOG_FILE");
  Output output{r.status, r.out + r.err, ""};
  std::vector<fs::path> files;
  for (const auto& file : fs::directory_iterator(folder)) files.push_back(file.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) output.files += file.string() + "\n" + read_file(file);
  fs::remove_all(folder);
  return output;
}

class Programs : public testing::TestWithParam<std::tuple<const char*, Work>> {};

TEST_P(Programs, WriteTheSameAsOnLibcsMalloc) {
  const auto& [mode, work] = GetParam();
  if (find_program(work.program).empty()) {
    GTEST_SKIP() << work.program << " is not installed (scripts/packages.sh, group test)";
  }
  const Output on_libc = run(work, "");
  const Output on_ours = run(work, mode);
  EXPECT_EQ(on_libc.status, 0) << on_libc.out;
  EXPECT_EQ(on_ours.status, on_libc.status);
  EXPECT_EQ(on_ours.out, on_libc.out);
  EXPECT_TRUE(on_ours.files == on_libc.files) << "the files that it wrote differ";
}

INSTANTIATE_TEST_SUITE_P(, Programs,
                         testing::Combine(testing::Values("free", "ignore", "leak-check"),
                                          testing::ValuesIn(works)),
                         [](const auto& info) {
                           std::string name = std::string(std::get<1>(info.param).name) + "_" +
                                              std::get<0>(info.param);
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
