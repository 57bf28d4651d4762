// Requests for memory.
//
// Requirement (docs/design/alloc.md): alloc.req.overflow — no size, however absurd, overflows.
//
// Every size is in bytes. Objects are aligned to 16 bytes. Memory of kinds that are cleared reads
// as zero; of others it holds anything. Thread rules: every function may be called by any thread;
// one that is not registered is registered by its first slow path. None may be called while the
// heap's lock is held, nor from a signal handler.
#pragma once

#include <cstddef>

#include "alloc/cache.hpp"

namespace jd::alloc {

// Registers the calling thread, and starts the runtime, if that has not happened yet. False if
// there is no memory for the thread's record.
bool ready_to_allocate();

// An object of any kind. Null when memory has run out.
void* allocate(std::size_t bytes, KindNumber kind);

// The same for kinds with layouts: in a slot of heap::class_for, whatever the heap's size.
void* allocate_laid_out(std::size_t bytes, KindNumber kind);

// The same as allocate; a pointer beyond the first block of a large object does not hold it.
void* allocate_held_by_first_block(std::size_t bytes, KindNumber kind);

// The same with an alignment (a power of two, any size).
void* allocate_aligned(std::size_t bytes, std::size_t alignment, KindNumber kind);

// Several objects of one size, linked through their first words, otherwise as the kind has them.
// The list's first goes into *result, null when memory has run out. No collection sees a part of
// the list: nothing but *result may hold the objects of a kind without pointers.
void allocate_list(std::size_t bytes, KindNumber kind, void** result);

// Frees an object at once. `name` is the caller's for messages: an address that is not the
// beginning of an allocated object is reported in one line on standard error and left alone. False
// then, and for null.
bool free_object(void* object, const char* name);

// Is it the beginning of an allocated object? Otherwise says what it is, in one line on standard
// error. Pre: the thread is registered.
bool check_object(const void* object, const char* name);
// Is the slot an object's, not one that a thread has in its hole or magazine? Pre: the lock is
// held, or the object is somebody's; no mixed block.
bool is_handed_out(const heap::Place& place);

// Grows or shrinks in place if the slot allows, otherwise moves; the kind stays.
struct Resized {
  void* object;  // null, and the object is as it was, when memory has run out
  // By how many bytes the uncollectable objects have grown; wraps where they shrink.
  std::size_t uncollectable;
};
Resized reallocate(void* object, std::size_t bytes, const char* name);

// The part of that which needs no new place: true if the object, which stays where it is, now has
// room for `bytes`. What it gains is clear if its kind is. Pre: the beginning of an object.
bool resize_in_place(void* object, std::size_t bytes);

// Bytes that an object of such a request would have now. Once the heap has outgrown the coarse
// classes it may be fewer. Pre: no more than kMaxSmall.
std::size_t usable_size_for(std::size_t bytes);

// The usual case of free_object: true if the address is the beginning of an object in a slot, and
// that is free now. Keeps errno.
bool free_in_slot(void* object);
// The same; an uncollectable object's bytes are taken off their count (add_uncollectable).
bool free_in_slot_and_count(void* object);

}  // namespace jd::alloc
