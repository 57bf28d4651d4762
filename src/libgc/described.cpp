// Objects that come with a description of where their pointers are: "typed" ones in the ABI, which
// for us are those with layouts.
#include "mark/descriptor.hpp"

#include "gc/gc_typed.h"
#include "libgc/support.hpp"

using namespace jd;
using namespace jd::libgc;

namespace {

using base::Word;

constexpr unsigned kWordBits = 64;

// Made when first needed; written once under the lock, read after asking for them.
struct DescribedKinds {
  std::atomic<bool> made{false};
  heap::KindNumber object = 0;  // descriptor in the last word
  heap::KindNumber array = 0;   // DescribedArrayTail in the last words
};
DescribedKinds kinds;

const DescribedKinds& described_kinds() {
  if (kinds.made.load(std::memory_order_acquire)) return kinds;
  cycle::start();
  LockGuard guard(heap_lock);
  if (!kinds.made.load(std::memory_order_relaxed)) {
    const Word last_word = (Word{0} - sizeof(Word)) | heap::kTagPerObject;
    kinds.object = static_cast<heap::KindNumber>(heap::add_kind(last_word, true, true));
    kinds.array = static_cast<heap::KindNumber>(
        heap::add_kind(mark::own_descriptor(mark::OwnScan::DescribedArray, 0), false, true));
    if (kinds.object >= heap::kMaxKinds || kinds.array >= heap::kMaxKinds) {
      abort_with("Too many kinds");
    }
    kinds.made.store(true, std::memory_order_release);
  }
  return kinds;
}

// What GC_calloc_typed_descr_s holds.
struct PreparedArray {
  size_t n;
  size_t size;
  GC_descr descriptor;
};
static_assert(sizeof(PreparedArray) <= sizeof(GC_calloc_typed_descr_s));

bool bit(const GC_word* bitmap, size_t i) {
  return ((bitmap[i / kWordBits] >> (i % kWordBits)) & 1) != 0;
}

bool all_set(const GC_word* bitmap, size_t bits) {
  for (size_t i = 0; i < bits; ++i) {
    if (!bit(bitmap, i)) return false;
  }
  return true;
}

GC_descr long_descriptor(const GC_word* bitmap, size_t bits) {
  cycle::start();
  LockGuard guard(heap_lock);
  Word number = 0;
  // Without memory for the bitmap, every word may be a pointer.
  if (!mark::keep_long_bitmap(bitmap, bits, &number)) return bits * sizeof(Word);
  return mark::own_descriptor(mark::OwnScan::LongBitmap, number);
}

}  // namespace

extern "C" {

GC_descr GC_make_descriptor(const GC_word* bitmap, size_t bits) {
  described_kinds();
  while (bits > 0 && !bit(bitmap, bits - 1)) --bits;
  if (bits == 0) return 0;
  if (all_set(bitmap, bits)) return bits * sizeof(Word);
  if (bits > heap::kBitmapWords) return long_descriptor(bitmap, bits);
  GC_descr descriptor = heap::kTagBitmap;
  for (size_t i = 0; i < bits; ++i) {
    if (bit(bitmap, i)) descriptor |= Word{1} << (kWordBits - 1 - i);
  }
  return descriptor;
}

void* GC_malloc_explicitly_typed(size_t bytes, GC_descr descriptor) {
  const DescribedKinds& known = described_kinds();
  const size_t with_word = bytes_and(base::max_of(bytes, size_t{1}), sizeof(Word));
  auto* object = static_cast<char*>(alloc::allocate(with_word, known.object));
  // The marker finds it in the last word of what the object occupies.
  const size_t size = room_in(object, known.object);
  if (size == 0) return object;
  *reinterpret_cast<Word*>(object + size - sizeof(Word)) = descriptor;
  return object;
}
void* GC_malloc_explicitly_typed_ignore_off_page(size_t bytes, GC_descr descriptor) {
  return GC_malloc_explicitly_typed(bytes, descriptor);
}

void* GC_calloc_explicitly_typed(size_t n, size_t size, GC_descr descriptor) {
  const DescribedKinds& known = described_kinds();
  const size_t bytes = array_bytes(n, size);
  if (n <= 1) return GC_malloc_explicitly_typed(bytes, n == 0 ? 0 : descriptor);
  const size_t with_tail = bytes_and(bytes, sizeof(mark::DescribedArrayTail));
  auto* object = static_cast<char*>(alloc::allocate(with_tail, known.array));
  const size_t room = room_in(object, known.array);
  if (room == 0) return object;
  auto* tail =
      reinterpret_cast<mark::DescribedArrayTail*>(object + room - sizeof(mark::DescribedArrayTail));
  tail->element_size = size;
  tail->element_descriptor = descriptor;
  // Last: until then the marker sees an array without elements.
  __atomic_store_n(&tail->elements, n, __ATOMIC_RELEASE);
  return object;
}

int GC_calloc_prepare_explicitly_typed(GC_calloc_typed_descr_s* prepared, size_t prepared_size,
                                       size_t n, size_t size, GC_descr descriptor) {
  if (prepared_size < sizeof(PreparedArray)) {
    abort_with("GC_calloc_prepare_explicitly_typed: no room for a description");
  }
  *reinterpret_cast<PreparedArray*>(prepared) = {n, size, descriptor};
  return array_bytes(n, size) != SIZE_MAX ? 1 : 0;
}
void* GC_calloc_do_explicitly_typed(const GC_calloc_typed_descr_s* prepared, size_t) {
  const auto& array = *reinterpret_cast<const PreparedArray*>(prepared);
  return GC_calloc_explicitly_typed(array.n, array.size, array.descriptor);
}
}
