#include "c_api.h"

#include <jackdaw/task.h>
#include <stdlib.h>

struct fib_call {
  long n;
  long result;
};

static void fib(void* data) {
  struct fib_call* call = data;
  if (call->n < 2) {
    call->result = call->n;
    return;
  }
  struct fib_call left = {call->n - 1, 0};
  struct fib_call right = {call->n - 2, 0};
  jd_task_par(fib, &left, fib, &right);
  call->result = left.result + right.result;
}

static void add_one(void* data) { __atomic_fetch_add((int*)data, 1, __ATOMIC_RELAXED); }

static void fork_many(void* data) {
  jd_task_scope scope;
  jd_task_scope_begin(&scope);
  for (int i = 0; i < 1000; ++i) jd_task_scope_fork(&scope, add_one, data);
  jd_task_scope_join(&scope);
  for (int i = 0; i < 1000; ++i) jd_task_scope_fork(&scope, add_one, data);
  jd_task_scope_join(&scope);
  jd_task_scope_cancel(&scope);
  jd_task_scope_fork(&scope, add_one, data);
  jd_task_scope_join(&scope);
}

static void count_pieces(size_t begin, size_t end, void* data) {
  int* calls = data;
  for (size_t i = begin; i < end; ++i) ++calls[i];
}

static void sum_piece(size_t begin, size_t end, void* result, void* data) {
  (void)data;
  long sum = 0;
  for (size_t i = begin; i < end; ++i) sum += (long)i;
  *(long*)result = sum;
}
static void add_sums(void* left, const void* right, void* data) {
  (void)data;
  *(long*)left += *(const long*)right;
}

static int compare_ints(const void* a, const void* b, void* data) {
  (void)data;
  const int x = *(const int*)a;
  const int y = *(const int*)b;
  return (x > y) - (x < y);
}

static int check_sort(size_t count, int kind) {
  int* numbers = malloc(count * sizeof *numbers);
  unsigned x = 1;
  for (size_t i = 0; i < count; ++i) {
    x = x * 1103515245u + 12345u;
    numbers[i] = kind == 0 ? (int)(x >> 8) : kind == 1 ? (int)(x >> 16) % 5 : (int)(count - i);
  }
  jd_task_sort(numbers, count, sizeof *numbers, compare_ints, NULL);
  int good = 1;
  for (size_t i = 1; i < count; ++i) good &= numbers[i - 1] <= numbers[i];
  free(numbers);
  return good;
}

const char* run_c_tests(void) {
  struct fib_call call = {20, 0};
  fib(&call);
  if (call.result != 6765) return "jd_task_par";

  int count = 0;
  jd_task_run(fork_many, &count);
  if (count != 2000) return "jd_task_scope in a worker";
  count = 0;
  fork_many(&count);
  if (count != 2000) return "jd_task_scope in another thread";

  static int calls[10000];
  jd_task_for(0, 10000, 0, count_pieces, calls);
  for (int i = 0; i < 10000; ++i) {
    if (calls[i] != 1) return "jd_task_for";
  }
  long sum = -1;
  jd_task_reduce(0, 10000, 0, sizeof sum, sum_piece, add_sums, NULL, &sum);
  if (sum != 49995000) return "jd_task_reduce";
  jd_task_reduce(3, 3, 0, sizeof sum, sum_piece, add_sums, NULL, &sum);
  if (sum != 0) return "jd_task_reduce of nothing";
  for (int kind = 0; kind < 3; ++kind) {
    if (!check_sort(100000, kind) || !check_sort(2, kind) || !check_sort(0, kind) ||
        !check_sort(17, kind)) {
      return "jd_task_sort";
    }
  }

  jd_task_counters counters;
  jd_task_get_counters(&counters);
  if (jd_task_get_mode() == JD_TASK_DEQUE && counters.pushed == 0) return "jd_task_get_counters";
  return "";
}
