#include "heap/space.hpp"

#include "heap/blocks.hpp"
#include "heap/huge_pages.hpp"
#include "heap/runs.hpp"
#include "os/memory.hpp"

namespace jd::heap {
namespace {

// Records are committed in steps of this many blocks: 64 KiB of records, 4 MiB of heap.
constexpr BlockNumber kTableStep = 256;

BlockNumber table_committed = 0;

bool commit_tables(BlockNumber blocks) {
  if (blocks <= table_committed) return true;
  const BlockNumber end =
      base::min_of(static_cast<BlockNumber>(base::align_up(blocks, kTableStep)), space.reserved);
  const auto commit_part = [&](void* table, std::size_t record) {
    const std::size_t page = os::page_size();
    const Word from = base::as_word(table) + base::align_down(table_committed * record, page);
    const Word to = base::as_word(table) + base::align_up(end * record, page);
    return os::commit(base::as_pointer(from), to - from);
  };
  if (!commit_part(space.blocks, sizeof(Block))) return false;
  if (!commit_part(space.extras, sizeof(BlockExtra))) return false;
  table_committed = end;
  return true;
}

bool try_reserve(BlockNumber count) {
  const std::size_t page = os::page_size();
  const std::size_t heap_bytes = bytes_of(count);
  const std::size_t block_bytes = base::align_up(count * sizeof(Block), page);
  const std::size_t extra_bytes = base::align_up(count * sizeof(BlockExtra), page);
  // Huge pages need their own alignment; the tables follow the heap in one reservation.
  void* p = os::reserve(heap_bytes + block_bytes + extra_bytes, os::kHugePage);
  if (p == nullptr) return false;
  space.base = base::as_word(p);
  space.blocks = reinterpret_cast<Block*>(space.base + heap_bytes);
  space.extras = reinterpret_cast<BlockExtra*>(space.base + heap_bytes + block_bytes);
  space.reserved = count;
  return true;
}

}  // namespace

Space space;
os::Lock heap_lock;
constinit os::Readers heap_readers{heap_lock};

bool reserve_space(std::size_t wanted) {
  constexpr std::size_t kLeast = 4 * base::kMiB;
  for (std::size_t size = base::min_of(wanted, kMostReserved); size >= kLeast; size /= 2) {
    if (!try_reserve(static_cast<BlockNumber>(size >> kBlockShift))) continue;
    table_committed = 0;
    forget_runs();
    forget_lists();
    // Block 0 is committed with its records but never given out.
    if (!commit_tables(1)) return false;
    space.committed = 1;
    space.span = kBlockSize;
    return true;
  }
  return false;
}

bool grow(BlockNumber count) {
  if (count == 0 || count > space.reserved - space.committed) return false;
  const BlockNumber first = space.committed;
  if (!commit_tables(first + count)) return false;
  const std::size_t bytes = bytes_of(count);
  if (!os::commit(base::as_pointer(block_address(first)), bytes)) return false;
  space.committed = first + count;
  __atomic_store_n(&space.span, bytes_of(space.committed), __ATOMIC_RELAXED);
  give_run(first, count);
  return true;
}

}  // namespace jd::heap
