// Objects that another library's malloc has made. A program that is linked with such a library has
// its operator new, if it has one, and that makes objects there; but what frees them may call free,
// which is ours (libjemalloc's operator delete does). These are that library's business.
#pragma once

#include <cstddef>

#include "base/bits.hpp"
#include "heap/space.hpp"

namespace jd::serve {

// Not null, and not early memory either.
inline bool is_foreign(const void* object) { return !heap::in_heap(base::as_word(object)); }

// Pre of these: the object is foreign. Where no library but libc has a malloc, the program is told
// that it is none; in mode ignore it is only left alone.
void release_foreign(void* object, const char* name);
// Null, then.
void* resize_foreign(void* object, std::size_t bytes);
// 0, then.
std::size_t foreign_size(void* object);

}  // namespace jd::serve
