// The search order is that of ld.so(8): DT_RPATH of the requesting object and of those that loaded
// it (unless the requester has a DT_RUNPATH), LD_LIBRARY_PATH, DT_RUNPATH of the requester, the
// cache, the system's folders. Left out: the glibc-hwcaps subfolders of searched folders, which
// hold other builds of libraries that the plain folder has too.
#include "program/loader.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <system_error>

#include "failure.hpp"

namespace jackdaw {
namespace {

namespace fs = std::filesystem;

#if defined(__x86_64__)
constexpr const char* kTriplet = "x86_64-linux-gnu";
constexpr const char* kPlatform = "x86_64";
#elif defined(__aarch64__)
constexpr const char* kTriplet = "aarch64-linux-gnu";
constexpr const char* kPlatform = "aarch64";
#endif

// --- /etc/ld.so.cache ------------------------------------------------------------------------

// glibc's "new" format: a header of 48 bytes, entries of 24, then strings; offsets are from the
// header. It may stand behind a table in the old format, so the magic word is searched for.
struct CacheHeader {
  char magic[20];
  std::uint32_t count;
  std::uint32_t strings_size;
  std::uint8_t flags;
  std::uint8_t unused_bytes[3];
  std::uint32_t extension;
  std::uint32_t unused_words[3];
};
static_assert(sizeof(CacheHeader) == 48);

struct CacheEntry {
  std::int32_t flags;
  std::uint32_t key;
  std::uint32_t value;
  std::uint32_t os_version;
  std::uint64_t hwcap;
};
static_assert(sizeof(CacheEntry) == 24);

using Cache = std::multimap<std::string, std::string, std::less<>>;

Cache read_cache() {
  Cache cache;
  std::ifstream in("/etc/ld.so.cache", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const std::string_view magic = "glibc-ld.so.cache1.1";
  const std::size_t start = bytes.find(magic);
  if (start == std::string::npos) return cache;
  const std::string_view table = std::string_view(bytes).substr(start);
  CacheHeader header;
  if (table.size() < sizeof header) return cache;
  std::memcpy(&header, table.data(), sizeof header);
  const auto text_at = [table](std::uint32_t offset) -> std::string {
    if (offset >= table.size()) return {};
    const std::string_view rest = table.substr(offset);
    return std::string(rest.substr(0, rest.find('\0')));
  };
  for (std::uint64_t i = 0; i < header.count; ++i) {
    const std::uint64_t at = sizeof header + i * sizeof(CacheEntry);
    if (at + sizeof(CacheEntry) > table.size()) break;
    CacheEntry entry;
    std::memcpy(&entry, table.data() + at, sizeof entry);
    cache.emplace(text_at(entry.key), text_at(entry.value));
  }
  return cache;
}

// --- folders ---------------------------------------------------------------------------------

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// The dynamic string tokens of ld.so(8).
std::string expand(const std::string& path, const fs::path& origin) {
  std::string text = path;
  const std::pair<const char*, std::string> tokens[] = {{"ORIGIN", origin.string()},
                                                        {"LIB", std::string("lib/") + kTriplet},
                                                        {"PLATFORM", kPlatform}};
  for (const auto& [name, value] : tokens) {
    text = replace_all(text, std::string("${") + name + "}", value);
    text = replace_all(text, std::string("$") + name, value);
  }
  return text;
}

std::vector<std::string> split(const std::string& list, const char* separators) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  while (from <= list.size()) {
    const std::size_t end = std::min(list.find_first_of(separators, from), list.size());
    parts.push_back(list.substr(from, end - from));
    from = end + 1;
  }
  return parts;
}

const std::vector<std::string>& system_folders() {
  static const std::vector<std::string> folders = {std::string("/lib/") + kTriplet,
                                                   std::string("/usr/lib/") + kTriplet,
                                                   "/lib64",
                                                   "/usr/lib64",
                                                   "/lib",
                                                   "/usr/lib"};
  return folders;
}

// A library that this machine's dynamic linker would load.
std::optional<ElfFile> read_library(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return std::nullopt;
  try {
    std::optional<ElfFile> elf = read_elf(path);
    if (!elf || elf->foreign || !elf->is_dynamic) return std::nullopt;
    return elf;
  } catch (const Failure&) {
    return std::nullopt;  // Unreadable: ld.so goes on to the next folder, too.
  }
}

// --- the walk --------------------------------------------------------------------------------

struct Object {
  fs::path path;
  ElfFile elf;
  int loader;  // index of the object that asked for this one first; -1: the program
};

class Walk {
 public:
  Walk(const fs::path& program, const ElfFile& elf) : cache_(read_cache()) {
    objects_.push_back({program, elf, -1});
    seen_.insert(program.filename().string());
  }

