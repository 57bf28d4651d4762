// Typed objects where memory is short: a mark stack that is full, traversals without room.
#include <sys/resource.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "api_support.hpp"
#include "child.hpp"

namespace jd::test {
namespace {

struct Twin {
  void* of_runtime;
  long number;
  Twin* twin;
  long rest[5];
};

// Objects that only a word into their middles holds, while the mark stack is full.
JD_CHILD(interior_pointers_alone) {
  constexpr std::size_t kObjects = 20000;
  GC_INIT();
  static const std::uint64_t third = 4;
  jd_layout* layout =
      jd_layout_define(std::array{info_of("twin", JD_SELF, sizeof(Twin), &third)}.data());
  auto** inner = static_cast<char**>(GC_malloc(kObjects * sizeof(char*)));
  for (std::size_t i = 0; i < kObjects; ++i) {
    auto* one = static_cast<Twin*>(jd_new(layout));
    auto* other = static_cast<Twin*>(jd_new(layout));
    one->number = other->number = static_cast<long>(i);
    one->twin = other;
    inner[i] = reinterpret_cast<char*>(&one->rest[3]);
  }
  jd_collect(0);
  for (std::size_t i = 0; i < 5 * kObjects; ++i) static_cast<Twin*>(jd_new(layout))->number = -1;
  for (std::size_t i = 0; i < kObjects; ++i) {
    const auto* one = reinterpret_cast<const Twin*>(inner[i] - offsetof(Twin, rest[3]));
    const auto number = static_cast<long>(i);
    if (one->number != number || one->twin == nullptr || one->twin->number != number) return 1;
  }
  return 0;
}
TEST(Scarce, AFullMarkStackLosesNoInteriorPointer) {
  for (const char* strategy : {"none", "grey", "on-grey", "ring"}) {
    for (const char* markers : {"1", "3"}) {
      const ChildResult r =
          run_child("interior_pointers_alone", {{"JACKDAW_MARK_STACK", "16"},
                                                {"JACKDAW_MARK_STRATEGY", strategy},
                                                {"JACKDAW_MARK_PATIENCE", "1"},
                                                {"JACKDAW_COLLECT_EVERY", kUnset},
                                                {"GC_MARKERS", markers}});
      EXPECT_TRUE(r.ok()) << strategy << ", markers: " << markers << " " << r;
    }
  }
}

// A heap of which the thread keeps blocks for untyped objects (its reserve), and that may not grow:
// typed ones get them, too. Regression: what was free for others was free for them alone when
// something else had given it back.
JD_CHILD(reserve_for_typed) {
  constexpr std::size_t kLimit = 24u << 20;
  GC_INIT();
  static const std::uint64_t third = 4;
  jd_layout* layout =
      jd_layout_define(std::array{info_of("twin", JD_SELF, sizeof(Twin), &third)}.data());
  GC_set_max_heap_size(kLimit);
  if (GC_expand_hp(kLimit - (1u << 20)) == 0) return 1;
  GC_disable();
  static void* head = nullptr;
  for (std::size_t bytes = 0; bytes < kLimit / 3; bytes += 48) {
    auto* node = static_cast<void**>(GC_malloc(40));
    node[0] = head;
    head = node;
  }
  GC_set_oom_fn([](std::size_t) -> void* { return nullptr; });
  while (jd_new(layout) != nullptr) {
  }
  // Gives back what the thread has.
  if (GC_malloc(100000) != nullptr) return 2;
  return 0;
}
TEST(Scarce, WhatAThreadKeepsForUntypedObjectsIsForTypedOnesToo) {
  // Under JD_MCC a part of the heap is for copies alone.
  const ChildResult r = run_child(
      "reserve_for_typed", {{"JACKDAW_COLLECT_EVERY", kUnset}, {"JACKDAW_POLICY", "evacuate"}});
  EXPECT_TRUE(r.ok()) << r;
}

std::size_t kilobytes_of_data() {
  std::FILE* status = std::fopen("/proc/self/status", "r");
  char line[256];
  unsigned long kilobytes = 0;
  while (status != nullptr && std::fgets(line, sizeof line, status) != nullptr) {
    if (std::sscanf(line, "VmData: %lu", &kilobytes) == 1) break;
  }
  if (status != nullptr) std::fclose(status);
  return kilobytes;
}

// A heap that may not grow, full of arrays of which few stay alive, none of them pinned.
JD_CHILD(sparse_at_the_limit) {
  constexpr std::size_t kMost = 200000;
  constexpr std::size_t kKept = 9;  // one in so many
  constexpr std::size_t kLimit = 8u << 20;
  GC_INIT();
  static const std::uint64_t first = 1;
  jd_layout_info info =
      info_of("array", static_cast<jd_source>(std::atoi(std::getenv("JD_SOURCE"))),
              2 * sizeof(void*), nullptr);
  info.element_size = 2 * sizeof(void*);
  info.element_pointers = &first;
  info.count_offset = sizeof(void*);
  jd_layout* layout = jd_layout_define(&info);
  auto** roots = static_cast<void**>(std::calloc(kMost, sizeof(void*)));
  for (std::size_t i = 0; i < kMost; ++i) {
    if (jd_root_add(roots + i) == 0) return 1;
  }
  const auto number = [](void* array) { return static_cast<std::uint64_t*>(array) + 3; };
  std::size_t made = 0;
  for (; made < kMost; ++made) {
    roots[made] = jd_new_array(layout, 10 + made % 30);
    if (roots[made] == nullptr) break;
    *number(roots[made]) = made;
  }
  if (made == kMost) return 2;
  for (std::size_t i = 0; i < made; ++i) {
    if (i % kKept != 0) roots[i] = nullptr;
  }
  jd_collect(1);
  if (GC_get_heap_size() > kLimit / 4) return 3;
  if (jd_new_array(layout, kLimit / 4 / info.element_size) == nullptr) return 4;
  // And again full of small ones.
  std::size_t more = 0;
  for (std::size_t i = 0; i < made; ++i) {
    if (roots[i] != nullptr) continue;
    roots[i] = jd_new_array(layout, 10);
    if (roots[i] != nullptr) ++more;
  }
  if (more < made / 2) return 5;
  for (std::size_t i = 0; i < made; i += kKept) {
    if (*number(roots[i]) != i) return 6;
  }
  return 0;
}
TEST(Scarce, ASparseHeapThatMayNotGrowIsCompacted) {
  for (const char* source : {"0", "1", "2"}) {
    const ChildResult r = run_child("sparse_at_the_limit", {{"GC_MAXIMUM_HEAP_SIZE", "8M"},
                                                            {"JD_SOURCE", source},
                                                            {"JACKDAW_POLICY", "evacuate"},
                                                            {"JACKDAW_MOVE", kUnset},
                                                            {"JACKDAW_COLLECT_EVERY", kUnset}});
    EXPECT_TRUE(r.ok()) << "source " << source << " " << r;
  }
}

// A heap that may not grow, full once; of its objects few stay alive, some in each block.
JD_CHILD(full_once) {
  constexpr std::size_t kKept = 16;  // one in so many
  GC_INIT();
  const Nodes nodes(JD_HEADER);
  auto** const head = static_cast<void**>(std::calloc(1, sizeof(void*)));
  if (jd_root_add(head) == 0) return 1;
  const auto fill = [&] {
    std::size_t made = 0;
    for (void* made_last = jd_new(nodes.layout()); made_last != nullptr; ++made) {
      nodes.node(made_last)->next = static_cast<Node*>(*head);
      *head = made_last;
      made_last = jd_new(nodes.layout());
    }
    return made;
  };
  std::size_t first = 0;
  far_away([&] { first = fill(); });
  far_away([&] {
    for (void* node = *head; node != nullptr; node = nodes.next(node)) {
      void* next = nodes.next(node);
      for (std::size_t i = 1; i < kKept && next != nullptr; ++i) next = nodes.next(next);
      nodes.node(node)->next = static_cast<Node*>(next);
    }
  });
  std::size_t again = 0;
  far_away([&] { again = fill(); });
  std::printf("%zu, and %zu again\n", first, again);
  return first > 10000 && again > first / 2 ? 0 : 2;
}
// Regression: without a free block, a traversal freed nothing, nor did any that came after it.
TEST(Scarce, AnMccHeapThatWasFullHasRoomAgain) {
  for (const char* policy : {"mcc", "evacuate", "non-moving"}) {
    const ChildResult r = run_child("full_once", {{"GC_MAXIMUM_HEAP_SIZE", "16M"},
                                                  {"JACKDAW_POLICY", policy},
                                                  {"JACKDAW_MOVE", kUnset},
                                                  {"JACKDAW_COLLECT_EVERY", kUnset}});
    EXPECT_TRUE(r.ok()) << policy << " " << r;
  }
}

long intact = -1;

// A dead array of very many objects, which its finalizer looks at, and hardly any memory left.
constexpr std::size_t kMany = 300000;
JD_CHILD(finalizer_of_many) {
  GC_INIT();
  GC_set_finalize_on_demand(1);
  GC_disable();
  const Nodes nodes(JD_HEADER);
  static const std::uint64_t all = 1;
  jd_layout_info info = info_of("array", JD_HEADER, 0);
  info.element_size = sizeof(void*);
  info.element_pointers = &all;
  jd_layout* array_layout = jd_layout_define(&info);
  far_away([&] {
    auto** array = static_cast<void**>(jd_new_array(array_layout, kMany));
    for (std::size_t i = 0; i < kMany; ++i) array[i] = nodes.make(i);
    jd_finalizer(
        array,
        [](void* object, void* data) {
          const auto* n = static_cast<const Nodes*>(data);
          intact = 0;
          for (std::size_t i = 0; i < kMany; ++i) {
            intact += n->value(static_cast<void**>(object)[i]) == i ? 1 : 0;
          }
        },
        const_cast<Nodes*>(&nodes));
  });
  const std::size_t most = (kilobytes_of_data() + 512) * 1024;
  const rlimit limit{most, most};
  if (setrlimit(RLIMIT_DATA, &limit) != 0) return 1;
  GC_enable();
  for (int i = 0; i < 4 && intact < 0; ++i) {
    collect();
    GC_invoke_finalizers();
  }
  return intact == static_cast<long>(kMany) ? 0 : 2;
}
TEST(Scarce, FinalizersSeeEverythingWithoutMemoryForATraversal) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer needs memory of its own";
#endif
  const ChildResult r = run_child("finalizer_of_many", {{"JACKDAW_COLLECT_EVERY", kUnset}});
  EXPECT_TRUE(r.ok()) << r;
}

// ---- What the moving verifier says of a pointer that the program had hidden ----

JD_CHILD(hides_a_pointer) {
  GC_INIT();
  const char* const named = std::getenv("JD_SOURCE");
  const auto source = static_cast<jd_source>(std::atoi(named));
  const Nodes nodes(source);
  Cell cell;
  static std::uintptr_t hidden;
  far_away([&] {
    // Neighbours that stay, so that the block does.
    cell.set(nodes.make());
    jd_pin(cell.get());
    hidden = ~reinterpret_cast<std::uintptr_t>(nodes.make());
    jd_pin(nodes.make());
  });
  collect();
  far_away([&] { nodes.node(cell.get())->next = reinterpret_cast<Node*>(~hidden); });
  collect();
  return 0;
}
TEST(Scarce, TheVerifierNamesTheLayoutThatHoldsAFreedObject) {
  for (const char* policy : {"evacuate", "mcc", "non-moving"}) {
    for (const jd_source source : {JD_HOMOGENEOUS, JD_SELF, JD_HEADER}) {
      const std::string number = std::to_string(source);
      const ChildResult r = run_child("hides_a_pointer", {{"JACKDAW_POLICY", policy},
                                                          {"JACKDAW_VERIFY", "1"},
                                                          {"JACKDAW_POISON", "1"},
                                                          {"JACKDAW_COLLECT_EVERY", kUnset},
                                                          {"JD_SOURCE", number.c_str()}});
      EXPECT_FALSE(r.ok()) << policy << ", source " << source;
      EXPECT_EQ(lines_with(r.err, "a word of a node"), 1u) << policy << ", source " << source << r;
    }
  }
}

// Under the paper's policy a large object was refused while small ones had free blocks, without a
// collection, though all the rest was garbage.
JD_CHILD(large_object_at_the_limit_of_mcc) {
  GC_set_max_heap_size(16 << 20);
  GC_INIT();
  jd_heap_set_policy(JD_MCC);
  static const std::uint64_t first = 1;
  jd_layout* layout =
      jd_layout_define(std::array{info_of("one", JD_HOMOGENEOUS, 16, &first)}.data());
  static_cast<void>(jd_new(layout));
  // The limit is reached without a collection; then every second block is free.
  GC_disable();
  std::vector<std::uintptr_t> hidden;
  while (void* block = GC_malloc_atomic(9000)) {
    hidden.push_back(~reinterpret_cast<std::uintptr_t>(block));
  }
  for (std::size_t i = 0; i < hidden.size(); i += 2) {
    GC_free(reinterpret_cast<void*>(~hidden[i]));
  }
  GC_enable();
  return GC_malloc_atomic(64 << 10) != nullptr ? 0 : 1;
}
TEST(Scarce, ALargeObjectGetsTheLastCollectionUnderMccToo) {
  if (allocations_are_dear()) GTEST_SKIP() << "many allocations";
  const ChildResult r = run_child("large_object_at_the_limit_of_mcc",
                                  {{"JACKDAW_POLICY", kUnset}, {"JACKDAW_MOVE", kUnset}});
  EXPECT_TRUE(r.ok()) << r;
}

// What the out-of-memory function gives is no memory for a reference that a collection is to null.
JD_CHILD(weak_without_memory) {
  GC_INIT();
  static const std::uint64_t first = 1;
  jd_layout* layout = jd_layout_define(std::array{info_of("full", JD_HEADER, 64, &first)}.data());
  GC_set_warn_proc([](char*, GC_word) {});
  GC_set_oom_fn([](std::size_t bytes) -> void* { return std::calloc(1, bytes); });
  void* target = GC_malloc(16);
  static_cast<void>(jd_weak_new(target));
  GC_set_max_heap_size(GC_get_heap_size());
  void* all = nullptr;
  for (;;) {
    auto** object = static_cast<void**>(jd_new(layout));
    // The function's.
    if (jd_layout_of(object) != layout) break;
    *object = all;
    all = object;
  }
  // They are held, or the next one would have its place.
  static void* held[100000];
  for (void*& hold : held) {
    jd_weak* weak = jd_weak_new(target);
    if (weak == nullptr) return all != nullptr && target != nullptr ? 0 : 1;
    if (GC_base(weak) == nullptr) return 2;
    hold = weak;
  }
  return 3;
}
TEST(Scarce, AWeakReferenceWithoutMemoryIsNull) {
  const ChildResult r = run_child("weak_without_memory");
  EXPECT_TRUE(r.ok()) << r;
}

}  // namespace
}  // namespace jd::test
