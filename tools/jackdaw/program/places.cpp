#include "program/places.hpp"

#include <dlfcn.h>
#include <fmt/core.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <system_error>
#include <vector>

#include "failure.hpp"
#include "program/loader.hpp"

namespace jackdaw {
namespace {

namespace fs = std::filesystem;

fs::path own_file() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!error) return self;
  // Without /proc: the name that the command was started by.
  const auto* name = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  std::error_code not_found;
  fs::path named = fs::canonical(name != nullptr ? name : "", not_found);
  if (!not_found) return named;
  throw Failure(kExitRefused, "cannot find my own file: /proc/self/exe: " + error.message());
}

// The folder that holds bin/ and lib/.
fs::path prefix() { return own_file().parent_path().parent_path(); }

// JD_LIBRARY_FOLDER is the installation's (lib, or lib/x86_64-linux-gnu); a build has plain lib.
std::vector<fs::path> library_folders() { return {prefix() / "lib", prefix() / JD_LIBRARY_FOLDER}; }

std::optional<fs::path> existing(const fs::path& within) {
  for (const fs::path& folder : library_folders()) {
    std::error_code ignored;
    if (fs::exists(folder / within, ignored)) return folder / within;
  }
  return std::nullopt;
}

// An installation keeps it in a folder of its own, unless it was told to take the system's place
// (JD_INSTALL_AS_LIBGC); beside that folder may lie somebody else's libgc.so.1.
std::optional<fs::path> our_libgc() {
  const auto apart = existing(fs::path("jackdaw") / kLibgcSoname);
  return apart ? apart : existing(kLibgcSoname);
}

fs::path required(const fs::path& within, const char* what) {
  if (const auto path = existing(within)) return *path;
  throw Failure(kExitRefused, fmt::format("{} is not at {}; build it (./dev build) or install "
                                          "Jackdaw completely",
                                          what, (library_folders().front() / within).string()));
}

// The answer comes through a pipe from a child, because a libgc, once loaded, does not leave.
unsigned ask_version(const fs::path& path) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) {
    throw Failure(kExitRefused, fmt::format("pipe: {}", std::strerror(errno)));
  }
  const pid_t child = fork();
  if (child < 0) throw Failure(kExitRefused, fmt::format("fork: {}", std::strerror(errno)));
  if (child == 0) {
    std::string answer;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* function = library != nullptr ? dlsym(library, "GC_get_version") : nullptr;
    if (function == nullptr) {
      answer = std::string("!") + dlerror();
    } else {
      answer = std::to_string(reinterpret_cast<unsigned (*)()>(function)());
    }
    const ssize_t written = write(ends[1], answer.data(), answer.size());
    _exit(written == static_cast<ssize_t>(answer.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string answer;
  std::array<char, 512> buffer{};
  for (ssize_t n = 0; (n = read(ends[0], buffer.data(), buffer.size())) > 0;) {
    answer.append(buffer.data(), static_cast<std::size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (answer.empty()) answer = "!loading it ended the process";
  if (answer.front() == '!') {
    throw Failure(kExitRefused,
                  fmt::format("{} is not a usable libgc: {}", path.string(), answer.substr(1)));
  }
  return static_cast<unsigned>(std::stoul(answer));
}

// LD_PRELOAD knows no way to quote its separators, nor the sign of what the loader puts in itself
// ($ORIGIN). `advice`: what could be done.
void refuse_separators(const fs::path& path, const char* advice) {
  if (path.string().find_first_of(" :$") == std::string::npos) return;
  throw Failure(kExitRefused,
                fmt::format("the path '{}' has a blank, a colon or a $ in it, which LD_PRELOAD "
                            "cannot express; {}",
                            path.string(), advice));
}
// A link to the command would not do: it looks beside its own file.
constexpr const char* kMoveJackdaw = "move Jackdaw to a folder whose path has none";

Library open_library(const fs::path& path) {
  std::error_code error;
  Library library;
  library.path = fs::absolute(path, error);
  if (!fs::exists(library.path, error)) {
    throw Failure(kExitRefused, fmt::format("there is no library {}", path.string()));
  }
  refuse_separators(library.path, "move it, or name a link to it with --library");
  library.version = ask_version(library.path);
  return library;
}

}  // namespace

std::string Library::version_text() const {
  return fmt::format("{}.{}.{}", version >> 16, (version >> 8) & 0xff, version & 0xff);
}

std::string Library::portable_path() const {
  const fs::path within = path.lexically_relative(prefix());
  return within.empty() || *within.begin() == ".." ? path.string() : within.string();
}

Library our_library(const std::string& chosen) {
  if (!chosen.empty()) return open_library(chosen);
  if (const auto path = our_libgc()) return open_library(*path);
  return open_library(required(kLibgcSoname, "our libgc"));
}

Library system_library(const std::string& chosen) {
  if (!chosen.empty()) return open_library(chosen);
  std::vector<fs::path> ours;
  if (const auto path = our_libgc()) ours.push_back(*path);
  const auto path = find_system_library(kLibgcSoname, ours);
  if (!path) {
    throw Failure(kExitRefused,
                  "this system has no libgc.so.1 of its own to compare with; install one (Debian: "
                  "apt-get install libgc1) or name one by its path");
  }
  return open_library(*path);
}

Library our_malloc_library() {
  Library library;
  library.path = required("libjackdaw-malloc.so", "the library that serves malloc");
  refuse_separators(library.path, kMoveJackdaw);
  return library;
}

fs::path probe_library() {
  fs::path path = required("jackdaw/libgc-probe.so", "the probe");
  refuse_separators(path, kMoveJackdaw);
  return path;
}

std::optional<fs::path> malloc_library() { return existing("libjackdaw-malloc.so"); }

std::optional<Library> counting_library() {
  const std::optional<fs::path> path = existing("jackdaw/counting/libgc.so.1");
  if (!path) return std::nullopt;
  return open_library(*path);
}

std::optional<fs::path> source_results_folder() {
  // SOURCES/build/PRESET is the folder that holds bin/.
  const fs::path results = prefix().parent_path().parent_path() / "docs" / "results";
  std::error_code ignored;
  if (!fs::is_directory(results, ignored)) return std::nullopt;
  return results;
}

std::vector<fs::path> program_folders() {
  const char* path = std::getenv("PATH");
  const std::string all = path != nullptr ? path : "/bin:/usr/bin";
  std::vector<fs::path> folders;
  // An empty part is the current folder, also where it is all there is, or the last.
  for (std::size_t begin = 0; begin <= all.size();) {
    const std::size_t end = std::min(all.find(':', begin), all.size());
    const std::string folder = all.substr(begin, end - begin);
    folders.emplace_back(folder.empty() ? "." : folder);
    begin = end + 1;
  }
  return folders;
}

bool is_executable_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

std::optional<fs::path> find_program(const std::string& name) {
  for (const fs::path& folder : program_folders()) {
    if (is_executable_file(folder / name)) return folder / name;
  }
  return std::nullopt;
}

bool is_own_libjackdaw(const fs::path& file) {
  if (!file.filename().string().starts_with("libjackdaw.so")) return false;
  for (const fs::path& folder : library_folders()) {
    std::error_code ignored;
    if (fs::equivalent(file.parent_path(), folder, ignored)) return true;
  }
  return false;
}

fs::path benchmark_folder() { return required("jackdaw/bench", "the benchmarks' folder"); }

}  // namespace jackdaw
