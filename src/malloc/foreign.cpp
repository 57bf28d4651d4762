#include "malloc/foreign.hpp"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "alloc/allocate.hpp"
#include "malloc/found_later.hpp"
#include "malloc/serve.hpp"
#include "os/symbols.hpp"

namespace jd::serve {
namespace {

// The function of a library that has a malloc of its own, or null.
template <class Function>
Function* function_of_others(Function*, const char* name) {
  const void* const their_malloc = os::next_function("malloc");
  if (their_malloc == nullptr || os::is_libcs(their_malloc)) return nullptr;
  return reinterpret_cast<Function*>(os::next_function(name));
}

}  // namespace

void release_foreign(void* object, const char* name) {
  static constinit FoundLater known;
  auto* const their_free = known.get([] { return function_of_others(free, "free"); });
  if (their_free != nullptr) return their_free(object);
  if (!ignoring) alloc::free_object(object, name);
}

void* resize_foreign(void* object, std::size_t bytes) {
  static constinit FoundLater known;
  auto* const their_realloc = known.get([] { return function_of_others(realloc, "realloc"); });
  if (their_realloc != nullptr) return their_realloc(object, bytes);
  if (alloc::ready_to_allocate()) alloc::check_object(object, "realloc");  // tells what it is
  errno = ENOMEM;
  return nullptr;
}

std::size_t foreign_size(void* object) {
  static constinit FoundLater known;
  auto* const their_size =
      known.get([] { return function_of_others(malloc_usable_size, "malloc_usable_size"); });
  return their_size != nullptr ? their_size(object) : 0;
}

}  // namespace jd::serve
