#include "malloc/libraries.hpp"

#include <atomic>

#include "heap/arena.hpp"
#include "heap/growable.hpp"
#include "heap/space.hpp"
#include "os/modules.hpp"

namespace jd::serve {
namespace {

using heap::heap_lock;
using os::LockGuard;

// All that were seen, in the order in which they were loaded first. Of those that lay at one
// address, each was unloaded before the next was loaded. Under the heap's lock.
heap::Growable<Library*> libraries;

// Written under the heap's lock, read without (acquire: whoever sees the number sees, under the
// lock, what it counts).
std::atomic<std::uint64_t> unloading_count{0};

// Under the heap's lock: the number of the last look, and what the loader said at its beginning.
std::uint64_t looks = 0;
std::uint64_t generation = 0;

bool overlap(const Library& library, const os::LoadedLibrary& loaded) {
  return library.low < loaded.high && loaded.low < library.high;
}

// The last that was there, if it is this one: a plugin that comes again is not noted anew.
Library* find(const os::LoadedLibrary& loaded) {
  for (std::size_t i = libraries.count(); i-- > 0;) {
    Library* library = libraries[i];
    if (!overlap(*library, loaded)) continue;
    const bool same = library->base == loaded.base && library->low == loaded.low &&
                      library->high == loaded.high &&
                      __builtin_strcmp(library->path, loaded.path) == 0;
    return same ? library : nullptr;
  }
  return nullptr;
}

// Without memory it is not noted, and places in it are named by what is there at the end.
Library* add(const os::LoadedLibrary& loaded) {
  const std::size_t length = __builtin_strlen(loaded.path);
  auto* library = static_cast<Library*>(heap::arena_take(sizeof(Library) + length));
  if (library == nullptr || !libraries.push(library)) return nullptr;
  library->base = loaded.base;
  library->low = loaded.low;
  library->high = loaded.high;
  base::copy_bytes(library->path, loaded.path, length + 1);
  return library;
}

class Look final : public os::LibraryVisitor {
 public:
  explicit Look(std::uint64_t number) : number_(number) {}
  void library(const os::LoadedLibrary& loaded) override {
    LockGuard guard(heap_lock);
    Library* library = find(loaded);
    if (library == nullptr) library = add(loaded);
    if (library == nullptr) return;
    library->unloaded_at = 0;
    library->last_seen = base::max_of(library->last_seen, number_);
  }

 private:
  std::uint64_t number_;
};

}  // namespace

std::uint64_t unloadings() { return unloading_count.load(std::memory_order_acquire); }

void look_at_libraries() {
  const std::uint64_t now = os::module_generation();
  std::uint64_t number = 0;
  {
    LockGuard guard(heap_lock);
    if (looks != 0 && generation == now) return;
    number = ++looks;
  }
  // The loader's lock comes before the heap's, as in a program that allocates with the former held.
  Look look(number);
  os::visit_libraries(&look);
  LockGuard guard(heap_lock);
  generation = now;
  // What another thread's later look has seen is there.
  const std::uint64_t next = unloading_count.load(std::memory_order_relaxed) + 1;
  bool found = false;
  for (Library* library : libraries) {
    if (library->unloaded_at != 0 || library->last_seen >= number) continue;
    library->unloaded_at = next;
    found = true;
  }
  if (found) unloading_count.store(next, std::memory_order_release);
}

const Library* unloaded_library(const void* address, std::uint64_t when) {
  for (const Library* library : libraries) {
    if (address < library->low || address >= library->high) continue;
    if (library->unloaded_at == 0) return nullptr;
    if (library->unloaded_at > when) return library;
  }
  return nullptr;
}

}  // namespace jd::serve
