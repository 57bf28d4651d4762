/*
 * life: 10,000 generations of Conway's game, on lists of pairs of integers.
 *
 * Models: the Life of functional programming's text books and of the ISMM 1998 paper. A generation
 *   is a sorted list of the coordinates of living cells. Each of the eight neighbours of all is
 * such a list as well, shifted; the lists are merged, and who stands in the result three times, or
 *   twice and is alive, lives in the next generation. The pattern is Gosper's gun, an eater in the
 *   path of its gliders, and a pulsar.
 * Live: small; some hundred cells and the lists of one generation, under 100 KB.
 * Sizes: cells of two words (eight in nine objects), pairs of two without pointers.
 * Checked: every 50th generation against one computed on a torus of bits; by the gun's period of
 *   30, after which it has made one more glider (5 cells); and by the period of the whole pattern.
 */
#include "list.h"
#include "run.h"

typedef struct Pair {
  OBJECT;
  long x;
  long y;
} Pair;
LEAF_TYPE(Pair);

TYPES(List, Pair);

static Pair* pair(long x, long y) {
  Pair* p = NEW(Pair);
  p->x = x;
  p->y = y;
  return p;
}

static int compare(const Pair* a, const Pair* b) {
  if (a->y != b->y) return a->y < b->y ? -1 : 1;
  return a->x < b->x ? -1 : a->x > b->x;
}

/* --- lists of cells ----------------------------------------------------------------------------*/

/* Of two sorted lists, a sorted one that has all elements of both. */
static List* merge(const List* a, const List* b) {
  List* result = NULL;
  while (a != NULL && b != NULL) {
    if (compare(a->head, b->head) <= 0) {
      result = cons(a->head, result);
      a = a->tail;
    } else {
      result = cons(b->head, result);
      b = b->tail;
    }
  }
  return reverse(reverse_onto(a != NULL ? a : b, result));
}

static List* shift(const List* cells, long dx, long dy) {
  if (cells == NULL) return NULL;
  const Pair* cell = cells->head;
  Pair* moved = pair(cell->x + dx, cell->y + dy);
  return cons(moved, shift(cells->tail, dx, dy));
}

/* The neighbours of all cells, each as often as it is one. */
static List* neighbours(const List* cells) {
  List* above = merge(merge(shift(cells, -1, -1), shift(cells, 1, -1)), shift(cells, 0, -1));
  List* below = merge(merge(shift(cells, -1, 1), shift(cells, 1, 1)), shift(cells, 0, 1));
  List* beside = merge(shift(cells, -1, 0), shift(cells, 1, 0));
  return merge(merge(above, below), beside);
}

static List* next_generation(const List* cells) {
  List* result = NULL;
  const List* alive = cells;
  for (const List* near = neighbours(cells); near != NULL;) {
    const Pair* cell = near->head;
    int count = 0;
    for (; near != NULL && compare(near->head, cell) == 0; near = near->tail) count++;
    while (alive != NULL && compare(alive->head, cell) < 0) alive = alive->tail;
    const bool lives = alive != NULL && compare(alive->head, cell) == 0;
    if (count == 3 || (count == 2 && lives)) result = cons((void*)cell, result);
  }
  return reverse(result);
}

/* --- patterns
 * -----------------------------------------------------------------------------------*/

/* The cells that are `O` in a picture, at (x, y). */
static List* picture(const char* const* rows, int count, long x, long y) {
  List* result = NULL;
  for (int row = 0; row < count; row++) {
    for (long column = 0; rows[row][column] != '\0'; column++) {
      if (rows[row][column] == 'O') result = cons(pair(x + column, y + row), result);
    }
  }
  return reverse(result);
}

