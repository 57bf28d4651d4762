#include "os/modules.hpp"

#include <dlfcn.h>
#include <link.h>

#include <initializer_list>

#include "base/bits.hpp"
#include "base/text.hpp"

// The loader's own record of what is loaded. Weak, so that the library names no loader among its
// needs.
#pragma weak _r_debug
// Not in every glibc.
#pragma weak _dl_find_object

#if defined(JD_SANITIZE_THREAD)
extern "C" void __tsan_acquire(void* address);
#endif

namespace jd::os {
namespace {

using base::Word;

// Reports [low, high) without its intersection with the part that relocation made read-only.
void visit_without_relro(ModuleVisitor* visitor, DataSegment segment, Word relro_low,
                         Word relro_high) {
  const Word low = base::as_word(segment.low);
  const Word high = base::as_word(segment.high);
  if (relro_low >= high || relro_high <= low || relro_low >= relro_high) {
    visitor->data(segment);
    return;
  }
  if (low < relro_low) {
    segment.high = base::as_pointer(relro_low);
    visitor->data(segment);
  }
  if (relro_high < high) {
    segment.low = base::as_pointer(relro_high);
    segment.high = base::as_pointer(high);
    visitor->data(segment);
  }
}

#if defined(JD_SANITIZE_THREAD)
// ThreadSanitizer's run-time has 50 MB of its own data, none of them a pointer of the program's:
// scanning them would take most of a test's time.
bool is_run_time(const dl_phdr_info& info) {
  const Word inside = reinterpret_cast<Word>(&__tsan_acquire);
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const auto& header = info.dlpi_phdr[i];
    if (header.p_type == PT_LOAD && inside - (info.dlpi_addr + header.p_vaddr) < header.p_memsz) {
      return true;
    }
  }
  return false;
}
#else
bool is_run_time(const dl_phdr_info&) { return false; }
#endif

struct Visit {
  ModuleVisitor* visitor;
  std::uint64_t* fingerprint;  // null once it was taken
};

int visit_one(dl_phdr_info* info, std::size_t, void* data) {
  auto* visit = static_cast<Visit*>(data);
  ModuleVisitor* visitor = visit->visitor;
  if (visit->fingerprint != nullptr) {
    bool changing = false;
    *visit->fingerprint = module_fingerprint(&changing);
    visit->fingerprint = nullptr;
  }
  const bool in_program = info->dlpi_name == nullptr || info->dlpi_name[0] == '\0';
  if (!in_program && is_run_time(*info)) return 0;
  Word relro_low = 0;
  Word relro_high = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type == PT_GNU_RELRO) {
      relro_low = info->dlpi_addr + header.p_vaddr;
      // Only whole pages became read-only; the rest of the last page is ordinary data.
      relro_high = base::align_down(relro_low + header.p_memsz, 4096);
    }
  }
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type == PT_LOAD && (header.p_flags & PF_W) != 0) {
      DataSegment segment{};
      segment.object = info->dlpi_name;
      segment.low = base::as_pointer(info->dlpi_addr + header.p_vaddr);
      segment.high = segment.low + header.p_memsz;
      segment.in_program = in_program;
      visit_without_relro(visitor, segment, relro_low, relro_high);
    } else if (header.p_type == PT_TLS && info->dlpi_tls_modid != 0) {
      visitor->thread_locals({info->dlpi_tls_modid, header.p_memsz, in_program});
    }
  }
  return 0;
}

int visit_one_library(dl_phdr_info* info, std::size_t, void* data) {
  if (info->dlpi_name == nullptr || info->dlpi_name[0] == '\0') return 0;
  Word low = ~Word{0};
  Word high = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD) continue;
    const Word first = info->dlpi_addr + header.p_vaddr;
    low = base::min_of(low, first);
    high = base::max_of(high, first + header.p_memsz);
  }
  if (low >= high) return 0;
  static_cast<LibraryVisitor*>(data)->library({info->dlpi_name, base::as_pointer(info->dlpi_addr),
                                               base::as_pointer(low), base::as_pointer(high)});
  return 0;
}

int read_generation(dl_phdr_info* info, std::size_t, void* data) {
  *static_cast<std::uint64_t*>(data) = info->dlpi_adds * 0x100000001ull + info->dlpi_subs;
  return 1;  // every object carries the same counters
}

}  // namespace

void visit_modules(ModuleVisitor* visitor, std::uint64_t* fingerprint) {
  Visit visit{visitor, fingerprint};
  dl_iterate_phdr(visit_one, &visit);
}

void visit_libraries(LibraryVisitor* visitor) { dl_iterate_phdr(visit_one_library, visitor); }

std::uint64_t module_generation() {
  std::uint64_t generation = 0;
  dl_iterate_phdr(read_generation, &generation);
  return generation;
}

std::uint64_t module_fingerprint(bool* changing) {
  *changing = _r_debug.r_state != r_debug::RT_CONSISTENT;
  std::uint64_t digest = 0;
  for (const link_map* map = _r_debug.r_map; map != nullptr; map = map->l_next) {
    for (const Word word : {Word{map->l_addr}, base::as_word(map->l_ld)}) {
      digest = base::add_to_digest(digest, word);
    }
    // Another library may have come to the same address, with other data.
    if (map->l_name != nullptr) digest = base::add_text_to_digest(digest, map->l_name);
  }
  return digest;
}

LoadedFile find_loaded(const char* file_name_begins) {
  for (const link_map* map = _r_debug.r_map; map != nullptr; map = map->l_next) {
    if (map->l_name == nullptr) continue;
    const char* slash = __builtin_strrchr(map->l_name, '/');
    const char* name = slash != nullptr ? slash + 1 : map->l_name;
    if (base::after(name, file_name_begins) != nullptr) return {map->l_name, map->l_ld};
  }
  return {};
}

Extent bounds_of_object(const void* address) {
  if (&_dl_find_object == nullptr) return {};
  dl_find_object found;
  if (_dl_find_object(const_cast<void*>(address), &found) != 0) return {};
  return {static_cast<char*>(found.dlfo_map_start), static_cast<char*>(found.dlfo_map_end)};
}

bool stays_loaded(const void* address) {
  if (&_dl_find_object == nullptr) return false;
  const auto object_of = [](const void* inside) -> const link_map* {
    dl_find_object found;
    const bool is_found = _dl_find_object(const_cast<void*>(inside), &found) == 0;
    return is_found ? found.dlfo_link_map : nullptr;
  };
  const link_map* object = object_of(address);
  return object != nullptr &&
         (object == _r_debug.r_map ||  // the list begins with the program
          object == object_of(reinterpret_cast<const void*>(&stays_loaded)) ||
          object == object_of(reinterpret_cast<const void*>(&dl_iterate_phdr)));
}

const void* find_unwind_table(const void* code) {
  if (&_dl_find_object == nullptr) return nullptr;
  dl_find_object found;
  if (_dl_find_object(const_cast<void*>(code), &found) != 0) return nullptr;
  return found.dlfo_eh_frame;
}

}  // namespace jd::os
