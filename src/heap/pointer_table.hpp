// A hash table from addresses to nodes, in memory apart from the heap. Under the heap's lock.
#pragma once

#include <cstddef>
#include <new>

#include "base/bits.hpp"
#include "heap/arena.hpp"

namespace jd::heap {

// Node has `Node* next` and `base::Word key`. Freed nodes are kept for reuse. Keys are multiples of
// 2^kKeyZeros: a lower number would leave buckets empty, a higher one make neighbours share theirs.
template <class Node, unsigned kKeyZeros>
class PointerTable {
 public:
  [[nodiscard]] std::size_t count() const { return count_; }
  // Would another key double the table?
  [[nodiscard]] bool is_full() const { return count_ >= capacity_; }

  Node* find(base::Word key) {
    if (count_ == 0) return nullptr;
    for (Node* n = buckets_[index(key)]; n != nullptr; n = n->next) {
      if (n->key == key) return n;
    }
    return nullptr;
  }

  // Adds a node for a key that has none. Null when memory has run out.
  Node* add(base::Word key) {
    if (count_ >= capacity_ && !grow()) return nullptr;
    if (free_ == nullptr && !make_nodes()) return nullptr;
    Node* node = free_;
    free_ = node->next;
    new (node) Node;
    node->key = key;
    Node*& bucket = buckets_[index(key)];
    node->next = bucket;
    bucket = node;
    ++count_;
    return node;
  }

  // Visits every node; removes those for which visit(node) returns false.
  template <class Visit>
  void keep_if(Visit visit) {
    for (std::size_t i = 0; i < capacity_; ++i) {
      fetch_ahead_of(i);
      for (Node** link = &buckets_[i]; *link != nullptr;) {
        Node* node = *link;
        if (visit(node)) {
          link = &node->next;
          continue;
        }
        *link = node->next;
        give(node);
        --count_;
      }
    }
  }
  template <class Visit>
  void for_each(Visit visit) {
    for (std::size_t i = 0; i < capacity_; ++i) {
      fetch_ahead_of(i);
      for (Node* node = buckets_[i]; node != nullptr; node = node->next) visit(node);
    }
  }

  // Gives every node the key that new_key(old key) says: no two the same. Needs no memory.
  template <class NewKey>
  void rekey(NewKey new_key) {
    Node* all = nullptr;
    for (std::size_t i = 0; i < capacity_; ++i) {
      while (Node* node = buckets_[i]) {
        buckets_[i] = node->next;
        node->next = all;
        all = node;
      }
    }
    while (all != nullptr) {
      Node* node = all;
      all = node->next;
      node->key = new_key(node->key);
      Node*& bucket = buckets_[index(node->key)];
      node->next = bucket;
      bucket = node;
    }
  }

  bool remove(base::Word key) {
    if (count_ == 0) return false;
    for (Node** link = &buckets_[index(key)]; *link != nullptr; link = &(*link)->next) {
      Node* node = *link;
      if (node->key != key) continue;
      *link = node->next;
      give(node);
      --count_;
      return true;
    }
    return false;
  }

 private:
  static constexpr std::size_t kFirstCapacity = 512;

  [[nodiscard]] std::size_t index(base::Word key) const {
    // Neighbours in memory are neighbours here: what is registered one after another is looked at
    // one after another, and a table that is walked in order should touch its nodes in order. The
    // higher bits keep objects that lie a power of two apart from meeting in one bucket.
    const base::Word low = key >> kKeyZeros;
    return (low ^ (low >> base::log2_floor(capacity_))) & (capacity_ - 1);
  }
  // For a walk in the order of buckets, in which nodes lie anywhere (docs/design/cycle.md,
  // "Finalization").
  void fetch_ahead_of(std::size_t bucket) const {
    constexpr std::size_t kDistance = 24;
    if (bucket + kDistance < capacity_) __builtin_prefetch(buckets_[bucket + kDistance], 1, 3);
  }
  // Adds a page of free nodes, the lowest first.
  bool make_nodes() {
    constexpr std::size_t kNodes = 4096 / sizeof(Node);
    auto* nodes = static_cast<Node*>(arena_take(kNodes * sizeof(Node)));
    if (nodes == nullptr) return false;
    for (std::size_t i = kNodes; i > 0; --i) give(&nodes[i - 1]);
    return true;
  }
  void give(Node* node) {
    node->next = free_;
    free_ = node;
  }
  bool grow() {
    const std::size_t capacity = capacity_ == 0 ? kFirstCapacity : 2 * capacity_;
    auto** buckets = static_cast<Node**>(table_take(capacity * sizeof(Node*)));
    // Full chains only make it slower.
    if (buckets == nullptr) return capacity_ != 0;
    Node** old = buckets_;
    const std::size_t old_capacity = capacity_;
    buckets_ = buckets;
    capacity_ = capacity;
    for (std::size_t i = 0; i < old_capacity; ++i) {
      for (Node* node = old[i]; node != nullptr;) {
        Node* next = node->next;
        Node*& bucket = buckets_[index(node->key)];
        node->next = bucket;
        bucket = node;
        node = next;
      }
    }
    if (old != nullptr) table_give(old, old_capacity * sizeof(Node*));
    return true;
  }

  Node** buckets_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t count_ = 0;
  Node* free_ = nullptr;
};

}  // namespace jd::heap
