// Defining layouts, and finding those of objects.
#include "typed/layouts.hpp"

#include "alloc/allocate.hpp"
#include "copy/policy.hpp"
#include "cycle/runtime.hpp"
#include "cycle/settings.hpp"
#include "heap/arena.hpp"
#include "heap/blocks.hpp"
#include "heap/sweep.hpp"
#include "jackdaw/heap.h"
#include "mark/descriptor.hpp"
#include "os/log.hpp"
#include "typed/holes.hpp"
#include "world/thread.hpp"

namespace jd::typed {
namespace {

using heap::heap_lock;
using heap::KindNumber;
using heap::Layout;
using heap::LayoutFrom;
using os::LockGuard;

static_assert(offsetof(jd_layout, header) == offsetof(Layout, header) &&
              offsetof(jd_layout, hole) == offsetof(Layout, hole) &&
              offsetof(jd_layout, bytes) == offsetof(Layout, bytes) &&
              offsetof(jd_layout, offset) == offsetof(Layout, offset) &&
              offsetof(jd_layout, source) == offsetof(Layout, source) &&
              offsetof(jd_layout, array_hole) == offsetof(Layout, array_hole) &&
              offsetof(jd_layout, fixed) == offsetof(Layout, fixed) &&
              offsetof(jd_layout, element) == offsetof(Layout, element_bytes) &&
              offsetof(jd_layout, count_offset) == offsetof(Layout, count_offset) &&
              offsetof(jd_layout, in_order) == offsetof(Layout, in_order) &&
              offsetof(jd_layout, most_inline) == offsetof(Layout, most_inline));
// The inline functions put the words of elements, counted in bytes, into a header.
static_assert(heap::kHeaderSizeShift == 24 && kNoHole == 0);

// Under the heap's lock.
unsigned homogeneous_layouts = 0;
struct SharedKinds {
  unsigned scanned = 0;
  unsigned pointer_free = 0;
};
SharedKinds shared_kinds[2];  // of LayoutFrom::FirstWord, LayoutFrom::Header
// What jd_heap_set_policy said.
jd_policy program_policy = JD_EVACUATE;
bool policy_is_settled = false;

bool refuse(const jd_layout_info& info, const char* why) {
  os::warn("jd_layout_define: layout ", info.name != nullptr ? info.name : "(without a name)", ": ",
           why);
  return false;
}

bool bit_is_set(const std::uint64_t* bits, std::size_t i) {
  return bits != nullptr && ((bits[i / 64] >> (i % 64)) & 1) != 0;
}

// In whole words, a bitmap can have a bit beyond the last one.
bool exceeds(const std::uint64_t* bits, std::size_t words) {
  if (bits == nullptr || words % 64 == 0) return false;
  return (bits[words / 64] >> (words % 64)) != 0;
}

// C lets an enumeration be any integer, in C++ reading another value is undefined.
bool has_source(const jd_layout_info& info) {
  int source = 0;
  static_assert(sizeof source == sizeof info.source);
  base::copy_bytes(&source, &info.source, sizeof source);
  return source == JD_HOMOGENEOUS || source == JD_SELF || source == JD_HEADER;
}

bool holds_together(const jd_layout_info& info) {
  // So that bytes fit into a layout's fields.
  constexpr std::size_t kMostWords = std::size_t{1} << 28;
  const std::size_t element_words = info.element_size / sizeof(Word);
  if (!has_source(info)) return refuse(info, "no such source");
  if (info.size > kMostWords * sizeof(Word) || info.element_size > kMostWords * sizeof(Word)) {
    return refuse(info, "the size is too large");
  }
  const std::size_t words = base::div_up(info.size, sizeof(Word));
  if (words == 0 && info.element_size == 0) return refuse(info, "an object of no size");
  if (exceeds(info.pointers, words)) return refuse(info, "a pointer lies beyond the size");
  if (info.element_size != 0) {
    if (info.element_size % sizeof(Word) != 0 && info.element_size != 1 && info.element_size != 2 &&
        info.element_size != 4) {
      return refuse(info, "an element has 1, 2, 4 or a multiple of 8 bytes");
    }
    if (info.element_pointers != nullptr && info.element_size % sizeof(Word) != 0) {
      return refuse(info, "elements of less than 8 bytes have no pointers");
    }
    if (exceeds(info.element_pointers, element_words)) {
      return refuse(info, "a pointer lies beyond the element's size");
    }
  } else if (info.element_pointers != nullptr) {
    return refuse(info, "pointers in elements of no size");
  }
  if (info.source == JD_SELF) {
    if (words == 0) return refuse(info, "there is no first word to lead to the layout");
    if (bit_is_set(info.pointers, 0)) {
      return refuse(info, "the first word, which leads to the layout, is no pointer to an object");
    }
    if (info.element_size != 0 &&
        (info.count_offset % sizeof(Word) != 0 || info.count_offset == 0 ||
         info.count_offset / sizeof(Word) >= words)) {
      return refuse(info,
                    "the number of elements must stand in a word of the fixed part of its own");
    }
    if (info.element_size != 0 && bit_is_set(info.pointers, info.count_offset / sizeof(Word))) {
      return refuse(info, "the number of elements stands in a pointer word");
    }
  }
  if (info.trace != nullptr && (info.pointers != nullptr || info.element_pointers != nullptr)) {
    return refuse(info, "a trace procedure stands instead of bitmaps");
  }
  return true;
}

// A copy, for a bitmap with any bit set; otherwise null. False when memory has run out.
bool copy_bits(const std::uint64_t* bits, std::size_t count, const std::uint64_t** copy) {
  *copy = nullptr;
  if (bits == nullptr) return true;
  bool any = false;
  for (std::size_t i = 0; i < count; ++i) any |= bit_is_set(bits, i);
  if (!any) return true;
  const std::size_t bytes = base::div_up(count, std::size_t{64}) * sizeof(std::uint64_t);
  auto* made = static_cast<std::uint64_t*>(heap::arena_take(bytes));
  if (made == nullptr) return false;
  base::copy_bytes(made, bits, bytes);
  *copy = made;
  return true;
}

// Is word i of an object a pointer, if the object is so long?
bool is_pointer(const Layout& layout, std::size_t i) {
  if (i < layout.fixed_words) return bit_is_set(layout.pointers, i);
  if (layout.element_pointers == nullptr) return false;
  return bit_is_set(layout.element_pointers,
                    (i - layout.fixed_words) % (layout.element_bytes / sizeof(Word)));
}

// The pointers of a homogeneous layout's objects as the marker likes them best: all words, a
// bitmap, the first words, a procedure. A bitmap says of elements what it has room for; for longer
// objects the marker asks the layout (Marker::describe).
Word descriptor_for(const Layout& layout, bool* all_words) {
  *all_words = false;
  if (!layout.may_have_pointers) return 0;
  if (layout.trace == nullptr) {
    const bool has_element_pointers = layout.element_pointers != nullptr;
    std::size_t last = 0;
    std::size_t count = 0;
    for (std::size_t i = 0; i < layout.fixed_words; ++i) {
      if (!is_pointer(layout, i)) continue;
      last = i;
      ++count;
    }
    *all_words =
        count == layout.fixed_words && (layout.element_bytes == 0 || layout.element_is_pointers);
    if (*all_words) return 0;
    if (count == 0 || last < heap::kBitmapWords) {
      const std::size_t words = has_element_pointers ? heap::kBitmapWords : last + 1;
      Word bitmap = 0;
      for (std::size_t i = 0; i < words; ++i) {
        if (is_pointer(layout, i)) bitmap |= Word{1} << (63 - i);
      }
      return bitmap | heap::kTagBitmap;
    }
    if (count == last + 1 && !has_element_pointers) {
      return (count * sizeof(Word)) | heap::kTagLength;
    }
  }
  return mark::own_descriptor(mark::OwnScan::Layout, heap::kind_count);
}

// Where all pointers lie, and nothing else, of objects in blocks by size.
void find_run(const Layout& layout, heap::Kind* kind) {
  if (layout.trace != nullptr || !layout.may_have_pointers) return;
  const bool to_the_end = layout.element_pointers != nullptr;
  if (to_the_end && !layout.element_is_pointers) return;
  const std::size_t words =
      base::min_of(std::size_t{layout.fixed_words}, heap::kMaxSmall / sizeof(Word));
  std::size_t begin = 0;
  while (begin < words && !is_pointer(layout, begin)) ++begin;
  std::size_t end = begin;
  while (end < words && is_pointer(layout, end)) ++end;
  for (std::size_t i = end; i < words; ++i) {
    if (is_pointer(layout, i)) return;
  }
  if (to_the_end && end != words) return;
  kind->pointers.begin = static_cast<std::uint16_t>(begin * sizeof(Word));
  kind->pointers.end =
      static_cast<std::uint16_t>(to_the_end ? heap::kMaxSmall : end * sizeof(Word));
}

// A new kind. False if there are no more.
bool add_kind(Word descriptor, bool all_words, LayoutFrom from, const Layout* layout,
              unsigned* kind) {
  *kind = heap::add_kind(descriptor, all_words, true);
  if (*kind == heap::kMaxKinds) return false;
  heap::kinds[*kind].layout_from = from;
  heap::kinds[*kind].layout = layout;
  if (from == LayoutFrom::Block) find_run(*layout, &heap::kinds[*kind]);
  if (from == LayoutFrom::Block && layout->element_bytes == 0 &&
      (descriptor & heap::kDescriptorTag) == heap::kTagBitmap) {
    heap::kinds[*kind].pointer_bits = descriptor & ~heap::kDescriptorTag;
  }
  return true;
}

bool find_shared_kind(LayoutFrom from, bool has_pointers, unsigned* kind) {
  SharedKinds& kinds =
      shared_kinds[static_cast<unsigned>(from) - static_cast<unsigned>(LayoutFrom::FirstWord)];
  const auto make = [&](bool scanned, unsigned* number) {
    if (*number != 0) return true;
    const Word descriptor =
        scanned ? mark::own_descriptor(mark::OwnScan::Layout, heap::kind_count) : 0;
    unsigned made = 0;
    if (!add_kind(descriptor, false, from, nullptr, &made)) return false;
    *number = made;
    return true;
  };
  if (!make(true, &kinds.scanned) || !make(false, &kinds.pointer_free)) return false;
  *kind = has_pointers ? kinds.scanned : kinds.pointer_free;
  return true;
}

// What is refused for its number takes no memory, and no number from the others.
bool is_one_too_many(jd_source source) {
  return (source == JD_HOMOGENEOUS && homogeneous_layouts == JD_MAX_HOMOGENEOUS) ||
         heap::layout_count == heap::kMaxLayouts;
}

// Pre: it is not one too many.
bool find_kind(Layout* layout) {
  const auto from = static_cast<LayoutFrom>(layout->source + 1);
  unsigned kind = 0;
  if (from == LayoutFrom::Block) {
    bool all_words = false;
    const Word descriptor = descriptor_for(*layout, &all_words);
    if (!add_kind(descriptor, all_words, from, layout, &kind)) return false;
    layout->hole = homogeneous_hole(homogeneous_layouts++);
  } else {
    if (!find_shared_kind(from, layout->may_have_pointers, &kind)) return false;
  }
  layout->kind = static_cast<KindNumber>(kind);
  return true;
}

// Objects without pointers have blocks of their own, which the marker need not look into. Not under
// JD_MCC: as the paper has it, blocks are of all sorts of objects.
bool is_scanned(const Layout& layout) { return layout.may_have_pointers || copy::policy.mcc; }

std::size_t most_in_mixed_block(const Layout& layout) {
  // What has room in every gap (heap::kLeastGap). Longer ones that live for random times leave gaps
  // in which the next seldom have room; in blocks of one size they do.
  constexpr std::size_t kMostWithoutPointers = heap::kLeastGap * heap::kGranule;
  if (cycle::options.mixed == 0) return 0;
  return is_scanned(layout) ? heap::kMostMixed : kMostWithoutPointers;
}

// What the inline allocation needs.
void prepare_allocation(Layout* layout) {
  layout->offset = layout->source == JD_HEADER ? heap::kHeaderBytes : 0;
  if (layout->source == JD_HEADER) {
    layout->header = heap::header_word(layout->number, layout->fixed_words);
  } else if (layout->source == JD_SELF) {
    layout->header = base::as_word(layout);
  }
  // Not nothing: the inline path finds room for that in every hole.
  const std::size_t bytes = base::max_of(heap::bytes_for(*layout, 0), sizeof(Word));
  layout->fixed = static_cast<std::uint32_t>(base::min_of(bytes, std::size_t{UINT32_MAX}));
  if (layout->element_bytes != 0 && layout->source != JD_HOMOGENEOUS &&
      in_mixed_block(*layout, bytes)) {
    layout->array_hole = mixed_hole(mixed_number(*layout));
    layout->most_inline = static_cast<std::uint32_t>(most_in_mixed_block(*layout));
  }
  if (bytes > heap::kMaxSmall) {
    layout->hole = kNoHole;
    layout->bytes = UINT32_MAX;
    return;
  }
  const unsigned size_class = heap::class_for(bytes);
  layout->bytes = heap::slot_size_of(size_class);
  if (layout->source != JD_HOMOGENEOUS && in_mixed_block(*layout, bytes)) {
    layout->bytes = static_cast<std::uint32_t>(base::align_up(bytes, heap::kGranule));
    layout->hole = mixed_hole(mixed_number(*layout));
    layout->in_order = 1;
  } else if (layout->source != JD_HOMOGENEOUS) {
    layout->hole = shared_hole(layout->source == JD_HEADER, layout->may_have_pointers, size_class);
  }
}

Layout* make_layout(const jd_layout_info& info) {
  const std::size_t words = base::div_up(info.size, sizeof(Word));
  const std::size_t element_words = info.element_size / sizeof(Word);
  auto* layout = static_cast<Layout*>(heap::arena_take(sizeof(Layout)));
  if (layout == nullptr || !copy_bits(info.pointers, words, &layout->pointers) ||
      !copy_bits(info.element_pointers, element_words, &layout->element_pointers)) {
    return nullptr;
  }
  layout->self = layout;
  layout->name = info.name != nullptr ? info.name : "(without a name)";
  layout->source = info.source;
  layout->fixed_words = static_cast<std::uint32_t>(words);
  layout->element_bytes = static_cast<std::uint32_t>(info.element_size);
  layout->count_offset = static_cast<std::uint32_t>(info.count_offset);
  layout->trace = reinterpret_cast<heap::TraceProcedure>(info.trace);
  layout->may_have_pointers = layout->trace != nullptr || layout->pointers != nullptr ||
                              layout->element_pointers != nullptr;
  layout->is_short = layout->trace == nullptr && layout->element_pointers == nullptr;
  for (std::size_t i = 0; i < words; ++i) {
    if (!bit_is_set(layout->pointers, i)) continue;
    if (i < 64) {
      layout->bits |= Word{1} << (63 - i);
    } else {
      layout->is_short = false;
    }
  }
  layout->element_is_pointers = layout->element_pointers != nullptr;
  for (std::size_t i = 0; layout->element_is_pointers && i < element_words; ++i) {
    layout->element_is_pointers = bit_is_set(layout->element_pointers, i);
  }
  for (std::size_t i = 0; element_words <= 64 && i < element_words; ++i) {
    if (bit_is_set(layout->element_pointers, i)) layout->element_bits |= Word{1} << (63 - i);
  }
  return layout;
}

}  // namespace

// Pre: the heap's lock is held.
static jd_policy wanted_policy() {
  const std::uint64_t given = cycle::options.policy;
  return given == base::kAsTheProgramHasIt ? program_policy : static_cast<jd_policy>(given);
}

void settle_policy() {
  if (policy_is_settled) return;
  policy_is_settled = true;
  const jd_policy chosen = wanted_policy();
  copy::policy.moves = chosen != JD_NON_MOVING;
  copy::policy.everything = cycle::options.move != 0;
  copy::policy.mcc = chosen == JD_MCC;
  // What is dead on a promoted block stays unused until all of it is.
  heap::sweep_policy.keep_gaps = copy::policy.mcc;
  copy::in_use = true;
}

KindNumber mixed_kind(const Layout& layout) {
  const SharedKinds& kinds = shared_kinds[layout.source - JD_SELF];
  return static_cast<KindNumber>(is_scanned(layout) ? kinds.scanned : kinds.pointer_free);
}

unsigned mixed_number(const Layout& layout) {
  return shared_kind_number(layout.source == JD_HEADER, is_scanned(layout));
}

bool in_mixed_block(const Layout& layout, std::size_t bytes) {
  return bytes <= most_in_mixed_block(layout);
}

namespace {

// Calls ask() where no collection comes in between: one would change the boundaries by which an
// object in a mixed block is found, and what dead objects hold. Also in threads that no collection
// stops, by the lock: callers do not hold that. (libgc's callers may, so its while_in_place has
// another rule.)
template <class Ask>
auto while_uncollected(Ask ask) {
  if (world::Thread* thread = world::self(); thread != nullptr) {
    const world::NoStop guard(thread);
    return ask();
  }
  const LockGuard guard(heap_lock);
  return ask();
}

}  // namespace

Place object_at(const void* object, const char* function) {
  const Word word = base::as_word(object);
  Place place{};
  if (!heap::find_object(word, &place) ||
      heap::object_in(place.address(), heap::kinds[place.block->kind]) != word) {
    os::fatal(function, ": ", object, " is not an object's first byte");
  }
  return place;
}

}  // namespace jd::typed

