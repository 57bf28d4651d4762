#include "copy/holders.hpp"

#include "heap/pointer_table.hpp"

namespace jd::copy {
namespace {

struct ProgramPin {
  heap::NodeNumber next = 0;
  Word key = 0;  // the object's memory
  std::size_t count = 0;
};
struct PreciseRoot {
  heap::NodeNumber next = 0;
  Word key = 0;  // the variable
};

// All under the heap's lock.
heap::PointerTable<ProgramPin, 4> program_pins;
heap::PointerTable<PreciseRoot, 3> precise_roots;

}  // namespace

bool pin(Word memory) {
  ProgramPin* known = program_pins.find(memory);
  if (known == nullptr) known = program_pins.add(memory);
  if (known == nullptr) return false;
  ++known->count;
  return true;
}

bool unpin(Word memory) {
  ProgramPin* known = program_pins.find(memory);
  if (known == nullptr) return false;
  if (--known->count == 0) program_pins.remove(memory);
  return true;
}

bool add_precise_root(Word* variable) {
  const Word key = base::as_word(variable);
  return precise_roots.find(key) != nullptr || precise_roots.add(key) != nullptr;
}

void remove_precise_root(Word* variable) { precise_roots.remove(base::as_word(variable)); }

void forget_precise_roots_on(const os::Extent* stacks, std::size_t count) {
  precise_roots.keep_if([stacks, count](PreciseRoot* entry) {
    return !os::one_contains(stacks, count, base::as_pointer(entry->key));
  });
}

bool is_precise_root(Word address) { return precise_roots.find(address) != nullptr; }

void visit_held(world::RootVisitor* visitor) {
  program_pins.for_each(
      [visitor](ProgramPin* entry) { visitor->range(&entry->key, &entry->key + 1); });
  precise_roots.for_each([visitor](PreciseRoot* entry) {
    const auto* variable = reinterpret_cast<const Word*>(entry->key);
    visitor->range(variable, variable + 1);
  });
}

void visit_program_pins(void (*visit)(Word memory)) {
  program_pins.for_each([visit](ProgramPin* entry) { visit(entry->key); });
}

void visit_precise_roots(void (*visit)(Word* variable)) {
  precise_roots.for_each(
      [visit](PreciseRoot* entry) { visit(reinterpret_cast<Word*>(entry->key)); });
}

}  // namespace jd::copy
