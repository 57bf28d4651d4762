// What the tests of the typed heap's interface (api_*_test.cpp) share.
//
// A word on a stack may pin an object or keep it, at random. So where objects are to move or to
// die, there are many, they are made by far_away(), and most of them must.
#pragma once

#include <gtest/gtest.h>
#include <jackdaw/heap.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "gc_test.hpp"

namespace jd::test {

inline bool moves() { return jd_heap_get_policy() != JD_NON_MOVING; }

// Under JD_MCC, what would be homogeneous has headers.
inline bool is_mcc() { return jd_heap_get_policy() == JD_MCC; }
#define JD_SKIP_IF_MCC(why) \
  if (jd::test::is_mcc()) GTEST_SKIP() << why

// For tests that have nothing to say when objects stay where they are.
#define JD_SKIP_IF_STILL() \
  if (!jd::test::moves()) GTEST_SKIP() << "objects do not move under this setting"

// A layout made of what a test needs to say; the rest is zero.
inline jd_layout_info info_of(const char* name, jd_source source, std::size_t size,
                              const std::uint64_t* pointers = nullptr) {
  jd_layout_info info = {};
  info.name = name;
  info.source = source;
  info.size = size;
  info.pointers = pointers;
  return info;
}

// The same object under each source: what stands in front (a JD_SELF object's first word) differs.
struct Node {
  Node* next;
  Node* other;
  std::uint64_t value;
  std::uint64_t more;
};

constexpr std::size_t front_of(jd_source source) { return source == JD_SELF ? 8 : 0; }

// The layout of a node with `words` more words behind it that are no pointers.
inline jd_layout* define_node(const char* name, jd_source source, std::size_t words = 0) {
  const std::uint64_t both = std::uint64_t{3} << (front_of(source) / 8);
  const jd_layout_info info =
      info_of(name, source, front_of(source) + sizeof(Node) + 8 * words, &both);
  return jd_layout_define(&info);
}

// Nodes of one source. A node is known by the address of its object, as to the collector; node()
// finds the members.
class Nodes {
 public:
  explicit Nodes(jd_source source, std::size_t words = 0)
      : source_(source), layout_(define_node("node", source, words)) {}

  [[nodiscard]] void* make(std::uint64_t value = 0, void* next = nullptr) const {
    void* object = jd_new(layout_);
    node(object)->value = value;
    node(object)->next = static_cast<Node*>(next);
    return object;
  }
  [[nodiscard]] Node* node(void* object) const {
    return reinterpret_cast<Node*>(static_cast<char*>(object) + front_of(source_));
  }
  [[nodiscard]] void* next(void* object) const { return node(object)->next; }
  [[nodiscard]] void* other(void* object) const { return node(object)->other; }
  [[nodiscard]] std::uint64_t value(void* object) const { return node(object)->value; }
  [[nodiscard]] jd_layout* layout() const { return layout_; }
  [[nodiscard]] jd_source source() const { return source_; }

  // A list whose values count down to 0 from length - 1, with garbage between its nodes, so that
  // the blocks are sparse.
  [[nodiscard]] void* sparse_list(std::size_t length, std::size_t garbage) const {
    void* list = nullptr;
    for (std::size_t i = 0; i < length; ++i) {
      list = make(i, list);
      for (std::size_t k = 0; k < garbage; ++k) static_cast<void>(make(~std::uint64_t{0}));
    }
    return list;
  }
  // Does the list hold what sparse_list() put there?
  [[nodiscard]] testing::AssertionResult is_list(void* list, std::size_t length) const {
    std::size_t left = length;
    for (; list != nullptr; list = next(list)) {
      if (left == 0) return testing::AssertionFailure() << "the list is longer";
      --left;
      if (value(list) != left) {
        return testing::AssertionFailure() << "value " << value(list) << " instead of " << left;
      }
      if (jd_layout_of(list) != layout_) return testing::AssertionFailure() << "no layout";
    }
    if (left != 0) return testing::AssertionFailure() << left << " nodes are missing";
    return testing::AssertionSuccess();
  }

