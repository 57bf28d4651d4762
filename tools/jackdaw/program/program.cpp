#include "program/program.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "failure.hpp"
#include "program/elf.hpp"
#include "program/loader.hpp"
#include "program/places.hpp"

namespace jackdaw {
namespace {

namespace fs = std::filesystem;

// As the shell and execvp() do it.
fs::path find_in_path(const std::string& name) {
  if (name.empty()) throw Failure(kExitNotFound, "the program's name is empty");
  if (name.find('/') != std::string::npos) {
    struct stat st {};
    if (stat(name.c_str(), &st) != 0) {
      throw Failure(errno == ENOENT || errno == ENOTDIR ? kExitNotFound : kExitNotExecutable,
                    fmt::format("{}: {}", name, std::strerror(errno)));
    }
    if (S_ISDIR(st.st_mode)) throw Failure(kExitNotExecutable, name + " is a folder");
    if (!is_executable_file(name)) {
      throw Failure(kExitNotExecutable, name + " is not executable (chmod +x makes it so)");
    }
    return name;
  }
  if (const auto file = find_program(name)) return *file;
  for (const fs::path& folder : program_folders()) {
    std::error_code ignored;
    if (!fs::is_regular_file(folder / name, ignored)) continue;
    throw Failure(kExitNotExecutable,
                  (folder / name).string() + " is not executable (chmod +x makes it so)");
  }
  throw Failure(kExitNotFound, fmt::format("there is no program '{}' in PATH", name));
}

// The dynamic linker drops LD_PRELOAD when a program gains rights by being executed.
void refuse_privileged(const fs::path& file) {
  struct stat st {};
  if (stat(file.c_str(), &st) != 0) return;
  const char* what = (st.st_mode & S_ISUID) != 0                                 ? "setuid"
                     : (st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) ? "setgid"
                     : getxattr(file.c_str(), "security.capability", nullptr, 0) > 0
                         ? "privileged by file capabilities"
                         : nullptr;
  if (what == nullptr) return;
  throw Failure(kExitRefused,
                fmt::format("{} is {}: the dynamic linker lets nobody choose the libraries of such "
                            "a program. Run a copy of it without that mode, if it works so.",
                            file.string(), what));
}

// The interpreter named by a script's first line, and its one argument; nothing without "#!".
struct Interpreter {
  std::string path;
  std::string argument;
};
std::optional<Interpreter> script_interpreter(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::array<char, 256> start{};  // The kernel reads no more.
  in.read(start.data(), start.size());
  std::string line(start.data(), static_cast<std::size_t>(in.gcount()));
  if (!line.starts_with("#!")) return std::nullopt;
  line = line.substr(2, line.find('\n') - 2);
  const char* blanks = " \t\r";
  const std::size_t from = line.find_first_not_of(blanks);
  if (from == std::string::npos) {
    throw Failure(kExitNotExecutable, file.string() + " is a script without an interpreter");
  }
  const std::size_t end = std::min(line.find_first_of(blanks, from), line.size());
  Interpreter result{line.substr(from, end - from), ""};
  if (const std::size_t a = line.find_first_not_of(blanks, end); a != std::string::npos) {
    result.argument = line.substr(a, line.find_last_not_of(blanks) + 1 - a);
  }
  return result;
}

// One of env's options. `value`: the value is the next word; `words`: more words begin behind it.
struct EnvOption {
  bool value = false;
  std::string words;
};
EnvOption env_option(const std::string& word) {
  const std::string split = "--split-string=";
  if (word.starts_with(split)) return {false, word.substr(split.size())};
  if (word.starts_with("--")) {
    return {word == "--unset" || word == "--chdir" || word == "--argv0", ""};
  }
  // Letters, of which the first that takes a value is the last.
  const std::size_t at = word.find_first_of("uCaS", 1);
  if (at == std::string::npos) return {};
  const std::string rest = word.substr(at + 1);
  if (word[at] == 'S') return {false, rest};
  return {rest.empty(), ""};
}

// `#!/usr/bin/env [-S] [-u NAME] [NAME=VALUE] guile -s`: what env will execute.
std::optional<std::string> program_of_env(const std::string& argument) {
  std::istringstream words(argument);
  for (std::string word; words >> word;) {
    while (word.starts_with('-')) {
      const EnvOption option = env_option(word);
      if (option.value) words >> word;
      word = option.words;
    }
    if (!word.empty() && word.find('=') == std::string::npos) return word;
  }
  return std::nullopt;
}

// Follows scripts to the ELF file that runs them.
fs::path binary_behind(const fs::path& file) {
  fs::path at = file;
  for (int depth = 0; depth < 5; ++depth) {
    refuse_privileged(at);
    const std::optional<Interpreter> interpreter = script_interpreter(at);
    if (!interpreter) return at;
    if (!is_executable_file(interpreter->path)) {
      throw Failure(kExitNotExecutable,
                    fmt::format("{} is a script for {}, which cannot be executed", at.string(),
                                interpreter->path));
    }
    at = interpreter->path;
    if (at.filename() == "env") {
      if (const auto name = program_of_env(interpreter->argument)) at = find_in_path(*name);
    }
  }
  throw Failure(kExitNotExecutable, file.string() + " is a script of a script of a script ...");
}

// It is linked with nothing itself, and loads the program that it is told to.
bool is_dynamic_linker(const ElfFile& elf) {
  return elf.is_dynamic && (elf.soname.starts_with("ld-linux") || elf.soname.starts_with("ld64"));
}

// What an examination found. `what` names the program in messages.
struct Examined {
  Program program;
  ElfFile elf;  // of program.binary
  LibgcSearch search;
  bool is_script;
  std::string what;
};

// `advice`: what could be done with a static program.
Examined examine(const std::string& name, const char* advice) {
  Examined e;
  Program& program = e.program;
  program.file = find_in_path(name);
  program.binary = binary_behind(program.file);
  e.is_script = program.binary != program.file;
  e.what = e.is_script ? fmt::format("{} (which runs the script {})", program.binary.string(),
                                     program.file.string())
                       : program.binary.string();

  const std::optional<ElfFile> elf = read_elf(program.binary);
  if (!elf) {
    throw Failure(kExitNotExecutable, e.what + " is neither an ELF program nor a script with '#!'");
  }
  if (elf->foreign) {
    throw Failure(kExitNotExecutable, e.what + " is a program for another machine than this one");
  }
  if (elf->interpreter.empty() && !is_dynamic_linker(*elf)) {
    throw Failure(kExitRefused,
                  e.what +
                      " is statically linked: it has its libraries inside and no other can be "
                      "put under it. " +
                      advice);
  }
  if (fs::path(elf->interpreter).filename().string().starts_with("ld-musl")) {
    throw Failure(kExitRefused, e.what +
                                    " is linked with musl, whose dynamic linker can't load "
                                    "libraries made for glibc");
  }
  e.search = search_libgc(program.binary, *elf);
  e.elf = *elf;
  return e;
}

}  // namespace

Program examine_program(const std::string& name, bool force) {
  const Examined e = examine(name, "Link it anew, with libgc as a shared library.");
  if (e.search.found || force) return e.program;
  std::string message =
      fmt::format("{} does not use libgc: neither it nor a library it is linked with needs {}.",
                  e.what, kLibgcSoname);
  if (!e.search.missing.empty()) {
    message +=
        fmt::format(" (Not found, so not looked into: {}.)", fmt::join(e.search.missing, ", "));
  }
  message += e.is_script ? " Name the program that uses libgc, or insist with --force if the "
                           "script starts one."
                         : " Insist with --force if it loads libgc with dlopen or starts a "
                           "program that uses it.";
  message += " With --malloc its malloc is served instead.";
  throw NoLibgc(message);
}

Program examine_malloc_program(const std::string& name) {
  const Examined e = examine(name, "Link it anew, with libc as a shared library.");
  for (const std::string& library : e.elf.needed) {
    // Each stands before malloc with an allocator that its checks need.
    const bool is_sanitizer = library.starts_with("libasan.so") ||
                              library.starts_with("libtsan.so") ||
                              library.starts_with("liblsan.so");
    if (!is_sanitizer) continue;
    throw Failure(kExitRefused,
                  fmt::format("{} was built for a sanitizer ({}), which needs a malloc of its own. "
                              "Build it without -fsanitize.",
                              e.what, library));
  }
  if (!e.search.found) return e.program;
  throw Failure(kExitRefused,
                fmt::format("{} uses libgc: its objects are collected already. Run it on Jackdaw's "
                            "libgc, without --malloc: jackdaw run -- {} ...",
                            e.what, name));
}

}  // namespace jackdaw
