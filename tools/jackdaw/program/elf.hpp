// What the dynamic linker would read from a file: enough of ELF to follow its dependencies.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace jackdaw {

struct ElfFile {
  bool foreign = false;     // another word size, byte order or machine: the rest is unset
  bool is_dynamic = false;  // has a dynamic section
  std::string interpreter;  // the dynamic linker's path; empty in libraries and static programs
  std::string soname;
  std::vector<std::string> needed;
  std::optional<std::string> rpath;
  std::optional<std::string> runpath;
};

// Nothing if the file is not ELF. Throws Failure if it cannot be read or is damaged.
std::optional<ElfFile> read_elf(const std::filesystem::path& path);

}  // namespace jackdaw
