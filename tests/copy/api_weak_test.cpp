// Weak references, ephemerons and finalizers of objects that move.
#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>

#include "api_support.hpp"

namespace jd::test {
namespace {

// Many weak things, held by memory that does not move.
template <class T>
class Held {
 public:
  explicit Held(std::size_t count)
      : count_(count), words_(static_cast<T**>(GC_malloc_uncollectable(count * sizeof(T*)))) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() { GC_free(words_); }
  T*& operator[](std::size_t i) const { return words_[i]; }
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  std::size_t count_;
  T** words_;
};

constexpr std::size_t kCount = 400;

// ---- Weak references ----

class Weak : public EachSource {};
JD_EACH_SOURCE(Weak);

TEST_P(Weak, FollowsObjectsThatMove) {
  const Nodes nodes(GetParam());
  Cell list;
  const Held<jd_weak> weak(kCount);
  far_away([&] { list.set(nodes.sparse_list(kCount, 8)); });
  far_away([&] {
    for (void* node = list.get(); node != nullptr; node = nodes.next(node)) {
      weak[nodes.value(node)] = jd_weak_new(node);
    }
  });
  for (int round = 0; round < 3; ++round) {
    compact();
    far_away([&] {
      for (void* node = list.get(); node != nullptr; node = nodes.next(node)) {
        ASSERT_EQ(jd_weak_get(weak[nodes.value(node)]), node);
      }
    });
  }
  // Those of the list's second half die.
  far_away([&] {
    void* node = list.get();
    for (std::size_t i = 0; i < kCount / 2 - 1; ++i) node = nodes.next(node);
    nodes.node(node)->next = nullptr;
  });
  std::size_t dead = 0;
  for (int attempt = 0; attempt < 4 && dead < kCount / 2; ++attempt) {
    compact();
    dead = 0;
    far_away([&] {
      for (std::size_t i = 0; i < kCount; ++i) {
        void* object = jd_weak_get(weak[i]);
        dead += object == nullptr;
        if (i >= kCount / 2) {
          ASSERT_EQ(nodes.value(object), i);
        }
      }
    });
  }
  // A stale word may hold one, and with it all behind it.
  EXPECT_GE(dead, kCount / 4);
}

// Weak references are objects: they move, and they die.
TEST_P(Weak, MayStandInObjectsAndMove) {
  const Nodes nodes(GetParam());
  Cell list;
  WeakWatch watch(kCount);
  far_away([&] {
    list.set(nodes.sparse_list(kCount, 8));
    for (void* node = list.get(); node != nullptr; node = nodes.next(node)) {
      nodes.node(node)->other = reinterpret_cast<Node*>(jd_weak_new(node));
      for (int i = 0; i < 8; ++i) static_cast<void>(jd_weak_new(node));
      // Weak references to weak references.
      watch.add(nodes.other(node));
    }
  });
  for (int round = 0; round < 2; ++round) {
    compact();
    far_away([&] {
      for (void* node = list.get(); node != nullptr; node = nodes.next(node)) {
        auto* own = static_cast<jd_weak*>(nodes.other(node));
        ASSERT_EQ(jd_weak_get(own), node);
        ASSERT_EQ(watch.get(kCount - 1 - nodes.value(node)), nodes.other(node)) << round;
      }
    });
    EXPECT_EQ(watch.alive(), kCount);
  }
  list.set(nullptr);
  EXPECT_TRUE(watch.most_dead());
}

TEST_P(Weak, ToInteriorsAndUntypedAndForeignMemory) {
  const Nodes nodes(GetParam());
  static int variable;
  Cell list;
  const Held<jd_weak> weak(kCount);
  auto** untyped = static_cast<void**>(GC_malloc_uncollectable(8));
  *untyped = GC_malloc(24);
  const Held<jd_weak> others(3);
  others[0] = jd_weak_new(*untyped);
  others[1] = jd_weak_new(&variable);
  others[2] = jd_weak_new(nullptr);
  far_away([&] {
    list.set(nodes.sparse_list(kCount, 8));
    for (void* node = list.get(); node != nullptr; node = nodes.next(node)) {
      const std::uint64_t i = nodes.value(node);
      weak[i] = jd_weak_new(static_cast<char*>(node) + i % 32);
    }
  });
  compact();
  far_away([&] {
    for (void* node = list.get(); node != nullptr; node = nodes.next(node)) {
      const std::uint64_t i = nodes.value(node);
      ASSERT_EQ(jd_weak_get(weak[i]), static_cast<char*>(node) + i % 32);
    }
  });
  EXPECT_EQ(jd_weak_get(others[0]), *untyped);
  EXPECT_EQ(jd_weak_get(others[1]), &variable);
  EXPECT_EQ(jd_weak_get(others[2]), nullptr);
  GC_free(untyped);
}

// ---- Ephemerons ----

class Ephemeron : public EachSource {};
JD_EACH_SOURCE(Ephemeron);

TEST_P(Ephemeron, FollowsKeyAndValue) {
  const Nodes nodes(GetParam());
  Cell list;
  const Held<jd_ephemeron> pairs(kCount);
  far_away([&] {
    list.set(nodes.sparse_list(kCount, 8));
    for (void* node = list.get(); node != nullptr; node = nodes.next(node)) {
      const std::uint64_t i = nodes.value(node);
      pairs[i] = jd_ephemeron_new(node, nodes.make(i + 1000));
    }
  });
  for (int round = 0; round < 3; ++round) {
    compact();
    far_away([&] {
      for (void* node = list.get(); node != nullptr; node = nodes.next(node)) {
        const std::uint64_t i = nodes.value(node);
        ASSERT_EQ(jd_ephemeron_key(pairs[i]), node);
        ASSERT_EQ(nodes.value(jd_ephemeron_value(pairs[i])),
                  i + 1000 + static_cast<unsigned>(round));
        void* value = nodes.make(i + 1001 + static_cast<unsigned>(round));
        jd_ephemeron_set_value(pairs[i], value);
      }
    });
  }
}

std::size_t dead_pairs(const Held<jd_ephemeron>& pairs) {
  std::size_t dead = 0;
  far_away([&] {
    for (std::size_t i = 0; i < pairs.count(); ++i) {
      dead += jd_ephemeron_key(pairs[i]) == nullptr;
      // Both are null, or none is.
      EXPECT_EQ(jd_ephemeron_key(pairs[i]) == nullptr, jd_ephemeron_value(pairs[i]) == nullptr);
    }
  });
  return dead;
}
testing::AssertionResult most_pairs_dead(const Held<jd_ephemeron>& pairs) {
  std::size_t dead = 0;
  for (int attempt = 0; attempt < 4; ++attempt) {
    compact();
    dead = dead_pairs(pairs);
    if (dead * 20 >= pairs.count() * 19) return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << "only " << dead << " of " << pairs.count() << " are null";
}

TEST_P(Ephemeron, BothAreNullOnceTheKeyIsDead) {
  const Nodes nodes(GetParam());
  const Held<jd_ephemeron> pairs(kCount);
  WeakWatch values(kCount);
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      void* value = nodes.make(i);
      values.add(value);
      pairs[i] = jd_ephemeron_new(nodes.make(i), value);
    }
  });
  EXPECT_TRUE(most_pairs_dead(pairs));
  EXPECT_TRUE(values.most_dead());
}

