#include "program/elf.hpp"

#include <elf.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "failure.hpp"

namespace jackdaw {
namespace {

#if defined(__x86_64__)
constexpr Elf64_Half kOurMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kOurMachine = EM_AARCH64;
#else
#error "say which e_machine this architecture has"
#endif

// A file mapped for reading; every access is checked against its size, for files are hostile.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path) : path_(path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
      // It may be executable all the same.
      throw Failure(kExitRefused,
                    fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)));
    }
    struct stat st {};
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
      void* p = mmap(nullptr, static_cast<std::size_t>(st.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
      if (p != MAP_FAILED) {
        data_ = static_cast<const char*>(p);
        size_ = static_cast<std::size_t>(st.st_size);
      }
    }
    close(fd);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (data_ != nullptr) munmap(const_cast<char*>(data_), size_);
  }

  [[nodiscard]] std::string_view bytes() const { return {data_, size_}; }

  template <class T>
  [[nodiscard]] T at(std::uint64_t offset) const {
    if (offset > size_ || size_ - offset < sizeof(T)) damaged();
    T value;
    std::memcpy(&value, data_ + offset, sizeof(T));
    return value;
  }

  // The string that begins there.
  [[nodiscard]] std::string text(std::uint64_t offset) const {
    if (offset >= size_) damaged();
    const std::string_view rest = bytes().substr(offset);
    const std::size_t end = rest.find('\0');
    if (end == std::string_view::npos) damaged();
    return std::string(rest.substr(0, end));
  }

  [[noreturn]] void damaged() const {
    throw Failure(kExitNotExecutable, fmt::format("{} is a damaged ELF file", path_.string()));
  }

 private:
  std::filesystem::path path_;
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

struct Segments {
  std::vector<Elf64_Phdr> load;
  std::optional<Elf64_Phdr> dynamic;
};

// The file offset of what the program will see at an address.
std::uint64_t offset_of(const MappedFile& file, const Segments& segments, std::uint64_t address) {
  for (const Elf64_Phdr& s : segments.load) {
    if (address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz) {
      return s.p_offset + (address - s.p_vaddr);
    }
  }
  file.damaged();
}

void read_dynamic(const MappedFile& file, const Segments& segments, ElfFile* elf) {
  std::vector<Elf64_Dyn> entries;
  std::optional<std::uint64_t> strings;
  const Elf64_Phdr& d = *segments.dynamic;
  for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= d.p_filesz; at += sizeof(Elf64_Dyn)) {
    const auto entry = file.at<Elf64_Dyn>(d.p_offset + at);
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_STRTAB) strings = offset_of(file, segments, entry.d_un.d_ptr);
    entries.push_back(entry);
  }
  for (const Elf64_Dyn& entry : entries) {
    const bool is_text = entry.d_tag == DT_NEEDED || entry.d_tag == DT_SONAME ||
                         entry.d_tag == DT_RPATH || entry.d_tag == DT_RUNPATH;
    if (!is_text) continue;
    if (!strings) file.damaged();
    const std::string text = file.text(*strings + entry.d_un.d_val);
    if (entry.d_tag == DT_NEEDED) elf->needed.push_back(text);
    if (entry.d_tag == DT_SONAME) elf->soname = text;
    if (entry.d_tag == DT_RPATH) elf->rpath = text;
    if (entry.d_tag == DT_RUNPATH) elf->runpath = text;
  }
}

}  // namespace

std::optional<ElfFile> read_elf(const std::filesystem::path& path) {
  const MappedFile file(path);
  if (!file.bytes().starts_with(std::string_view(ELFMAG, SELFMAG))) return std::nullopt;
  ElfFile elf;
  const auto ident = file.at<std::array<unsigned char, EI_NIDENT>>(0);
  if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB) {
    elf.foreign = true;
    return elf;
  }
  const auto header = file.at<Elf64_Ehdr>(0);
  if (header.e_machine != kOurMachine) {
    elf.foreign = true;
    return elf;
  }
  if (header.e_phnum != 0 && header.e_phentsize < sizeof(Elf64_Phdr)) file.damaged();
  Segments segments;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    const auto p = file.at<Elf64_Phdr>(header.e_phoff + std::uint64_t{i} * header.e_phentsize);
    if (p.p_type == PT_LOAD) segments.load.push_back(p);
    if (p.p_type == PT_DYNAMIC) segments.dynamic = p;
    if (p.p_type == PT_INTERP) elf.interpreter = file.text(p.p_offset);
  }
  if (segments.dynamic) {
    elf.is_dynamic = true;
    read_dynamic(file, segments, &elf);
  }
  return elf;
}

}  // namespace jackdaw
