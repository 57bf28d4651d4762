#include "copy/hashes.hpp"

#include "heap/pointer_table.hpp"
#include "heap/space.hpp"

namespace jd::copy {
namespace {

struct Hash {
  heap::NodeNumber next = 0;
  Word key = 0;  // the object's memory
  std::uint64_t value = 0;
};

// Under the heap's lock.
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

std::uint64_t hash_of(Word memory) {
  Hash* known = hashes.find(memory);
  if (known != nullptr) return known->value;
  known = hashes.add(memory);
  if (known == nullptr) return 0;
  known->value = scramble(++hashes_made);
  return known->value;
}

void forget_dead_hashes() {
  hashes.keep_if([](Hash* entry) {
    heap::Place place;
    return heap::find_object(entry->key, &place) && place.marked();
  });
}

void rekey_hashes(Word (*new_address)(Word memory)) { hashes.rekey(new_address); }

}  // namespace jd::copy
