#include "mark/typed.hpp"

#include "heap/arena.hpp"
#include "heap/layout.hpp"
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
  for (std::size_t i = 0; i < end; ++i) {
    if (((bitmap.words[i / 64] >> (i % 64)) & 1) != 0) queue_word(&words[i]);
  }
}

void Marker::scan_layout(const heap::Typed& typed) {
  heap::for_each_run(typed, [this](Word* first, std::size_t count) {
    if (count == 1) return queue_word(first);
    push_range(first, first + count);
  });
}

void Marker::scan_typed_array(Word object, std::size_t size) {
  for_each_element(object, size, [this](Word element, std::size_t bytes, Word descriptor) {
    scan_descriptor(element, bytes, descriptor);
  });
}

}  // namespace jd::mark
