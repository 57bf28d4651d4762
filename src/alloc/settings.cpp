#include "alloc/settings.hpp"

#include "heap/blocks.hpp"
#include "heap/sweep.hpp"

namespace jd::alloc {

bool every_allocation_is_slow = false;
std::size_t padding = 0;
bool marks_are_kept = false;
bool frees_are_treated = false;
std::size_t clear_ahead = 0;
std::size_t clear_by_discarding_from = SIZE_MAX;
bool within_libc = false;

void choose_treatment_of_frees(bool keeping_marks) {
  const bool treated = keeping_marks || heap::poison_freed || heap::sweep_policy.eager;
  __atomic_store_n(&marks_are_kept, keeping_marks, __ATOMIC_RELAXED);
  __atomic_store_n(&frees_are_treated, treated, __ATOMIC_RELAXED);
}

}  // namespace jd::alloc
