// Typed objects: descriptors by bitmap, arrays of typed elements, and objects that name their type
// in their first word.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "child.hpp"
#include "gc_test.hpp"

namespace jd::test {
namespace {

struct Layout {
  const char* name;
  std::size_t words;
  bool (*is_pointer)(std::size_t word);
};

std::vector<GC_word> bitmap_of(const Layout& layout) {
  std::vector<GC_word> bitmap((layout.words + 63) / 64, 0);
  for (std::size_t i = 0; i < layout.words; ++i) {
    if (layout.is_pointer(i)) bitmap[i / 64] |= GC_word{1} << (i % 64);
  }
  return bitmap;
}

// Too few objects to judge by are let through.
testing::AssertionResult most_if_many(const Watch& watch) {
  return watch.count() < 100 ? testing::AssertionSuccess() : most_collected(watch);
}

class Typed : public testing::TestWithParam<Layout> {
 protected:
  using Allocate = void* (*)(std::size_t, GC_descr);

  // Fills the words of one object with targets, watched by whether the layout says they hold.
  void fill(void** object, Watch* held, Watch* not_held) {
    const Layout& layout = GetParam();
    for (std::size_t i = 0; i < layout.words; ++i) {
      object[i] = GC_malloc(24);
      (layout.is_pointer(i) ? held : not_held)->add(object[i]);
    }
  }

  void check(Allocate allocate) {
    const Layout& layout = GetParam();
    const std::vector<GC_word> bitmap = bitmap_of(layout);
    const GC_descr descriptor = GC_make_descriptor(bitmap.data(), layout.words);
    // One stale word may hold one of them and all its targets, so there have to be many.
    const std::size_t count = std::max(20000 / layout.words, rounds(40));
    const bool many = count >= 40;
    auto** roots = static_cast<void**>(GC_malloc_uncollectable(count * sizeof(void*)));
    Watch held;
    Watch not_held;
    far_away([&] {
      for (std::size_t i = 0; i < count; ++i) {
        auto** object = static_cast<void**>(allocate(layout.words * sizeof(void*), descriptor));
        ASSERT_NE(object, nullptr);
        for (std::size_t k = 0; k < layout.words; ++k) ASSERT_EQ(object[k], nullptr);
        roots[i] = object;
        fill(object, &held, &not_held);
      }
    });
    collect();
    collect();
    EXPECT_TRUE(all_alive(held));
    EXPECT_TRUE(most_if_many(not_held));
    far_away([&] { std::memset(roots, 0, count * sizeof(void*)); });
    if (many) {
      EXPECT_TRUE(most_if_many(held));
    }
    GC_free(roots);
  }
};

TEST_P(Typed, ObjectsHoldByTheirLayout) { check(GC_malloc_explicitly_typed); }

TEST_P(Typed, IgnoreOffPageObjectsHoldByTheirLayout) {
  check(GC_malloc_explicitly_typed_ignore_off_page);
}

TEST_P(Typed, ArraysHoldByTheirElementsLayout) {
  const Layout& layout = GetParam();
  const std::vector<GC_word> bitmap = bitmap_of(layout);
  const GC_descr descriptor = GC_make_descriptor(bitmap.data(), layout.words);
  // Of three words 1344 are a part of a large array for the marker, and sixteen parts are many.
  for (const std::size_t elements : {1, 2, 3, 17, 200, 1344, 1345, 1500, 2688, 3000, 21504}) {
    if (elements * layout.words > std::min(rounds(400000), std::size_t{100000})) continue;
    Watch held;
    Watch not_held;
    Root<void> array;
    far_away([&] {
      auto** words = static_cast<void**>(
          GC_calloc_explicitly_typed(elements, layout.words * sizeof(void*), descriptor));
      ASSERT_NE(words, nullptr);
      array.set(words);
      for (std::size_t i = 0; i < elements * layout.words; ++i) ASSERT_EQ(words[i], nullptr);
      for (std::size_t i = 0; i < elements; ++i) fill(words + i * layout.words, &held, &not_held);
    });
    collect();
    collect();
    ASSERT_TRUE(all_alive(held)) << elements;
    ASSERT_TRUE(most_if_many(not_held)) << elements;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Typed,
    testing::Values(Layout{"none", 4, [](std::size_t) { return false; }},
                    Layout{"all", 5, [](std::size_t) { return true; }},
                    Layout{"first", 3, [](std::size_t i) { return i == 0; }},
                    Layout{"last", 3, [](std::size_t i) { return i == 2; }},
                    Layout{"prefix", 9, [](std::size_t i) { return i < 4; }},
                    Layout{"even", 30, [](std::size_t i) { return i % 2 == 0; }},
                    Layout{"bit61", 62, [](std::size_t i) { return i == 0 || i == 61; }},
                    Layout{"bit62", 63, [](std::size_t i) { return i == 1 || i == 62; }},
                    Layout{"bit63", 64, [](std::size_t i) { return i == 1 || i == 63; }},
                    Layout{"bit64", 65, [](std::size_t i) { return i == 1 || i == 64; }},
                    Layout{"long", 200, [](std::size_t i) { return i % 7 == 3; }},
                    Layout{"longer", 1000, [](std::size_t i) { return i % 13 == 5; }},
                    Layout{"huge", 9000, [](std::size_t i) { return i % 31 == 6; }}),
    [](const auto& info) { return info.param.name; });

TEST(TypedMore, EmptyBitmapIsAtomic) {
  const GC_word bitmap[1] = {0};
  EXPECT_EQ(GC_make_descriptor(bitmap, 10), 0u);
}

TEST(TypedMore, WeakTableEntries) {
  // As Guile's: the key word is not scanned and has a link; the value word is scanned.
  struct Entry {
    void* hash;
    void* key;
    void* value;
  };
  const GC_word bitmap[1] = {1 << 2};
  const GC_descr descriptor = GC_make_descriptor(bitmap, 3);
  constexpr std::size_t kCount = 2000;
  auto** entries = static_cast<Entry**>(GC_malloc_uncollectable(kCount * sizeof(Entry*)));
  auto** held_keys = static_cast<void**>(GC_malloc_uncollectable(kCount * sizeof(void*)));
  Watch values;
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      auto* entry = static_cast<Entry*>(GC_malloc_explicitly_typed(sizeof(Entry), descriptor));
      entries[i] = entry;
      void* key = GC_malloc(32);
      entry->hash = reinterpret_cast<void*>(i * 8 + 7);
      entry->key = key;
      entry->value = GC_malloc(40);
      values.add(entry->value);
      if (i % 2 == 0) held_keys[i] = key;
      GC_general_register_disappearing_link(&entry->key, key);
    }
  });
  collect_all();
  EXPECT_TRUE(all_alive(values));
  std::size_t cleared = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(entries[i]->hash, reinterpret_cast<void*>(i * 8 + 7));
    if (i % 2 == 0) {
      ASSERT_EQ(entries[i]->key, held_keys[i]);
    } else {
      cleared += entries[i]->key == nullptr;
    }
  }
  EXPECT_GE(cleared, kCount / 2 * 95 / 100);
  GC_free(entries);
  GC_free(held_keys);
}

