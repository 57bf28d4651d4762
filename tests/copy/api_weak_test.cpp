// Weak references to objects that move, and ephemerons.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "api_support.hpp"

namespace jd::test {
namespace {

constexpr std::size_t kCount = 400;

// ---- Weak references ----

class Weak : public EachSource {};
JD_EACH_SOURCE(Weak);

TEST_P(Weak, FollowsObjectsThatMove) {
  const Nodes nodes(GetParam());
  Cell list;
  const HeldArray<jd_weak> weak(kCount);
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
  const HeldArray<jd_weak> weak(kCount);
  auto** untyped = static_cast<void**>(GC_malloc_uncollectable(8));
  *untyped = GC_malloc(24);
  const HeldArray<jd_weak> others(3);
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
  const HeldArray<jd_ephemeron> pairs(kCount);
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

std::size_t dead_pairs(const HeldArray<jd_ephemeron>& pairs) {
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
testing::AssertionResult most_pairs_dead(const HeldArray<jd_ephemeron>& pairs) {
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
  const HeldArray<jd_ephemeron> pairs(kCount);
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
  const HeldArray<jd_ephemeron> pairs(kCount);
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
  const HeldArray<jd_ephemeron> pairs(kCount);
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
  const HeldArray<jd_ephemeron> pairs(kLinks);
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
    const HeldArray<jd_ephemeron> pairs(links);
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

// Nor does a chain that turns at nearly every link, which passes follow for a link or two each.
// Under mcc, which has nothing but passes, a shorter one.
TEST_P(Ephemeron, LongChainsThatTurnTakeFewPasses) {
  const Nodes nodes(GetParam());
  const bool dear = allocations_are_dear() || std::getenv("JACKDAW_MARK_PATIENCE") != nullptr;
  const std::size_t links = dear ? 100 : is_mcc() ? 1000 : 100000;
  std::vector<std::size_t> order(links);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
  const HeldArray<jd_ephemeron> pairs(links);
  Cell first;
  far_away([&] {
    // In the order of memory: the keys of the chain's links, which are made in a random order.
    const HeldArray<void> keys(links + 1);
    for (std::size_t i = 0; i <= links; ++i) keys[i] = nodes.make(i);
    for (const std::size_t i : order) {
      pairs[i] = jd_ephemeron_new(keys[i], nodes.make(i, keys[i + 1]));
    }
    first.set(keys[0]);
  });
  compact();
  EXPECT_EQ(dead_pairs(pairs), 0U);
  first.set(nullptr);
  EXPECT_TRUE(most_pairs_dead(pairs));
}

// Two pairs, each of which leads to the other's key.
TEST_P(Ephemeron, PairsInACircleDie) {
  const Nodes nodes(GetParam());
  const HeldArray<jd_ephemeron> pairs(kCount);
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
  const HeldArray<jd_ephemeron> pairs(2);
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

// An ephemeron whose key lives leads to a value with a finalizer; and something with another, its
// owner, is that ephemeron or leads to it.
void expect_values_after_owners(const Nodes& nodes, bool own_themselves) {
  const Cell key(nodes.make());
  // Whether each owner was finalized; and values that came first.
  static std::array<bool, kCount> is_over;
  static std::size_t owners;
  static std::size_t too_early;
  static std::size_t values;
  GC_set_finalize_on_demand(1);
  is_over = {};
  owners = too_early = values = 0;
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      const Cell value(nodes.make(i));
      const Cell pair(jd_ephemeron_new(key.get(), value.get()));
      const Cell owner(own_themselves ? pair.get() : nodes.make(i, pair.get()));
      auto* const number = reinterpret_cast<void*>(i);
      ASSERT_EQ(jd_finalizer(
                    owner.get(),
                    [](void*, void* n) {
                      ++owners;
                      is_over[reinterpret_cast<std::size_t>(n)] = true;
                    },
                    number),
                1);
      ASSERT_EQ(jd_finalizer(
                    value.get(),
                    [](void*, void* n) {
                      ++values;
                      too_early += !is_over[reinterpret_cast<std::size_t>(n)];
                    },
                    number),
                1);
    }
  });
  for (int attempt = 0; attempt < 6 && values < kCount * 9 / 10; ++attempt) {
    const std::size_t values_before = values;
    const std::size_t owners_before = owners;
    compact();
    far_away([] { GC_invoke_finalizers(); });
    // Those whose owners were due at the same time.
    EXPECT_LE(values - values_before, owners_before - values_before);
  }
  EXPECT_EQ(too_early, 0U);
  EXPECT_GE(values, kCount * 9 / 10);
  GC_set_finalize_on_demand(0);
}

TEST_P(Ephemeron, ItsValueIsFinalizedAfterWhatLeadsToIt) {
  expect_values_after_owners(Nodes(GetParam()), false);
}

TEST_P(Ephemeron, ItsValueIsFinalizedAfterItself) {
  expect_values_after_owners(Nodes(GetParam()), true);
}

// An object without order leads to an ephemeron, and by that to one that waits until nothing does.
TEST_P(Ephemeron, ItsValueWaitsForOnesWithoutOrder) {
  const Nodes nodes(GetParam());
  const Cell key(nodes.make());
  static std::array<bool, kCount> is_over;
  static std::size_t too_early;
  static std::size_t values;
  GC_set_finalize_on_demand(1);
  is_over = {};
  too_early = values = 0;
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      const Cell value(nodes.make(i));
      const Cell owner(nodes.make(i, jd_ephemeron_new(key.get(), value.get())));
      auto* const number = reinterpret_cast<void*>(i);
      GC_register_finalizer_no_order(
          owner.get(), [](void*, void* n) { is_over[reinterpret_cast<std::size_t>(n)] = true; },
          number, nullptr, nullptr);
      GC_register_finalizer_unreachable(
          value.get(),
          [](void*, void* n) {
            ++values;
            too_early += !is_over[reinterpret_cast<std::size_t>(n)];
          },
          number, nullptr, nullptr);
    }
  });
  for (int attempt = 0; attempt < 6 && values < kCount * 9 / 10; ++attempt) {
    compact();
    far_away([] { GC_invoke_finalizers(); });
  }
  EXPECT_EQ(too_early, 0U);
  EXPECT_GE(values, kCount * 9 / 10);
  GC_set_finalize_on_demand(0);
}

TEST_P(Ephemeron, ThatLeadsToItselfIsNeverFinalized) {
  const Nodes nodes(GetParam());
  const Cell key(nodes.make());
  // Those of earlier rounds are, as their keys are dead.
  static std::size_t round;
  static std::size_t calls;
  ++round;
  calls = 0;
  const GC_warn_proc warn = GC_get_warn_proc();
  GC_set_warn_proc(GC_ignore_warn_proc);  // that there is a cycle
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      const Cell value(nodes.make(i));
      const Cell pair(jd_ephemeron_new(key.get(), value.get()));
      nodes.node(value.get())->next = static_cast<Node*>(pair.get());
      ASSERT_EQ(
          jd_finalizer(
              pair.get(),
              [](void*, void* of) { calls += reinterpret_cast<std::size_t>(of) == round ? 1 : 0; },
              reinterpret_cast<void*>(round)),
          1);
    }
  });
  for (int attempt = 0; attempt < 3; ++attempt) {
    compact();
    far_away([] { GC_invoke_finalizers(); });
  }
  EXPECT_EQ(calls, 0U);
  GC_set_warn_proc(warn);
}

}  // namespace
}  // namespace jd::test
