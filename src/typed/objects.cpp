// What programs say and ask of single objects: pins, roots, weak references, finalizers.
#include "alloc/allocate.hpp"
#include "copy/hashes.hpp"
#include "copy/holders.hpp"
#include "copy/mcc.hpp"
#include "copy/policy.hpp"
#include "copy/weak.hpp"
#include "cycle/finalization.hpp"
#include "cycle/measured.hpp"
#include "cycle/runtime.hpp"
#include "jackdaw/heap.h"
#include "os/log.hpp"
#include "typed/layouts.hpp"

using namespace jd;

namespace {

using base::Word;
using heap::heap_lock;
using os::LockGuard;

// An object of a kind that is made at its first use.
template <class Object>
Object* make_weak(unsigned (*kind)()) {
  cycle::start();
  unsigned number = 0;
  {
    const LockGuard guard(heap_lock);
    number = kind();
    if (number != heap::kMaxKinds) typed::settle_policy();
  }
  if (number == heap::kMaxKinds) {
    os::warn("jd_weak_new, jd_ephemeron_new: there are too many kinds of objects");
    return nullptr;
  }
  void* made = alloc::allocate_laid_out(sizeof(Object), static_cast<heap::KindNumber>(number));
  // What the out-of-memory function gives, no collection would ever look at.
  return heap::in_heap(base::as_word(made)) ? static_cast<Object*>(made) : nullptr;
}

const copy::Weak* own(const jd_weak* weak) { return reinterpret_cast<const copy::Weak*>(weak); }
const copy::Ephemeron* own(const jd_ephemeron* ephemeron) {
  return reinterpret_cast<const copy::Ephemeron*>(ephemeron);
}

// Volatile: the collector may change it between two reads of the program's.
void* read(const Word& word) { return base::as_pointer(*const_cast<const volatile Word*>(&word)); }

}  // namespace

extern "C" {

int jd_thread_register(void) { return alloc::ready_to_allocate() ? 1 : 0; }

int jd_pin(void* object) {
  cycle::start();
  const LockGuard guard(heap_lock);
  return copy::pin(typed::object_at(object, "jd_pin").address()) ? 1 : 0;
}

void jd_unpin(void* object) {
  cycle::start();
  const LockGuard guard(heap_lock);
  const heap::Place place = typed::object_at(object, "jd_unpin");
  if (copy::unpin(place.address())) return;
  const heap::Kind& kind = heap::kinds[place.block->kind];
  heap::Typed found{};
  const bool has_layout = kind.has_layout() && heap::typed_at(place.address(), kind, &found);
  os::fatal("jd_unpin: ", object, " is not pinned (layout ",
            has_layout ? found.layout->name : "none", ")");
}

int jd_root_add(void* variable) {
  cycle::start();
  if (variable == nullptr) os::fatal("jd_root_add: a null pointer is no variable");
  if (base::as_word(variable) % alignof(void*) != 0) {
    os::fatal("jd_root_add: the variable at ", variable,
              " is not aligned as a pointer is: the collector would pass it over");
  }
  // Until it is a root, nobody looks at the variable: what it holds stays by this one.
  void* const held = *static_cast<void**>(variable);
  const LockGuard guard(heap_lock);
  typed::settle_policy();
  const bool added = copy::add_precise_root(static_cast<Word*>(variable));
  asm volatile("" : : "r"(held) : "memory");
  return added ? 1 : 0;
}

void jd_root_remove(void* variable) {
  cycle::start();
  const LockGuard guard(heap_lock);
  copy::remove_precise_root(static_cast<Word*>(variable));
}

uint64_t jd_epoch() {
  const LockGuard guard(heap_lock);
  return copy::counts.collections;
}

uint64_t jd_address_hash(const void* object) {
  cycle::start();
  const LockGuard guard(heap_lock);
  return copy::hash_of(typed::object_at(object, "jd_address_hash").address());
}

void jd_collect(int compact) {
  if (compact != 0) return cycle::compact();
  cycle::collect_now(nullptr);
}

jd_weak* jd_weak_new(void* object) {
  auto* weak = make_weak<copy::Weak>(copy::weak_kind);
  if (weak != nullptr) weak->target = base::as_word(object);
  return reinterpret_cast<jd_weak*>(weak);
}

void* jd_weak_get(const jd_weak* weak) { return read(own(weak)->target); }

jd_ephemeron* jd_ephemeron_new(void* key, void* value) {
  auto* ephemeron = make_weak<copy::Ephemeron>(copy::ephemeron_kind);
  if (ephemeron != nullptr && key != nullptr) {
    ephemeron->key = base::as_word(key);
    // A collection in between must not find a value whose key seems to have died.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    ephemeron->value = base::as_word(value);
  }
  return reinterpret_cast<jd_ephemeron*>(ephemeron);
}

void* jd_ephemeron_key(const jd_ephemeron* ephemeron) { return read(own(ephemeron)->key); }
void* jd_ephemeron_value(const jd_ephemeron* ephemeron) { return read(own(ephemeron)->value); }
void jd_ephemeron_set_value(jd_ephemeron* ephemeron, void* value) {
  void* const key = read(own(ephemeron)->key);
  if (key == nullptr) return;
  reinterpret_cast<copy::Ephemeron*>(ephemeron)->value = base::as_word(value);
  // It lives until then: one that dies only now is seen by the next collection.
  asm volatile("" : : "r"(key) : "memory");
}

int jd_finalizer(void* object, void (*function)(void* object, void* data), void* data) {
  cycle::start();
  const LockGuard guard(heap_lock);
  const heap::Place place = typed::object_at(object, "jd_finalizer");
  cycle::Finalizer old;
  const cycle::TableResult result = cycle::set_finalizer(
      base::as_pointer(place.address()), 0, {function, data}, cycle::FinalizerOrder::Ordered, &old);
  return result != cycle::TableResult::NoMemory ? 1 : 0;
}

void jd_heap_get_counts(jd_heap_counts* counts) {
  cycle::start();
  const LockGuard guard(heap_lock);
  *counts = {};
  counts->collections = cycle::measured.collections;
  counts->moving_collections = copy::counts.collections;
  counts->moved_objects = copy::counts.objects;
  counts->moved_bytes = copy::counts.bytes;
  counts->pinned_objects = copy::counts.pinned_last;
  counts->promoted_blocks = copy::mcc::last_promoted.blocks;
  counts->dead_bytes = copy::mcc::last_promoted.dead_bytes;
  counts->typed_bytes = cycle::measured.live_typed_bytes;
  counts->mark_ns = cycle::measured.mark_total;
  counts->pin_ns = copy::counts.pin_ns;
  counts->move_ns = copy::counts.move_ns;
  counts->fix_ns = copy::counts.fix_ns;
  counts->sweep_ns = cycle::measured.sweep_total;
}

}  // extern "C"
