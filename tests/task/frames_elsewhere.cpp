// A forker in another file than its caller, which optimisation at link time brings together.
#include "frames.hpp"

namespace frames {

long elsewhere(long n, int linger) {
  const long kept = n * 5;
  auto [x, y] = jd::par([n] { return wait_and_return(n + 1); },
                        [n, linger] { return begin_and_return(n + 2, linger); });
  return x == n + 1 && y == n + 2 ? kept : 0;
}

}  // namespace frames
