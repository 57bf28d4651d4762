/*
 * check.h - assertions of the C programs in this folder. A failed one is printed and counted; the
 * program goes on and fails at its end.
 */
#ifndef JACKDAW_TESTS_ABI_CHECK_H
#define JACKDAW_TESTS_ABI_CHECK_H

#include <stdio.h>
#include <stdlib.h>

extern int check_failures;

#define CHECK(condition)                                            \
  do {                                                              \
    if (!(condition)) {                                             \
      printf("FAILED %s:%d: %s\n", __FILE__, __LINE__, #condition); \
      check_failures++;                                             \
    }                                                               \
  } while (0)

/* Both are converted to long and printed. */
#define CHECK_EQ(actual, expected)                                                        \
  do {                                                                                    \
    const long check_a_ = (long)(actual), check_b_ = (long)(expected);                    \
    if (check_a_ != check_b_) {                                                           \
      printf("FAILED %s:%d: %s is %ld, not %ld\n", __FILE__, __LINE__, #actual, check_a_, \
             check_b_);                                                                   \
      check_failures++;                                                                   \
    }                                                                                     \
  } while (0)

/* A test case, run in a process of its own, in which libgc has not been touched yet. */
struct TestCase {
  const char* name;
  void (*run)(void);
};

/* The cases of each file, ended by a null name. */
extern const struct TestCase alloc_cases[], data_cases[], finalize_cases[], kinds_cases[],
    threads_cases[];

/* Runs f in a child process; its wait status. What it prints is thrown away. */
int run_in_child(void (*f)(void));

/*
 * Calls f(arg) deep in the stack, and then overwrites that part of the stack, so that no pointer
 * that f had is left in it.
 */
void far_away(void (*f)(void*), void* arg);

/* Collects until nothing more is found, and runs the finalizers. */
void collect_thoroughly(void);

#endif /* JACKDAW_TESTS_ABI_CHECK_H */
