// What a large object held, for realloc: to another place, in so little memory as can be.
#pragma once

#include <cstddef>

namespace jd::serve {

// Where it is worth it: asking what of an object was written costs some microseconds. A guess.
inline constexpr std::size_t kLeastTransfer = 4u << 20;

// Copies the first so many bytes of a large object to another one. The old one's pages go back to
// the system as they are copied, so that no more than a part of them is there twice; what is read
// there afterwards is anything. Pages that were never written are not copied, but are zero in the
// new object.
void transfer(void* to, void* from, std::size_t bytes);

}  // namespace jd::serve