 private:
  jd_source source_;
  jd_layout* layout_;
};

// A cell of malloc's memory that is a precise root.
class Cell {
 public:
  explicit Cell(void* object = nullptr) : word_(static_cast<void**>(std::malloc(sizeof(void*)))) {
    *word_ = object;
    EXPECT_NE(jd_root_add(word_), 0);
  }
  Cell(const Cell&) = delete;
  Cell& operator=(const Cell&) = delete;
  ~Cell() {
    jd_root_remove(word_);
    std::free(word_);
  }
  [[nodiscard]] void* get() const { return *word_; }
  void set(void* object) { *word_ = object; }

 private:
  void** word_;
};

// The addresses of a list's nodes, disguised; and how many nodes are elsewhere by now.
class Places {
 public:
  Places(const Nodes& nodes, void* list) {
    for (; list != nullptr; list = nodes.next(list)) places_.push_back(hidden(list));
  }
  [[nodiscard]] std::size_t moved(const Nodes& nodes, void* list) const {
    std::size_t count = 0;
    for (std::size_t i = 0; list != nullptr; list = nodes.next(list), ++i) {
      count += i >= places_.size() || places_[i] != hidden(list);
    }
    return count;
  }

 private:
  static std::uintptr_t hidden(void* p) { return ~reinterpret_cast<std::uintptr_t>(p); }
  std::vector<std::uintptr_t> places_;
};

// Many weak things, held by memory that does not move.
template <class T>
class HeldArray {
 public:
  explicit HeldArray(std::size_t count)
      : count_(count), words_(static_cast<T**>(GC_malloc_uncollectable(count * sizeof(T*)))) {}
  HeldArray(const HeldArray&) = delete;
  HeldArray& operator=(const HeldArray&) = delete;
  ~HeldArray() { GC_free(words_); }
  T*& operator[](std::size_t i) const { return words_[i]; }
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  std::size_t count_;
  T** words_;
};

// A collection that moves what it may, without stale words in the way; nor in the gaps of the
// frames that lead to it, which are wide under ASan.
inline void compact() {
  clear_stack();
  far_away([] {
    clear_stack();
    jd_collect(1);
  });
}

// Weak references to many objects, held in memory that does not move: tells the living from the
// dead without pinning any.
class WeakWatch {
 public:
  explicit WeakWatch(std::size_t most)
      : weak_(static_cast<jd_weak**>(GC_malloc_uncollectable(most * sizeof(jd_weak*)))) {}
  WeakWatch(const WeakWatch&) = delete;
  WeakWatch& operator=(const WeakWatch&) = delete;
  ~WeakWatch() { GC_free(weak_); }
  void add(void* object) { weak_[count_++] = jd_weak_new(object); }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] void* get(std::size_t i) const { return jd_weak_get(weak_[i]); }
  [[nodiscard]] std::size_t alive() const {
    std::size_t alive = 0;
    for (std::size_t i = 0; i < count_; ++i) alive += get(i) != nullptr;
    return alive;
  }
  // For EXPECT_TRUE: at least 95 of 100 are dead, after a few collections if need be.
  [[nodiscard]] testing::AssertionResult most_dead() const {
    std::size_t left = 0;
    for (int attempt = 0; attempt < 4; ++attempt) {
      collect();
      far_away([&] { left = alive(); });
      if (left * 20 <= count_) return testing::AssertionSuccess();
    }
    return testing::AssertionFailure()
           << left << " of " << count_ << " unreachable objects are still there";
  }

 private:
  jd_weak** weak_;
  std::size_t count_ = 0;
};

// Suites that run for each source.
inline std::string source_name(const testing::TestParamInfo<jd_source>& source) {
  return source.param == JD_HOMOGENEOUS ? "Homogeneous"
         : source.param == JD_SELF      ? "Self"
                                        : "Header";
}
class EachSource : public testing::TestWithParam<jd_source> {};
#define JD_EACH_SOURCE(suite)                                                              \
  INSTANTIATE_TEST_SUITE_P(Of, suite, testing::Values(JD_HOMOGENEOUS, JD_SELF, JD_HEADER), \
                           jd::test::source_name)

}  // namespace jd::test
