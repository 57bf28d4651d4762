#include "heap/kinds.hpp"

namespace jd::heap {
namespace {

Scan scan_for(Word descriptor, bool add_size) {
  if (descriptor == 0) return add_size ? Scan::Words : Scan::None;
  return Scan::Descriptor;
}

}  // namespace

Kind kinds[kMaxKinds] = {
    {0, false, false, false, false, Scan::None},
    {0, true, true, false, false, Scan::Words},
    {0, true, true, true, false, Scan::Words},
    {0, false, false, true, false, Scan::None},
};
unsigned kind_count = kBuiltInKinds;
MarkProcedure mark_procedures[kMaxProcedures];
unsigned mark_procedure_count = kReservedProcedures;

unsigned add_kind(Word descriptor, bool add_size, bool clear) {
  if (kind_count == kMaxKinds) return kMaxKinds;
  kinds[kind_count] = {descriptor, add_size, clear, false, false, scan_for(descriptor, add_size)};
  return kind_count++;
}

unsigned add_mark_procedure(MarkProcedure procedure) {
  if (mark_procedure_count == kMaxProcedures) return kMaxProcedures;
  mark_procedures[mark_procedure_count] = procedure;
  return mark_procedure_count++;
}

}  // namespace jd::heap
