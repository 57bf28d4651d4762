#include "copy/policy.hpp"

namespace jd::copy {

Policy policy;
bool (*commit_more)(std::uint32_t blocks) = nullptr;
bool (*may_grow)(std::uint32_t blocks) = nullptr;
bool in_use = false;
Counts counts;

}  // namespace jd::copy
