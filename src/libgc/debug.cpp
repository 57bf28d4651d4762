// Checked allocation: every object carries where it was allocated and how long it is, between
// guard words that tell when a program wrote outside of it.
//
//   base                                  base + 32 = what the program gets
//   | file | line | bytes | front guard |  object ... 0 | back guard | (to the slot's end) |
//
// The back guard begins at the next whole word, and what lies between is zero and the program's, as
// in bdwgc: programs read and write the last words of their objects whole.
#include <string.h>

#include <atomic>

#include "cycle/leaks.hpp"
#include "gc/gc_gcj.h"
#include "gc/gc_mark.h"
#include "heap/sweep.hpp"
#include "heap/walk.hpp"
#include "libgc/support.hpp"
#include "os/log.hpp"

using namespace jd;
using namespace jd::libgc;

namespace {

using base::Word;

struct Header {
  const char* file;
  Word line;
  size_t bytes;
  Word front;
};
static_assert(sizeof(Header) == 32);

constexpr Word kFront = 0xfedcedcbfedcedcb;
constexpr Word kBack = 0xbcdecdefbcdecdef;
constexpr Word kFreed = 0xefbeadde00000000;       // instead of the front guard
constexpr Word kUnfinished = 0xabbaabba00000000;  // the same, until both guards are written
constexpr Word kFreedFill = 0xefbeaddedeadbeef;

// Guards depend on their place, so that a copied object has none.
Word front_guard(const Header* header) { return kFront ^ base::as_word(header); }
Word back_guard(const Header* header) { return kBack ^ header->bytes ^ base::as_word(header); }
Word freed_mark(const Header* header) { return kFreed ^ base::as_word(header); }
Word unfinished_mark(const Header* header) { return kUnfinished ^ base::as_word(header); }

size_t whole_words(size_t bytes) { return base::align_up(bytes, sizeof(Word)); }

// Is the length one that the object's place has room for? Otherwise it was overwritten itself, and
// what it leads to is neither read nor written.
bool length_possible(const Header* header, const heap::Place& place) {
  constexpr size_t kAround = sizeof(Header) + sizeof(Word);
  // What is left of a slot is whole words.
  return place.size() >= kAround && header->bytes <= place.size() - kAround;
}

// Where the back guard is. Pre: the length is possible.
char* back_of(Header* header) {
  return reinterpret_cast<char*>(header + 1) + whole_words(header->bytes);
}
bool back_intact(Header* header) {
  Word guard = 0;
  memcpy(&guard, back_of(header), sizeof guard);
  return guard == back_guard(header);
}

// What is no checked object any more has neither guard.
void smash_back(Header* header) { memset(back_of(header), 0, sizeof(Word)); }

// The header of a checked object, whole or smashed; null for what was not allocated here.
Header* find_header(void* object) {
  char* base = base_of(object);
  if (base == nullptr || static_cast<char*>(object) - base != sizeof(Header)) return nullptr;
  auto* header = reinterpret_cast<Header*>(base);
  if (header->front == front_guard(header) || header->front == freed_mark(header)) return header;
  // The front guard itself may be what was overwritten.
  heap::Place place;
  if (!heap::find_object(base::as_word(base), &place)) return nullptr;
  return length_possible(header, place) && back_intact(header) ? header : nullptr;
}

// Says what is wrong, if anything is. False if nothing is known of the object's extent. Pre: the
// header is one that find_header finds.
bool report_smashed(const char* caller, void* object, Header* header) {
  heap::Place place;
  if (!heap::find_object(base::as_word(header), &place)) return false;
  if (!length_possible(header, place)) {
    // What lies before it, the file's name, is likely to be gone as well.
    os::warn(caller, ": found smashed location at ", &header->bytes, " in or near object ", object,
             " (its header is overwritten)");
    return false;
  }
  const bool front = header->front == front_guard(header);
  if (front && back_intact(header)) return true;
  os::warn(caller, ": found smashed location at ",
           front ? static_cast<const void*>(back_of(header)) : &header->front,
           " in or near object ", object, " (", header->file, ":", header->line, ", ",
           header->bytes, " bytes)");
  return true;
}

// After a collection, in the stopped world: every surviving checked object must still have its
// guards.
void check_survivors() {
  heap::for_each_block([](heap::BlockNumber, heap::Block& block) {
    if (block.state == heap::BlockState::Free) return;
    heap::for_each_marked(block, [&](unsigned slot) {
      const heap::Place place{&block, slot};
      if (place.size() < sizeof(Header) + sizeof(Word)) return;
      auto* header = reinterpret_cast<Header*>(place.address());
      const Word front = __atomic_load_n(&header->front, __ATOMIC_ACQUIRE);
      if (front == freed_mark(header) || front == unfinished_mark(header)) return;
      const bool is_front_whole = front == front_guard(header);
      const bool is_back_whole = length_possible(header, place) && back_intact(header);
      // Either tells of a checked object.
      if (is_front_whole == is_back_whole) return;
      cycle::faults_reported.store(true, std::memory_order_relaxed);
      report_smashed("a collection", header + 1, header);
    });
  });
}

// The next object in a dead one's place would begin its life with the dead one's header, unless it
// is cleared; and nobody knows yet of what kind that will be.
void forget(const heap::Place& place) {
  if (place.size() < sizeof(Header) + sizeof(Word)) return;
  auto* header = reinterpret_cast<Header*>(place.address());
  const bool has_back = length_possible(header, place) && back_intact(header);
  if (header->front != front_guard(header) && !has_back) return;
  header->front = 0;
  if (has_back) smash_back(header);
}

// Before a sweep. Typed objects have no header. Those that are asked whether they go are whole
// until they do.
void forget_dead() {
  heap::for_each_block([](heap::BlockNumber, heap::Block& block) {
    const heap::Kind& kind = heap::kinds[block.kind];
    if (block.state == heap::BlockState::Free || kind.has_layout()) return;
    if (kind.disclaim != nullptr) return;
    heap::for_each_unmarked(block, [&](unsigned slot) { forget({&block, slot}); });
  });
}

cycle::MadeAt made_at(const heap::Place& place) {
  if (place.size() < sizeof(Header) + sizeof(Word)) return {};
  const auto* header = reinterpret_cast<const Header*>(place.address());
  if (header->front != front_guard(header)) return {};
  return {header + 1, header->file, header->line, header->bytes};
}

void* finish(void* base, size_t bytes, const char* file, int line) {
  if (base == nullptr) return nullptr;
  auto* header = static_cast<Header*>(base);
  __atomic_store_n(&cycle::settings.check_heap, &check_survivors, __ATOMIC_RELAXED);
  __atomic_store_n(&cycle::settings.before_sweep, &forget_dead, __ATOMIC_RELAXED);
  __atomic_store_n(&cycle::settings.made_at, &made_at, __ATOMIC_RELAXED);
  __atomic_store_n(&heap::on_disclaimed, &forget, __ATOMIC_RELAXED);
  // A collection that comes in between looks at neither guard.
  __atomic_store_n(&header->front, unfinished_mark(header), __ATOMIC_RELAXED);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  header->file = file;
  header->line = static_cast<Word>(line);
  header->bytes = bytes;
  const Word guard = back_guard(header);
  memset(reinterpret_cast<char*>(header + 1) + bytes, 0, whole_words(bytes) - bytes);
  memcpy(back_of(header), &guard, sizeof guard);
  // Last, since it is what makes a checked object.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  __atomic_store_n(&header->front, front_guard(header), __ATOMIC_RELAXED);
  return header + 1;
}

size_t with_guards(size_t bytes) {
  size_t total = 0;
  constexpr size_t kMost = sizeof(Header) + 2 * sizeof(Word) - 1;
  if (!base::checked_add(bytes, kMost, &total)) return SIZE_MAX;
  return base::align_down(total, sizeof(Word));
}

void* allocate_checked(size_t bytes, int kind, const char* file, int line) {
  void* base = GC_generic_or_special_malloc(with_guards(bytes), kind);
  if (base == nullptr) {
    os::warn("checked allocation of ", bytes, " bytes failed (", file, ":", line, ")");
  }
  return finish(base, bytes, file, line);
}

struct UserFinalizer {
  GC_finalization_proc function;
  void* data;
};

// Finalizers of checked objects get the address that the program knows.
void run_user_finalizer(void* base, void* data) {
  const auto* user = static_cast<UserFinalizer*>(data);
  user->function(static_cast<Header*>(base) + 1, user->data);
}

using Register = void (*)(void*, GC_finalization_proc, void*, GC_finalization_proc*, void**);

void register_checked(Register function, void* object, GC_finalization_proc finalizer, void* data,
                      GC_finalization_proc* old_function, void** old_data) {
  // Stays where nothing is registered: then the caller's variables stay as well.
  const GC_finalization_proc untold = [](void*, void*) {};
  GC_finalization_proc previous = untold;
  void* previous_data = nullptr;
  char* base = base_of(object);
  if (base == nullptr) {
    previous = nullptr;
  } else {
    char* const known = base + sizeof(Header);
    const bool checked = find_header(known) != nullptr;
    if (!checked || object != known) {
      os::warn("GC_debug_register_finalizer(", object, "): not the beginning of a checked object");
    }
    if (finalizer == nullptr || !checked) {
      function(base, finalizer, data, &previous, &previous_data);
    } else {
      auto* user = static_cast<UserFinalizer*>(GC_malloc(sizeof(UserFinalizer)));
      if (user == nullptr) return;
      *user = {finalizer, data};
      function(base, run_user_finalizer, user, &previous, &previous_data);
    }
  }
  if (previous == untold) return;
  if (previous == run_user_finalizer) {
    const auto* user = static_cast<UserFinalizer*>(previous_data);
    previous = user->function;
    previous_data = user->data;
  }
  if (old_function != nullptr) *old_function = previous;
  if (old_data != nullptr) *old_data = previous_data;
}

char* copy_text(const char* text, size_t length, const char* file, int line) {
  return filled_with(text, length, allocate_checked(length + 1, heap::kAtomic, file, line));
}

}  // namespace

