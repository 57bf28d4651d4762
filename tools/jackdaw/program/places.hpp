// Where things are: found from the command's own path, so that a build folder and an installation
// work alike (bin/jackdaw, lib/libgc.so.1, lib/jackdaw/...).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace jackdaw {

// A libgc.so.1 to run programs on.
struct Library {
  std::filesystem::path path;
  unsigned version = 0;  // GC_get_version(): 0x080202 is 8.2.2
  [[nodiscard]] std::string version_text() const;
  // The path for files that others read: one of this build or installation begins at its folder.
  [[nodiscard]] std::string portable_path() const;
};

// Ours, the system's (any libgc.so.1 the dynamic linker finds that is not ours), or the one that
// `chosen` names if it is not empty. The file is loaded in a child process and asked for its
// version. Throws Failure, saying what to do, if it is not there or does not load.
Library our_library(const std::string& chosen);
Library system_library(const std::string& chosen);

// What serves a program's malloc. Its version is not asked for: it is 0. Throws Failure if it is
// not there.
Library our_malloc_library();

std::filesystem::path probe_library();
// The preload that serves malloc from the collector, if it was built.
std::optional<std::filesystem::path> malloc_library();
// Ours, built so that it counts what threads share, if it was.
std::optional<Library> counting_library();
std::filesystem::path benchmark_folder();
// Whether that file is the libjackdaw.so.N that lies beside this command, and so is what the
// benchmarks that were built with one are to run on.
bool is_own_libjackdaw(const std::filesystem::path& file);

// docs/results of the sources, if this command runs from their build folder.
std::optional<std::filesystem::path> source_results_folder();

// Those of PATH.
std::vector<std::filesystem::path> program_folders();
bool is_executable_file(const std::filesystem::path& path);
// An executable file in one of them, as the shell and execvp() find it.
std::optional<std::filesystem::path> find_program(const std::string& name);

}  // namespace jackdaw
