// Magazines: slots that a thread freed and keeps for its own next requests (docs/design/alloc.md,
// "Magazines"; the term is Bonwick and Adams's, "Magazines and Vmem" (2001)). Not for other rooms.
//
// A slot in a magazine has its allocated bit set, so that nobody else takes it, and its block stays
// what it is. A collection hides the slots of all magazines, and empties these once it has marked.
// The slot's second word tells that it is in one: a second GC_free of it must not put it there
// again.
#pragma once

#include "alloc/cache.hpp"
#include "world/thread.hpp"

namespace jd::alloc {

// The slots of one hole's kind and size. By its thread within NoStop sections; emptied by whoever
// has stopped that, or finds it gone.
struct alignas(16) Magazine {
  static constexpr unsigned kMost = 13;  // what two cache lines hold
  Magazine* next;                        // of the same thread, or free ones; under the heap's lock
  Hole* hole;                            // likewise
  // A fork may leave the thread in the midst of it: the child's has the slot written before the
  // count that says so, and the slot's word only while that counts it.
  char* slots[kMost];  // null from the count on
  std::uint32_t count;
  std::uint32_t most;  // no more bytes than a block's

  // Whether it may hold the slot; without a look at that, which would be a cache miss.
  [[nodiscard]] bool may_hold(const void* slot) const {
    using Four = std::uint32_t __attribute__((vector_size(16), may_alias));
    using Two = std::uint64_t __attribute__((vector_size(16)));
    static_assert(kMost == 13, "with the two numbers behind them they are seven pairs");
    const auto* pairs = reinterpret_cast<const Four*>(slots);
    const auto low = static_cast<std::uint32_t>(base::as_word(slot));
    const Four wanted = {low, low, low, low};
    // The low halves of four addresses at a time.
    const auto found = [&](unsigned pair, unsigned next) {
      return __builtin_shufflevector(pairs[pair], pairs[next], 0, 2, 4, 6) == wanted;
    };
    const auto any = reinterpret_cast<Two>(found(0, 1) | found(2, 3) | found(4, 5) | found(6, 6));
    return (any[0] | any[1]) != 0;
  }
};
static_assert(sizeof(Magazine) == 128);

// Never a number that could be an address, and another in each program that is executed
// (choose_magazine_key): a fork's child has its parent's.
extern Word magazine_key;

inline Word magazine_word(const void* slot) { return magazine_key ^ base::as_word(slot); }
inline void set_magazine_word(void* slot, Word word) {
  __atomic_store_n(static_cast<Word*>(slot) + 1, word, __ATOMIC_RELEASE);
}

// Pre: a slot whose allocated bit is set.
inline bool is_in_magazine(const void* slot) {
  const Word word = __atomic_load_n(static_cast<const Word*>(slot) + 1, __ATOMIC_RELAXED);
  return word == magazine_word(slot);
}

// One thread has a cache, so that its holes and magazines are all that there are; and the heap is
// large: a look at a freed object would mostly be a cache miss, where one at the thread's own
// magazine costs some instructions. Written under the heap's lock, or in a stopped world; asked by
// whoever frees something (relaxed).
extern bool own_magazines_tell;
void reconsider_own_magazines();

// Makes that of the calling thread's hole. False if there is no memory for it.
bool make_magazine(Hole* hole);

// Puts the slot of a freed object into the calling thread's magazine for its kind and size. False
// if that has no room. Pre: the thread may be stopped.
[[gnu::always_inline]] inline bool keep_in_magazine(Magazine* magazine, char* object) {
  const world::NoStop no_stop(world::self());
  const std::uint32_t count = magazine->count;
  if (count >= magazine->most) return false;
  magazine->slots[count] = object;
  __atomic_store_n(&magazine->count, count + 1, __ATOMIC_RELEASE);
  set_magazine_word(object, magazine_word(object));
  return true;
}

// A slot from the magazine of the calling thread's hole, as the kind has its objects. Null if there
// is none.
void* take_from_magazine(const Hole& hole, KindNumber kind);

// Gives the slots in a thread's magazines back to their blocks, and the magazines to others. False
// if there were no slots. Pre: the heap's lock is held; the thread is the caller, or gone.
bool give_back_magazines(ThreadCache* owner);

}  // namespace jd::alloc
