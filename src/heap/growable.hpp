// An array that grows, in memory apart from the heap. For plain types; under the heap's lock.
#pragma once

#include <cstddef>

#include "base/bits.hpp"
#include "heap/arena.hpp"

namespace jd::heap {

template <class T>
class Growable {
 public:
  [[nodiscard]] std::size_t count() const { return count_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + count_; }
  [[nodiscard]] const T* begin() const { return data_; }
  [[nodiscard]] const T* end() const { return data_ + count_; }

  // Room for that many without growing again. False when memory has run out; nothing changed.
  [[nodiscard]] bool reserve(std::size_t capacity) {
    if (capacity <= capacity_) return true;
    capacity = base::max_of(capacity, base::max_of(2 * capacity_, kFirstBytes / sizeof(T)));
    T* larger = static_cast<T*>(table_take(capacity * sizeof(T)));
    if (larger == nullptr) return false;
    if (data_ != nullptr) {
      base::copy_bytes(larger, data_, count_ * sizeof(T));
      table_give(data_, capacity_ * sizeof(T));
    }
    data_ = larger;
    capacity_ = capacity;
    return true;
  }
  [[nodiscard]] bool push(const T& value) {
    if (!reserve(count_ + 1)) return false;
    data_[count_++] = value;
    return true;
  }
  // Keeps the order.
  void erase(std::size_t i) {
    for (--count_; i < count_; ++i) data_[i] = data_[i + 1];
  }
  void clear() { count_ = 0; }
  // Fewer, or those too that were written through begin(), after a reserve().
  void set_count(std::size_t count) { count_ = count; }

 private:
  static constexpr std::size_t kFirstBytes = 4096;

  T* data_ = nullptr;
  std::size_t count_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace jd::heap
