#include "heap/layout.hpp"

#include "heap/arena.hpp"
#include "heap/size_class.hpp"
#include "os/log.hpp"

namespace jd::heap {
namespace {

constexpr unsigned kFirstCapacity = 512;
unsigned capacity = 0;  // of `layouts`; under the lock

bool make_room() {
  if (layout_count < capacity) return true;
  const unsigned larger = capacity == 0 ? kFirstCapacity : 2 * capacity;
  auto** table = static_cast<const Layout**>(table_take(larger * sizeof(Layout*)));
  if (table == nullptr) return false;
  if (layouts != nullptr) base::copy_bytes(table, layouts, layout_count * sizeof(Layout*));
  // The old table stays: somebody may be reading it without the lock. Release: whoever sees the new
  // table's address sees its entries.
  __atomic_store_n(&layouts, table, __ATOMIC_RELEASE);
  capacity = larger;
  return true;
}

}  // namespace

const Layout** layouts = nullptr;
unsigned layout_count = 1;

bool keep_layout(Layout* layout) {
  if (layout_count == kMaxLayouts || !make_room()) return false;
  layout->number = layout_count;
  layouts[layout_count] = layout;
  ++layout_count;
  return true;
}

void broken_layout(const char* what, const Layout* layout, Word where) {
  const char* name = layout != nullptr && layout->name != nullptr ? layout->name : "(no layout)";
  os::fatal("typed heap: ", what, ": layout ", name, ", at ", base::Hex{where});
}

std::size_t words_with_elements(const Layout& layout, Word object) {
  const std::uint64_t count = *reinterpret_cast<const std::uint64_t*>(object + layout.count_offset);
  std::size_t bytes = 0;
  if (!base::checked_multiply(count, layout.element_bytes, &bytes) ||
      bytes > bytes_of(space.reserved)) {
    broken_layout("an array's number of elements was overwritten", &layout, object);
  }
  return layout.fixed_words + base::div_up(bytes, sizeof(Word));
}

std::size_t words_with_homogeneous_elements(const Layout& layout, Word memory) {
  const Block& block = space.blocks[block_number(memory)];
  const std::size_t bytes = unmixed_size(block) - unused_at_end(block);
  const std::size_t words = bytes / sizeof(Word);
  const std::size_t step = layout.element_bytes / sizeof(Word);
  if (step <= 1) return words;
  return words - (words - layout.fixed_words) % step;
}

std::size_t bytes_for(const Layout& layout, std::size_t elements) {
  std::size_t bytes = 0;
  std::size_t fixed = layout.offset + layout.fixed_words * sizeof(Word);
  if (!base::checked_multiply(elements, layout.element_bytes, &bytes) ||
      !base::checked_add(bytes, fixed + sizeof(Word) - 1, &bytes)) {
    return SIZE_MAX;
  }
  return base::align_down(bytes, sizeof(Word));
}

}  // namespace jd::heap
