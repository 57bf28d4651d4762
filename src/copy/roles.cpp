#include "copy/roles.hpp"

#include "os/memory.hpp"

namespace jd::copy {
namespace {

BlockNumber covered = 0;

// Reserves a table for all blocks that there can be, or commits more of it.
bool extend(void** table, std::size_t entry) {
  if (*table == nullptr) {
    *table =
        os::reserve(base::align_up(heap::space.reserved * entry, os::page_size()), os::page_size());
    if (*table == nullptr) return false;
  }
  const std::size_t have = base::align_up(covered * entry, os::page_size());
  const std::size_t wanted = base::align_up(heap::space.committed * entry, os::page_size());
  return wanted <= have || os::commit(static_cast<char*>(*table) + have, wanted - have);
}

}  // namespace

Role* roles = nullptr;
Pins* pins = nullptr;

bool prepare_roles() {
  if (covered >= heap::space.committed) return true;
  if (!extend(reinterpret_cast<void**>(&roles), sizeof(Role)) ||
      !extend(reinterpret_cast<void**>(&pins), sizeof(Pins))) {
    return false;
  }
  covered = heap::space.committed;
  return true;
}

BlockNumber blocks_with_roles() { return covered; }

void discard_roles() {
  if (covered == 0) return;
  os::discard(roles, base::align_up(covered * sizeof(Role), os::page_size()));
  os::discard(pins, base::align_up(covered * sizeof(Pins), os::page_size()));
}

}  // namespace jd::copy
