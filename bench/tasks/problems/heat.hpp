// Heat in a plate of 4096 x 1024 points, 200 steps; a step is cut into halves down to ten rows.
#pragma once

#include <cmath>
#include <cstddef>
#include <numbers>
#include <utility>
#include <vector>

#include "../framework.hpp"
#include "../large_vector.hpp"

namespace bench {

struct Plate {
  int rows;
  int columns;
  double by_rows;  // the share of a difference to a neighbour that a step takes over
  double by_columns;
};

constexpr int kHeatLeaf = 10;

// The edge stays.
BENCH_LEAF void heat_leaf(const Plate& plate, const double* __restrict from, double* __restrict to,
                          int begin, int end) {
  const auto columns = static_cast<std::ptrdiff_t>(plate.columns);
  for (int row = begin; row < end; ++row) {
    if (row == 0 || row == plate.rows - 1) continue;
    const double* here = from + row * columns;
    double* there = to + row * columns;
    for (std::ptrdiff_t x = 1; x < columns - 1; ++x) {
      there[x] = here[x] + plate.by_columns * (here[x + 1] - 2 * here[x] + here[x - 1]) +
                 plate.by_rows * (here[x + columns] - 2 * here[x] + here[x - columns]);
    }
  }
}

}  // namespace bench

BENCH_DECLARE(void, heat, const bench::Plate* plate, const double* from, double* to, int begin,
              int end);
BENCH_TASK(void, heat, const bench::Plate* plate, const double* from, double* to, int begin,
           int end) {
  if (end - begin <= bench::kHeatLeaf) {
    bench::heat_leaf(*plate, from, to, begin, end);
    BENCH_RETURN_VOID;
  }
  const int middle = (begin + end) / 2;
  BENCH_PAR_VOID(heat, (plate, from, to, begin, middle), heat, (plate, from, to, middle, end));
}

// One root task makes all steps, as Jacobi's does.
BENCH_DECLARE(void, heat_steps, const bench::Plate* plate, double* from, double* to, int steps);
BENCH_TASK(void, heat_steps, const bench::Plate* plate, double* from, double* to, int steps) {
  for (int step = 0; step < steps; ++step) {
    BENCH_CALL_VOID(heat, (plate, from, to, 0, plate->rows));
    std::swap(from, to);
  }
}

namespace bench {

class Heat {
 public:
  explicit Heat(bool quick)
      : plate_{quick ? 64 : 4096, quick ? 32 : 1024, 0.2, 0.2}, steps_(quick ? 4 : 200) {}
  // A wave of the shape that only fades, each time by the same factor.
  void prepare() {
    from_.resize(size());
    for (int y = 0; y < plate_.rows; ++y) {
      for (int x = 0; x < plate_.columns; ++x)
        from_[at(y, x)] = wave(y, plate_.rows) * wave(x, plate_.columns);
    }
    to_ = from_;
  }
  void run() {
    BENCH_RUN(heat_steps, &plate_, from_.data(), to_.data(), steps_);
    if (steps_ % 2 != 0) from_.swap(to_);
  }
  bool check() const {
    const double one = 1 - 2 * plate_.by_rows * (1 - std::cos(angle(1, plate_.rows))) -
                       2 * plate_.by_columns * (1 - std::cos(angle(1, plate_.columns)));
    const double factor = std::pow(one, steps_);
    std::vector<double> across(static_cast<std::size_t>(plate_.columns));
    for (int x = 0; x < plate_.columns; ++x) {
      across[static_cast<std::size_t>(x)] = wave(x, plate_.columns);
    }
    double worst = 0;
    for (int y = 0; y < plate_.rows; ++y) {
      const double here = factor * wave(y, plate_.rows);
      for (int x = 0; x < plate_.columns; ++x) {
        const double error = from_[at(y, x)] - here * across[static_cast<std::size_t>(x)];
        worst = std::fmax(worst, std::fabs(error));
      }
    }
    return worst < 1e-11;
  }
  double traffic() const { return 3.0 * sizeof(double) * static_cast<double>(size()) * steps_; }

 private:
  static constexpr int kWaves = 5;
  static double angle(int x, int points) { return std::numbers::pi * kWaves * x / (points - 1); }
  static double wave(int x, int points) { return std::sin(angle(x, points)); }
  std::size_t size() const {
    return static_cast<std::size_t>(plate_.rows) * static_cast<std::size_t>(plate_.columns);
  }
  std::size_t at(int y, int x) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(plate_.columns) +
           static_cast<std::size_t>(x);
  }

  Plate plate_;
  int steps_;
  LargeVector<double> from_;
  LargeVector<double> to_;
};

}  // namespace bench
