#include "mark/descriptor.hpp"

#include "heap/arena.hpp"
#include "heap/layout.hpp"
#include "mark/elements.hpp"
#include "mark/marker.hpp"
#include "os/log.hpp"

namespace jd::mark {
namespace {

// A long bitmap: its length, and the words behind it. Never freed: programs make one a type.
struct LongBitmap {
  std::size_t bits;
  Word words[];
};

constexpr std::size_t kFirstCapacity = 64;

// Grown under the heap's lock, read by the marker in a stopped world.
LongBitmap** bitmaps;
std::size_t bitmap_count;
std::size_t bitmap_capacity;

bool make_room() {
  if (bitmap_count < bitmap_capacity) return true;
  const std::size_t capacity = bitmap_capacity == 0 ? kFirstCapacity : 2 * bitmap_capacity;
  auto* larger = static_cast<LongBitmap**>(heap::table_take(capacity * sizeof(LongBitmap*)));
  if (larger == nullptr) return false;
  if (bitmaps != nullptr) {
    base::copy_bytes(larger, bitmaps, bitmap_count * sizeof(LongBitmap*));
    heap::table_give(bitmaps, bitmap_capacity * sizeof(LongBitmap*));
  }
  bitmaps = larger;
  bitmap_capacity = capacity;
  return true;
}

}  // namespace

bool keep_long_bitmap(const Word* bitmap, std::size_t bits, Word* number) {
  const std::size_t words = base::div_up(bits, 64);
  if (!make_room()) return false;
  auto* kept =
      static_cast<LongBitmap*>(heap::arena_take(sizeof(LongBitmap) + words * sizeof(Word)));
  if (kept == nullptr) return false;
  kept->bits = bits;
  base::copy_bytes(kept->words, bitmap, words * sizeof(Word));
  *number = bitmap_count;
  bitmaps[bitmap_count++] = kept;
  return true;
}

void Marker::scan_long_bitmap(Word object, std::size_t size, Word number) {
  JD_CHECK(number < bitmap_count, "a descriptor names a bitmap that does not exist");
  const LongBitmap& bitmap = *bitmaps[number];
  const std::size_t end = base::min_of(bitmap.bits, size / sizeof(Word));
  const Word* words = reinterpret_cast<const Word*>(object);
  for (std::size_t i = end; i-- > 0;) {
    if (((bitmap.words[i / 64] >> (i % 64)) & 1) != 0) push_word_at(&words[i]);
  }
}

void Marker::scan_own(Word object, std::size_t size, Word environment) {
  const Word rest = environment >> kOwnScanBits;
  switch (own_scan(environment)) {
    case OwnScan::LongBitmap:
      return scan_long_bitmap(object, size, rest);
    case OwnScan::DescribedArray:
      return scan_described_array(object, size);
    case OwnScan::Layout:
      if (heap::Typed typed; heap::typed_at(object, heap::kinds[rest], &typed)) scan_layout(typed);
      return;
  }
}

void Marker::scan_descriptor(Word object, std::size_t size, Word descriptor) {
  descriptor = final_descriptor(object, size, descriptor);
  switch (descriptor & heap::kDescriptorTag) {
    case heap::kTagLength:
      push_range(base::as_pointer(object),
                 base::as_pointer(object + base::min_of(std::size_t{descriptor}, size)));
      return;
    case heap::kTagBitmap: {
      Pointers pointers = {reinterpret_cast<const Word*>(object),
                           descriptor & ~heap::kDescriptorTag & first_bits(size / sizeof(Word))};
      while (pointers.bits != 0) push_word_at(pointers.take_last());
      return;
    }
    default:
      break;
  }
  const Word index = (descriptor >> 2) & (heap::kMaxProcedures - 1);
  const Word environment = descriptor >> (2 + heap::kProcedureBits);
  if (index == heap::kOwnProcedure) return scan_own(object, size, environment);
  const heap::MarkProcedure procedure = heap::mark_procedures[index];
  JD_CHECK(procedure != nullptr, "a descriptor names a mark procedure that does not exist");
  procedure(reinterpret_cast<Word*>(object), this, this + 1, environment);
}

void (*push_instead)(Word word) = nullptr;

static void call_named_procedure(Word object, std::size_t size, Word descriptor) {
  descriptor = final_descriptor(object, size, descriptor);
  const Word index = (descriptor >> 2) & (heap::kMaxProcedures - 1);
  if ((descriptor & heap::kDescriptorTag) != heap::kTagProcedure) return;
  const Word environment = descriptor >> (2 + heap::kProcedureBits);
  if (index == heap::kOwnProcedure) {
    if (own_scan(environment) != OwnScan::DescribedArray) return;
    const Elements elements = elements_of(object, size);
    for (std::size_t i = 0; i < elements.count; ++i) {
      call_named_procedure(elements.at(i), elements.size, elements.descriptor);
    }
    return;
  }
  const heap::MarkProcedure procedure = heap::mark_procedures[index];
  if (procedure == nullptr) return;
  procedure(reinterpret_cast<Word*>(object), &marker, &marker + 1, environment);
}

void call_procedure(Word object, std::size_t size, Word descriptor, void (*visit)(Word word)) {
  push_instead = visit;
  call_named_procedure(object, size, descriptor);
  push_instead = nullptr;
}

}  // namespace jd::mark
