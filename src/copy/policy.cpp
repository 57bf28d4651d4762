#include "copy/policy.hpp"

namespace jd::copy {

Policy policy;
bool in_use = false;
Counts counts;

}  // namespace jd::copy
