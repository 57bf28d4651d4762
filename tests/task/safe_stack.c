/* The same through the C functions, as safe_stack.cpp. */
#include <jackdaw/task.h>
#include <stdio.h>
#include <string.h>

struct work {
  int n;
  long sum;
  int is_wrong;
};

static __attribute__((noinline)) void fill(char* bytes, size_t count, int with) {
  memset(bytes, with, count);
}

static void add(void* argument) {
  struct work* work = argument;
  char bytes[200];
  fill(bytes, sizeof bytes, work->n);
  if (work->n < 2) {
    work->sum = work->n;
    return;
  }
  struct work left = {work->n - 1, 0, 0};
  struct work right = {work->n - 2, 0, 0};
  jd_task_par(add, &left, add, &right);
  work->sum = left.sum + right.sum;
  work->is_wrong = left.is_wrong | right.is_wrong;
  for (size_t i = 0; i < sizeof bytes; ++i) work->is_wrong |= bytes[i] != (char)work->n;
}

int main(void) {
  if (jd_task_get_mode() != JD_TASK_DEQUE) {
    printf("mode %d\n", (int)jd_task_get_mode());
    return 1;
  }
  jd_task_start(4);
  for (int i = 0; i < 5; ++i) {
    struct work all = {18, 0, 0};
    jd_task_run(add, &all);
    if (all.sum != 2584 || all.is_wrong) return 1;
  }
  jd_task_stop();
  return 0;
}
