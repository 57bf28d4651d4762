// Allocation of the usual kinds. The fast path is in alloc/cache.hpp.
#include <errno.h>
#include <string.h>

#include "alloc/totals.hpp"
#include "libgc/support.hpp"

using namespace jd;
using namespace jd::libgc;

namespace {

// The bytes of an uncollectable object, by its beginning; 0 of a collectable one, and of addresses
// outside the heap. Of others: anything.
size_t uncollectable_size(const void* object) {
  const base::Word word = base::as_word(object);
  if (!heap::in_heap(word)) return 0;
  const heap::Block* block = &heap::space.blocks[heap::block_number(word)];
  if (__builtin_expect(block->state == heap::BlockState::Body, 0)) {
    heap::Place place;
    if (!heap::find_place(word, &place)) return 0;
    block = place.block;
  }
  return heap::is_uncollectable(block->kind) ? heap::unmixed_size(*block) : 0;
}

// Bytes of uncollectable objects are told to programs through GC_non_gc_bytes: what GC_free takes
// off again, which is nothing for memory of the out-of-memory function.
void* count_uncollectable(void* object) {
  if (const size_t bytes = uncollectable_size(object)) alloc::add_uncollectable(bytes);
  return object;
}

void* allocate_uncollectable(size_t bytes, heap::KindNumber kind) {
  return count_uncollectable(alloc::allocate(bytes, kind));
}

// A large object, or none. The bytes of uncollectable objects fall only with one that was there.
// Out of line, so that GC_free ends with a jump.
[[gnu::noinline]] void free_other(void* object) {
  const size_t bytes = uncollectable_size(object);
  if (alloc::free_object(object, "GC_free")) alloc::add_uncollectable(0 - bytes);
}

char* copy_string(const char* text, size_t length) {
  return filled_with(text, length, alloc::allocate_atomic(length + 1));
}

constexpr const char* kUnknownKind = "allocation of a kind that does not exist";

void* allocate_kind(size_t bytes, int kind) {
  const heap::KindNumber number = known_kind(kind, kUnknownKind);
  if (heap::is_uncollectable(number)) return allocate_uncollectable(bytes, number);
  return alloc::allocate(bytes, number);
}

}  // namespace

extern "C" {

void* GC_malloc(size_t bytes) { return alloc::allocate_normal(bytes); }
void* GC_malloc_atomic(size_t bytes) { return alloc::allocate_atomic(bytes); }
void* GC_malloc_stubborn(size_t bytes) { return alloc::allocate_normal(bytes); }

// Asymptote and ECL ask for small objects through these as well: the same fast path.
void* GC_malloc_ignore_off_page(size_t bytes) {
  return bytes <= heap::kMaxSmall ? alloc::allocate_normal(bytes)
                                  : alloc::allocate_held_by_first_block(bytes, heap::kNormal);
}
void* GC_malloc_atomic_ignore_off_page(size_t bytes) {
  return bytes <= heap::kMaxSmall ? alloc::allocate_atomic(bytes)
                                  : alloc::allocate_held_by_first_block(bytes, heap::kAtomic);
}

void* GC_malloc_uncollectable(size_t bytes) {
  return allocate_uncollectable(bytes, heap::kUncollectable);
}
void* GC_malloc_atomic_uncollectable(size_t bytes) {
  return allocate_uncollectable(bytes, heap::kAtomicUncollectable);
}

GC_API void* GC_generic_malloc(size_t bytes, int kind) { return allocate_kind(bytes, kind); }
GC_API void* GC_malloc_kind(size_t bytes, int kind) { return allocate_kind(bytes, kind); }
GC_API void* GC_malloc_kind_global(size_t bytes, int kind) { return allocate_kind(bytes, kind); }
GC_API void* GC_generic_malloc_ignore_off_page(size_t bytes, int kind) {
  const heap::KindNumber number = known_kind(kind, kUnknownKind);
  void* object = alloc::allocate_held_by_first_block(bytes, number);
  return heap::is_uncollectable(number) ? count_uncollectable(object) : object;
}
GC_API void* GC_generic_or_special_malloc(size_t bytes, int kind) {
  return allocate_kind(bytes, kind);
}
GC_API void* GC_generic_malloc_uncollectable(size_t bytes, int kind) {
  return allocate_uncollectable(bytes, kind == heap::kAtomic || kind == heap::kAtomicUncollectable
                                           ? heap::kAtomicUncollectable
                                           : heap::kUncollectable);
}

void* GC_malloc_many(size_t bytes) {
  void* list = nullptr;
  alloc::allocate_list(bytes, heap::kNormal, &list);
  return list;
}

GC_API void GC_generic_malloc_many(size_t bytes, int kind, void** result) {
  const heap::KindNumber number = known_kind(kind, "GC_generic_malloc_many: no such kind");
  alloc::allocate_list(bytes, number, result);
  if (!heap::is_uncollectable(number)) return;
  for (void* object = *result; object != nullptr; object = *static_cast<void**>(object)) {
    count_uncollectable(object);
  }
}

void GC_free(void* object) {
  if (!alloc::free_in_slot_and_count(object)) free_other(object);
}

void* GC_realloc(void* object, size_t bytes) {
  if (object == nullptr) return GC_malloc(bytes);
  if (bytes == 0) {
    GC_free(object);
    return nullptr;
  }
  const alloc::Resized resized = alloc::reallocate(object, bytes, "GC_realloc");
  if (resized.uncollectable != 0) alloc::add_uncollectable(resized.uncollectable);
  return resized.object;
}

void* GC_reallocf(void* object, size_t bytes) {
  void* const resized = GC_realloc(object, bytes);
  if (resized == nullptr && bytes != 0) GC_free(object);
  return resized;
}
void GC_freezero(void* object, size_t bytes) {
  // What is no object's beginning is GC_free's to complain of.
  if (object != nullptr && GC_base(object) == object) {
    memset(object, 0, base::min_of(bytes, GC_size(object)));
  }
  GC_free(object);
}

char* GC_strdup(const char* text) {
  return text == nullptr ? nullptr : copy_string(text, strlen(text));
}
char* GC_strndup(const char* text, size_t most) {
  return text == nullptr ? nullptr : copy_string(text, strnlen(text, most));
}

void* GC_memalign(size_t alignment, size_t bytes) {
  if (alignment <= heap::kGranule) return GC_malloc(bytes);
  if (!base::is_power_of_two(alignment)) {
    errno = EINVAL;
    return nullptr;
  }
  return alloc::allocate_aligned(bytes, alignment, heap::kNormal);
}

int GC_posix_memalign(void** result, size_t alignment, size_t bytes) {
  if (alignment < sizeof(void*) || !base::is_power_of_two(alignment)) return EINVAL;
  *result = GC_memalign(alignment, bytes);
  return *result != nullptr ? 0 : ENOMEM;
}

// For allocators on top of this one, whose memory counts towards the next collection.
GC_API void GC_incr_bytes_allocd(size_t bytes) { alloc::add_allocated(bytes); }
GC_API void GC_incr_bytes_freed(size_t bytes) { alloc::add_freed(bytes); }

void GC_change_stubborn(const void*) {}
void GC_end_stubborn_change(const void*) {}
GC_API void GC_ptr_store_and_dirty(void* to, const void* pointer) {
  *static_cast<const void* volatile*>(to) = pointer;
}
}
