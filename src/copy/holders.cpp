#include "copy/holders.hpp"

#include "heap/pointer_table.hpp"
#include "heap/space.hpp"

namespace jd::copy {
namespace {

struct Pin {
  heap::NodeNumber next = 0;
  Word key = 0;  // the object's memory
  std::size_t count = 0;
};
struct Root {
  heap::NodeNumber next = 0;
  Word key = 0;  // the variable
};
struct Hash {
  heap::NodeNumber next = 0;
  Word key = 0;  // the object's memory
  std::uint64_t value = 0;
};

// All under the heap's lock.
heap::PointerTable<Pin, 4> pins;
heap::PointerTable<Root, 3> roots;
heap::PointerTable<Hash, 4> hashes;
std::uint64_t hashes_made = 0;

// Steele, Lea & Flood's SplitMix64 (2014): neighbouring numbers become unlike ones.
std::uint64_t scramble(std::uint64_t n) {
  n *= base::kGolden;
  n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9u;
  n = (n ^ (n >> 27)) * 0x94d049bb133111ebu;
  return n ^ (n >> 31);
}

}  // namespace

bool pin(Word memory) {
  Pin* known = pins.find(memory);
  if (known == nullptr) known = pins.add(memory);
  if (known == nullptr) return false;
  ++known->count;
  return true;
}

bool unpin(Word memory) {
  Pin* known = pins.find(memory);
  if (known == nullptr) return false;
  if (--known->count == 0) pins.remove(memory);
  return true;
}

bool add_root(Word* variable) {
  const Word key = base::as_word(variable);
  return roots.find(key) != nullptr || roots.add(key) != nullptr;
}

void remove_root(Word* variable) { roots.remove(base::as_word(variable)); }

bool is_root(Word address) { return roots.find(address) != nullptr; }

std::uint64_t hash_of(Word memory) {
  Hash* known = hashes.find(memory);
  if (known != nullptr) return known->value;
  known = hashes.add(memory);
  if (known == nullptr) return 0;
  known->value = scramble(++hashes_made);
  return known->value;
}

void visit_held(world::RootVisitor* visitor) {
  pins.for_each([visitor](Pin* entry) { visitor->range(&entry->key, &entry->key + 1); });
  roots.for_each([visitor](Root* entry) {
    const auto* variable = reinterpret_cast<const Word*>(entry->key);
    visitor->range(variable, variable + 1);
  });
}

void forget_dead_hashes() {
  hashes.keep_if([](Hash* entry) {
    heap::Place place;
    return heap::find_object(entry->key, &place) && place.marked();
  });
}

void visit_pinned(void (*visit)(Word memory)) {
  pins.for_each([visit](Pin* entry) { visit(entry->key); });
}

void visit_root_variables(void (*visit)(Word* variable)) {
  roots.for_each([visit](Root* entry) { visit(reinterpret_cast<Word*>(entry->key)); });
}

void rekey_hashes(Word (*new_address)(Word memory)) { hashes.rekey(new_address); }

}  // namespace jd::copy
