// A dense matrix of 1024 x 1024 into the product of a lower and an upper triangular one, in place,
// by quarters down to blocks of 16 x 16.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "../framework.hpp"
#include "../large_vector.hpp"
#include "../random.hpp"

namespace bench {

constexpr int kBlock = 16;
struct Block {
  double at[kBlock][kBlock];
};

// A square of a matrix that is stored by blocks.
struct Blocks {
  Block* first;
  std::ptrdiff_t row;  // from one row of blocks to the next
  // The quarter in that row and column; `half` is its side.
  Blocks quarter(int y, int x, int half) const { return {first + y * half * row + x * half, row}; }
};

inline void subtract_times(double factor, const double* from, double* to, int begin, int end) {
  for (int i = begin; i < end; ++i) to[i] -= factor * from[i];
}

BENCH_LEAF void factor_block(Block& m) {
  for (int k = 0; k < kBlock; ++k) {
    for (int i = k + 1; i < kBlock; ++i) {
      m.at[i][k] /= m.at[k][k];
      subtract_times(m.at[i][k], m.at[k], m.at[i], k + 1, kBlock);
    }
  }
}
// m := the inverse of l's lower part, times m.
BENCH_LEAF void lower_block(Block& m, const Block& l) {
  for (int i = 1; i < kBlock; ++i) {
    for (int k = 0; k < i; ++k) subtract_times(l.at[i][k], m.at[k], m.at[i], 0, kBlock);
  }
}
// m := m times the inverse of u's upper part.
BENCH_LEAF void upper_block(Block& m, const Block& u) {
  for (auto& row : m.at) {
    for (int k = 0; k < kBlock; ++k) {
      row[k] /= u.at[k][k];
      subtract_times(row[k], u.at[k], row, k + 1, kBlock);
    }
  }
}
// m := m - a times b.
BENCH_LEAF void multiply_block(Block& m, const Block& a, const Block& b) {
  for (int i = 0; i < kBlock; ++i) {
    for (int k = 0; k < kBlock; ++k) subtract_times(a.at[i][k], b.at[k], m.at[i], 0, kBlock);
  }
}

}  // namespace bench

// In all of these n is the side in blocks.

// m := m - a b.
BENCH_DECLARE(void, lud_multiply, bench::Blocks m, bench::Blocks a, bench::Blocks b, int n);
// One row of quarters of m, one term of the sum.
BENCH_DECLARE(void, lud_multiply_row, bench::Blocks m, bench::Blocks a, bench::Blocks b, int half,
              int y, int k);
BENCH_TASK(void, lud_multiply_row, bench::Blocks m, bench::Blocks a, bench::Blocks b, int half,
           int y, int k) {
  BENCH_PAR_VOID(
      lud_multiply, (m.quarter(y, 0, half), a.quarter(y, k, half), b.quarter(k, 0, half), half),
      lud_multiply, (m.quarter(y, 1, half), a.quarter(y, k, half), b.quarter(k, 1, half), half));
}
BENCH_TASK(void, lud_multiply, bench::Blocks m, bench::Blocks a, bench::Blocks b, int n) {
  if (n == 1) {
    bench::multiply_block(*m.first, *a.first, *b.first);
    BENCH_RETURN_VOID;
  }
  for (int k = 0; k < 2; ++k) {
    BENCH_PAR_VOID(lud_multiply_row, (m, a, b, n / 2, 0, k), lud_multiply_row,
                   (m, a, b, n / 2, 1, k));
  }
}

// Solves l x = m for x, in m; l's diagonal is all ones.
BENCH_DECLARE(void, lud_lower, bench::Blocks m, bench::Blocks l, int n);
BENCH_DECLARE(void, lud_lower_column, bench::Blocks m, bench::Blocks l, int half, int x);
BENCH_TASK(void, lud_lower_column, bench::Blocks m, bench::Blocks l, int half, int x) {
  BENCH_CALL_VOID(lud_lower, (m.quarter(0, x, half), l.quarter(0, 0, half), half));
  BENCH_CALL_VOID(lud_multiply,
                  (m.quarter(1, x, half), l.quarter(1, 0, half), m.quarter(0, x, half), half));
  BENCH_CALL_VOID(lud_lower, (m.quarter(1, x, half), l.quarter(1, 1, half), half));
}
BENCH_TASK(void, lud_lower, bench::Blocks m, bench::Blocks l, int n) {
  if (n == 1) {
    bench::lower_block(*m.first, *l.first);
    BENCH_RETURN_VOID;
  }
  BENCH_PAR_VOID(lud_lower_column, (m, l, n / 2, 0), lud_lower_column, (m, l, n / 2, 1));
}

