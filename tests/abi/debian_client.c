/*
 * debian_client.c - a program compiled against Debian's libgc headers and linked with Debian's
 * library, that uses all that real programs use of it (needed-symbols.txt) and states what it
 * expects. It must pass with Debian's library, and then with ours.
 *
 *   abi_debian_client LIBRARY [CASE]
 *
 * LIBRARY is the one that must be loaded. Each case runs in a process of its own.
 */
#include <dlfcn.h>
#include <gc/gc.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

int check_failures;

int run_in_child(void (*f)(void)) {
  int status = -1;
  pid_t child;
  fflush(stdout);
  child = fork();
  if (child == 0) {
    if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) _exit(99);
    f();
    _exit(check_failures != 0);
  }
  waitpid(child, &status, 0);
  return status;
}

static void __attribute__((noinline)) overwrite_stack(void) {
  volatile char junk[16384];
  size_t i;
  for (i = 0; i < sizeof junk; i++) junk[i] = 0;
}

/* Written through a volatile, so that the compiler neither merges nor reorders the calls. */
static void __attribute__((noinline)) deep_call(void (*f)(void*), void* arg, int depth) {
  volatile char frame[512];
  frame[0] = (char)depth;
  if (depth > 0)
    deep_call(f, arg, depth - 1);
  else
    f(arg);
  frame[1] = frame[0];
}

void far_away(void (*f)(void*), void* arg) {
  deep_call(f, arg, 8);
  overwrite_stack();
}

void collect_thoroughly(void) {
  int i;
  for (i = 0; i < 4; i++) {
    overwrite_stack();
    GC_gcollect();
    while (GC_invoke_finalizers() != 0) {
    }
  }
}

static int same_file(const char* a, const char* b) {
  struct stat sa, sb;
  return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

int main(int argc, char** argv) {
  const struct TestCase* files[] = {alloc_cases, data_cases, finalize_cases, kinds_cases,
                                    threads_cases};
  const struct TestCase* c;
  Dl_info info;
  size_t i;
  int ran = 0, failed = 0;

  if (argc < 2) {
    fprintf(stderr, "usage: %s LIBRARY [CASE | -CASE]\n", argv[0]);
    return 2;
  }
  if (!dladdr(dlsym(RTLD_DEFAULT, "GC_init"), &info) || !same_file(info.dli_fname, argv[1])) {
    printf("FAILED: the library that was loaded is %s, not %s\n", info.dli_fname, argv[1]);
    return 1;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (i = 0; i < sizeof files / sizeof files[0]; i++) {
    for (c = files[i]; c->name != NULL; c++) {
      int status;
      pid_t child;
      if (argc > 2 && argv[2][0] != '-' && strcmp(argv[2], c->name) != 0) continue;
      if (argc > 2 && argv[2][0] == '-' && strcmp(argv[2] + 1, c->name) == 0) continue;
      fflush(stdout);
      child = fork();
      if (child == 0) {
        c->run();
        fflush(stdout);
        _exit(check_failures != 0);
      }
      if (child < 0 || waitpid(child, &status, 0) < 0) return 3;
      ran++;
      if (status != 0) {
        failed++;
        printf("FAILED case %s: %s %d\n", c->name,
               WIFSIGNALED(status) ? "killed by signal" : "exit status",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
      }
    }
  }
  printf("%s: %d cases, %d failed\n", info.dli_fname, ran, failed);
  return failed != 0 || ran == 0;
}
