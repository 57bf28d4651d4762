// Allocation of typed objects: what the inline jd_new comes to.
#include "alloc/allocate.hpp"
#include "alloc/mixed.hpp"
#include "heap/arena.hpp"
#include "jackdaw/heap.h"
#include "os/lock.hpp"
#include "os/log.hpp"
#include "typed/holes.hpp"
#include "typed/layouts.hpp"

namespace jd::typed {
namespace {

using alloc::Hole;
using alloc::ThreadCache;
using heap::Layout;

static_assert(offsetof(jd_hole, cursor) == offsetof(Hole, cursor) &&
              offsetof(jd_hole, limit) == offsetof(Hole, limit));
static_assert(offsetof(jd_hole, cursor) == offsetof(heap::MixedHole, cursor) &&
              offsetof(jd_hole, limit) == offsetof(heap::MixedHole, limit) &&
              offsetof(jd_hole, starts) == offsetof(heap::MixedHole, starts));

struct Table {
  jd_hole* holes[kHoles];
  Table* next;  // of those that nobody uses
};

// Never written, because an allocation that finds it empty writes nothing.
constinit jd_hole no_hole = {nullptr, nullptr, nullptr};

constexpr Table empty_table() {
  Table table{};
  for (jd_hole*& hole : table.holes) hole = &no_hole;
  return table;
}
constinit Table no_table = empty_table();

Table* free_tables = nullptr;  // under the heap's lock

}  // namespace
}  // namespace jd::typed

__thread jd_hole* const* jd_holes = jd::typed::no_table.holes;

namespace jd::typed {
namespace {

void forget_table(ThreadCache* cache, bool own) {
  auto* table = static_cast<Table*>(cache->typed);
  cache->typed = nullptr;
  if (own) jd_holes = no_table.holes;
  if (table == nullptr) return;
  table->next = free_tables;
  free_tables = table;
}

Table* make_table(ThreadCache* owner) {
  os::LockGuard guard(heap::heap_lock);
  Table* table = free_tables;
  if (table != nullptr) {
    free_tables = table->next;
  } else {
    table = static_cast<Table*>(heap::arena_take(sizeof(Table)));
    if (table == nullptr) return nullptr;
  }
  *table = no_table;
  owner->typed = table;
  return table;
}

jd_hole* hole_of(ThreadCache* owner, const Layout& layout) {
  if (layout.hole == kNoHole) return nullptr;
  if (layout.hole >= kFirstMixed && layout.hole < kFirstShared) {
    return reinterpret_cast<jd_hole*>(&owner->mixed[layout.hole - kFirstMixed]);
  }
  alloc::HoleRow* row = owner->rows[layout.kind];
  if (row == nullptr) return nullptr;
  return reinterpret_cast<jd_hole*>(&row->holes[heap::class_for(heap::bytes_for(layout, 0))]);
}

alloc::FirstWords first_words(const Layout& layout, std::size_t bytes, std::size_t elements) {
  switch (layout.source) {
    case JD_HEADER:
      return {heap::header_word(layout.number, bytes / sizeof(Word) - 1), 0, 0};
    case JD_SELF:
      return {layout.header, layout.count_offset, elements};
    default:
      return {0, 0, 0};
  }
}

// From now on the thread's jd_new and jd_new_array find the holes by themselves.
void show_holes(const Layout& layout) {
  ThreadCache* owner = alloc::cache;
  if (owner->is_nobodys()) return;
  jd_hole* hole = hole_of(owner, layout);
  if (hole == nullptr && layout.array_hole == kNoHole) return;
  auto* table = static_cast<Table*>(owner->typed);
  if (table == nullptr) table = make_table(owner);
  // Without memory for a table, each allocation takes this way.
  if (table == nullptr) return;
  if (hole != nullptr) table->holes[layout.hole] = hole;
  if (layout.array_hole != kNoHole) {
    table->holes[layout.array_hole] =
        reinterpret_cast<jd_hole*>(&owner->mixed[layout.array_hole - kFirstMixed]);
  }
  jd_holes = table->holes;
}

}  // namespace

void prepare_holes() { alloc::forget_typed = forget_table; }

}  // namespace jd::typed

using namespace jd;

extern "C" {

void* jd_new_slowly(const jd_layout* layout) { return jd_new_array_slowly(layout, 0); }

void* jd_new_array_slowly(const jd_layout* layout, size_t elements) {
  const auto& own = *reinterpret_cast<const heap::Layout*>(layout);
  if (own.element_bytes == 0 && elements != 0) {
    os::fatal("jd_new_array: layout ", own.name, " has no elements, and ", elements,
              " were asked for");
  }
  if (own.number == 0) {
    os::fatal("jd_new: layout ", own.name,
              ": only jd_weak_new and jd_ephemeron_new make such objects");
  }
  const std::size_t bytes = heap::bytes_for(own, elements);
  if (bytes == SIZE_MAX) {
    os::warn("jd_new_array: layout ", own.name, ": no object has room for ", elements, " elements");
  }
  // Which hole depends on the length: there is none to show, and each allocation comes here.
  if (own.source == JD_HOMOGENEOUS && own.element_bytes != 0) {
    return alloc::allocate_laid_out(bytes, own.kind);
  }
  const alloc::FirstWords words = typed::first_words(own, bytes, elements);
  char* memory = nullptr;
  if (own.source != JD_HOMOGENEOUS && typed::in_mixed_block(own, bytes)) {
    memory = static_cast<char*>(alloc::allocate_mixed(base::align_up(bytes, heap::kGranule),
                                                      typed::mixed_number(own),
                                                      typed::mixed_kind(own), words));
    if (memory == nullptr) return nullptr;
  } else {
    memory = static_cast<char*>(alloc::allocate_laid_out(bytes, own.kind));
    if (memory == nullptr) return nullptr;
    // While the first word is zero, the object is in the making and has no other words.
    if (words.count != 0) *reinterpret_cast<base::Word*>(memory + words.count_offset) = words.count;
    if (words.first != 0)
      __atomic_store_n(reinterpret_cast<base::Word*>(memory), words.first, __ATOMIC_RELEASE);
  }
  typed::show_holes(own);
  return memory + own.offset;
}

}  // extern "C"
