#include "os/lock.hpp"

namespace jd::os {

template class LockOver<Machine>;

}  // namespace jd::os
