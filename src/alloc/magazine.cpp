#include "alloc/magazine.hpp"

#include "alloc/collecting.hpp"
#include "alloc/objects.hpp"
#include "alloc/refill.hpp"
#include "alloc/settings.hpp"
#include "alloc/slots.hpp"
#include "base/sharing.hpp"
#include "heap/arena.hpp"
#include "os/kept_errno.hpp"
#include "os/log.hpp"

namespace jd::alloc {
namespace {

Magazine* free_magazines = nullptr;  // under the heap's lock

heap::Place place_of(const char* slot) {
  const Word address = base::as_word(slot);
  heap::Block* block = &heap::space.blocks[heap::block_number(address)];
  return {block, block->slot_of(address & (heap::kBlockSize - 1))};
}

template <class Visit>
void for_each_magazine(Visit visit) {
  for (const ThreadCache* c = caches; c != nullptr; c = c->next) {
    for (Magazine* m = c->magazines; m != nullptr; m = m->next) visit(m);
  }
}

// Calls visit(slot, block, word of its allocated bits, the slot's bit) for each.
template <class Visit>
void for_each_slot(const Magazine& magazine, Visit visit) {
  for (unsigned i = 0; i < magazine.count; ++i) {
    char* const slot = magazine.slots[i];
    const heap::Place place = place_of(slot);
    visit(slot, place.block, place.slot / 64, std::uint64_t{1} << (place.slot % 64));
  }
}

}  // namespace

bool own_magazines_tell = false;

void reconsider_own_magazines() {
  // 8 MiB: about where the two cost the same, between the processor's second-level cache and its
  // third (docs/design/alloc-measured.md, "Magazines").
  constexpr heap::BlockNumber kLarge = 512;
  const bool tell = cache_count == 1 && heap::space.committed >= kLarge;
  __atomic_store_n(&own_magazines_tell, tell, __ATOMIC_RELAXED);
}

constinit Word magazine_key = 0x8000000000000001u;
void choose_magazine_key(std::uint64_t random) { magazine_key |= random; }

// Errno stays as it is.
bool make_magazine(Hole* hole) {
  const os::KeptErrno kept;
  Magazine* fresh = nullptr;
  {
    const os::LockGuard guard(heap::heap_lock);
    fresh = free_magazines;
    if (fresh != nullptr) {
      free_magazines = fresh->next;
    } else {
      fresh = static_cast<Magazine*>(heap::arena_take(sizeof(Magazine)));
    }
    if (fresh != nullptr) {
      fresh->next = cache->magazines;
      fresh->hole = hole;
      fresh->count = 0;
      for (char*& slot : fresh->slots) slot = nullptr;
      fresh->most = static_cast<std::uint32_t>(
          base::min_of(std::size_t{Magazine::kMost}, heap::kBlockSize / hole->slot_size()));
      cache->magazines = fresh;
      hole->magazine = fresh;
    }
  }
  return fresh != nullptr;
}

void* take_from_magazine(const Hole& hole, KindNumber kind) {
  Magazine* magazine = hole.magazine;
  if (magazine == nullptr || magazine->count == 0) return nullptr;
  const world::NoStop no_stop(world::self());
  // A collection may have emptied it.
  if (magazine->count == 0) return nullptr;
  const std::uint32_t left = magazine->count - 1;
  char* slot = magazine->slots[left];
  const std::size_t size = hole.slot_size();
  if (heap::kinds[kind].clear) {
    clear_slots(slot, size);
  } else {
    // The first word, since somebody may ask the object what it is; and the magazine's.
    base::clear_bytes(slot, heap::kGranule);
  }
  __atomic_store_n(&magazine->count, left, __ATOMIC_RELEASE);
  // In this order for the child of a fork that comes in between: what is counted is there.
  __atomic_store_n(&magazine->slots[left], nullptr, __ATOMIC_RELEASE);
  cache->count_taken(size);
  return slot;
}

bool give_back_magazines(ThreadCache* owner) {
  bool any = false;
  while (Magazine* magazine = owner->magazines) {
    any |= magazine->count != 0;
    for_each_slot(*magazine, [](char* slot, heap::Block* block, unsigned word, std::uint64_t bit) {
      set_magazine_word(slot, 0);
      base::note_atomic(&block->allocated[word]);
      block->give_back(word, bit);
      list_or_release(block);
    });
    magazine->count = 0;
    magazine->hole->magazine = nullptr;
    owner->magazines = magazine->next;
    magazine->next = free_magazines;
    free_magazines = magazine;
  }
  return any;
}

void hide_magazines() {
  for_each_magazine([](const Magazine* magazine) {
    for_each_slot(*magazine, [](char* slot, heap::Block* block, unsigned word, std::uint64_t bit) {
      set_magazine_word(slot, 0);
      set_word(block, word, block->allocated[word] & ~bit);
    });
  });
}

void show_magazines() {
  for_each_magazine([](const Magazine* magazine) {
    for_each_slot(*magazine, [](char* slot, heap::Block* block, unsigned word, std::uint64_t bit) {
      set_magazine_word(slot, magazine_word(slot));
      set_word(block, word, block->allocated[word] | bit);
    });
  });
}

void empty_magazines() {
  for_each_magazine([](Magazine* magazine) {
    magazine->count = 0;
    for (char*& slot : magazine->slots) slot = nullptr;
  });
  reconsider_own_magazines();
}

void visit_magazines(void (*visit)(const Hole* hole, const char* slot)) {
  for_each_magazine([visit](const Magazine* magazine) {
    for (unsigned i = 0; i < magazine->count; ++i) visit(magazine->hole, magazine->slots[i]);
    for (unsigned i = magazine->count; i < Magazine::kMost; ++i) {
      JD_CHECK(magazine->slots[i] == nullptr, "a magazine remembers a slot that it gave away");
    }
  });
}

}  // namespace jd::alloc
