#include "copy/untyped.hpp"

#include "mark/descriptor.hpp"

namespace jd::copy {

void visit_ambiguous(const heap::Place& place, void (*visit)(Word word)) {
  const Word end = place.address() + place.size();
  for (Word at = place.address(); at < end; at += sizeof(Word)) {
    visit(*reinterpret_cast<const Word*>(at));
  }
  if (place.block->scan != heap::Scan::Descriptor) return;
  const Word descriptor = heap::descriptor_of(heap::kinds[place.block->kind], place.size());
  mark::call_procedure(place.address(), place.size(), descriptor, visit);
}

}  // namespace jd::copy
