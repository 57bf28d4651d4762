// Random object graphs against a model: what the model can reach must be there, with its contents;
// what it cannot must go, but for what a few stale words hold.
#include <cstring>
#include <vector>

#include "gc_test.hpp"

namespace jd::test {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

// More than a stack and registers left over from the program's start have been seen to hold.
constexpr std::size_t kStaleWords = 20;

struct Shape {
  const char* name;
  std::size_t nodes;
  std::size_t edges_most;
  std::size_t size_most;
  bool interior;  // edges point anywhere into their target
};

// A node in the collected heap: its number, then its edges, then a pattern.
struct Node {
  std::uintptr_t number;
  void* edges[];
};

class Graph {
 public:
  Graph(const Shape& shape, std::uint64_t seed)
      : shape_(shape),
        random_(seed),
        roots_(static_cast<void**>(GC_malloc_uncollectable(kRoots * sizeof(void*)))) {
    root_models_.assign(kRoots, kNone);
  }
  ~Graph() { GC_free(roots_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Adds a node that a random root holds.
  void add_node() {
    const std::size_t edges = random_.below(shape_.edges_most + 1);
    const std::size_t least = sizeof(Node) + edges * sizeof(void*);
    const std::size_t size = least + random_.below(shape_.size_most);
    auto* node = static_cast<Node*>(GC_malloc(size));
    node->number = models_.size();
    for (std::size_t i = 0; i < edges; ++i) ASSERT_EQ(node->edges[i], nullptr);
    const auto number = static_cast<std::uint32_t>(models_.size());
    fill_pattern(reinterpret_cast<char*>(node) + least, size - least, number);
    models_.push_back({size, std::vector<std::uint32_t>(edges, kNone)});
    watch_.add(node);
    set_root(random_.below(kRoots), number, node);
  }

  // Lets a random edge of a node found by a random walk point to another such node.
  void mutate() {
    const std::uint32_t from = walk();
    const std::uint32_t to = random_.one_in(8) ? kNone : walk();
    if (from == kNone || models_[from].edges.empty()) return;
    const std::size_t edge = random_.below(models_[from].edges.size());
    models_[from].edges[edge] = to;
    auto* node = static_cast<Node*>(watch_.get(from));
    node->edges[edge] = to == kNone ? nullptr : pointer_to(to);
  }

  void drop_root() { set_root(random_.below(kRoots), kNone, nullptr); }

  // The exact half, at any time.
  void check_reachable() {
    const std::vector<bool> reached = reachable();
    for (std::uint32_t i = 0; i < models_.size(); ++i) {
      if (!reached[i]) continue;
      const auto* node = static_cast<const Node*>(watch_.get(i));
      ASSERT_NE(node, nullptr) << "reachable node " << i << " was collected";
      const Model& model = models_[i];
      ASSERT_EQ(node->number, i);
      const std::size_t least = sizeof(Node) + model.edges.size() * sizeof(void*);
      ASSERT_TRUE(holds_pattern(reinterpret_cast<const char*>(node) + least, model.size - least, i))
          << "contents of node " << i;
      for (std::size_t e = 0; e < model.edges.size(); ++e) {
        if (model.edges[e] == kNone) {
          ASSERT_EQ(node->edges[e], nullptr);
        } else {
          ASSERT_EQ(GC_base(node->edges[e]), watch_.get(model.edges[e]));
        }
      }
    }
  }

  // The other half, after a collection: unreachable nodes that are still there must be explained
  // by few stale words, each of which holds all that its node reaches.
  std::size_t stale_words_needed() const {
    const std::vector<bool> reached = reachable();
    std::vector<bool> explained = reached;
    std::vector<bool> has_holder(models_.size(), false);
    for (std::uint32_t i = 0; i < models_.size(); ++i) {
      if (reached[i] || !watch_.alive(i)) continue;
      for (const std::uint32_t to : models_[i].edges) {
        if (to != kNone && to != i) has_holder[to] = true;
      }
    }
    std::size_t words = 0;
    // First those that no other straggler holds, then what only cycles hold.
    for (const bool cycles : {false, true}) {
      for (std::uint32_t i = 0; i < models_.size(); ++i) {
        if (explained[i] || !watch_.alive(i) || (!cycles && has_holder[i])) continue;
        ++words;
        reach_from(i, &explained);
      }
    }
    return words;
  }

  std::size_t unreachable_alive() const {
    const std::vector<bool> reached = reachable();
    std::size_t count = 0;
    for (std::uint32_t i = 0; i < models_.size(); ++i) count += !reached[i] && watch_.alive(i);
    return count;
  }
  std::size_t size() const { return models_.size(); }
  Random& random() { return random_; }

 private:
  struct Model {
    std::size_t size;
    std::vector<std::uint32_t> edges;
  };
  static constexpr std::size_t kRoots = 64;

  void* pointer_to(std::uint32_t number) {
    auto* p = static_cast<char*>(watch_.get(number));
    return shape_.interior ? p + random_.below(models_[number].size) : p;
  }

  void set_root(std::size_t root, std::uint32_t number, void* node) {
    root_models_[root] = number;
    roots_[root] = node;
  }

  std::uint32_t walk() {
    std::uint32_t at = root_models_[random_.below(kRoots)];
    for (std::size_t steps = random_.below(6); at != kNone && steps > 0; --steps) {
      if (models_[at].edges.empty()) break;
      const std::uint32_t next = models_[at].edges[random_.below(models_[at].edges.size())];
      if (next == kNone) break;
      at = next;
    }
    return at;
  }

  void reach_from(std::uint32_t start, std::vector<bool>* reached) const {
    std::vector<std::uint32_t> stack{start};
    (*reached)[start] = true;
    while (!stack.empty()) {
      const std::uint32_t at = stack.back();
      stack.pop_back();
      for (const std::uint32_t to : models_[at].edges) {
        if (to == kNone || (*reached)[to]) continue;
        (*reached)[to] = true;
        stack.push_back(to);
      }
    }
  }

  std::vector<bool> reachable() const {
    std::vector<bool> reached(models_.size(), false);
    for (const std::uint32_t root : root_models_) {
      if (root != kNone && !reached[root]) reach_from(root, &reached);
    }
    return reached;
  }

  Shape shape_;
  Random random_;
  void** roots_;
  std::vector<std::uint32_t> root_models_;
  std::vector<Model> models_;
  Watch watch_;
};

class Graphs : public testing::TestWithParam<Shape> {};

TEST_P(Graphs, FollowTheModel) {
  const Shape& shape = GetParam();
  Graph graph(shape, test_seed());
  const std::size_t nodes = rounds(shape.nodes);
  const std::size_t checks = 10;
  for (std::size_t check = 0; check < checks; ++check) {
    far_away([&] {
      while (graph.size() < nodes * (check + 1) / checks && !testing::Test::HasFatalFailure()) {
        graph.add_node();
        for (int i = 0; i < 3; ++i) graph.mutate();
        if (graph.random().one_in(50)) graph.drop_root();
      }
    });
    ASSERT_FALSE(HasFatalFailure());
    far_away([&] { graph.check_reachable(); });
    ASSERT_FALSE(HasFatalFailure());
    collect();
    far_away([&] { graph.check_reachable(); });
    ASSERT_FALSE(HasFatalFailure());
    std::size_t stale = graph.stale_words_needed();
    for (int retry = 0; retry < 3 && stale > kStaleWords; ++retry) {
      collect();
      stale = graph.stale_words_needed();
    }
    ASSERT_LE(stale, kStaleWords) << graph.unreachable_alive() << " unreachable nodes of "
                                  << graph.size() << " are still there";
  }
}

INSTANTIATE_TEST_SUITE_P(All, Graphs,
                         testing::Values(Shape{"pairs", 40000, 2, 8, false},
                                         Shape{"mixed", 20000, 6, 200, false},
                                         Shape{"interior", 20000, 5, 300, true},
                                         Shape{"wide", 4000, 200, 64, false},
                                         Shape{"large", 800, 4, 60000, true}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace jd::test
