#include "copy/holders.hpp"

#include "heap/pointer_table.hpp"

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
// All under the heap's lock.
heap::PointerTable<Pin, 4> pins;
heap::PointerTable<Root, 3> roots;

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

void visit_held(world::RootVisitor* visitor) {
  pins.for_each([visitor](Pin* entry) { visitor->range(&entry->key, &entry->key + 1); });
  roots.for_each([visitor](Root* entry) {
    const auto* variable = reinterpret_cast<const Word*>(entry->key);
    visitor->range(variable, variable + 1);
  });
}

void visit_pinned(void (*visit)(Word memory)) {
  pins.for_each([visit](Pin* entry) { visit(entry->key); });
}

void visit_root_variables(void (*visit)(Word* variable)) {
  roots.for_each([visit](Root* entry) { visit(reinterpret_cast<Word*>(entry->key)); });
}

}  // namespace jd::copy
