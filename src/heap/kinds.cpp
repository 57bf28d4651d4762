#include "heap/kinds.hpp"

namespace jd::heap {
namespace {

Scan scan_for(Word descriptor, bool add_size) {
  if (descriptor == 0) return add_size ? Scan::Words : Scan::None;
  return Scan::Descriptor;
}

}  // namespace

Kind kinds[kMaxKinds] = {
    // kAtomic, kNormal, kUncollectable and kAtomicUncollectable.
    {.scan = Scan::None},
    {.add_size = true, .clear = true, .scan = Scan::Words},
    {.add_size = true, .clear = true, .scan = Scan::Words},
    {.scan = Scan::None},
};
unsigned kind_count = kBuiltInKinds;
MarkProcedure mark_procedures[kMaxProcedures];
unsigned mark_procedure_count = kReservedProcedures;

unsigned add_kind(Word descriptor, bool add_size, bool clear) {
  if (kind_count == kMaxKinds) return kMaxKinds;
  kinds[kind_count] = {.descriptor = descriptor,
                       .add_size = add_size,
                       .clear = clear,
                       .scan = scan_for(descriptor, add_size)};
  return kind_count++;
}

unsigned add_mark_procedure(MarkProcedure procedure) {
  if (mark_procedure_count == kOwnProcedure) return kMaxProcedures;
  mark_procedures[mark_procedure_count] = procedure;
  return mark_procedure_count++;
}

bool some_disclaim = false;

void set_disclaim(unsigned kind, DisclaimFunction disclaim, bool mark_from_unreachable) {
  kinds[kind].disclaim = disclaim;
  kinds[kind].mark_from_unreachable = mark_from_unreachable;
  if (disclaim != nullptr) __atomic_store_n(&some_disclaim, true, __ATOMIC_RELAXED);
}

}  // namespace jd::heap
