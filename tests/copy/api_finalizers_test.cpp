// Finalizers of objects that move.
#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "api_support.hpp"

namespace jd::test {
namespace {

constexpr std::size_t kCount = 400;

struct Finalized {
  std::atomic<std::size_t> calls{0};
  std::atomic<std::size_t> wrong{0};
  std::map<std::uint64_t, int> seen;
  const Nodes* nodes = nullptr;
  char* data = nullptr;  // that this round's finalizers are called with
};
Finalized finalized;

void note_finalized(void* object, void* data) {
  // A straggler of an earlier round.
  if (data != finalized.data) return;
  const std::uint64_t value = finalized.nodes->value(object);
  // Its own contents, what it refers to, and that it is where the collector thinks it is.
  const bool right = jd_layout_of(object) == finalized.nodes->layout() && jd_size_of(object) != 0 &&
                     finalized.nodes->next(object) != nullptr &&
                     finalized.nodes->value(finalized.nodes->next(object)) == value + 1000;
  ++finalized.calls;
  finalized.wrong += right ? 0 : 1;
  ++finalized.seen[value];
}

class Finalizer : public EachSource {
 protected:
  void begin(const Nodes& nodes) {
    finalized.calls = 0;
    finalized.wrong = 0;
    finalized.seen.clear();
    finalized.nodes = &nodes;
    static char rounds[64];
    static std::size_t round = 0;
    finalized.data = &rounds[round++ % sizeof rounds];
  }
  // Runs what is due, also what stale words have kept for a collection or two.
  static void invoke_due() {
    for (int attempt = 0; attempt < 4; ++attempt) {
      compact();
      far_away([] { GC_invoke_finalizers(); });
    }
  }
  // Each object gets a weak reference by attach(object, number), and its finalizer finds that by
  // Find()(object).
  template <class Attach, class Find>
  static void expect_null_before_finalizers(const Nodes& nodes, Attach attach, Find) {
    static std::atomic<std::size_t> not_null;
    static std::atomic<std::size_t> calls;
    not_null = calls = 0;
    finalized.nodes = &nodes;
    far_away([&] {
      for (std::size_t i = 0; i < kCount; ++i) {
        void* object = nodes.make(i);
        attach(object, i);
        jd_finalizer(
            object,
            [](void* dead, void*) {
              ++calls;
              not_null += jd_weak_get(Find()(dead)) != nullptr ? 1 : 0;
            },
            nullptr);
      }
    });
    invoke_due();
    EXPECT_GE(calls * 20, kCount * 19);
    EXPECT_EQ(not_null, 0U);
  }
  // Runs what is due until most of `count` were.
  void expect_most(std::size_t count) {
    for (int attempt = 0; attempt < 6 && finalized.calls < count; ++attempt) {
      compact();
      far_away([] { GC_invoke_finalizers(); });
    }
    EXPECT_GE(finalized.calls * 20, count * 19);
    EXPECT_EQ(finalized.wrong, 0U);
    for (const auto& [value, calls] : finalized.seen) EXPECT_EQ(calls, 1) << value;
  }
};
JD_EACH_SOURCE(Finalizer);

enum class Way { Native, Libgc, LibgcNoOrder };
void finalize_sparse_list(const Nodes& nodes, Cell* list, Way way) {
  list->set(nodes.sparse_list(kCount, 8));
  for (void* node = list->get(); node != nullptr; node = nodes.next(node)) {
    nodes.node(node)->other = static_cast<Node*>(nodes.make(nodes.value(node) + 1000));
    GC_finalization_proc old = nullptr;
    void* old_data = nullptr;
    if (way == Way::Native) {
      ASSERT_NE(jd_finalizer(node, note_finalized, finalized.data), 0);
    } else if (way == Way::Libgc) {
      GC_register_finalizer(node, note_finalized, finalized.data, &old, &old_data);
    } else {
      GC_register_finalizer_no_order(node, note_finalized, finalized.data, &old, &old_data);
    }
    ASSERT_EQ(old, nullptr);
  }
}
// Cuts the list: each node now refers to its own companion only.
void cut(const Nodes& nodes, Cell* list) {
  void* node = list->get();
  list->set(nullptr);
  while (node != nullptr) {
    void* next = nodes.next(node);
    nodes.node(node)->next = static_cast<Node*>(nodes.other(node));
    node = next;
  }
}

TEST_P(Finalizer, RunsOnceWithThePresentAddress) {
  const Nodes nodes(GetParam());
  for (const Way way : {Way::Native, Way::Libgc, Way::LibgcNoOrder}) {
    begin(nodes);
    Cell list;
    far_away([&] { finalize_sparse_list(nodes, &list, way); });
    compact();
    compact();
    GC_invoke_finalizers();
    ASSERT_EQ(finalized.calls, 0U);
    far_away([&] { cut(nodes, &list); });
    expect_most(kCount);
  }
}

TEST_P(Finalizer, MayBeTakenBackAfterAMove) {
  const Nodes nodes(GetParam());
  begin(nodes);
  Cell list;
  far_away([&] { finalize_sparse_list(nodes, &list, Way::Native); });
  compact();
  far_away([&] {
    for (void* node = list.get(); node != nullptr; node = nodes.next(node)) {
      if (nodes.value(node) % 2 == 0) {
        ASSERT_NE(jd_finalizer(node, nullptr, nullptr), 0);
      } else {
        // Replaced: the old one is known by the object's new address.
        GC_finalization_proc old = nullptr;
        void* data = nullptr;
        GC_register_finalizer(node, note_finalized, finalized.data, &old, &data);
        ASSERT_EQ(old, &note_finalized);
        ASSERT_EQ(data, finalized.data);
      }
    }
  });
  compact();
  far_away([&] { cut(nodes, &list); });
  expect_most(kCount / 2);
  EXPECT_LE(finalized.calls, kCount / 2);
}

TEST_P(Finalizer, WeakReferencesAreNullBeforeIt) {
  const Nodes nodes(GetParam());
  static HeldArray<jd_weak>* weak;
  const auto held = std::make_unique<HeldArray<jd_weak>>(kCount);
  weak = held.get();
  expect_null_before_finalizers(
      nodes, [](void* object, std::size_t i) { (*weak)[i] = jd_weak_new(object); },
      [](void* dead) -> jd_weak* { return (*weak)[finalized.nodes->value(dead)]; });
}

// Also of one that only the dead object itself refers to.
TEST_P(Finalizer, ItsOwnWeakReferenceIsNullBeforeIt) {
  const Nodes nodes(GetParam());
  expect_null_before_finalizers(
      nodes,
      [&](void* object, std::size_t) {
        nodes.node(object)->other = reinterpret_cast<Node*>(jd_weak_new(object));
      },
      [](void* dead) { return static_cast<jd_weak*>(finalized.nodes->other(dead)); });
}

// As its finalizer is.
TEST_P(Finalizer, IsAnnouncedByTheAddressThatItWasGiven) {
  const Nodes nodes(GetParam());
  static std::atomic<std::size_t> right;
  static std::atomic<std::size_t> wrong;
  right = wrong = 0;
  finalized.nodes = &nodes;
  GC_set_await_finalize_proc([](void* object) {
    const bool is_node =
        jd_layout_of(object) == finalized.nodes->layout() && finalized.nodes->value(object) == 4711;
    ++(is_node ? right : wrong);
  });
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      jd_finalizer(
          nodes.make(4711), [](void*, void*) {}, nullptr);
    }
  });
  for (int attempt = 0; attempt < 4; ++attempt) compact();
  GC_set_await_finalize_proc(nullptr);
  EXPECT_GE(right * 20, kCount * 19);
  EXPECT_EQ(wrong, 0U);
  GC_invoke_finalizers();
}