TEST_P(Ephemeron, WithoutAKeyHoldsNothing) {
  const Nodes nodes(GetParam());
  const Held<jd_ephemeron> pairs(kCount);
  WeakWatch values(2 * kCount);
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      pairs[i] = jd_ephemeron_new(nodes.make(i), nodes.make(i));
    }
  });
  EXPECT_TRUE(most_pairs_dead(pairs));
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      void* value = nodes.make(i);
      values.add(value);
      if (jd_ephemeron_key(pairs[i]) == nullptr) jd_ephemeron_set_value(pairs[i], value);
      void* another = nodes.make(i);
      values.add(another);
      pairs[i] = jd_ephemeron_new(nullptr, another);
    }
  });
  EXPECT_TRUE(values.most_dead());
}

// A weak hash table of strong values would leak these.
TEST_P(Ephemeron, ValueThatLeadsToItsKeyDoesNotHoldIt) {
  const Nodes nodes(GetParam());
  const Held<jd_ephemeron> pairs(kCount);
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      void* key = nodes.make(i);
      pairs[i] = jd_ephemeron_new(key, nodes.make(i, nodes.make(i, key)));
    }
  });
  EXPECT_TRUE(most_pairs_dead(pairs));
}

// Each value leads to the next one's key: all hang on the first key.
TEST_P(Ephemeron, Chains) {
  const Nodes nodes(GetParam());
  // The marker goes through all pairs once a link, at worst.
  constexpr std::size_t kLinks = 100;
  const Held<jd_ephemeron> pairs(kLinks);
  Cell first;
  far_away([&] {
    // From the end, so that pairs lie against the order of the chain; and one from each end in
    // turn.
    void* key = nodes.make(kLinks);
    for (std::size_t i = kLinks; i-- > 0;) {
      void* value = nodes.make(i, key);
      void* own = nodes.make(i);
      pairs[i * 37 % kLinks] = jd_ephemeron_new(own, value);
      key = own;
    }
    first.set(key);
  });
  for (int round = 0; round < 2; ++round) {
    compact();
    EXPECT_EQ(dead_pairs(pairs), 0U);
    far_away([&] {
      void* key = first.get();
      for (std::size_t i = 0; i < kLinks; ++i) {
        const jd_ephemeron* pair = pairs[i * 37 % kLinks];
        ASSERT_EQ(jd_ephemeron_key(pair), key);
        ASSERT_EQ(nodes.value(key), i);
        key = nodes.next(jd_ephemeron_value(pair));
      }
      ASSERT_EQ(nodes.value(key), kLinks);
    });
  }
  first.set(nullptr);
  EXPECT_TRUE(most_pairs_dead(pairs));
}

