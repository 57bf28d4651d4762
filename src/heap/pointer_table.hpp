// A hash table from addresses to nodes, in memory apart from the heap. Under the heap's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "base/bits.hpp"
#include "heap/arena.hpp"
#include "heap/growable.hpp"

namespace jd::heap {

// A node's number in its table; 0: none. Half as long as an address: programs have links and
// finalizers by the hundred thousand.
using NodeNumber = std::uint32_t;

// Node has `NodeNumber next` and `base::Word key`. Nodes stay where they are; freed ones are kept
// for reuse. Keys are multiples of 2^kKeyZeros: a lower number would leave buckets empty, a higher
// one make neighbours share theirs.
//
// A walk goes through the nodes as they lie in memory, not by the buckets: it streams, and only
// nodes that leave the table cost a look at their bucket (docs/design/cycle.md, "Finalization").
template <class Node, unsigned kKeyZeros>
class PointerTable {
 public:
  // Nodes that were taken out of the table, first come first served.
  struct Queue {
    NodeNumber first = 0;
    NodeNumber last = 0;
    std::size_t count = 0;
  };
  // Where a node that is visited goes.
  enum class To : std::uint8_t { Table, Queue, Nowhere };

  [[nodiscard]] std::size_t count() const { return count_; }

  Node* find(base::Word key) {
    if (count_ == 0) return nullptr;
    for (NodeNumber n = buckets_[index(key)]; n != 0; n = at(n)->next) {
      if (at(n)->key == key) return at(n);
    }
    return nullptr;
  }

  // Adds a node for a key that has none. Null when memory has run out.
  Node* add(base::Word key) {
    if (count_ >= capacity_ && !grow()) return nullptr;
    if (free_ == 0 && !make_nodes()) return nullptr;
    const NodeNumber n = free_;
    Node* node = at(n);
    free_ = next_outside(n);
    new (node) Node;
    node->key = key;
    insert(n);
    ++count_;
    return node;
  }

  bool remove(base::Word key) {
    if (count_ == 0) return false;
    NodeNumber* from = place_of(key);
    const NodeNumber found = *from;
    if (found == 0) return false;
    *from = at(found)->next;
    --count_;
    give(found);
    return true;
  }

  enum class Moved : std::uint8_t { Yes, NoSuchNode, KeyIsTaken };
  // Gives a key's node another key. Needs no memory.
  Moved move(base::Word key, base::Word new_key) {
    if (count_ == 0) return Moved::NoSuchNode;
    NodeNumber* from = place_of(key);
    const NodeNumber n = *from;
    if (n == 0) return Moved::NoSuchNode;
    if (key == new_key) return Moved::Yes;
    if (find(new_key) != nullptr) return Moved::KeyIsTaken;
    *from = at(n)->next;
    at(n)->key = new_key;
    insert(n);
    return Moved::Yes;
  }

  template <class Visit>
  void for_each(Visit visit) {
    walk([&](NodeNumber n) { visit(at(n)); });
  }
  // Visits every node; those for which visit(node) returns false are gone.
  template <class Visit>
  void keep_if(Visit visit) {
    Queue none;
    sift(&none, [visit](Node* node) { return visit(node) ? To::Table : To::Nowhere; });
  }
  // Visits every node; visit(node) says where it goes.
  template <class Visit>
  void sift(Queue* queue, Visit visit) {
    walk([&](NodeNumber n) {
      const To to = visit(at(n));
      if (to == To::Table) return;
      take_out(n);
      to == To::Queue ? push(queue, n) : give(n);
    });
  }

  template <class Visit>
  void for_each_in(const Queue& queue, Visit visit) {
    for (NodeNumber n = queue.first; n != 0; n = next_outside(n)) visit(at(n));
  }
  // Visits every node in the queue; visit(node) says where it goes. Needs no memory. Pre: no node
  // in the table has the key of one that goes there.
  template <class Visit>
  void sift_queue(Queue* queue, Visit visit) {
    Queue left;
    for (NodeNumber n = queue->first; n != 0;) {
      const NodeNumber next = next_outside(n);
      switch (visit(at(n))) {
        case To::Table:
          insert(n);
          ++count_;
          break;
        case To::Queue:
          push(&left, n);
          break;
        case To::Nowhere:
          give(n);
          break;
      }
      n = next;
    }
    *queue = left;
  }
  // Moves all nodes of a queue to the end of another.
  void append(Queue* to, const Queue& from) {
    if (from.count == 0) return;
    if (to->last == 0) {
      to->first = from.first;
    } else {
      at(to->last)->next = kOutside | from.first;
    }
    to->last = from.last;
    to->count += from.count;
  }
  // Copies the first node of a queue and frees it. False if there is none.
  bool pop(Queue* queue, Node* copy) {
    const NodeNumber n = queue->first;
    if (n == 0) return false;
    *copy = *at(n);
    queue->first = next_outside(n);
    if (queue->first == 0) queue->last = 0;
    --queue->count;
    give(n);
    return true;
  }

