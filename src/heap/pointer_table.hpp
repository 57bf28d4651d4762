// A hash table from addresses to nodes, in memory apart from the heap. Under the heap's lock.
#pragma once

#include <cstddef>
#include <new>

#include "base/bits.hpp"
#include "heap/arena.hpp"

namespace jd::heap {

// Nodes that were taken out of a table, first come first served. Those that are added come last.
template <class Node>
class NodeQueue {
 public:
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] Node* first() const { return first_; }

  void push(Node* node) {
    node->next = nullptr;
    *(last_ == nullptr ? &first_ : &last_->next) = node;
    last_ = node;
    ++count_;
  }
  // Null when the queue is empty.
  Node* pop() {
    Node* node = first_;
    if (node == nullptr) return nullptr;
    first_ = node->next;
    if (first_ == nullptr) last_ = nullptr;
    --count_;
    return node;
  }
  // `visit` may not push the node it is given.
  template <class Visit>
  void for_each(Visit visit) const {
    for (Node* node = first_; node != nullptr; node = node->next) visit(node);
  }

 private:
  Node* first_ = nullptr;
  Node* last_ = nullptr;
  std::size_t count_ = 0;
};

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
    put_back(node);
    return node;
  }

  // A node that was taken out is in the table again, with the key that it has: no other's. Needs no
  // memory.
  void put_back(Node* node) {
    Node*& bucket = buckets_[index(node->key)];
    node->next = bucket;
    bucket = node;
    ++count_;
  }
  // A node that was taken out may be used for another key.
  void give(Node* node) {
    node->next = free_;
    free_ = node;
  }

  // What becomes of a node that is visited. Taken: it is the visitor's, to be put back or given.
  enum class Fate : bool { Stays, Taken };

  // Visits every node. visit(node) says what becomes of it.
  template <class Visit>
  void take_if(Visit visit) {
    for (std::size_t i = 0; i < capacity_; ++i) {
      fetch_ahead_of(i);
      for (Node** link = &buckets_[i]; *link != nullptr;) {
        Node* node = *link;
        Node* const next = node->next;
        if (visit(node) == Fate::Stays) {
          link = &node->next;
          continue;
        }
        *link = next;
        --count_;
      }
    }
  }
  // Visits every node; those for which visit(node) returns false are gone.
  template <class Visit>
  void keep_if(Visit visit) {
    take_if([this, visit](Node* node) {
      if (visit(node)) return Fate::Stays;
      give(node);
      return Fate::Taken;
    });
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
