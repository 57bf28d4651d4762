// A random mutator and its shadow: every change to the heap's graph is made to a model, too, and
// after each collection the two are compared from the roots on (copy.req.sound).
//
// JD_SEED repeats a run; JD_GRAPHS says how many graphs are made (a few by default).
#include <gtest/gtest.h>
#include <jackdaw/heap.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gc_test.hpp"

namespace jd::test {
namespace {

constexpr std::size_t kMostEdges = 70;

// Where a node's words are. `first` is the offset of its edges; a node's number stands before them.
enum class Shape { Pair, Wide, Long, Array, Bytes, Untyped, Count };

// What the heap's side of a node looks like, behind whatever its source puts first.
struct Body {
  std::uint64_t number;
  std::uint64_t edges;  // how many
  void* edge[];
};

// The layouts of one source.
class Family {
 public:
  explicit Family(jd_source wanted)
      // JD_MCC has no others.
      : source_(jd_heap_get_policy() == JD_MCC ? JD_HEADER : wanted),
        skip_(source_ == JD_SELF ? 8 : 0) {
    const jd_source source = source_;
    pair_ = define("pair", 2);
    wide_ = define("wide", 9);
    long_ = define("long", kMostEdges);
    // A count for JD_SELF, then the body's two words, then the edges or bytes as elements.
    jd_layout_info info = {};
    info.name = "array";
    info.size = skip_ + (source == JD_SELF ? 8 : 0) + sizeof(Body);
    info.element_size = 8;
    static constexpr std::uint64_t kAll = 1;
    info.element_pointers = &kAll;
    info.count_offset = source == JD_SELF ? 8 : 0;
    info.source = source;
    array_ = jd_layout_define(&info);
    info.name = "bytes";
    info.element_size = 1;
    info.element_pointers = nullptr;
    bytes_ = jd_layout_define(&info);
  }

  char* make(Shape shape, std::size_t edges) const {
    switch (shape) {
      case Shape::Pair:
        return static_cast<char*>(jd_new(pair_));
      case Shape::Wide:
        return static_cast<char*>(jd_new(wide_));
      case Shape::Long:
        return static_cast<char*>(jd_new(long_));
      case Shape::Array:
        return static_cast<char*>(jd_new_array(array_, edges));
      case Shape::Bytes:
        return static_cast<char*>(jd_new_array(bytes_, 3 * edges));
      default:
        return nullptr;
    }
  }
  [[nodiscard]] Body* body(char* object, Shape shape) const {
    const bool counted = source_ == JD_SELF && (shape == Shape::Array || shape == Shape::Bytes);
    return reinterpret_cast<Body*>(object + skip_ + (counted ? 8 : 0));
  }

 private:
  jd_layout* define(const char* name, std::size_t edges) const {
    const std::size_t words = skip_ / 8 + 2 + edges;
    std::vector<std::uint64_t> bits((words + 63) / 64);
    for (std::size_t i = skip_ / 8 + 2; i < words; ++i)
      bits[i / 64] |= std::uint64_t{1} << (i % 64);
    jd_layout_info info = {};
    info.name = name;
    info.size = 8 * words;
    info.pointers = bits.data();
    info.source = source_;
    return jd_layout_define(&info);
  }

  jd_source source_;
  std::size_t skip_;
  jd_layout* pair_;
  jd_layout* wide_;
  jd_layout* long_;
  jd_layout* array_;
  jd_layout* bytes_;
};

// Homogeneous kinds are few, so all graphs of a process share the layouts.
const Family& family(std::size_t source) {
  static const Family families[] = {Family(JD_HOMOGENEOUS), Family(JD_SELF), Family(JD_HEADER)};
  return families[source];
}

struct Node {
  std::size_t family;
  Shape shape;
  std::vector<std::uint64_t> edges;  // numbers of nodes; 0: none
  std::uint64_t hash = 0;
  void* address_if_still = nullptr;  // of an untyped node
};

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed)
      : random_(seed),
        root_count_(random_.one_in(4) ? 400 : 24),
        roots_(static_cast<void**>(std::calloc(root_count_, sizeof(void*)))),
        root_numbers_(root_count_) {
    for (std::size_t i = 0; i < root_count_; ++i) EXPECT_NE(jd_root_add(&roots_[i]), 0);
  }
  Mutator(const Mutator&) = delete;
  Mutator& operator=(const Mutator&) = delete;
  ~Mutator() {
    for (std::size_t i = 0; i < root_count_; ++i) jd_root_remove(&roots_[i]);
    std::free(roots_);
  }

  void run(std::size_t steps) {
    for (std::size_t i = 0; i < steps && !testing::Test::HasFailure(); ++i) step();
    collect_and_compare();
  }

 private:
  void step() {
    switch (random_.below(16)) {
      case 0:
      case 1:
        root_numbers_[pick_root()] = 0;
        return forget(last_root_);
      case 2:
        if (random_.one_in(8)) collect_and_compare();
        return;
      case 3:
        return watch();
      case 4:
      case 5:
      case 6:
        return link();
      default:
        return make();
    }
  }

  std::size_t pick_root() { return last_root_ = random_.below(root_count_); }
  void forget(std::size_t root) { roots_[root] = nullptr; }

  Body* body_of(std::uint64_t number, void* object) {
    const Node& node = nodes_.at(number);
    if (node.shape == Shape::Untyped) return static_cast<Body*>(object);
    return family(node.family).body(static_cast<char*>(object), node.shape);
  }

