// Between the files of the typed heap's API.
#pragma once

#include "heap/layout.hpp"
#include "heap/space.hpp"
#include "os/lock.hpp"

namespace jd::typed {

using base::Word;
using heap::Place;

// The object with that first byte, as the program knows it; `function`, which was given it, ends
// the program with a message if there is none. Pre: the thread is registered, or holds the lock.
Place object_at(const void* object, const char* function);

// Which policy it is to be, from the first use of the typed heap on. Pre: the lock is held.
void settle_policy();

// Whether an object of so many bytes, of a source that mixed blocks are for, lies in one.
bool in_mixed_block(const heap::Layout& layout, std::size_t bytes);
// The kind of such objects, and which of a thread's holes they have. Pre: not homogeneous.
heap::KindNumber mixed_kind(const heap::Layout& layout);
unsigned mixed_number(const heap::Layout& layout);

}  // namespace jd::typed
