// Loops, reductions and sorting for C (task.hpp has its own, which the compiler can inline).
#include "base/bits.hpp"
#include "jackdaw/task.h"

namespace {

using Size = std::size_t;

// 64 pieces a worker, as in task.hpp.
Size grain_for(Size length, Size wanted) {
  constexpr Size kPieces = 64;
  if (wanted != 0) return wanted;
  return jd::base::max_of(Size{1}, length / (kPieces * jd_task_workers()));
}

// ---- Loops ----

struct Loop {
  void (*body)(Size, Size, void*);
  void* argument;
  Size grain;
};
struct LoopPiece {
  const Loop* loop;
  Size begin;
  Size end;
};

void run_loop(void* data) {
  const LoopPiece piece = *static_cast<LoopPiece*>(data);
  if (piece.end - piece.begin <= piece.loop->grain) {
    piece.loop->body(piece.begin, piece.end, piece.loop->argument);
    return;
  }
  const Size middle = piece.begin + (piece.end - piece.begin) / 2;
  LoopPiece left{piece.loop, piece.begin, middle};
  LoopPiece right{piece.loop, middle, piece.end};
  jd_task_par(run_loop, &left, run_loop, &right);
}

// ---- Reductions ----

struct Reduction {
  void (*map)(Size, Size, void*, void*);
  void (*combine)(void*, const void*, void*);
  void* argument;
  Size grain;
};
struct ReductionPiece {
  const Reduction* reduction;
  Size begin;
  Size end;
  void* result;
};

void run_reduction(void* data) {
  const ReductionPiece piece = *static_cast<ReductionPiece*>(data);
  const Reduction& reduction = *piece.reduction;
  if (piece.end - piece.begin <= reduction.grain) {
    reduction.map(piece.begin, piece.end, piece.result, reduction.argument);
    return;
  }
  const Size middle = piece.begin + (piece.end - piece.begin) / 2;
  alignas(JD_TASK_REDUCE_ALIGNMENT) char right_result[JD_TASK_REDUCE_MOST];
  ReductionPiece left{&reduction, piece.begin, middle, piece.result};
  ReductionPiece right{&reduction, middle, piece.end, right_result};
  jd_task_par(run_reduction, &left, run_reduction, &right);
  reduction.combine(piece.result, right_result, reduction.argument);
}

// ---- Sorting ----

using Compare = int (*)(const void*, const void*, void*);

struct Sort {
  Size size;
  Compare compare;
  void* argument;