extern "C" {

void* GC_debug_malloc(size_t bytes, const char* file, int line) {
  return allocate_checked(bytes, heap::kNormal, file, line);
}
void* GC_debug_malloc_atomic(size_t bytes, const char* file, int line) {
  return allocate_checked(bytes, heap::kAtomic, file, line);
}
void* GC_debug_malloc_uncollectable(size_t bytes, const char* file, int line) {
  return allocate_checked(bytes, heap::kUncollectable, file, line);
}
void* GC_debug_malloc_atomic_uncollectable(size_t bytes, const char* file, int line) {
  return allocate_checked(bytes, heap::kAtomicUncollectable, file, line);
}
void* GC_debug_malloc_ignore_off_page(size_t bytes, const char* file, int line) {
  return allocate_checked(bytes, heap::kNormal, file, line);
}
void* GC_debug_malloc_atomic_ignore_off_page(size_t bytes, const char* file, int line) {
  return allocate_checked(bytes, heap::kAtomic, file, line);
}
void* GC_debug_malloc_stubborn(size_t bytes, const char* file, int line) {
  return allocate_checked(bytes, heap::kNormal, file, line);
}
GC_API void* GC_debug_generic_or_special_malloc(size_t bytes, int kind, const char* file,
                                                int line) {
  return allocate_checked(bytes, kind, file, line);
}
void* GC_debug_malloc_replacement(size_t bytes) { return GC_debug_malloc(bytes, "unknown", 0); }
void* GC_debug_realloc_replacement(void* object, size_t bytes) {
  return GC_debug_realloc(object, bytes, "unknown", 0);
}
void* GC_debug_gcj_malloc(size_t bytes, void* type, const char* file, int line) {
  if (GC_gcj_debug_kind == 0) abort_with("GC_debug_gcj_malloc before GC_init_gcj_malloc");
  const auto kind = static_cast<heap::KindNumber>(GC_gcj_debug_kind);
  void* base = alloc::allocate(with_guards(bytes), kind);
  if (room_in(base, kind) == 0) return base;
  auto** object = static_cast<void**>(finish(base, bytes, file, line));
  *object = type;
  return object;
}

char* GC_debug_strdup(const char* text, const char* file, int line) {
  return text == nullptr ? nullptr : copy_text(text, strlen(text), file, line);
}
char* GC_debug_strndup(const char* text, size_t most, const char* file, int line) {
  return text == nullptr ? nullptr : copy_text(text, strnlen(text, most), file, line);
}

void GC_debug_free(void* object) {
  if (object == nullptr) return;
  Header* header = find_header(object);
  if (header == nullptr) {
    if (base_of(object) == nullptr) {
      os::warn("GC_debug_free(", object, "): not an object of the collector's heap");
      abort_with("Invalid pointer passed to free()");
    }
    // One that was freed at once has lost its header.
    if (!alloc::check_object(base_of(object), "GC_debug_free")) return;
    os::warn("GC_debug_free called on pointer ", object, " w/o debugging info");
    if (base_of(object) == object) GC_free(object);
    return;
  }
  if (!alloc::check_object(header, "GC_debug_free")) return;
  if (header->front == freed_mark(header)) {
    os::warn("GC_debug_free: found previously deallocated object at ", object, " (", header->file,
             ":", header->line, ")");
    return;
  }
  const bool extent_known = report_smashed("GC_debug_free", object, header);
  // Freed memory keeps its header, so that a second free is recognised until the slot is reused.
  __atomic_store_n(&header->front, freed_mark(header), __ATOMIC_RELEASE);
  if (extent_known) {
    auto* words = reinterpret_cast<Word*>(header + 1);
    // The program's mark procedure, which may be called until nothing leads there any more, knows
    // objects of zeros.
    const bool has_procedure =
        GC_gcj_debug_kind != 0 && GC_get_kind_and_size(header, nullptr) == GC_gcj_debug_kind;
    const Word fill = has_procedure ? 0 : kFreedFill;
    for (size_t i = 0; i < whole_words(header->bytes) / sizeof(Word); ++i) words[i] = fill;
    smash_back(header);
  }
  if (GC_find_leak != 0 || heap::is_uncollectable(GC_get_kind_and_size(header, nullptr))) {
    GC_free(header);
  } else {
    // Reclaimed by a collection; it counts as freed from now.
    heap::Place place;
    if (heap::find_object(base::as_word(header), &place)) alloc::add_freed(place.size());
  }
}

void* GC_debug_realloc(void* object, size_t bytes, const char* file, int line) {
  if (object == nullptr) return GC_debug_malloc(bytes, file, line);
  if (bytes == 0) {
    GC_debug_free(object);
    return nullptr;
  }
  Header* header = find_header(object);
  if (header == nullptr) {
    if (base_of(object) == nullptr) {
      os::warn("GC_debug_realloc(", object, "): not an object of the collector's heap");
      abort_with("Invalid pointer passed to realloc()");
    }
    os::warn("GC_debug_realloc called on pointer ", object, " w/o debugging info");
    return GC_realloc(object, bytes);
  }
  const int kind = GC_get_kind_and_size(header, nullptr);
  void* moved = allocate_checked(bytes, kind, file, line);
  if (moved == nullptr) return nullptr;
  heap::Place place{};
  size_t length = header->bytes;
  if (heap::find_object(base::as_word(header), &place) && !length_possible(header, place)) {
    // All that may be the object's.
    length = place.size() - sizeof(Header);
  }
  memcpy(moved, object, base::min_of(bytes, length));
  GC_debug_free(object);
  return moved;
}

void* GC_debug_reallocf(void* object, size_t bytes, const char* file, int line) {
  void* const resized = GC_debug_realloc(object, bytes, file, line);
  if (resized == nullptr && bytes != 0) GC_debug_free(object);
  return resized;
}
void GC_debug_freezero(void* object, size_t bytes) {
  const Header* const header = object == nullptr ? nullptr : find_header(object);
  if (header != nullptr && header->front != freed_mark(header)) {
    heap::Place place{};
    const bool extent_known =
        heap::find_object(base::as_word(header), &place) && length_possible(header, place);
    if (extent_known) memset(object, 0, base::min_of(bytes, header->bytes));
  }
  GC_debug_free(object);
}

void GC_debug_register_finalizer(void* object, GC_finalization_proc function, void* data,
                                 GC_finalization_proc* old_function, void** old_data) {
  register_checked(GC_register_finalizer, object, function, data, old_function, old_data);
}
void GC_debug_register_finalizer_ignore_self(void* object, GC_finalization_proc function,
                                             void* data, GC_finalization_proc* old_function,
                                             void** old_data) {
  register_checked(GC_register_finalizer_ignore_self, object, function, data, old_function,
                   old_data);
}
void GC_debug_register_finalizer_no_order(void* object, GC_finalization_proc function, void* data,
                                          GC_finalization_proc* old_function, void** old_data) {
  register_checked(GC_register_finalizer_no_order, object, function, data, old_function, old_data);
}
void GC_debug_register_finalizer_unreachable(void* object, GC_finalization_proc function,
                                             void* data, GC_finalization_proc* old_function,
                                             void** old_data) {
  register_checked(GC_register_finalizer_unreachable, object, function, data, old_function,
                   old_data);
}

size_t GC_get_debug_header_size() { return sizeof(Header); }
void GC_debug_change_stubborn(const void*) {}
void GC_debug_end_stubborn_change(const void* object) {
  if (base_of(object) == nullptr) abort_with("GC_debug_end_stubborn_change: not an object");
}
void GC_debug_ptr_store_and_dirty(void* to, const void* pointer) {
  GC_is_visible(to);
  GC_is_valid_displacement(const_cast<void*>(pointer));
  *static_cast<const void* volatile*>(to) = pointer;
}

// Descriptions for reports, which name places instead: kept, so that it may be called.
void GC_register_describe_type_fn(int, GC_describe_type_fn) {}
}
