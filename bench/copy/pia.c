/*
 * pia: perspective inversion. Of the picture of a known body, where the camera stood.
 *
 * Models: floating-point code in a functional language, after the Pia of the ISMM 1998 paper. Every
 *   real number is boxed; vectors are tuples of three, rows of matrices are lists. A body of eight
 *   corners is turned, moved and projected; from the picture, rotation and translation are found
 *   again by Gauss-Newton steps: each builds the normal equations of the corners' errors and solves
 *   them by elimination.
 * Live: about 1 MB; the 800 pictures of a round.
 * Sizes: reals of one word without pointers (more than half of the objects), cells of two words;
 *   vectors and other tuples of three and four.
 * Checked: the rotation and translation that come out are those that made the picture, to 1e-9.
 */
#include "list.h"
#include "run.h"

#include <math.h>

typedef struct Real {
  OBJECT;
  double value;
} Real;
LEAF_TYPE(Real);

typedef struct Vector {
  OBJECT;
  Real* x;
  Real* y;
  Real* z;
} Vector;
TYPE(Vector, x, y, z);

/* Where a body stands: the rows of its rotation, and its translation. */
typedef struct Pose {
  OBJECT;
  Vector* rows[3];
  Vector* at;
} Pose;
TYPE(Pose, rows[0], rows[1], rows[2], at);

/* A corner of the body and where the picture shows it. */
typedef struct Sight {
  OBJECT;
  Vector* corner;
  Real* u;
  Real* v;
} Sight;
TYPE(Sight, corner, u, v);

/* A picture, and what is to be found. */
typedef struct Picture {
  OBJECT;
  List* sights;
  Pose* pose;
  Pose* guess;
} Picture;
TYPE(Picture, sights, pose, guess);

TYPES(List, Real, Vector, Pose, Sight, Picture);

/* --- numbers ---------------------------------------------------------------------------------- */

static Real* real(double value) {
  Real* box = NEW(Real);
  box->value = value;
  return box;
}

static Real* add(const Real* a, const Real* b) { return real(a->value + b->value); }
static Real* subtract(const Real* a, const Real* b) { return real(a->value - b->value); }
static Real* multiply(const Real* a, const Real* b) { return real(a->value * b->value); }
static Real* divide(const Real* a, const Real* b) { return real(a->value / b->value); }
static Real* negate(const Real* a) { return real(-a->value); }

static Vector* vector(Real* x, Real* y, Real* z) {
  Vector* v = NEW(Vector);
  v->x = x;
  v->y = y;
  v->z = z;
  return v;
}

static Vector* vector_of(double x, double y, double z) {
  Real* first = real(x);
  Real* second = real(y);
  return vector(first, second, real(z));
}

static Vector* add_vectors(const Vector* a, const Vector* b) {
  Real* x = add(a->x, b->x);
  Real* y = add(a->y, b->y);
  return vector(x, y, add(a->z, b->z));
}

static Vector* scale_vector(const Real* factor, const Vector* a) {
  Real* x = multiply(factor, a->x);
  Real* y = multiply(factor, a->y);
  return vector(x, y, multiply(factor, a->z));
}

static Real* dot(const Vector* a, const Vector* b) {
  return add(add(multiply(a->x, b->x), multiply(a->y, b->y)), multiply(a->z, b->z));
}

static Vector* cross(const Vector* a, const Vector* b) {
  Real* x = subtract(multiply(a->y, b->z), multiply(a->z, b->y));
  Real* y = subtract(multiply(a->z, b->x), multiply(a->x, b->z));
  return vector(x, y, subtract(multiply(a->x, b->y), multiply(a->y, b->x)));
}

/* --- poses ------------------------------------------------------------------------------------ */

/* Turns a vector about an axis by the axis's length (Rodrigues' formula). */
static Vector* turn(const Vector* axis, const Vector* v) {
  const double angle = sqrt(dot(axis, axis)->value);
  if (angle < 1e-150) return add_vectors(v, cross(axis, v));
  const Vector* unit = scale_vector(real(1 / angle), axis);
  const Vector* along = scale_vector(multiply(dot(unit, v), real(1 - cos(angle))), unit);
  const Vector* still = scale_vector(real(cos(angle)), v);
  return add_vectors(add_vectors(still, scale_vector(real(sin(angle)), cross(unit, v))), along);
}

static Vector* column(const Pose* pose, int i) {
  Real* of_rows[3];
  for (int row = 0; row < 3; row++) {
    const Vector* v = pose->rows[row];
    of_rows[row] = i == 0 ? v->x : i == 1 ? v->y : v->z;
  }
  return vector(of_rows[0], of_rows[1], of_rows[2]);
}