// An ephemeron that only dead objects lead to, whose key lives: it is as it was for their
// finalizers, and what its value leads to is alive by all accounts.
TEST_P(Finalizer, ItsOwnEphemeronIsWhole) {
  const Nodes nodes(GetParam());
  static std::atomic<std::size_t> broken;
  static std::atomic<std::size_t> calls;
  broken = calls = 0;
  finalized.nodes = &nodes;
  HeldArray<void> keys(kCount);
  // Of the values, where nobody looks for pointers.
  std::vector<GC_hidden_pointer> links(kCount);
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      void* object = nodes.make(i);
      keys[i] = nodes.make(i + 1);
      void* value = nodes.make(i + 2);
      links[i] = GC_HIDE_POINTER(value);
      GC_register_long_link(reinterpret_cast<void**>(&links[i]), value);
      nodes.node(object)->other = reinterpret_cast<Node*>(jd_ephemeron_new(keys[i], value));
      jd_finalizer(
          object,
          [](void* dead, void* links_of) {
            ++calls;
            const std::size_t number = finalized.nodes->value(dead);
            auto* own = static_cast<jd_ephemeron*>(finalized.nodes->other(dead));
            void* key = jd_ephemeron_key(own);
            void* value_now = jd_ephemeron_value(own);
            const bool whole = key != nullptr && finalized.nodes->value(key) == number + 1 &&
                               value_now != nullptr &&
                               finalized.nodes->value(value_now) == number + 2 &&
                               static_cast<GC_hidden_pointer*>(links_of)[number] != 0;
            broken += whole ? 0 : 1;
          },
          links.data());
    }
  });
  invoke_due();
  EXPECT_GE(calls * 20, kCount * 19);
  EXPECT_EQ(broken, 0U);
  for (GC_hidden_pointer& link : links) GC_unregister_long_link(reinterpret_cast<void**>(&link));
}

TEST_P(Finalizer, DataIsHeldAndMayBeTyped) {
  const Nodes nodes(GetParam());
  Cell list;
  finalized.nodes = &nodes;
  static std::atomic<std::size_t> right;
  right = 0;
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      void* object = nodes.make(i);
      jd_finalizer(
          object,
          [](void* dead, void* data) {
            right += finalized.nodes->value(dead) + 5000 == finalized.nodes->value(data) ? 1 : 0;
          },
          nodes.make(i + 5000));
      list.set(object);
    }
  });
  list.set(nullptr);
  invoke_due();
  EXPECT_GE(right * 20, kCount * 19);
}

}  // namespace
}  // namespace jd::test
