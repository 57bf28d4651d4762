#include "os/early_environment.hpp"

#include <errno.h>
#include <unistd.h>

#include <cstdint>

// Where the loader has set it: what the kernel has put there for the process, the number of
// arguments, they, a null, and then the environment. In static programs libc sets it, to another
// place.
extern "C" [[gnu::weak]] void* __libc_stack_end;

namespace jd::os {
namespace {

// Libc sets this name when it sets `environ`; in static programs before anything of theirs runs.
bool libc_has_started() { return environ != nullptr || *program_invocation_name != '\0'; }

}  // namespace

EarlyEnvironment::EarlyEnvironment() {
  if (libc_has_started() || &__libc_stack_end == nullptr || __libc_stack_end == nullptr) return;
  auto* const arguments = static_cast<std::intptr_t*>(__libc_stack_end);
  environ = reinterpret_cast<char**>(arguments + 1 + *arguments + 1);
  is_lent_ = true;
}

EarlyEnvironment::~EarlyEnvironment() {
  if (is_lent_) environ = nullptr;
}

}  // namespace jd::os