// --- Objects that name their type in the first word
// -------------------------------------------------

struct VTable {
  void* reserved;
  GC_word descriptor;
};

GC_ms_entry* never_called(GC_word*, GC_ms_entry* msp, GC_ms_entry*, GC_word) { return msp; }

TEST(Gcj, TheDescriptorIsFoundThroughTheFirstWord) {
  GC_init_gcj_malloc(GC_GCJ_RESERVED_MARK_PROC_INDEX, reinterpret_cast<void*>(never_called));
  static VTable by_length = {nullptr, GC_DS_LENGTH | (3 * sizeof(void*))};
  static VTable by_bitmap = {nullptr, (GC_word{1} << 62) | (GC_word{1} << 60) | GC_DS_BITMAP};
  for (VTable* vtable : {&by_length, &by_bitmap}) {
    constexpr std::size_t kCount = 500;
    auto** roots = static_cast<void**>(GC_malloc_uncollectable(kCount * sizeof(void*)));
    Watch held;
    Watch not_held;
    far_away([&] {
      for (std::size_t i = 0; i < kCount; ++i) {
        auto** object = static_cast<void**>(i % 2 == 0 ? GC_gcj_malloc(6 * sizeof(void*), vtable)
                                                       : GC_gcj_malloc_ignore_off_page(48, vtable));
        ASSERT_NE(object, nullptr);
        ASSERT_EQ(object[0], vtable);
        for (std::size_t k = 1; k < 6; ++k) {
          ASSERT_EQ(object[k], nullptr);
          object[k] = GC_malloc(24);
          const bool holds = vtable == &by_length ? k < 3 : k == 1 || k == 3;
          (holds ? held : not_held).add(object[k]);
        }
        roots[i] = object;
      }
    });
    collect();
    collect();
    EXPECT_TRUE(all_alive(held));
    EXPECT_TRUE(most_collected(not_held));
    far_away([&] { std::memset(roots, 0, kCount * sizeof(void*)); });
    EXPECT_TRUE(most_collected(held));
    GC_free(roots);
  }
}

// The procedure finds the object behind the header by its environment, and what it alone can know:
// the object holds the complement of an address.
int calls_with_header = 0;
GC_ms_entry* mark_hidden(GC_word* address, GC_ms_entry* msp, GC_ms_entry* limit,
                         GC_word environment) {
  calls_with_header += environment == 1;
  const auto* object = address + GC_get_debug_header_size() / sizeof(GC_word) * environment;
  if (object[1] == 0) return msp;
  return GC_MARK_AND_PUSH(reinterpret_cast<void*>(~object[1]), msp, limit, nullptr);
}