  // Gives every node the key that new_key(old key) says: no two the same. Needs no memory.
  template <class NewKey>
  void rekey(NewKey new_key) {
    Queue all;
    sift(&all, [](Node*) { return To::Queue; });
    sift_queue(&all, [new_key](Node* node) {
      node->key = new_key(node->key);
      return To::Table;
    });
  }

 private:
  static constexpr std::size_t kFirstCapacity = 1024;
  // Nodes are made by so many: few enough for a program with two links.
  static constexpr std::size_t kChunk = 128;
  // In `next` of a node that is free or in a queue; the number of the next one is beside it.
  static constexpr NodeNumber kOutside = NodeNumber{1} << 31;

  [[nodiscard]] Node* at(NodeNumber n) { return &chunks_[n / kChunk][n % kChunk]; }
  [[nodiscard]] std::size_t index(base::Word key) const {
    // Neighbours in memory are neighbours here: what lies side by side is mostly registered, and
    // forgotten, one after another. The higher bits keep objects that lie a power of two apart from
    // meeting in one bucket.
    const base::Word low = key >> kKeyZeros;
    return (low ^ (low >> base::log2_floor(capacity_))) & (capacity_ - 1);
  }
  // What leads to the key's node; 0 is there if it has none. Pre: the table is not empty.
  [[nodiscard]] NodeNumber* place_of(base::Word key) {
    NodeNumber* n = &buckets_[index(key)];
    while (*n != 0 && at(*n)->key != key) n = &at(*n)->next;
    return n;
  }
  // Visits every node of the table, which visit(number) may take out.
  template <class Visit>
  void walk(Visit visit) {
    // What is left of a table that was large is found by the buckets, of which a line holds more.
    // The eighth is a guess.
    if (count_ < chunks_.count() * kChunk / 8) return walk_buckets(visit);
    for (std::size_t chunk = 0; chunk < chunks_.count(); ++chunk) {
      const Node* nodes = chunks_[chunk];
      for (std::size_t i = chunk == 0 ? 1 : 0; i < kChunk; ++i) {
        const bool in_table = (nodes[i].next & kOutside) == 0;
        if (in_table) visit(static_cast<NodeNumber>(chunk * kChunk + i));
      }
    }
  }
  template <class Visit>
  void walk_buckets(Visit visit) {
    for (std::size_t i = 0; i < capacity_; ++i) {
      for (NodeNumber n = buckets_[i]; n != 0;) {
        const NodeNumber next = at(n)->next;
        visit(n);
        n = next;
      }
    }
  }

  // Of a node that is free or in a queue.
  [[nodiscard]] NodeNumber next_outside(NodeNumber n) { return at(n)->next & ~kOutside; }
  void insert(NodeNumber n) {
    Node* node = at(n);
    NodeNumber& bucket = buckets_[index(node->key)];
    node->next = bucket;
    bucket = n;
  }
  void take_out(NodeNumber n) {
    NodeNumber* from = &buckets_[index(at(n)->key)];
    while (*from != n) from = &at(*from)->next;
    *from = at(n)->next;
    --count_;
  }
  void push(Queue* queue, NodeNumber n) {
    at(n)->next = kOutside;
    append(queue, {n, n, 1});
  }
  void give(NodeNumber n) {
    at(n)->next = kOutside | free_;
    free_ = n;
  }

  // Adds free nodes, the lowest first.
  bool make_nodes() {
    if (chunks_.count() >= kOutside / kChunk) return false;
    // Before the nodes, which could not be given back.
    if (!chunks_.reserve(chunks_.count() + 1)) return false;
    auto* nodes = static_cast<Node*>(arena_take(kChunk * sizeof(Node)));
    if (nodes == nullptr || !chunks_.push(nodes)) return false;
    const auto first = static_cast<NodeNumber>((chunks_.count() - 1) * kChunk);
    const NodeNumber least = first == 0 ? 1 : first;  // no node has the number 0
    for (NodeNumber n = first + kChunk; n > least; --n) give(n - 1);
    return true;
  }
  bool grow() {
    const std::size_t capacity = capacity_ == 0 ? kFirstCapacity : 2 * capacity_;
    auto* buckets = static_cast<NodeNumber*>(table_take(capacity * sizeof(NodeNumber)));
    // Full chains only make it slower.
    if (buckets == nullptr) return capacity_ != 0;
    NodeNumber* old = buckets_;
    const std::size_t old_capacity = capacity_;
    buckets_ = buckets;
    capacity_ = capacity;
    for (std::size_t i = 0; i < old_capacity; ++i) {
      for (NodeNumber n = old[i]; n != 0;) {
        const NodeNumber next = at(n)->next;
        insert(n);
        n = next;
      }
    }
    if (old != nullptr) table_give(old, old_capacity * sizeof(NodeNumber));
    return true;
  }

  NodeNumber* buckets_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t count_ = 0;
  Growable<Node*> chunks_;
  NodeNumber free_ = 0;
};

}  // namespace jd::heap