  // A walk from a random root by random edges. The object, and its number in *number; null for
  // none.
  void* walk(std::uint64_t* number) {
    const std::size_t root = random_.below(root_count_);
    void* object = roots_[root];
    *number = root_numbers_[root];
    for (std::size_t steps = random_.below(6); object != nullptr && steps != 0; --steps) {
      const Node& node = nodes_.at(*number);
      if (node.edges.empty()) break;
      const std::size_t edge = random_.below(node.edges.size());
      if (node.edges[edge] == 0) break;
      object = body_of(*number, object)->edge[edge];
      *number = node.edges[edge];
    }
    return object;
  }

  void make() {
    Node node{random_.below(3),
              static_cast<Shape>(random_.below(static_cast<std::size_t>(Shape::Count))),
              {},
              0,
              nullptr};
    std::size_t edges = node.shape == Shape::Pair   ? 2
                        : node.shape == Shape::Wide ? 9
                        : node.shape == Shape::Long ? kMostEdges
                                                    : random_.below(20);
    // Some large objects, too.
    if (node.shape == Shape::Array && random_.one_in(50)) edges = 2000;
    char* object = node.shape == Shape::Untyped
                       ? static_cast<char*>(GC_malloc(sizeof(Body) + edges * sizeof(void*)))
                       : family(node.family).make(node.shape, edges);
    if (object == nullptr) return;
    const std::uint64_t number = ++last_number_;
    if (node.shape == Shape::Untyped) node.address_if_still = hidden(object);
    if (node.shape == Shape::Bytes) edges = 0;
    node.edges.resize(edges);
    nodes_[number] = node;
    Body* body = body_of(number, object);
    EXPECT_EQ(body->number, 0U) << "a new object is not clear";
    body->number = number;
    body->edges = edges;
    for (std::size_t i = 0; i < edges && i < 4; ++i) set_edge(number, object, i);
    const std::size_t root = pick_root();
    roots_[root] = object;
    root_numbers_[root] = number;
  }

  void set_edge(std::uint64_t number, void* object, std::size_t edge) {
    std::uint64_t target_number = 0;
    void* target = walk(&target_number);
    Node& node = nodes_.at(number);
    node.edges[edge] = target == nullptr ? 0 : target_number;
    body_of(number, object)->edge[edge] = target;
  }

  void link() {
    std::uint64_t number = 0;
    void* object = walk(&number);
    if (object == nullptr || nodes_.at(number).edges.empty()) return;
    set_edge(number, object, random_.below(nodes_.at(number).edges.size()));
  }

  void watch() {
    std::uint64_t number = 0;
    void* object = walk(&number);
    if (object == nullptr) return;
    Node& node = nodes_.at(number);
    if (node.hash == 0) node.hash = jd_address_hash(object);
    EXPECT_EQ(jd_address_hash(object), node.hash) << "node " << number;
  }

  static void* hidden(void* p) {
    return reinterpret_cast<void*>(~reinterpret_cast<std::uintptr_t>(p));
  }

  void collect_and_compare() {
    far_away([this] {
      clear_stack();
      jd_collect(random_.one_in(2) ? 1 : 0);
    });
    far_away([this] { compare(); });
  }

  void compare() {
    std::map<std::uint64_t, void*> seen;
    std::vector<std::pair<std::uint64_t, void*>> queue;
    const auto visit = [&](std::uint64_t number, void* object) {
      if (number == 0 || object == nullptr) {
        EXPECT_EQ(number == 0, object == nullptr);
        return;
      }
      const auto [at, fresh] = seen.emplace(number, object);
      EXPECT_EQ(at->second, object) << "node " << number << " is in two places";
      if (fresh) queue.emplace_back(number, object);
    };
    for (std::size_t i = 0; i < root_count_; ++i) visit(root_numbers_[i], roots_[i]);
    while (!queue.empty() && !testing::Test::HasFailure()) {
      const auto [number, object] = queue.back();
      queue.pop_back();
      const Node& node = nodes_.at(number);
      const Body* body = body_of(number, object);
      ASSERT_EQ(body->number, number);
      ASSERT_EQ(body->edges, node.edges.size());
      if (node.shape == Shape::Untyped) {
        EXPECT_EQ(hidden(object), node.address_if_still) << "an untyped object moved";
      }
      if (node.hash != 0) {
        EXPECT_EQ(jd_address_hash(object), node.hash);
      }
      for (std::size_t i = 0; i < node.edges.size(); ++i) visit(node.edges[i], body->edge[i]);
    }
    // What nothing leads to any more is forgotten by the model as well.
    std::erase_if(nodes_, [&](const auto& entry) { return seen.count(entry.first) == 0; });
  }

  Random random_;
  // Many, and the live data fills several blocks; few, and it fits into one.
  std::size_t root_count_;
  void** roots_;
  std::vector<std::uint64_t> root_numbers_;
  std::size_t last_root_ = 0;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, Node> nodes_;
};

TEST(Shadow, EveryGraphStaysTheSame) {
  const char* wanted = std::getenv("JD_GRAPHS");
  const std::size_t graphs = wanted != nullptr ? std::strtoul(wanted, nullptr, 10) : rounds(20);
  const std::uint64_t seed = test_seed();
  for (std::size_t i = 0; i < graphs && !HasFailure(); ++i) {
    SCOPED_TRACE("JD_SEED=" + std::to_string(seed) + " graph " + std::to_string(i));
    Mutator(seed + i).run(2000);
  }
  jd_heap_counts counts;
  jd_heap_get_counts(&counts);
  std::printf("%lu collections, %lu moved %lu objects, %lu pinned in the last\n",
              static_cast<unsigned long>(counts.collections),
              static_cast<unsigned long>(counts.moving_collections),
              static_cast<unsigned long>(counts.moved_objects),
              static_cast<unsigned long>(counts.pinned_objects));
}

}  // namespace
}  // namespace jd::test
