// In how many ways n queens stand on a board and do not see each other. Each safe square of a row
// is a task; boards are copied.
#pragma once

#include "../framework.hpp"

namespace bench {

struct Board {
  signed char column[16];  // of the queen in each row
};

// The first column from `column` on in which a queen of this row is safe; n if there is none.
inline int next_safe(const Board& board, int n, int row, int column) {
  for (; column < n; ++column) {
    bool safe = true;
    for (int r = 0; safe && r < row; ++r) {
      const int across = column - board.column[r];
      safe = across != 0 && across != row - r && across != r - row;
    }
    if (safe) break;
  }
  return column;
}

}  // namespace bench

// The ways to fill a board whose rows before `row` are filled, with this row's queen at `column`,
// which is safe, or behind it.
BENCH_DECLARE(long, queens, bench::Board board, int n, int row, int column);
BENCH_TASK(long, queens, bench::Board board, int n, int row, int column) {
  while (true) {
    board.column[row] = static_cast<signed char>(column);
    // Two queens cannot be safe in the last row: they would stand in the same column.
    if (row + 1 == n) BENCH_RETURN(1);
    const int beside = bench::next_safe(board, n, row, column + 1);
    const int below = bench::next_safe(board, n, row + 1, 0);
    if (below == n && beside == n) BENCH_RETURN(0);
    if (below < n && beside < n) {
      long x = 0;
      long y = 0;
      BENCH_PAR(x, queens, (board, n, row + 1, below), y, queens, (board, n, row, beside));
      BENCH_RETURN(x + y);
    }
    if (below < n) {
      ++row;
      column = below;
    } else {
      column = beside;
    }
  }
}

namespace bench {

class Queens {
 public:
  explicit Queens(bool quick) : n_(quick ? 8 : 12) {}
  void prepare() {}
  void run() { ways_ = BENCH_RUN(queens, Board{}, n_, 0, 0); }
  bool check() const { return ways_ == (n_ == 8 ? 92 : 14200); }

 private:
  int n_;
  long ways_ = -1;
};

}  // namespace bench
