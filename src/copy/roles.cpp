#include "copy/roles.hpp"

namespace jd::copy {

heap::SideTable<Role> roles;
heap::SideTable<Pins> pins;

bool prepare_roles() { return roles.cover() && pins.cover(); }

// The second to be extended.
BlockNumber blocks_with_roles() { return pins.covered(); }

void discard_roles() {
  roles.discard();
  pins.discard();
}

}  // namespace jd::copy
