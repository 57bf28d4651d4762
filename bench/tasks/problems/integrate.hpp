// The area under x^3 + x, by halving intervals until a trapezoid is as good as two.
#pragma once

#include <cmath>

#include "../framework.hpp"

namespace bench {

inline double curve(double x) { return (x * x + 1) * x; }

constexpr double kAreaError = 1e-9;

}  // namespace bench

BENCH_DECLARE(double, integrate, double x1, double y1, double x2, double y2, double area);
BENCH_TASK(double, integrate, double x1, double y1, double x2, double y2, double area) {
  const double middle = (x1 + x2) / 2;
  const double y = bench::curve(middle);
  const double left = (y1 + y) * (middle - x1) / 2;
  const double right = (y + y2) * (x2 - middle) / 2;
  if (std::fabs(left + right - area) < bench::kAreaError) BENCH_RETURN(left + right);
  double a = 0;
  double b = 0;
  BENCH_PAR(a, integrate, (x1, y1, middle, y, left), b, integrate, (middle, y, x2, y2, right));
  BENCH_RETURN(a + b);
}

namespace bench {

class Integrate {
 public:
  explicit Integrate(bool quick) : end_(quick ? 20 : 2000) {}
  void prepare() {}
  void run() {
    const double y = curve(end_);
    area_ = BENCH_RUN(integrate, 0.0, 0.0, end_, y, y * end_ / 2);
  }
  bool check() const {
    const double square = end_ * end_;
    const double exact = square * square / 4 + square / 2;
    return std::fabs(area_ - exact) <= 1e-9 * exact;
  }

 private:
  double end_;
  double area_ = -1;
};

}  // namespace bench
