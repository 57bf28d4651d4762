// Disappearing links in objects that move, and to such.
#include <vector>

#include "api_support.hpp"

namespace jd::test {
namespace {

constexpr std::size_t kCount = 400;

class Link : public EachSource {};
JD_EACH_SOURCE(Link);

// Links in movable objects, hidden, to movable objects.
TEST_P(Link, InsideMovableObjects) {
  const Nodes nodes(GetParam());
  Cell list;
  Cell targets;
  Cell dying;
  far_away([&] {
    list.set(nodes.sparse_list(kCount, 8));
    for (void* node = list.get(); node != nullptr; node = nodes.next(node)) {
      // Sparse, too: but for their links, both would move.
      for (int i = 0; i < 8; ++i) static_cast<void>(nodes.make());
      void* target = nodes.make(nodes.value(node) + 1000);
      Cell& holder = nodes.value(node) % 2 == 0 ? targets : dying;
      nodes.node(target)->next = static_cast<Node*>(holder.get());
      holder.set(target);
      auto** link = reinterpret_cast<void**>(&nodes.node(node)->more);
      *link = reinterpret_cast<void*>(GC_HIDE_POINTER(target));
      ASSERT_EQ(GC_general_register_disappearing_link(link, target), GC_SUCCESS);
    }
  });
  compact();
  compact();
  std::size_t cleared = 0;
  const auto look = [&] {
    cleared = 0;
    for (void* node = list.get(); node != nullptr; node = nodes.next(node)) {
      void* link = reinterpret_cast<void*>(nodes.node(node)->more);
      if (link == nullptr) {
        ASSERT_EQ(nodes.value(node) % 2, 1U);
        ++cleared;
        continue;
      }
      ASSERT_EQ(nodes.value(GC_REVEAL_POINTER(link)), nodes.value(node) + 1000);
    }
  };
  far_away(look);
  EXPECT_EQ(cleared, 0U);
  dying.set(nullptr);
  for (int attempt = 0; attempt < 4 && cleared < kCount / 2; ++attempt) {
    compact();
    far_away(look);
  }
  // A stale word may hold one, and with it all behind it.
  EXPECT_GE(cleared, kCount / 4);
  // When the objects die that links lie in, the links are forgotten.
  list.set(nullptr);
  compact();
  far_away([&] { list.set(nodes.sparse_list(kCount, 0)); });
  targets.set(nullptr);
  compact();
  EXPECT_TRUE(nodes.is_list(list.get(), kCount));
}

TEST_P(Link, LongLinksOutliveFinalizers) {
  const Nodes nodes(GetParam());
  static Cell* revived;
  Cell cell;
  revived = &cell;
  std::vector<void*> links(100);
  far_away([&] {
    for (std::size_t i = 0; i < links.size(); ++i) {
      void* object = nodes.make(i);
      links[i] = reinterpret_cast<void*>(GC_HIDE_POINTER(object));
      ASSERT_EQ(GC_register_long_link(&links[i], object), GC_SUCCESS);
      jd_finalizer(
          object,
          [](void* dead, void* data) {
            auto* own = static_cast<const Nodes*>(data);
            own->node(dead)->next = static_cast<Node*>(revived->get());
            revived->set(dead);
          },
          const_cast<Nodes*>(&nodes));
    }
  });
  for (int attempt = 0; attempt < 3; ++attempt) {
    compact();
    far_away([] { GC_invoke_finalizers(); });
  }
  std::size_t count = 0;
  far_away([&] {
    for (void* node = cell.get(); node != nullptr; node = nodes.next(node), ++count) {
      ASSERT_EQ(GC_REVEAL_POINTER(links[nodes.value(node)]), node);
    }
  });
  EXPECT_GE(count, 95U);
  for (void*& link : links) {
    if (link != nullptr) GC_unregister_long_link(&link);
  }
}

}  // namespace
}  // namespace jd::test
