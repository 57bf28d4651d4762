#include "malloc/figures.hpp"

#include "cycle/runtime.hpp"
#include "heap/resident.hpp"
#include "heap/space.hpp"
#include "heap/walk.hpp"
#include "libgc/support.hpp"
#include "os/lock.hpp"
#include "os/log.hpp"
#include "world/thread.hpp"

namespace jd::serve {

using heap::BlockState;

Figures figures() {
  const os::LockGuard guard(heap::heap_lock);
  Figures figures{heap::resident_bytes(), 0, heap::free_resident_bytes()};
  heap::for_each_block([&figures](heap::BlockNumber number, const heap::Block& block) {
    if (block.state == BlockState::Free) return;
    figures.in_use +=
        block.state == BlockState::LargeHead
            ? heap::space.extras[number].bytes
            : std::size_t{heap::count_bits(block.allocated, block.slots)} * block.slot_size;
  });
  return figures;
}

bool trim() {
  // A thread's first call may be this one.
  if (world::self() == nullptr && !world::register_self({})) return false;
  const std::size_t before = heap::returned_bytes();
  cycle::collect_and_return_memory(nullptr);
  return heap::returned_bytes() > before;
}

void tell_figures() {
  const Figures now = figures();
  os::warn("heap: ", now.resident, " bytes, of which ", now.in_use, " are in use and ", now.idle,
           " are free blocks");
  os::warn("given back to the system: ", heap::returned_bytes(),
           " bytes; collections: ", GC_get_gc_no());
}

}  // namespace jd::serve
