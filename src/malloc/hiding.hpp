// Libraries that keep the only pointer to some object as something that no collector can read. What
// their code asks for is kept until it is freed (malloc.req.hiding).
#pragma once

#include "base/bits.hpp"

namespace jd::serve {

// From the lowest address of their code to the highest, if any is loaded; between those of several
// there is other code, too. Written once, by the start, before the program has threads.
extern base::Word hiding_code;
extern base::Word hiding_code_bytes;

// The first question, for the fast path. `caller`: a return address.
inline bool may_hide_pointers(const void* caller) {
  return base::as_word(caller) - hiding_code < hiding_code_bytes;
}
// The answer, for those that may.
bool is_in_hiding_code(const void* caller);
inline bool hides_pointers(const void* caller) {
  return __builtin_expect(may_hide_pointers(caller), 0) && is_in_hiding_code(caller);
}

// At the start, when the libraries that the program is linked with are there.
void find_hiding_code();
// Has such a library come by dlopen? Then there may be such objects already; a line says so. Pre: a
// stopped world.
bool hiding_code_came_late();

}  // namespace jd::serve
