// What several files of the ABI need.
#pragma once

#include <errno.h>

#include "alloc/allocate.hpp"
#include "alloc/totals.hpp"
#include "cycle/finalization.hpp"
#include "cycle/runtime.hpp"
#include "cycle/settings.hpp"
#include "gc/gc.h"
#include "gc/gc_mark.h"
#include "heap/space.hpp"
#include "os/lock.hpp"
#include "world/thread.hpp"

// For what no public header declares.
#define JD_EXPORT [[gnu::visibility("default")]]

extern "C" {
JD_EXPORT extern GC_abort_func GC_on_abort;
}

namespace jd::libgc {

using base::Word;
using heap::heap_lock;
using os::LockGuard;

// Calls ask(), which looks for the object that contains p. In a mixed block, that goes from object
// to object, and no collection may come in between. Threads that are not registered are not
// stopped, and have no such promise: they must not wait for the lock here, which their caller may
// hold. (typed::while_uncollected, whose callers do not, takes it for them.)
template <class Ask>
auto while_in_place(const void* p, Ask ask) {
  const Word word = base::as_word(p);
  world::Thread* thread = nullptr;
  if (heap::in_heap(word) &&
      heap::space.blocks[heap::block_number(word)].state == heap::BlockState::Mixed) {
    thread = world::self();
  }
  if (thread == nullptr) return ask();
  const world::NoStop guard(thread);
  return ask();
}

// The beginning of the object that contains p, or null.
inline char* base_of(const void* p) {
  char* found = while_in_place(p, [p]() -> char* {
    heap::Place place;
    return heap::find_object(base::as_word(p), &place) ? base::as_pointer(place.address())
                                                       : nullptr;
  });
  // Until its beginning is known, p is what holds the object and keeps it where it is.
  asm volatile("" : : "g"(p));
  return found;
}

// Reports through the program's abort function, then aborts.
[[noreturn]] void abort_with(const char* message);

// GC_push_other_roots of a program that has none. Thread stacks need no function here, but Crystal
// calls the old one when it installs its own.
void no_other_roots();

// n elements of that size; SIZE_MAX, which no allocation survives, when the product overflows.
inline std::size_t array_bytes(std::size_t n, std::size_t size) {
  std::size_t bytes = 0;
  return base::checked_multiply(n, size, &bytes) ? bytes : SIZE_MAX;
}
// So much and so much more; likewise.
inline std::size_t bytes_and(std::size_t bytes, std::size_t more) {
  std::size_t sum = 0;
  return base::checked_add(bytes, more, &sum) ? sum : SIZE_MAX;
}

// The kind of that number; aborts with the message if there is none.
inline heap::KindNumber known_kind(int kind, const char* message) {
  if (kind < 0 || static_cast<unsigned>(kind) >= heap::kind_count) abort_with(message);
  return static_cast<heap::KindNumber>(kind);
}

// Bytes of an object of this kind, which was just allocated. 0 for memory of the program's
// out-of-memory function, which is not ours to write to, and for null.
inline std::size_t room_in(const void* object, heap::KindNumber kind) {
  heap::Place place;
  const bool ours = heap::find_object(base::as_word(object), &place) && place.block->kind == kind;
  return ours ? place.size() : 0;
}

// What is uncollectable is marked from its beginning, as in bdwgc. (Here only a collection sets the
// bits.) Pre: as of alloc::is_handed_out.
inline bool counts_as_marked(const heap::Place& place) {
  if (!heap::is_uncollectable(place.block->kind)) return place.marked();
  return alloc::is_handed_out(place);
}

// What setters and getters do whose header says "locks".
template <class T>
void set_locked(T* variable, T value) {
  LockGuard guard(heap_lock);
  *variable = value;
}
template <class T>
T get_locked(const T* variable) {
  LockGuard guard(heap_lock);
  return *variable;
}

// What GC_strdup and its like return: in `copy`, which has a byte more than `length`, or is null.
inline char* filled_with(const char* text, std::size_t length, void* copy) {
  if (copy == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  auto* const characters = static_cast<char*>(copy);
  base::copy_bytes(characters, text, length);
  characters[length] = '\0';
  return characters;
}

}  // namespace jd::libgc
