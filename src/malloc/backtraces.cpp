#include "malloc/backtraces.hpp"

#include "heap/arena.hpp"
#include "heap/growable.hpp"
#include "heap/space.hpp"
#include "malloc/libraries.hpp"

namespace jd::serve {
namespace {

using heap::heap_lock;
using os::LockGuard;

// Where backtraces are found by their hash: the first place behind it that is empty ends a search.
// At most half full. Readers take no lock: a backtrace is published whole (release), and so is a
// larger table. Whoever misses one in the smaller looks again under the lock; smaller ones are kept
// for such readers.
struct Table {
  std::size_t places;  // a power of two
  std::atomic<Backtrace*> first[1];
};
constexpr std::size_t kFirstPlaces = std::size_t{1} << 12;
std::atomic<Table*> table{nullptr};

// All of them, by number, from 1 on. Under the heap's lock.
heap::Growable<Backtrace*> backtraces;

std::uint64_t hash_of(void* const* addresses, std::size_t count) {
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < count; ++i) {
    hash = base::add_to_digest(hash, base::as_word(addresses[i]));
  }
  return hash;
}

// Visits those that have these addresses until one does. Several may, of libraries that came one
// after another.
template <class Visit>
Backtrace* find(std::uint64_t hash, void* const* addresses, std::size_t count, Visit is_it) {
  const Table* t = table.load(std::memory_order_acquire);
  if (t == nullptr) return nullptr;
  for (std::size_t at = hash;; ++at) {
    Backtrace* backtrace = t->first[at & (t->places - 1)].load(std::memory_order_acquire);
    if (backtrace == nullptr) return nullptr;
    if (backtrace->hash == hash && backtrace->frames == count &&
        __builtin_memcmp(backtrace->addresses, addresses, count * sizeof addresses[0]) == 0 &&
        is_it(backtrace)) {
      return backtrace;
    }
  }
}

void put(Table* t, Backtrace* backtrace) {
  std::size_t at = backtrace->hash;
  while (t->first[at & (t->places - 1)].load(std::memory_order_relaxed) != nullptr) ++at;
  t->first[at & (t->places - 1)].store(backtrace, std::memory_order_release);
}

// Room for one more.
bool grow() {
  Table* old = table.load(std::memory_order_relaxed);
  if (old != nullptr && 2 * (backtraces.count() + 1) <= old->places) return true;
  const std::size_t places = old == nullptr ? kFirstPlaces : 2 * old->places;
  auto* larger = static_cast<Table*>(
      heap::table_take(sizeof(Table) + places * sizeof(std::atomic<Backtrace*>)));
  if (larger == nullptr) return false;
  larger->places = places;
  for (Backtrace* backtrace : backtraces) put(larger, backtrace);
  table.store(larger, std::memory_order_release);
  return true;
}

// Do its frames lie in the libraries that they lay in when it was added? Under the heap's lock.
bool is_right(const Backtrace& backtrace) {
  for (std::size_t i = 0; i < backtrace.frames; ++i) {
    if (unloaded_library(backtrace.addresses[i], backtrace.added_at) != nullptr) return false;
  }
  return true;
}

Backtrace* add(std::uint64_t hash, void* const* addresses, std::size_t count, std::uint64_t now) {
  if (!grow()) return nullptr;
  auto* backtrace = static_cast<Backtrace*>(
      heap::arena_take(sizeof(Backtrace) + (count - 1) * sizeof addresses[0]));
  if (backtrace == nullptr || !backtraces.push(backtrace)) return nullptr;
  backtrace->number = backtraces.count();
  backtrace->hash = hash;
  backtrace->added_at = now;
  backtrace->right_at.store(now, std::memory_order_relaxed);
  backtrace->frames = count;
  for (std::size_t i = 0; i < count; ++i) backtrace->addresses[i] = addresses[i];
  put(table.load(std::memory_order_relaxed), backtrace);
  return backtrace;
}

}  // namespace

Backtrace* find_or_add_backtrace(void* const* addresses, std::size_t count) {
  const std::uint64_t hash = hash_of(addresses, count);
  std::uint64_t now = unloadings();
  bool doubtful = false;
  const auto is_known_right = [&](Backtrace* backtrace) {
    // Relaxed: what a thread that runs in a library knows of it, it had from whoever loaded it.
    if (backtrace->right_at.load(std::memory_order_relaxed) == now) return true;
    doubtful = true;
    return false;
  };
  if (Backtrace* backtrace = find(hash, addresses, count, is_known_right)) return backtrace;
  // The same library may be there again, or another.
  if (doubtful) look_at_libraries();
  LockGuard guard(heap_lock);
  now = unloadings();
  Backtrace* backtrace = find(hash, addresses, count, [](Backtrace* s) { return is_right(*s); });
  if (backtrace == nullptr) return add(hash, addresses, count, now);
  backtrace->right_at.store(now, std::memory_order_relaxed);
  return backtrace;
}

std::size_t backtrace_count() { return backtraces.count(); }
Backtrace* numbered_backtrace(std::size_t number) { return backtraces[number - 1]; }
std::size_t backtrace_places() {
  const Table* t = table.load(std::memory_order_relaxed);
  return t == nullptr ? 0 : t->places;
}

}  // namespace jd::serve
