// Allocation of typed objects: what the inline jd_new comes to.
#include "alloc/allocate.hpp"
#include "heap/arena.hpp"
#include "jackdaw/heap.h"
#include "os/lock.hpp"
#include "typed/holes.hpp"
#include "typed/layouts.hpp"

namespace jd::typed {
namespace {

using alloc::Hole;
using alloc::ThreadCache;
using heap::Layout;

static_assert(offsetof(jd_hole, cursor) == offsetof(Hole, cursor) &&
              offsetof(jd_hole, limit) == offsetof(Hole, limit));

struct Table {
  jd_hole* holes[kHoles];
  Table* next;  // of those that nobody uses
};

// Never written, because an allocation that finds it empty writes nothing.
constinit jd_hole no_hole = {nullptr, nullptr};

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

// From now on the thread's jd_new finds the hole by itself.
void show_hole(const Layout& layout) {
  ThreadCache* owner = alloc::cache;
  alloc::HoleRow* row = owner->rows[layout.kind];
  if (layout.hole == kNoHole || row == nullptr) return;
  auto* table = static_cast<Table*>(owner->typed);
  // Without memory for a table, each allocation takes this way.
  if (table == nullptr && (table = make_table(owner)) == nullptr) return;
  table->holes[layout.hole] =
      reinterpret_cast<jd_hole*>(&row->holes[heap::class_for(heap::bytes_for(layout, 0))]);
  jd_holes = table->holes;
}

}  // namespace

void prepare_holes() { alloc::forget_typed = forget_table; }

}  // namespace jd::typed

using namespace jd;

extern "C" {

void* jd_new_slowly(const jd_layout* layout) {
  const auto& own = *reinterpret_cast<const heap::Layout*>(layout);
  auto* memory = static_cast<char*>(alloc::allocate(heap::bytes_for(own, 0), own.kind));
  if (memory == nullptr) return nullptr;
  if (own.header != 0) *reinterpret_cast<base::Word*>(memory) = own.header;
  typed::show_hole(own);
  return memory + own.offset;
}

void* jd_new_array(const jd_layout* layout, size_t elements) {
  const auto& own = *reinterpret_cast<const heap::Layout*>(layout);
  if (own.element_bytes == 0 && elements != 0) {
    heap::broken_layout("jd_new_array for a layout without elements", &own, elements);
  }
  const std::size_t bytes = heap::bytes_for(own, elements);
  auto* memory = static_cast<char*>(alloc::allocate(bytes, own.kind));
  if (memory == nullptr) return nullptr;
  // While the first word is zero, the object is in the making and has no other words.
  auto* first = reinterpret_cast<base::Word*>(memory);
  if (own.source == JD_HEADER) {
    *first = heap::header_word(own.number, bytes / sizeof(base::Word) - 1);
  } else if (own.source == JD_SELF) {
    if (own.element_bytes != 0)
      *reinterpret_cast<std::uint64_t*>(memory + own.count_offset) = elements;
    __atomic_store_n(first, own.header, __ATOMIC_RELEASE);
  }
  return memory + own.offset;
}

}  // extern "C"