// A look at every pair for every link would take minutes.
TEST_P(Ephemeron, LongChainsThroughMemoryTakeFewPasses) {
  const Nodes nodes(GetParam());
  // Where markers are woken for next to nothing, each link wakes them.
  const bool dear = allocations_are_dear() || std::getenv("JACKDAW_MARK_PATIENCE") != nullptr;
  const std::size_t links = dear ? 100 : 200000;
  for (const bool upwards : {true, false}) {
    const Held<jd_ephemeron> pairs(links);
    Cell first;
    far_away([&] {
      void* end = nodes.make(0);
      if (upwards) first.set(end);
      for (std::size_t i = 0; i < links; ++i) {
        void* node = nodes.make(i);
        pairs[i] = upwards ? jd_ephemeron_new(end, node) : jd_ephemeron_new(node, end);
        end = node;
        if (!upwards) first.set(end);
      }
    });
    compact();
    EXPECT_EQ(dead_pairs(pairs), 0U);
    first.set(nullptr);
  }
}

// Two pairs, each of which leads to the other's key.
TEST_P(Ephemeron, PairsInACircleDie) {
  const Nodes nodes(GetParam());
  const Held<jd_ephemeron> pairs(kCount);
  far_away([&] {
    for (std::size_t i = 0; i < kCount; i += 2) {
      void* a = nodes.make(i);
      void* b = nodes.make(i);
      pairs[i] = jd_ephemeron_new(a, nodes.make(i, b));
      pairs[i + 1] = jd_ephemeron_new(b, nodes.make(i, a));
    }
  });
  EXPECT_TRUE(most_pairs_dead(pairs));
}

TEST_P(Ephemeron, KeysOutsideOfTheHeapLiveForEver) {
  const Nodes nodes(GetParam());
  static int variable;
  const Held<jd_ephemeron> pairs(2);
  far_away([&] { pairs[0] = jd_ephemeron_new(&variable, nodes.make(5)); });
  compact();
  EXPECT_EQ(jd_ephemeron_key(pairs[0]), &variable);
  EXPECT_EQ(nodes.value(jd_ephemeron_value(pairs[0])), 5U);
}

// An ephemeron that dies holds no value.
TEST_P(Ephemeron, ItselfMustBeHeld) {
  const Nodes nodes(GetParam());
  Cell keys;
  WeakWatch values(kCount);
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      keys.set(nodes.make(i, keys.get()));
      void* value = nodes.make(i);
      values.add(value);
      static_cast<void>(jd_ephemeron_new(keys.get(), value));
    }
  });
  EXPECT_TRUE(values.most_dead());
}

// ---- Finalizers ----

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
  static Held<jd_weak>* weak;
  static std::atomic<std::size_t> not_null;
  const auto held = std::make_unique<Held<jd_weak>>(kCount);
  weak = held.get();
  not_null = 0;
  static std::atomic<std::size_t> calls;
  calls = 0;
  finalized.nodes = &nodes;
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      void* object = nodes.make(i);
      (*weak)[i] = jd_weak_new(object);
      jd_finalizer(
          object,
          [](void* dead, void*) {
            ++calls;
            not_null += jd_weak_get((*weak)[finalized.nodes->value(dead)]) != nullptr ? 1 : 0;
          },
          nullptr);
    }
  });
  for (int attempt = 0; attempt < 4; ++attempt) {
    compact();
    far_away([] { GC_invoke_finalizers(); });
  }
  EXPECT_GE(calls * 20, kCount * 19);
  EXPECT_EQ(not_null, 0U);
}

// Also of one that only the dead object itself refers to.
TEST_P(Finalizer, ItsOwnWeakReferenceIsNullBeforeIt) {
  const Nodes nodes(GetParam());
  static std::atomic<std::size_t> not_null;
  static std::atomic<std::size_t> calls;
  not_null = calls = 0;
  finalized.nodes = &nodes;
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      void* object = nodes.make(i);
      nodes.node(object)->other = reinterpret_cast<Node*>(jd_weak_new(object));
      jd_finalizer(
          object,
          [](void* dead, void*) {
            ++calls;
            auto* own = static_cast<jd_weak*>(finalized.nodes->other(dead));
            not_null += jd_weak_get(own) != nullptr ? 1 : 0;
          },
          nullptr);
    }
  });
  for (int attempt = 0; attempt < 4; ++attempt) {
    compact();
    far_away([] { GC_invoke_finalizers(); });
  }
  EXPECT_GE(calls * 20, kCount * 19);
  EXPECT_EQ(not_null, 0U);
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
  Held<void> keys(kCount);
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
  for (int attempt = 0; attempt < 4; ++attempt) {
    compact();
    far_away([] { GC_invoke_finalizers(); });
  }
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
  for (int attempt = 0; attempt < 4; ++attempt) {
    compact();
    far_away([] { GC_invoke_finalizers(); });
  }
  EXPECT_GE(right * 20, kCount * 19);
}

}  // namespace
}  // namespace jd::test
