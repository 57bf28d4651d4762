// Fibonacci's numbers by their definition: nothing but forks.
#pragma once

#include "../framework.hpp"

BENCH_DECLARE(long, fib, long n);
BENCH_TASK(long, fib, long n) {
  if (n < 2) BENCH_RETURN(n);
  long x = 0;
  long y = 0;
  BENCH_PAR(x, fib, (n - 1), y, fib, (n - 2));
  BENCH_RETURN(x + y);
}

namespace bench {

class Fib {
 public:
  Fib(long full, bool quick) : n_(quick ? 16 : full) {}
  void prepare() {}
  void run() { result_ = BENCH_RUN(fib, n_); }
  bool check() const {
    long a = 0;
    long b = 1;
    for (long i = 0; i < n_; ++i) {
      const long sum = a + b;
      a = b;
      b = sum;
    }
    return result_ == a;
  }

 private:
  long n_;
  long result_ = -1;
};

}  // namespace bench