/* The pose turned about an axis through the body's origin, and moved. */
static Pose* move_pose(const Pose* pose, const Vector* axis, const Vector* by) {
  const Vector* x = turn(axis, column(pose, 0));
  const Vector* y = turn(axis, column(pose, 1));
  const Vector* z = turn(axis, column(pose, 2));
  Vector* at = add_vectors(pose->at, by);
  Pose* moved = NEW(Pose);
  moved->rows[0] = vector(x->x, y->x, z->x);
  moved->rows[1] = vector(x->y, y->y, z->y);
  moved->rows[2] = vector(x->z, y->z, z->z);
  moved->at = at;
  return moved;
}

static Pose* unmoved(void) {
  Pose* pose = NEW(Pose);
  pose->rows[0] = vector_of(1, 0, 0);
  pose->rows[1] = vector_of(0, 1, 0);
  pose->rows[2] = vector_of(0, 0, 1);
  pose->at = vector_of(0, 0, 0);
  return pose;
}

static Vector* rotated(const Pose* pose, const Vector* v) {
  Real* x = dot(pose->rows[0], v);
  Real* y = dot(pose->rows[1], v);
  return vector(x, y, dot(pose->rows[2], v));
}

/* --- the linear equations --------------------------------------------------------------------- */

/* A row is a list of coefficients and, at its end, the right side; a system is a list of rows. */
static List* add_rows(const List* a, const List* b) {
  if (a == NULL) return NULL;
  Real* sum = add(a->head, b->head);
  return cons(sum, add_rows(a->tail, b->tail));
}

static List* scale_row(const Real* factor, const List* row) {
  if (row == NULL) return NULL;
  Real* product = multiply(factor, row->head);
  return cons(product, scale_row(factor, row->tail));
}

static List* add_systems(const List* a, const List* b) {
  if (a == NULL) return NULL;
  List* sum = add_rows(a->head, b->head);
  return cons(sum, add_systems(a->tail, b->tail));
}

/* What one equation adds to the normal equations: itself times each of its coefficients. */
static List* normal_rows(const List* coefficients, const List* equation) {
  if (coefficients->tail == NULL) return NULL; /* the right side */
  List* row = scale_row(coefficients->head, equation);
  return cons(row, normal_rows(coefficients->tail, equation));
}

/* Moves the row whose first coefficient is largest to the front. */
static List* pivot(const List* system) {
  List* best = NULL;
  for (const List* cell = system; cell != NULL; cell = cell->tail) {
    const Real* first = ((const List*)cell->head)->head;
    if (best == NULL || fabs(first->value) > fabs(((const Real*)best->head)->value)) {
      best = cell->head;
    }
  }
  List* rest = NULL;
  for (const List* cell = system; cell != NULL; cell = cell->tail) {
    if (cell->head != best) rest = cons(cell->head, rest);
  }
  return cons(best, rest);
}

/* The unknowns, by Gauss's elimination. */
static List* solve(const List* system) {
  if (system == NULL) return NULL;
  system = pivot(system);
  const List* first = system->head;
  List* smaller = NULL;
  for (const List* cell = system->tail; cell != NULL; cell = cell->tail) {
    const List* row = cell->head;
    const Real* factor = negate(divide(row->head, first->head));
    List* reduced = add_rows(row->tail, scale_row(factor, first->tail));
    smaller = cons(reduced, smaller);
  }
  List* others = solve(smaller);
  Real* known = real(0);
  const List* coefficient = first->tail;
  for (const List* cell = others; cell != NULL; cell = cell->tail) {
    known = add(known, multiply(cell->head, coefficient->head));
    coefficient = coefficient->tail;
  }
  return cons(divide(subtract(coefficient->head, known), first->head), others);
}

/* --- pictures and their inversion ------------------------------------------------------------- */

static List* row_of(Vector* turning, Vector* moving, Real* error) {
  List* row = cons(moving->z, cons(error, NULL));
  row = cons(moving->x, cons(moving->y, row));
  return cons(turning->x, cons(turning->y, cons(turning->z, row)));
}

/* How a coordinate of the picture, p = point / z, changes as the point moves: of the six unknowns,
 * turning about the origin moves it by their cross product. */
static List* equation(const Vector* arm, Vector* moving, Real* error) {
  return row_of(cross(arm, moving), moving, error);
}