static const char* const gun[] = {
    "........................O...........", "......................O.O...........",
    "............OO......OO............OO", "...........O...O....OO............OO",
    "OO........O.....O...OO..............", "OO........O...O.OO....O.O...........",
    "..........O.....O.......O...........", "...........O...O....................",
    "............OO......................",
};
static const char* const eater[] = {"OO..", "O.O.", "..O.", "..OO"};
static const char* const pulsar[] = {
    "..OOO...OOO..", ".............", "O....O.O....O", "O....O.O....O", "O....O.O....O",
    "..OOO...OOO..", ".............", "..OOO...OOO..", "O....O.O....O", "O....O.O....O",
    "O....O.O....O", ".............", "..OOO...OOO..",
};
#define PICTURE(rows, x, y) picture(rows, sizeof(rows) / sizeof((rows)[0]), x, y)

/* --- the same on bits --------------------------------------------------------------------------*/

/* A torus of 64 x 64 cells: a row is a word. */
enum { Side = 64 };
typedef struct Board {
  uint64_t rows[Side];
} Board;

static uint64_t rotate(uint64_t row, int by) { return row << by | row >> (64 - by); }

/* Adds a row of bits to the columns' sums of two bits; a third means four or more. */
static void add_row(uint64_t row, uint64_t sum[3]) {
  const uint64_t carry = sum[0] & row;
  sum[0] ^= row;
  sum[2] |= sum[1] & carry;
  sum[1] ^= carry;
}

static void step_board(Board* board) {
  Board next;
  for (int y = 0; y < Side; y++) {
    uint64_t sum[3] = {0, 0, 0};
    for (int dy = -1; dy <= 1; dy++) {
      const uint64_t row = board->rows[(y + dy + Side) % Side];
      add_row(rotate(row, 1), sum);
      add_row(rotate(row, 63), sum);
      if (dy != 0) add_row(row, sum);
    }
    next.rows[y] = sum[1] & ~sum[2] & (sum[0] | board->rows[y]);
  }
  *board = next;
}

static Board board_of(const List* cells) {
  Board board = {{0}};
  for (; cells != NULL; cells = cells->tail) {
    const Pair* cell = cells->head;
    CHECK(cell->x >= 0 && cell->x < Side && cell->y >= 0 && cell->y < Side,
          "a cell at (%ld, %ld) is off the board", cell->x, cell->y);
    board.rows[cell->y] |= UINT64_C(1) << cell->x;
  }
  return board;
}

/* --- runs --------------------------------------------------------------------------------------*/

/* The gun alone: it has 36 cells, and after each 30 generations a glider more. */
static void check_gun(int periods) {
  const List* cells = PICTURE(gun, 0, 0);
  for (int period = 0; period <= periods; period++) {
    const size_t count = length(cells);
    CHECK(count == 36 + 5 * (size_t)period, "the gun has %zu cells after %d generations", count,
          30 * period);
    for (int i = 0; i < 30; i++) cells = next_generation(cells);
  }
}

static size_t check_generations(long generations) {
  enum { Settled = 300, Period = 30, Between = 50 };
  const List* cells =
      merge(merge(PICTURE(gun, 2, 2), PICTURE(eater, 48, 34)), PICTURE(pulsar, 10, 42));
  Board board = board_of(cells);
  size_t settled[Period] = {0};
  for (long i = 0; i < generations; i++) {
    if (i >= Settled) {
      size_t* known = &settled[i % Period];
      const size_t count = length(cells);
      CHECK(*known == 0 || *known == count, "generation %ld has %zu cells, not %zu", i, count,
            *known);
      *known = count;
    }
    if (i % Between == 0) {
      const Board lists = board_of(cells);
      CHECK(memcmp(&lists, &board, sizeof(board)) == 0, "generation %ld", i);
    }
    cells = next_generation(cells);
    step_board(&board);
  }
  return length(cells);
}

static void run(long scale) {
  const long generations = scale == 0 ? 400 : 10000 * scale;
  check_gun(scale == 0 ? 4 : 10);
  const size_t count = check_generations(generations);
  printf("life: generation %ld has %zu cells\n", generations, count);
}

PROGRAM("life", run);
