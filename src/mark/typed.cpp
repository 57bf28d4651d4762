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

// Of a large object's elements about so many words at a time: all at once, an entry for each
// pointer would make the stack as large as the object.
constexpr std::size_t kElementBytesAtATime = 4096 * sizeof(Word);
// The first that waits is not in the object's first block.
static_assert(kElementBytesAtATime >= 2 * heap::kBlockSize);

Word end_of_turn(Word first, Word end, std::size_t element_bytes) {
  const std::size_t elements =
      base::max_of(kElementBytesAtATime / element_bytes, std::size_t{1}) * element_bytes;
  return end - first > elements ? first + elements : end;
}

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
  const heap::Layout& layout = *typed.layout;
  const bool has_pointers_apart =
      layout.trace == nullptr && layout.element_pointers != nullptr && !layout.element_is_pointers;
  if (!has_pointers_apart || typed.words * sizeof(Word) <= kElementBytesAtATime) {
    heap::for_each_run(typed, [this](Word* first, std::size_t count) { queue_run(first, count); });
    return;
  }
  heap::for_each_run({&layout, typed.object, layout.fixed_words},
                     [this](Word* first, std::size_t count) { queue_run(first, count); });
  scan_elements(typed, typed.object + layout.fixed_words * sizeof(Word));
}

void Marker::scan_elements(const heap::Typed& typed, Word first) {
  const Word end = typed.object + typed.words * sizeof(Word);
  const Word turn = push_elements_behind(end_of_turn(first, end, typed.layout->element_bytes), end);
  heap::for_each_run_of_elements(*typed.layout, reinterpret_cast<Word*>(first),
                                 reinterpret_cast<const Word*>(turn),
                                 [this](Word* run, std::size_t count) { queue_run(run, count); });
}

void Marker::scan_typed_array(Word object, std::size_t size) {
  const TypedElements elements = elements_of(object, size);
  if (elements.size != 0) scan_elements(elements);
}

void Marker::scan_elements(const TypedElements& elements) {
  const Word turn =
      push_elements_behind(end_of_turn(elements.first, elements.end, elements.size), elements.end);
  for (Word element = elements.first; element != turn; element += elements.size) {
    scan_descriptor(element, elements.size, elements.descriptor);
  }
}

// Elements from `turn` on wait on the stack. Where they can't, they are scanned now: the end of
// what is to be.
Word Marker::push_elements_behind(Word turn, Word end) {
  if (turn == end || (top_ == limit_ && !extend_stack())) return end;
  *top_++ = Range::object(turn);
  return turn;
}

void Marker::scan_waiting_elements(Word first) {
  heap::Place place;
  if (!heap::find_place(first, &place)) return;
  const Word memory = place.address();
  const heap::Kind& kind = heap::kinds[place.block->kind];
  if (kind.source == heap::Source::None) {
    TypedElements elements = elements_of(memory, place.size());
    if (elements.size == 0) return;
    elements.first = first;
    return scan_elements(elements);
  }
  heap::Typed typed;
  if (heap::typed_at(memory, kind, &typed)) scan_elements(typed, first);
}

}  // namespace jd::mark