  bool less(const char* a, const char* b) const { return compare(a, b, argument) < 0; }
  void swap(char* a, char* b) const {
    for (Size i = 0; i < size; ++i) {
      const char byte = a[i];
      a[i] = b[i];
      b[i] = byte;
    }
  }
};
struct SortPiece {
  const Sort* sort;
  char* base;
  Size count;
  int depth;
};

constexpr Size kFewElements = 16;
// Of more, the pivot is the median of nine.
constexpr Size kSomeElements = 128;
// Up to this many elements a fork is not worth it.
constexpr Size kSortGrain = 2048;

// Sorts what rises, or falls, from one end to the other. Elsewhere it soon gives up.
bool sort_a_slope(const Sort& sort, char* base, Size count) {
  Size rising = 1;
  Size falling = 1;
  const auto at = [&](Size i) { return base + i * sort.size; };
  while (rising < count && !sort.less(at(rising), at(rising - 1))) ++rising;
  if (rising == count) return true;
  while (falling < count && !sort.less(at(falling - 1), at(falling))) ++falling;
  if (falling < count) return false;
  for (Size i = 0; i < count / 2; ++i) sort.swap(at(i), at(count - 1 - i));
  return true;
}

void sort_by_insertion(const Sort& sort, char* base, Size count) {
  for (Size i = 1; i < count; ++i) {
    for (char* p = base + i * sort.size; p > base && sort.less(p, p - sort.size); p -= sort.size) {
      sort.swap(p, p - sort.size);
    }
  }
}

void sift_down(const Sort& sort, char* base, Size from, Size count) {
  for (;;) {
    Size child = 2 * from + 1;
    if (child >= count) return;
    if (child + 1 < count && sort.less(base + child * sort.size, base + (child + 1) * sort.size)) {
      ++child;
    }
    if (!sort.less(base + from * sort.size, base + child * sort.size)) return;
    sort.swap(base + from * sort.size, base + child * sort.size);
    from = child;
  }
}

// Where quicksort's cuts are bad too often.
void sort_by_heap(const Sort& sort, char* base, Size count) {
  for (Size i = count / 2; i-- > 0;) sift_down(sort, base, i, count);
  for (Size i = count; i-- > 1;) {
    sort.swap(base, base + i * sort.size);
    sift_down(sort, base, 0, i);
  }
}

char* median(const Sort& sort, char* a, char* b, char* c) {
  if (sort.less(b, a)) {
    char* const less = b;
    b = a;
    a = less;
  }
  if (!sort.less(c, b)) return b;
  return sort.less(c, a) ? a : c;
}

// As in task.hpp: also of a range with a pattern near the middle.
char* ninther(const Sort& sort, char* base, Size count) {
  const Size step = count / 8 * sort.size;
  char* const middle = base + 4 * step;
  char* const last = base + (count - 1) * sort.size;
  return median(sort, median(sort, base, base + step, base + 2 * step),
                median(sort, middle - step, middle, middle + step),
                median(sort, last - 2 * step, last - step, last));
}

// Moves a median to where it belongs, what is less before it, what is not less after it;
// returns its index. With many equals both sides stop at them, so that the cut stays in the middle.
Size partition(const Sort& sort, char* base, Size count) {
  const Size size = sort.size;
  char* const last = base + (count - 1) * size;
  char* const pivot = count > kSomeElements ? ninther(sort, base, count)
                                            : median(sort, base, base + count / 2 * size, last);
  if (pivot != base) sort.swap(base, pivot);
  Size left = 0;
  Size right = count;
  for (;;) {
    do {
      ++left;
    } while (left < count && sort.less(base + left * size, base));
    do {
      --right;
    } while (right > 0 && sort.less(base, base + right * size));
    if (left >= right) break;
    sort.swap(base + left * size, base + right * size);
  }
  sort.swap(base, base + right * size);
  return right;
}

void run_sort(void* data) {
  SortPiece piece = *static_cast<SortPiece*>(data);
  const Sort& sort = *piece.sort;
  while (piece.count > kFewElements) {
    if (piece.depth == 0) return sort_by_heap(sort, piece.base, piece.count);
    --piece.depth;
    const Size cut = partition(sort, piece.base, piece.count);
    SortPiece left{&sort, piece.base, cut, piece.depth};
    SortPiece right{&sort, piece.base + (cut + 1) * sort.size, piece.count - cut - 1, piece.depth};
    if (piece.count > kSortGrain) {
      jd_task_par(run_sort, &left, run_sort, &right);
      return;
    }
    // The shorter one by recursion: so the stack stays shallow.
    SortPiece& shorter = left.count < right.count ? left : right;
    SortPiece& longer = left.count < right.count ? right : left;
    run_sort(&shorter);
    piece = longer;
  }
  sort_by_insertion(sort, piece.base, piece.count);
}

}  // namespace

extern "C" {

void jd_task_for(size_t begin, size_t end, size_t grain,
                 void (*body)(size_t begin, size_t end, void* argument), void* argument) {
  if (begin >= end) return;
  Loop loop{body, argument, grain_for(end - begin, grain)};
  LoopPiece piece{&loop, begin, end};
  jd_task_run(run_loop, &piece);
}

void jd_task_reduce(size_t begin, size_t end, size_t grain, size_t size,
                    void (*map)(size_t begin, size_t end, void* result, void* argument),
                    void (*combine)(void* left, const void* right, void* argument), void* argument,
                    void* result) {
  if (begin >= end) return map(begin, begin, result, argument);
  // What does not fit into a piece's frame is reduced by one thread.
  const size_t length = end - begin;
  Reduction reduction{map, combine, argument,
                      size <= JD_TASK_REDUCE_MOST ? grain_for(length, grain) : length};
  ReductionPiece piece{&reduction, begin, end, result};
  jd_task_run(run_reduction, &piece);
}

void jd_task_sort(void* base, size_t count, size_t size,
                  int (*compare)(const void*, const void*, void*), void* argument) {
  if (count < 2 || size == 0) return;
  const Sort sort{size, compare, argument};
  SortPiece piece{&sort, static_cast<char*>(base), count,
                  static_cast<int>(2 * jd::base::log2_floor(count))};
  if (sort_a_slope(sort, piece.base, count)) return;
  if (count <= kSortGrain) {
    run_sort(&piece);
  } else {
    jd_task_run(run_sort, &piece);
  }
}

}  // extern "C"
