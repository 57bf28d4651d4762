// The malloc family. Each entry is a few lines over serve.hpp.
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include <limits>

#include "alloc/allocate.hpp"
#include "heap/space.hpp"
#include "malloc/figures.hpp"
#include "malloc/foreign.hpp"
#include "malloc/found_later.hpp"
#include "malloc/hiding.hpp"
#include "malloc/serve.hpp"
#include "os/kept_errno.hpp"
#include "os/memory.hpp"
#include "os/symbols.hpp"

using namespace jd;

#define JD_EXPORT extern "C" [[gnu::visibility("default")]]
// Where the program called us.
#define JD_CALLER __builtin_return_address(0)

namespace {

// Pre: not null.
void release(void* object, const char* name) {
  // What is in no heap is told, too, but by one that serves.
  if (serve::is_early(object)) return;
  const os::KeptErrno kept;
  if (serve::fast || serve::start()) {
    if (serve::is_foreign(object)) {
      serve::release_foreign(object, name);
    } else {
      alloc::free_object(object, name);
    }
  }
}

// From the start's own time; its size is not known, but what follows can be read.
void* resize_early(const void* object, std::size_t bytes, const void* caller) {
  void* moved = serve::allocate(bytes, caller);
  if (moved == nullptr) return nullptr;
  const auto* from = static_cast<const char*>(object);
  std::size_t size = 0;
  while (size < bytes && serve::is_early(from + size)) ++size;
  base::copy_bytes(moved, object, size);
  return moved;
}

void* resize(void* object, std::size_t bytes, const void* caller) {
  if (object == nullptr) return serve::allocate(bytes, caller);
  if (serve::is_early(object)) return resize_early(object, bytes, caller);
  if (bytes == 0) {
    if (!serve::is_ignored(object)) release(object, "realloc");
    return nullptr;
  }
  if (!serve::fast && !serve::start()) {
    errno = ENOMEM;
    return nullptr;
  }
  if (serve::is_foreign(object)) return serve::resize_foreign(object, bytes);
  return serve::resize(object, bytes, caller);
}

// A program that brings its own malloc may lack some of the functions beside it: those are libc's
// then, as if this library were not there.
template <class Function>
Function* libcs(Function*, const char* name) {
  return reinterpret_cast<Function*>(os::next_function(name));
}
// The first step of each entry but malloc and reallocarray.
#define JD_PASS_ON(function, ...)                                                 \
  if (serve::is_bypassed()) {                                                     \
    static constinit serve::FoundLater passed_on;                                 \
    return passed_on.get([] { return libcs(function, #function); })(__VA_ARGS__); \
  }

void* invalid() {
  errno = EINVAL;
  return nullptr;
}

// As libc's memalign: the next power of two, if there is one.
constexpr std::size_t kMostAlignment = SIZE_MAX / 2 + 1;
std::size_t round_alignment(std::size_t alignment) {
  return alignment <= 1 ? 1 : std::size_t{1} << (base::log2_floor(alignment - 1) + 1);
}

// Into the fields of mallinfo and mallinfo2, of one name and two types.
template <class Information>
Information information() {
  Information result{};
  if (!serve::start()) return result;
  using Field = decltype(result.arena);
  constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<Field>::max());
  const auto field = [](std::size_t bytes) {
    return static_cast<Field>(base::min_of(bytes, kMost));
  };
  const serve::Figures figures = serve::figures();
  result.arena = field(figures.resident);
  result.uordblks = field(figures.in_use);
  result.fordblks = field(figures.resident - base::min_of(figures.in_use, figures.resident));
  result.keepcost = field(figures.idle);
  return result;
}

}  // namespace

// malloc.req.fast
JD_EXPORT void* malloc(std::size_t bytes) {
  if (__builtin_expect(
          serve::fast && bytes <= serve::kMostSmall && !serve::may_hide_pointers(JD_CALLER), 1)) {
    alloc::HoleRow* row = alloc::cache->rows[serve::kScanned];
    if (__builtin_expect(row != nullptr, 1)) {
      void* slot = row->hole_for(serve::with_spare(bytes)).take();
      if (__builtin_expect(slot != nullptr, 1)) return slot;
    }
  }
  if (serve::is_bypassed(true)) {
    static constinit serve::FoundLater passed_on;
    return passed_on.get([] { return libcs(malloc, "malloc"); })(bytes);
  }
  return serve::allocate(bytes, JD_CALLER);
}

JD_EXPORT void free(void* object) {
  JD_PASS_ON(free, object)
  if (object == nullptr || serve::is_ignored(object)) return;
  if (serve::fast && alloc::free_in_slot(object)) return;
  release(object, "free");
}

JD_EXPORT void* calloc(std::size_t count, std::size_t size) {
  JD_PASS_ON(calloc, count, size)
  std::size_t bytes = 0;
  if (!base::checked_multiply(count, size, &bytes)) bytes = SIZE_MAX;
  return serve::allocate_clear(bytes, JD_CALLER);
}

JD_EXPORT void* realloc(void* object, std::size_t bytes) {
  JD_PASS_ON(realloc, object, bytes)
  return resize(object, bytes, JD_CALLER);
}

JD_EXPORT void* reallocarray(void* object, std::size_t count, std::size_t size) {
  std::size_t bytes = 0;
  if (!base::checked_multiply(count, size, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  // By name: the program's, if that is the one that counts.
  if (serve::is_bypassed()) {
    static constinit serve::FoundLater programs;
    const auto find = [] {
      return reinterpret_cast<decltype(&realloc)>(os::global_function("realloc"));
    };
    return programs.get(find)(object, bytes);
  }
  return resize(object, bytes, JD_CALLER);
}

JD_EXPORT void* memalign(std::size_t alignment, std::size_t bytes) {
  JD_PASS_ON(memalign, alignment, bytes)
  if (alignment > kMostAlignment) return invalid();
  return serve::allocate_aligned(bytes, round_alignment(alignment), JD_CALLER);
}

JD_EXPORT void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  JD_PASS_ON(aligned_alloc, alignment, bytes)
  // glibc refuses what is no power of two since 2.38; until then it did as memalign does, which
  // programs may count on.
  if (alignment > kMostAlignment) return invalid();
  return serve::allocate_aligned(bytes, round_alignment(alignment), JD_CALLER);
}

JD_EXPORT int posix_memalign(void** result, std::size_t alignment, std::size_t bytes) {
  JD_PASS_ON(posix_memalign, result, alignment, bytes)
  if (alignment < sizeof(void*) || !base::is_power_of_two(alignment)) return EINVAL;
  const os::KeptErrno kept;
  void* object = serve::allocate_aligned(bytes, alignment, JD_CALLER);
  if (object == nullptr) return ENOMEM;
  *result = object;
  return 0;
}

JD_EXPORT void* valloc(std::size_t bytes) {
  JD_PASS_ON(valloc, bytes)
  return serve::allocate_aligned(bytes, os::page_size(), JD_CALLER);
}

JD_EXPORT void* pvalloc(std::size_t bytes) {
  JD_PASS_ON(pvalloc, bytes)
  const std::size_t page = os::page_size();
  std::size_t rounded = 0;
  if (!base::checked_add(bytes, page - 1, &rounded)) {
    errno = ENOMEM;
    return nullptr;
  }
  return serve::allocate_aligned(base::align_down(rounded, page), page, JD_CALLER);
}

JD_EXPORT std::size_t malloc_usable_size(void* object) {
  JD_PASS_ON(malloc_usable_size, object)
  if (object == nullptr || serve::is_early(object)) return 0;
  return serve::is_foreign(object) ? serve::foreign_size(object) : serve::usable_size(object);
}

JD_EXPORT int malloc_trim(std::size_t padding) {
  JD_PASS_ON(malloc_trim, padding)
  return serve::start() && serve::trim() ? 1 : 0;
}

JD_EXPORT void malloc_stats() {
  JD_PASS_ON(malloc_stats)
  if (serve::start()) serve::tell_figures();
}

// glibc calls it deprecated.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
JD_EXPORT struct mallinfo mallinfo() {
  JD_PASS_ON(mallinfo)
  return information<struct mallinfo>();
}
#pragma GCC diagnostic pop

#if __GLIBC_PREREQ(2, 33)
JD_EXPORT struct mallinfo2 mallinfo2() {
  JD_PASS_ON(mallinfo2)
  return information<struct mallinfo2>();
}
#endif
