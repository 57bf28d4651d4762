#include "os/early_environment.hpp"

#include <errno.h>
#include <unistd.h>

#include <cstdint>

// The loader sets it to where the kernel has put the Arguments; in static programs libc does, to
// another place.
extern "C" [[gnu::weak]] void* __libc_stack_end;

namespace jd::os {
namespace {

struct Arguments {
  std::intptr_t count;
  char* first[];  // so many, and a null; then the environment
};

// Null where it does not look so: in static programs.
const Arguments* arguments_at_start() {
  constexpr std::intptr_t kMost = 1 << 24;  // above any system's limit
  if (&__libc_stack_end == nullptr || __libc_stack_end == nullptr) return nullptr;
  const auto* const arguments = static_cast<const Arguments*>(__libc_stack_end);
  const bool has_count = arguments->count > 0 && arguments->count < kMost;
  return has_count && arguments->first[arguments->count] == nullptr ? arguments : nullptr;
}

}  // namespace

EarlyEnvironment::EarlyEnvironment() {
  // Libc sets this name when it sets `environ`, and a program that clears that leaves the name.
  if (environ != nullptr || *program_invocation_name != '\0') return;
  const Arguments* const arguments = arguments_at_start();
  if (arguments == nullptr || program_invocation_name == arguments->first[0]) return;
  environ = const_cast<char**>(arguments->first + arguments->count + 1);
  is_lent_ = true;
}

EarlyEnvironment::~EarlyEnvironment() {
  if (is_lent_) environ = nullptr;
}

}  // namespace jd::os
