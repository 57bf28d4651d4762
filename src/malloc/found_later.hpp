// Functions of other libraries, looked up when they are first wanted.
#pragma once

#include <atomic>

#include "base/bits.hpp"

namespace jd::serve {

// Any thread may ask; those that come together find the same (relaxed: code needs no order). Not a
// static variable of a function, initialised there: these are not thread-safe here, and a thread
// may be told that another has initialised one before its value is there.
class FoundLater {
 public:
  // What find() returns, a pointer to a function, or null.
  template <class Find>
  auto get(Find find) {
    using Pointer = decltype(find());
    base::Word found = address_.load(std::memory_order_relaxed);
    if (found == kUnknown) {
      found = reinterpret_cast<base::Word>(find());
      address_.store(found, std::memory_order_relaxed);
    }
    return reinterpret_cast<Pointer>(found);
  }

 private:
  static constexpr base::Word kUnknown = 1;  // no function begins there

  std::atomic<base::Word> address_{kUnknown};
};

}  // namespace jd::serve