  LibgcSearch run() {
    LibgcSearch result;
    for (std::size_t i = 0; i < objects_.size(); ++i) {
      // By value: the vector grows below.
      const std::vector<std::string> needed = objects_[i].elf.needed;
      for (const std::string& name : needed) {
        if (name == kLibgcSoname || name.ends_with(std::string("/") + kLibgcSoname)) {
          result.found = true;
          return result;
        }
        if (!seen_.insert(name).second) continue;
        if (!add(name, static_cast<int>(i))) result.missing.push_back(name);
      }
    }
    return result;
  }

 private:
  bool add(const std::string& name, int requester) {
    if (name.find('/') != std::string::npos) {
      return add_file(expand(name, origin(requester)), requester);
    }
    for (const std::string& folder : folders_for(requester)) {
      if (add_file(fs::path(folder.empty() ? "." : folder) / name, requester)) return true;
    }
    const auto [first, last] = cache_.equal_range(name);
    for (auto it = first; it != last; ++it) {
      if (add_file(it->second, requester)) return true;
    }
    for (const std::string& folder : system_folders()) {
      if (add_file(fs::path(folder) / name, requester)) return true;
    }
    return false;
  }

  bool add_file(const fs::path& path, int requester) {
    std::optional<ElfFile> elf = read_library(path);
    if (!elf) return false;
    if (!elf->soname.empty()) seen_.insert(elf->soname);
    objects_.push_back({path, std::move(*elf), requester});
    return true;
  }

  // The folders before the cache, in order.
  std::vector<std::string> folders_for(int requester) const {
    std::vector<std::string> folders;
    const auto append = [&folders](const std::string& list, const char* separators,
                                   const fs::path& origin) {
      for (const std::string& part : split(list, separators))
        folders.push_back(expand(part, origin));
    };
    const Object& object = objects_[static_cast<std::size_t>(requester)];
    if (!object.elf.runpath) {
      for (int i = requester; i >= 0; i = objects_[static_cast<std::size_t>(i)].loader) {
        const ElfFile& elf = objects_[static_cast<std::size_t>(i)].elf;
        if (elf.rpath && !elf.runpath) append(*elf.rpath, ":", origin(i));
      }
    }
    if (const char* path = std::getenv("LD_LIBRARY_PATH"); path != nullptr && *path != '\0') {
      append(path, ":;", origin(0));
    }
    if (object.elf.runpath) append(*object.elf.runpath, ":", origin(requester));
    return folders;
  }

  fs::path origin(int i) const {
    std::error_code error;
    const fs::path& path = objects_[static_cast<std::size_t>(i)].path;
    const fs::path real = fs::canonical(path, error);
    return (error ? path : real).parent_path();
  }

  Cache cache_;
  std::vector<Object> objects_;
  std::set<std::string> seen_;
};

}  // namespace

LibgcSearch search_libgc(const fs::path& program, const ElfFile& elf) {
  return Walk(program, elf).run();
}

std::optional<fs::path> find_system_library(const std::string& name,
                                            const std::vector<fs::path>& skip) {
  std::vector<fs::path> candidates;
  const Cache cache = read_cache();
  const auto [first, last] = cache.equal_range(name);
  for (auto it = first; it != last; ++it) candidates.emplace_back(it->second);
  for (const std::string& folder : system_folders()) candidates.push_back(fs::path(folder) / name);
  for (const fs::path& path : candidates) {
    const bool skipped = std::any_of(skip.begin(), skip.end(), [&path](const fs::path& other) {
      std::error_code error;
      return fs::equivalent(path, other, error);
    });
    if (!skipped && read_library(path)) return path;
  }
  return std::nullopt;
}

}  // namespace jackdaw
