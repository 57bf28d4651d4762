/* Children that no handler of fork()'s hears of, and output that goes nowhere. */
#define _GNU_SOURCE 1

#include "client.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define LENGTH 3000
#define DROPPED 400        /* MiB that each child drops */
#define MOST (150 * 1024L) /* KiB that it may have had at once */

static struct node* inherited;

/* What a child does: its status is 7. */
static int drop_much(void* argument) {
  struct rusage usage;
  (void)argument;
  make_garbage(DROPPED);
  if (!list_is_whole(inherited, LENGTH)) return 1;
  if (!list_is_whole(make_list(LENGTH), LENGTH)) return 2;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss < MOST ? 7 : 3;
}

static int status_of(pid_t child) {
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

void test_unnoticed_children(const char* argument) {
  enum { kStack = 1 << 20 };
  char* const stack = malloc(kStack);
  pid_t child;
  (void)argument;
  REQUIRE(stack != NULL);
  inherited = make_list(LENGTH);
  child = _Fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const pid_t inner = fork();
    if (inner == 0) _exit(drop_much(NULL));
    _exit(status_of(inner) == 7 << 8 ? drop_much(NULL) : 4);
  }
  REQUIRE(status_of(child) == 7 << 8);
  child = clone(drop_much, stack + kStack, SIGCHLD, NULL);
  REQUIRE(child >= 0);
  REQUIRE(status_of(child) == 7 << 8);
  make_garbage(DROPPED);
  REQUIRE(list_is_whole(inherited, LENGTH));
}

/* Nobody reads what the library has to say. */
void test_dead_output(const char* argument) {
  int ends[2];
  (void)argument;
  REQUIRE(pipe(ends) == 0);
  REQUIRE(dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
  REQUIRE(close(ends[0]) == 0 && close(ends[1]) == 0);
  free(opaque((char*)malloc(100) + 16));
}
