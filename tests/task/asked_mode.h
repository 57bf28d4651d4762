/* Do tasks run in the mode that JACKDAW_TASK_MODE names? Where they do not, a test of that mode has
   shown nothing. */
#ifndef JD_TESTS_TASK_ASKED_MODE_H
#define JD_TESTS_TASK_ASKED_MODE_H

#include <jackdaw/task.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Why tasks have no stacks here, whatever is asked for; null where nothing of that is known. */
static inline const char* jd_why_deque_alone(void) {
#if defined(JD_SANITIZE_ADDRESS) || defined(JD_SANITIZE_THREAD)
  return "the sanitizer keeps a shadow of each stack: tasks have the mode deque alone";
#elif !defined(__x86_64__)
  return "tasks have the mode deque alone on this processor";
#else
  /* Where there is none this instruction does nothing. */
  unsigned long shadow_stack = 0;
  __asm__ volatile("rdsspq %0" : "+r"(shadow_stack));
  return shadow_stack != 0 ? "threads have shadow stacks: tasks have the mode deque alone" : NULL;
#endif
}

/* Asked in a child, since the answer starts things that a test may want to be first at. */
static inline int jd_mode_is_as_asked(void) {
  static const char* const names[] = {"deque", "stop", "barrier"};
  const char* const asked = getenv("JACKDAW_TASK_MODE");
  int status = -1;
  pid_t child;
  if (asked == NULL) return 1;
  child = fork();
  if (child == 0) _exit((int)jd_task_get_mode());
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 0;
  return WEXITSTATUS(status) < 3 && strcmp(asked, names[WEXITSTATUS(status)]) == 0;
}

#endif
