// The order of finalizers: what points to what decides which runs first, or that none does.
#include <algorithm>
#include <vector>

#include "gc_test.hpp"

namespace jd::test {
namespace {

struct Link {
  Link* next;
  Link* other;
  long chain;
  long place;
};

struct Ran {
  long chain;
  long place;
};

std::vector<Ran>& runs() {
  static std::vector<Ran> all;
  return all;
}

void record(void* object, void*) {
  const auto* link = static_cast<const Link*>(object);
  runs().push_back({link->chain, link->place});
}

using Register = void (*)(void*, GC_finalization_proc, void*, GC_finalization_proc*, void**);

Link* new_link(long chain, long place, Register reg) {
  Link* link = GC_NEW(Link);
  link->chain = chain;
  link->place = place;
  if (reg != nullptr) reg(link, record, nullptr, nullptr, nullptr);
  return link;
}

class Order : public testing::Test {
 protected:
  void SetUp() override {
    collect_all();
    runs().clear();
    runs().reserve(100000);
  }
  static void finish() {
    for (int i = 0; i < 12; ++i) collect_all();
  }
  // Places of one chain, in the order in which they ran.
  static std::vector<long> of_chain(long chain) {
    std::vector<long> places;
    for (const Ran& run : runs()) {
      if (run.chain == chain) places.push_back(run.place);
    }
    return places;
  }
  static constexpr long kChains = 200;
};

TEST_F(Order, OrderedRunsFromTheHeadOfAChain) {
  far_away([] {
    for (long c = 0; c < kChains; ++c) {
      Link* head = nullptr;
      for (long i = 5; i-- > 0;) {
        Link* link = new_link(c, i, GC_register_finalizer);
        link->next = head;
        head = link;
      }
    }
  });
  finish();
  long complete = 0;
  for (long c = 0; c < kChains; ++c) {
    const std::vector<long> places = of_chain(c);
    EXPECT_TRUE(std::is_sorted(places.begin(), places.end())) << c;
    complete += places.size() == 5;
  }
  EXPECT_GE(complete, kChains * 95 / 100);
}

TEST_F(Order, OneCollectionFinalizesOnlyTheHead) {
  GC_set_finalize_on_demand(1);
  far_away([] {
    for (long c = 0; c < kChains; ++c) {
      Link* tail = new_link(c, 1, GC_register_finalizer);
      Link* head = new_link(c, 0, GC_register_finalizer);
      head->next = tail;
    }
  });
  collect();
  GC_invoke_finalizers();
  GC_set_finalize_on_demand(0);
  EXPECT_GE(runs().size(), static_cast<std::size_t>(kChains * 95 / 100));
  for (const Ran& run : runs()) ASSERT_EQ(run.place, 0);
  finish();
}

TEST_F(Order, OrderedThroughObjectsWithoutFinalizers) {
  far_away([] {
    for (long c = 0; c < kChains; ++c) {
      Link* tail = new_link(c, 1, GC_register_finalizer);
      Link* middle = new_link(c, 7, nullptr);
      Link* head = new_link(c, 0, GC_register_finalizer);
      head->next = middle;
      middle->next = tail;
    }
  });
  finish();
  for (long c = 0; c < kChains; ++c) {
    const std::vector<long> places = of_chain(c);
    EXPECT_TRUE(std::is_sorted(places.begin(), places.end())) << c;
  }
  EXPECT_GE(runs().size(), static_cast<std::size_t>(2 * kChains * 95 / 100));
}

void ignore_warning(char*, GC_word) {}

TEST_F(Order, OrderedCyclesAreNeverFinalized) {
  const GC_warn_proc warn = GC_get_warn_proc();
  GC_set_warn_proc(ignore_warning);
  std::vector<GC_hidden_pointer> hidden;
  far_away([&] {
    for (long c = 0; c < kChains; ++c) {
      Link* a = new_link(c, 0, GC_register_finalizer);
      Link* b = new_link(c, 1, GC_register_finalizer);
      a->next = b;
      b->next = a;
      Link* self = new_link(c, 2, GC_register_finalizer);
      self->next = self;
      for (Link* link : {a, b, self}) hidden.push_back(GC_HIDE_POINTER(link));
    }
  });
  finish();
  EXPECT_TRUE(runs().empty());
  // They are kept for ever, and warned about at each collection, until somebody breaks the cycle.
  far_away([&] {
    for (const GC_hidden_pointer p : hidden) {
      static_cast<Link*>(GC_REVEAL_POINTER(p))->next = nullptr;
    }
  });
  finish();
  EXPECT_GE(runs().size(), hidden.size() * 95 / 100);
  GC_set_warn_proc(warn);
}

TEST_F(Order, IgnoreSelfFinalizesObjectsThatPointToThemselves) {
  far_away([] {
    for (long c = 0; c < kChains; ++c) {
      Link* self = new_link(c, 0, GC_register_finalizer_ignore_self);
      self->next = self;
      self->other = reinterpret_cast<Link*>(&self->place);
    }
  });
  finish();
  EXPECT_GE(runs().size(), static_cast<std::size_t>(kChains * 95 / 100));
}

TEST_F(Order, IgnoreSelfIsOrderedOtherwise) {
  far_away([] {
    for (long c = 0; c < kChains; ++c) {
      Link* head = nullptr;
      for (long i = 4; i-- > 0;) {
        Link* link = new_link(c, i, GC_register_finalizer_ignore_self);
        link->next = head;
        link->other = link;
        head = link;
      }
    }
  });
  finish();
  long complete = 0;
  for (long c = 0; c < kChains; ++c) {
    const std::vector<long> places = of_chain(c);
    EXPECT_TRUE(std::is_sorted(places.begin(), places.end())) << c;
    complete += places.size() == 4;
  }
  EXPECT_GE(complete, kChains * 95 / 100);
}

TEST_F(Order, NoOrderFinalizesCycles) {
  far_away([] {
    for (long c = 0; c < kChains; ++c) {
      Link* a = new_link(c, 0, GC_register_finalizer_no_order);
      Link* b = new_link(c, 1, GC_register_finalizer_no_order);
      a->next = b;
      b->next = a;
    }
  });
  finish();
  EXPECT_GE(runs().size(), static_cast<std::size_t>(2 * kChains * 95 / 100));
}

TEST_F(Order, NoOrderTakesAWholeChainAtOnce) {
  GC_set_finalize_on_demand(1);
  far_away([] {
    for (long c = 0; c < kChains; ++c) {
      Link* tail = new_link(c, 1, GC_register_finalizer_no_order);
      Link* head = new_link(c, 0, GC_register_finalizer_no_order);
      head->next = tail;
    }
  });
  collect();
  GC_invoke_finalizers();
  GC_set_finalize_on_demand(0);
  EXPECT_GE(runs().size(), static_cast<std::size_t>(2 * kChains * 95 / 100));
}

TEST_F(Order, UnreachableWaitsForNoOrderOnesThatStillReachIt) {
  // Java mode: an object reachable from another finalizable one is not yet unreachable.
  GC_set_finalize_on_demand(1);
  far_away([] {
    for (long c = 0; c < kChains; ++c) {
      Link* late = new_link(c, 1, GC_register_finalizer_unreachable);
      Link* early = new_link(c, 0, GC_register_finalizer_no_order);
      early->next = late;
    }
  });
  collect();
  GC_invoke_finalizers();
  EXPECT_GE(runs().size(), static_cast<std::size_t>(kChains * 95 / 100));
  for (const Ran& run : runs()) ASSERT_EQ(run.place, 0);
  GC_set_finalize_on_demand(0);
  finish();
  EXPECT_GE(runs().size(), static_cast<std::size_t>(2 * kChains * 95 / 100));
}

TEST_F(Order, WhatAFinalizableObjectReachesSurvivesForIt) {
  struct Check {
    static void finalize(void* object, void*) {
      const auto* link = static_cast<const Link*>(object);
      long length = 0;
      for (const Link* p = link->next; p != nullptr; p = p->next) {
        if (p->chain != link->chain || p->place != length) return;
        ++length;
      }
      if (length == 10) runs().push_back({link->chain, 0});
    }
  };
  for (const Register reg : {GC_register_finalizer, GC_register_finalizer_ignore_self,
                             GC_register_finalizer_no_order, GC_register_finalizer_unreachable}) {
    runs().clear();
    far_away([reg] {
      for (long c = 0; c < kChains; ++c) {
        Link* head = nullptr;
        for (long i = 10; i-- > 0;) {
          Link* link = new_link(c, i, nullptr);
          link->next = head;
          head = link;
        }
        Link* object = new_link(c, 0, nullptr);
        object->next = head;
        reg(object, Check::finalize, nullptr, nullptr, nullptr);
      }
    });
    for (int i = 0; i < 20000; ++i) opaque(GC_malloc(sizeof(Link)));
    finish();
    EXPECT_GE(runs().size(), static_cast<std::size_t>(kChains * 95 / 100));
  }
}

TEST_F(Order, ALongOrderedChainTakesACollectionEach) {
  constexpr long kLength = 60;
  far_away([] {
    Link* head = nullptr;
    for (long i = kLength; i-- > 0;) {
      Link* link = new_link(0, i, GC_register_finalizer);
      link->next = head;
      head = link;
    }
  });
  for (int i = 0; i < 100; ++i) collect_all();
  const std::vector<long> places = of_chain(0);
  EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
  EXPECT_GE(places.size(), static_cast<std::size_t>(kLength - 3));
}

}  // namespace
}  // namespace jd::test