/* What one sight adds to the normal equations for a better pose. */
static List* equations_of_sight(const Sight* sight, const Pose* pose) {
  const Vector* arm = rotated(pose, sight->corner);
  const Vector* point = add_vectors(arm, pose->at);
  Real* inverse = divide(real(1), point->z);
  Real* u = multiply(point->x, inverse);
  Real* v = multiply(point->y, inverse);
  Vector* moving_u = vector(inverse, real(0), negate(multiply(u, inverse)));
  Vector* moving_v = vector(real(0), inverse, negate(multiply(v, inverse)));
  const List* for_u = equation(arm, moving_u, subtract(sight->u, u));
  const List* for_v = equation(arm, moving_v, subtract(sight->v, v));
  const List* rows = normal_rows(for_u, for_u);
  return add_systems(rows, normal_rows(for_v, for_v));
}

static Real* element(const List* list, int index) {
  while (index-- > 0) list = list->tail;
  return list->head;
}

static Pose* invert(const List* sights, Pose* guess) {
  enum { MostSteps = 30 };
  for (int step = 0; step < MostSteps; step++) {
    List* system = NULL;
    for (const List* cell = sights; cell != NULL; cell = cell->tail) {
      List* rows = equations_of_sight(cell->head, guess);
      system = system == NULL ? rows : add_systems(system, rows);
    }
    const List* unknowns = solve(system);
    const Vector* axis = vector(element(unknowns, 0), element(unknowns, 1), element(unknowns, 2));
    const Vector* by = vector(element(unknowns, 3), element(unknowns, 4), element(unknowns, 5));
    guess = move_pose(guess, axis, by);
    if (dot(axis, axis)->value + dot(by, by)->value < 1e-24) return guess;
  }
  return guess;
}

static List* corners(void) {
  List* result = NULL;
  for (int i = 0; i < 8; i++) {
    result = cons(vector_of(i & 1 ? 1 : -1, i & 2 ? 0.75 : -0.75, i & 4 ? 0.5 : -0.5), result);
  }
  return result;
}

/* Between -1 and 1. */
static double signed_unit(uint64_t* random) {
  return (double)(random_next(random) >> 11) / (double)(UINT64_C(1) << 52) - 1;
}

static Vector* random_vector(double size, uint64_t* random) {
  Real* x = real(size * signed_unit(random));
  Real* y = real(size * signed_unit(random));
  return vector(x, y, real(size * signed_unit(random)));
}

static Picture* take_picture(const List* body, uint64_t* random) {
  const Vector* away = vector_of(0, 0, 8);
  const Pose* far_away = move_pose(unmoved(), random_vector(1, random), away);
  Pose* pose = move_pose(far_away, random_vector(2, random), random_vector(2, random));
  List* sights = NULL;
  for (; body != NULL; body = body->tail) {
    const Vector* point = add_vectors(rotated(pose, body->head), pose->at);
    Real* u = divide(point->x, point->z);
    Real* v = divide(point->y, point->z);
    Sight* sight = NEW(Sight);
    sight->corner = body->head;
    sight->u = u;
    sight->v = v;
    sights = cons(sight, sights);
  }
  Pose* guess = move_pose(pose, random_vector(0.2, random), random_vector(0.5, random));
  Picture* picture = NEW(Picture);
  picture->sights = sights;
  picture->pose = pose;
  picture->guess = guess;
  return picture;
}

static double distance(const Vector* a, const Vector* b) {
  const Vector* d = add_vectors(a, scale_vector(real(-1), b));
  return sqrt(dot(d, d)->value);
}

/* The largest difference of two poses. */
static double pose_distance(const Pose* a, const Pose* b) {
  double largest = distance(a->at, b->at);
  for (int i = 0; i < 3; i++) largest = fmax(largest, distance(a->rows[i], b->rows[i]));
  return largest;
}

static void run(long scale) {
  const long pictures = scale == 0 ? 60 : 800;
  const long rounds = scale == 0 ? 1 : 4 * scale;
  uint64_t random = 1;
  const List* body = corners();
  for (long round = 0; round < rounds; round++) {
    List* taken = NULL;
    for (long i = 0; i < pictures; i++) taken = cons(take_picture(body, &random), taken);
    for (const List* cell = taken; cell != NULL; cell = cell->tail) {
      const Picture* picture = cell->head;
      const double error = pose_distance(invert(picture->sights, picture->guess), picture->pose);
      CHECK(error < 1e-9, "a pose is off by %g", error);
    }
  }
  printf("pia: %ld poses found again\n", rounds * pictures);
}

PROGRAM("pia", run);
