#include "copy/roles.hpp"

namespace jd::copy {

heap::SideTable<Role> roles;
heap::SideTable<PinnedBits> pinned;

bool prepare_roles() { return roles.cover() && pinned.cover(); }

// The second to be extended.
BlockNumber blocks_with_roles() { return pinned.covered(); }

void discard_roles() {
  roles.discard();
  pinned.discard();
}

}  // namespace jd::copy
