// Finds shared libraries where the dynamic linker finds them, without running anything.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "program/elf.hpp"

namespace jackdaw {

inline constexpr const char* kLibgcSoname = "libgc.so.1";

// What following a program's dependencies showed.
struct LibgcSearch {
  bool found = false;
  std::vector<std::string> missing;  // libraries that are nowhere
};

// Follows DT_NEEDED, breadth first, from a dynamically linked program or library.
LibgcSearch search_libgc(const std::filesystem::path& program, const ElfFile& elf);

// Where the dynamic linker finds a library by its bare name, outside of any program: the cache of
// ldconfig, then the system's folders. Files in `skip` (compared by identity) do not count.
std::optional<std::filesystem::path> find_system_library(
    const std::string& name, const std::vector<std::filesystem::path>& skip);

}  // namespace jackdaw
