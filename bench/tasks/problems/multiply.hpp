// The product of two dense matrices of 1024 x 1024 doubles, added to a third; the longest side is
// halved down to 64.
#pragma once

#include <cstddef>
#include <vector>

#include "../framework.hpp"
#include "../large_vector.hpp"
#include "../random.hpp"

namespace bench {

constexpr int kMultiplyLeaf = 64;

// c += a b, where a has `rows` x `inner` elements and b `inner` x `columns`; all stored in rows of
// `stride` elements.
struct Product {
  const double* a;
  const double* b;
  double* c;
  int rows, inner, columns;
  std::ptrdiff_t stride;
};

// By value, and row by row: what is read again from a stack in the innermost loop may wait for
// stores to the matrix, where both lie at the same place of a page.
BENCH_LEAF void add_row(double* __restrict row, const double* factors, const double* other,
                        std::ptrdiff_t stride, int inner, int columns) {
  for (int k = 0; k < inner; ++k, other += stride) {
    const double factor = factors[k];
    for (int j = 0; j < columns; ++j) row[j] += factor * other[j];
  }
}
inline void multiply_leaf(const Product& p) {
  for (int i = 0; i < p.rows; ++i) {
    add_row(p.c + i * p.stride, p.a + i * p.stride, p.b, p.stride, p.inner, p.columns);
  }
}

inline Product upper_rows(Product p) {
  p.rows /= 2;
  return p;
}
inline Product lower_rows(Product p) {
  const int half = p.rows / 2;
  p.a += half * p.stride;
  p.c += half * p.stride;
  p.rows -= half;
  return p;
}
inline Product left_columns(Product p) {
  p.columns /= 2;
  return p;
}
inline Product right_columns(Product p) {
  const int half = p.columns / 2;
  p.b += half;
  p.c += half;
  p.columns -= half;
  return p;
}
inline Product first_terms(Product p) {
  p.inner /= 2;
  return p;
}
inline Product last_terms(Product p) {
  const int half = p.inner / 2;
  p.a += half;
  p.b += half * p.stride;
  p.inner -= half;
  return p;
}

}  // namespace bench

BENCH_DECLARE(void, multiply, bench::Product p);
BENCH_TASK(void, multiply, bench::Product p) {
  if (p.rows <= bench::kMultiplyLeaf && p.inner <= bench::kMultiplyLeaf &&
      p.columns <= bench::kMultiplyLeaf) {
    bench::multiply_leaf(p);
  } else if (p.rows >= p.columns && p.rows >= p.inner) {
    BENCH_PAR_VOID(multiply, (bench::upper_rows(p)), multiply, (bench::lower_rows(p)));
  } else if (p.columns >= p.inner) {
    BENCH_PAR_VOID(multiply, (bench::left_columns(p)), multiply, (bench::right_columns(p)));
  } else {
    BENCH_CALL_VOID(multiply, (bench::first_terms(p)));
    BENCH_CALL_VOID(multiply, (bench::last_terms(p)));
  }
  BENCH_RETURN_VOID;
}

namespace bench {

class Multiply {
 public:
  explicit Multiply(bool quick) : side_(quick ? 96 : 1024) {}
  // Small whole numbers: the result is exact.
  void prepare() {
    a_.resize(size());
    b_.resize(size());
    for (std::size_t i = 0; i < size(); ++i) {
      a_[i] = static_cast<double>(mix(i) % 8);
      b_[i] = static_cast<double>(mix(~i) % 8);
    }
    c_.assign(size(), 0);
  }
  void run() {
    const Product all{a_.data(), b_.data(), c_.data(), side_, side_, side_, side_};
    BENCH_RUN(multiply, all);
  }
  // Whether c v is a (b v), for a vector v.
  bool check() const {
    std::vector<double> v(static_cast<std::size_t>(side_));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>(mix(7 + i) % 16);
    return times(c_, v) == times(a_, times(b_, v));
  }

 private:
  std::size_t size() const {
    return static_cast<std::size_t>(side_) * static_cast<std::size_t>(side_);
  }
  std::vector<double> times(const LargeVector<double>& m, const std::vector<double>& v) const {
    const auto side = static_cast<std::size_t>(side_);
    std::vector<double> result(side);
    for (std::size_t i = 0; i < side; ++i) {
      for (std::size_t k = 0; k < side; ++k) result[i] += m[i * side + k] * v[k];
    }
    return result;
  }

  int side_;
  LargeVector<double> a_;
  LargeVector<double> b_;
  LargeVector<double> c_;
};

}  // namespace bench