// Solves x u = m for x, in m.
BENCH_DECLARE(void, lud_upper, bench::Blocks m, bench::Blocks u, int n);
BENCH_DECLARE(void, lud_upper_row, bench::Blocks m, bench::Blocks u, int half, int y);
BENCH_TASK(void, lud_upper_row, bench::Blocks m, bench::Blocks u, int half, int y) {
  BENCH_CALL_VOID(lud_upper, (m.quarter(y, 0, half), u.quarter(0, 0, half), half));
  BENCH_CALL_VOID(lud_multiply,
                  (m.quarter(y, 1, half), m.quarter(y, 0, half), u.quarter(0, 1, half), half));
  BENCH_CALL_VOID(lud_upper, (m.quarter(y, 1, half), u.quarter(1, 1, half), half));
}
BENCH_TASK(void, lud_upper, bench::Blocks m, bench::Blocks u, int n) {
  if (n == 1) {
    bench::upper_block(*m.first, *u.first);
    BENCH_RETURN_VOID;
  }
  BENCH_PAR_VOID(lud_upper_row, (m, u, n / 2, 0), lud_upper_row, (m, u, n / 2, 1));
}

BENCH_DECLARE(void, lud, bench::Blocks m, int n);
BENCH_TASK(void, lud, bench::Blocks m, int n) {
  if (n == 1) {
    bench::factor_block(*m.first);
    BENCH_RETURN_VOID;
  }
  const int half = n / 2;
  const bench::Blocks done = m.quarter(0, 0, half);
  const bench::Blocks right = m.quarter(0, 1, half);
  const bench::Blocks below = m.quarter(1, 0, half);
  const bench::Blocks rest = m.quarter(1, 1, half);
  BENCH_CALL_VOID(lud, (done, half));
  BENCH_PAR_VOID(lud_lower, (right, done, half), lud_upper, (below, done, half));
  BENCH_CALL_VOID(lud_multiply, (rest, below, right, half));
  BENCH_CALL_VOID(lud, (rest, half));
}

namespace bench {

class Lud {
 public:
  explicit Lud(bool quick) : side_(quick ? 64 : 1024), blocks_(side_ / kBlock) {}
  void prepare() {
    matrix_.resize(static_cast<std::size_t>(blocks_) * static_cast<std::size_t>(blocks_));
    for (int y = 0; y < side_; ++y) {
      for (int x = 0; x < side_; ++x) element(y, x) = original(y, x);
    }
  }
  void run() { BENCH_RUN(lud, Blocks{matrix_.data(), blocks_}, blocks_); }
  // Whether l (u v) is what the matrix made of a vector v.
  bool check() {
    const auto side = static_cast<std::size_t>(side_);
    std::vector<double> v(side);
    std::vector<double> upper(side);
    for (std::size_t i = 0; i < side; ++i) v[i] = mixed_fraction(i) + 1;
    for (int y = 0; y < side_; ++y) {
      for (int x = y; x < side_; ++x) upper[index(y)] += element(y, x) * v[index(x)];
    }
    for (int y = 0; y < side_; ++y) {
      double product = upper[index(y)];
      double wanted = 0;
      for (int x = 0; x < y; ++x) product += element(y, x) * upper[index(x)];
      for (int x = 0; x < side_; ++x) wanted += original(y, x) * v[index(x)];
      if (!(std::fabs(product - wanted) <= 1e-9 * std::fabs(wanted))) return false;
    }
    return true;
  }

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  double& element(int y, int x) {
    const int block = y / kBlock * blocks_ + x / kBlock;
    return matrix_[index(block)].at[y % kBlock][x % kBlock];
  }
  // The diagonal outweighs the rest, so that no rows need to be exchanged.
  double original(int y, int x) const {
    return mixed_fraction(index(y * side_ + x)) + (y == x ? side_ : 0);
  }

  int side_;
  int blocks_;
  LargeVector<Block> matrix_;
};

}  // namespace bench
