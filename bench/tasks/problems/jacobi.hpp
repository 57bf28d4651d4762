// A hundred steps of averaging each point's four neighbours in a square of 1024 x 1024 doubles,
// whose edge stays; a step is cut into halves down to 256 points.
#pragma once

#include <cmath>
#include <cstddef>
#include <numbers>
#include <utility>

#include "../framework.hpp"
#include "../large_vector.hpp"

namespace bench {

// Half-open.
struct Region {
  int top, bottom;
  int left, right;
};

constexpr int kJacobiLeaf = 256;

BENCH_LEAF void jacobi_leaf(const double* __restrict from, double* __restrict to,
                            std::ptrdiff_t side, Region region) {
  for (std::ptrdiff_t row = region.top; row < region.bottom; ++row) {
    const double* here = from + row * side;
    for (std::ptrdiff_t x = region.left; x < region.right; ++x) {
      to[row * side + x] = 0.25 * (here[x - side] + here[x + side] + here[x - 1] + here[x + 1]);
    }
  }
}

inline bool is_wide(Region r) { return r.right - r.left > r.bottom - r.top; }
inline Region first_half(Region r) {
  if (is_wide(r)) {
    r.right = (r.left + r.right) / 2;
  } else {
    r.bottom = (r.top + r.bottom) / 2;
  }
  return r;
}
inline Region second_half(Region r) {
  if (is_wide(r)) {
    r.left = (r.left + r.right) / 2;
  } else {
    r.top = (r.top + r.bottom) / 2;
  }
  return r;
}

}  // namespace bench

// In a square with `side` points a row.
BENCH_DECLARE(void, jacobi, const double* from, double* to, int side, bench::Region region);
BENCH_TASK(void, jacobi, const double* from, double* to, int side, bench::Region region) {
  if ((region.bottom - region.top) * (region.right - region.left) <= bench::kJacobiLeaf) {
    bench::jacobi_leaf(from, to, side, region);
    BENCH_RETURN_VOID;
  }
  BENCH_PAR_VOID(jacobi, (from, to, side, bench::first_half(region)), jacobi,
                 (from, to, side, bench::second_half(region)));
}

// One root task makes all steps: a root for each would measure how threads wake each other.
BENCH_DECLARE(void, jacobi_steps, double* from, double* to, int side, int steps);
BENCH_TASK(void, jacobi_steps, double* from, double* to, int side, int steps) {
  for (int step = 0; step < steps; ++step) {
    BENCH_CALL_VOID(jacobi, (from, to, side, bench::Region{1, side - 1, 1, side - 1}));
    std::swap(from, to);
  }
}

namespace bench {

class Jacobi {
 public:
  explicit Jacobi(bool quick) : side_(quick ? 64 : 1024), steps_(quick ? 4 : 100) {}
  // A wave of the shape that averaging only makes smaller, each time by the same factor.
  void prepare() {
    from_.resize(size());
    for (int y = 0; y < side_; ++y) {
      for (int x = 0; x < side_; ++x) from_[at(y, x)] = wave(y) * wave(x);
    }
    to_ = from_;
  }
  void run() {
    BENCH_RUN(jacobi_steps, from_.data(), to_.data(), side_, steps_);
    if (steps_ % 2 != 0) from_.swap(to_);
  }
  bool check() const {
    const double factor = std::pow(std::cos(angle(1)), steps_);
    double worst = 0;
    for (int y = 0; y < side_; ++y) {
      for (int x = 0; x < side_; ++x) {
        const double error = from_[at(y, x)] - factor * wave(y) * wave(x);
        worst = std::fmax(worst, std::fabs(error));
      }
    }
    return worst < 1e-11;
  }
  // Read and written, by a cache that holds three rows and not the square.
  double traffic() const { return 3.0 * sizeof(double) * static_cast<double>(size()) * steps_; }

 private:
  static constexpr int kWaves = 37;
  double angle(int x) const { return std::numbers::pi * kWaves * x / (side_ - 1); }
  double wave(int x) const { return std::sin(angle(x)); }
  std::size_t size() const {
    return static_cast<std::size_t>(side_) * static_cast<std::size_t>(side_);
  }
  std::size_t at(int y, int x) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(side_) +
           static_cast<std::size_t>(x);
  }

  int side_;
  int steps_;
  LargeVector<double> from_;
  LargeVector<double> to_;
};

}  // namespace bench