void* hold_hidden_children(void* watch) {
  GC_init_gcj_malloc(GC_GCJ_RESERVED_MARK_PROC_INDEX, reinterpret_cast<void*>(mark_hidden));
  static VTable by_procedure = {nullptr, GC_MAKE_PROC(GC_GCJ_RESERVED_MARK_PROC_INDEX, 0)};
  GC_word* previous = nullptr;
  for (int i = 0; i < 100; ++i) {
    auto* object = static_cast<GC_word*>(
        i % 2 == 0 ? GC_gcj_malloc(24, &by_procedure)
                   : GC_debug_gcj_malloc(24, &by_procedure, __FILE__, __LINE__));
    object[1] = ~reinterpret_cast<GC_word>(previous);
    if (previous == nullptr) object[1] = 0;
    static_cast<Watch*>(watch)->add(GC_base(object));
    previous = object;
  }
  return previous;
}

TEST(Gcj, TheProcedureMarksCheckedObjectsToo) {
  if (GC_gcj_kind != 0) GTEST_SKIP() << "needs a process of its own: the first procedure stays";
  Watch chain;
  Root<void> last;
  far_away([&] { last.set(hold_hidden_children(&chain)); });
  collect();
  EXPECT_TRUE(all_alive(chain));
  EXPECT_GE(calls_with_header, 50);
}

// What a stale pointer still leads to.
int calls_with_garbage = 0;
GC_ms_entry* look_at_type(GC_word* address, GC_ms_entry* msp, GC_ms_entry*, GC_word environment) {
  const auto* object = address + GC_get_debug_header_size() / sizeof(GC_word) * environment;
  calls_with_header += environment == 1;
  calls_with_garbage += object[0] != 0 || object[1] != 0;
  return msp;
}
TEST(Gcj, TheProcedureFindsFreedObjectsEmpty) {
  if (GC_gcj_kind != 0) GTEST_SKIP() << "needs a process of its own: the first procedure stays";
  GC_init_gcj_malloc(GC_GCJ_RESERVED_MARK_PROC_INDEX, reinterpret_cast<void*>(look_at_type));
  static VTable by_procedure = {nullptr, GC_MAKE_PROC(GC_GCJ_RESERVED_MARK_PROC_INDEX, 0)};
  GC_word* volatile stale[20];
  for (GC_word* volatile& object : stale) {
    object = static_cast<GC_word*>(GC_debug_gcj_malloc(24, &by_procedure, __FILE__, __LINE__));
    GC_debug_free(object);
  }
  collect();
  EXPECT_EQ(calls_with_garbage, 0);
  opaque(stale[0]);
}

// A program may choose any of the numbers that the header keeps for programs.
JD_CHILD(chooses_a_reserved_number) {
  GC_INIT();
  const int number = std::atoi(std::getenv("JD_NUMBER"));
  GC_init_gcj_malloc(number, reinterpret_cast<void*>(mark_hidden));
  static VTable by_procedure = {nullptr, GC_MAKE_PROC(number, 0)};
  Root<void> root;
  Watch hidden;
  far_away([&] {
    auto* const object = static_cast<GC_word*>(GC_gcj_malloc(24, &by_procedure));
    void* const child = GC_malloc(24);
    hidden.add(child);
    object[1] = ~reinterpret_cast<GC_word>(child);
    root.set(object);
  });
  collect();
  // Descriptors of the library's own, which are procedures to it, mean what they meant.
  GC_word bitmap[2] = {1, 1};
  Root<void*> described(
      static_cast<void**>(GC_malloc_explicitly_typed(800, GC_make_descriptor(bitmap, 65))));
  Watch held;
  far_away([&] {
    described.get()[64] = GC_malloc(24);
    held.add(described.get()[64]);
  });
  collect();
  return all_alive(hidden) && all_alive(held) ? 0 : 1;
}
TEST(Gcj, AnyReservedNumberMayBeTheProcedures) {
  for (int number = 0; number < GC_RESERVED_MARK_PROCS; ++number) {
    const std::string text = std::to_string(number);
    const ChildResult r = run_child("chooses_a_reserved_number", {{"JD_NUMBER", text.c_str()}});
    EXPECT_TRUE(r.ok()) << number << ": " << r;
  }
}

TEST(Gcj, LargeObjects) {
  GC_init_gcj_malloc(GC_GCJ_RESERVED_MARK_PROC_INDEX, reinterpret_cast<void*>(never_called));
  static VTable vtable = {nullptr, GC_DS_LENGTH | 100000};
  Watch held;
  Root<void*> root;
  far_away([&] {
    auto** object = static_cast<void**>(GC_gcj_malloc(100000, &vtable));
    root.set(object);
    for (std::size_t i = 1; i < 12500; i += 10) {
      object[i] = GC_malloc(16);
      held.add(object[i]);
    }
  });
  collect();
  EXPECT_TRUE(all_alive(held));
  EXPECT_EQ(root.get()[0], &vtable);
}

}  // namespace
}  // namespace jd::test