using namespace jd;

extern "C" {

int jd_heap_set_policy(jd_policy policy) {
  if (policy != JD_EVACUATE && policy != JD_MCC && policy != JD_NON_MOVING) return 0;
  cycle::start();
  typed::LockGuard guard(heap::heap_lock);
  if (typed::policy_is_settled) return 0;
  typed::program_policy = policy;
  return 1;
}

jd_policy jd_heap_get_policy() {
  cycle::start();
  typed::LockGuard guard(heap::heap_lock);
  if (!typed::policy_is_settled) {
    return typed::wanted_policy();
  }
  if (copy::policy.mcc) return JD_MCC;
  return copy::policy.moves ? JD_EVACUATE : JD_NON_MOVING;
}

jd_layout* jd_layout_define(const jd_layout_info* info) {
  if (info == nullptr) {
    os::warn("jd_layout_define: there is no information, but a null pointer");
    return nullptr;
  }
  if (!typed::holds_together(*info)) return nullptr;
  cycle::start();
  typed::LockGuard guard(heap::heap_lock);
  typed::settle_policy();
  typed::prepare_holes();
  jd_layout_info used = *info;
  // As the paper has it: blocks of all sorts of objects.
  if (copy::policy.mcc && used.source == JD_HOMOGENEOUS) used.source = JD_HEADER;
  heap::Layout* layout = typed::is_one_too_many(used.source) ? nullptr : typed::make_layout(used);
  if (layout == nullptr || !heap::keep_layout(layout) || !typed::find_kind(layout)) {
    typed::refuse(*info, "no memory, or too many layouts (a million; of homogeneous ones 128)");
    return nullptr;
  }
  typed::prepare_allocation(layout);
  return reinterpret_cast<jd_layout*>(layout);
}

const jd_layout* jd_layout_of(const void* address) {
  return typed::while_uncollected([address]() -> const jd_layout* {
    heap::Place place;
    heap::Typed found{};
    if (!heap::find_object(base::as_word(address), &place)) return nullptr;
    const heap::Kind& kind = heap::kinds[place.block->kind];
    if (!kind.has_layout() || !heap::typed_at(place.address(), kind, &found)) {
      return nullptr;
    }
    return reinterpret_cast<const jd_layout*>(found.layout);
  });
}

size_t jd_size_of(const void* object) {
  return typed::while_uncollected([word = base::as_word(object)]() -> std::size_t {
    heap::Place place;
    heap::Typed found{};
    if (!heap::find_object(word, &place)) return 0;
    const heap::Kind& kind = heap::kinds[place.block->kind];
    if (heap::object_in(place.address(), kind) != word) return 0;
    if (!kind.has_layout()) return place.size();
    return heap::typed_at(place.address(), kind, &found) ? found.words * sizeof(base::Word) : 0;
  });
}

void jd_trace_slot(jd_tracer* tracer, void* slot) {
  auto* own = reinterpret_cast<heap::Tracer*>(tracer);
  const base::Word at = base::as_word(slot);
  if (at < own->low || at >= own->high || at % sizeof(base::Word) != 0) {
    heap::broken_layout("a trace procedure reports what is no word of the object", own->layout, at);
  }
  own->visit(own, static_cast<base::Word*>(slot));
}

}  // extern "C"
