// What a program knows of its objects, where the collector does not look: who refers to whom, and
// so who must be alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "input.hpp"

namespace fuzz {

using Id = std::uint32_t;
inline constexpr Id kNobody = ~Id{0};

struct Ephemeron {
  bool held;
  Id key, value;
};

class Shadow {
 public:
  // A new object with so many references, to nobody.
  Id add(std::size_t edges) {
    edges_.emplace_back(edges, kNobody);
    held_.push_back(0);
    return static_cast<Id>(edges_.size() - 1);
  }
  [[nodiscard]] std::size_t objects() const { return edges_.size(); }

  // Roots count: a root more, or one less.
  void hold(Id id) { held_[id]++; }
  void release(Id id) {
    FUZZ_CHECK(held_[id] != 0);
    held_[id]--;
  }
  // Freed by hand: nothing holds it, and whoever refers to it must not look.
  void forget(Id id) {
    held_[id] = 0;
    edges_[id].clear();
    for (std::vector<Id>& edges : edges_) {
      for (Id& edge : edges) {
        if (edge == id) edge = kNobody;
      }
    }
  }
  [[nodiscard]] const std::vector<Id>& edges(Id id) const { return edges_[id]; }
  void set_edge(Id id, std::size_t edge, Id to) { edges_[id][edge] = to; }
  std::vector<Ephemeron>& ephemerons() { return ephemerons_; }

  // For each object, whether the roots lead to it.
  [[nodiscard]] std::vector<bool> reachable() const {
    std::vector<bool> found(edges_.size());
    std::vector<Id> pending;
    const auto visit = [&](Id id) {
      if (id == kNobody || found[id]) return;
      found[id] = true;
      pending.push_back(id);
    };
    for (Id id = 0; id < edges_.size(); ++id) {
      if (held_[id] != 0) visit(id);
    }
    for (;;) {
      while (!pending.empty()) {
        const Id id = pending.back();
        pending.pop_back();
        for (const Id edge : edges_[id]) visit(edge);
      }
      for (const Ephemeron& pair : ephemerons_) {
        if (pair.held && pair.key != kNobody && found[pair.key]) visit(pair.value);
      }
      if (pending.empty()) return found;
    }
  }

 private:
  std::vector<std::vector<Id>> edges_;
  std::vector<unsigned> held_;
  std::vector<Ephemeron> ephemerons_;
};

// The bytes that an object's data holds.
inline std::uint8_t pattern(Id id, std::size_t offset) {
  return static_cast<std::uint8_t>(id * 37 + offset * 11 + 1);
}

}  // namespace fuzz
