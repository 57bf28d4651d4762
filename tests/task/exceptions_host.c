/* A program without a C++ run-time, until it loads what has one. */
#include <dlfcn.h>
#include <jackdaw/task.h>
#include <stdio.h>

#include "asked_mode.h"

static void nothing(void* argument) { (void)argument; }

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  if (!jd_mode_is_as_asked()) {
    const char* const why = jd_why_deque_alone();
    fprintf(stderr, "%s\n", why != NULL ? why : "tasks do not run in the mode asked for");
    return why != NULL ? 77 : 5;
  }
  jd_task_start(4);
  jd_task_run(nothing, NULL);
  void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (plugin == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 3;
  }
  int (*work)(void) = (int (*)(void))dlsym(plugin, "exceptions_kept_apart");
  return work != NULL ? work() : 4;
}
