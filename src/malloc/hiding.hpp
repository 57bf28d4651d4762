// Libraries that keep the only pointer to some object as its distance from another. What their code
// asks for is kept until it is freed (malloc.req.hiding).
#pragma once

#include "base/bits.hpp"

namespace jd::serve {

// Their code, if any is loaded. Written once, by the start, before the program has threads.
extern base::Word hiding_code;
extern base::Word hiding_code_bytes;

// `caller`: a return address.
inline bool hides_pointers(const void* caller) {
  return base::as_word(caller) - hiding_code < hiding_code_bytes;
}

// At the start, when the libraries that the program is linked with are there.
void find_hiding_code();

}  // namespace jd::serve
