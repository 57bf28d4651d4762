/*
 * A program for the tests of `jackdaw run`. Its first argument says what it does:
 *
 *   allocate COUNT SIZE   allocates, keeping the last 100, and prints what it allocated
 *   exit STATUS           allocates a little and returns STATUS
 *   quit STATUS           allocates 10 MB and calls _exit(STATUS), which runs no destructors
 *   die SIGNAL            allocates 10 MB and kills itself
 *   wait SIGNAL           prints "ready", and ends with status 7 at that signal
 *   sleep SECONDS         prints "ready", and ends with status 0 so much later
 *   fork                  a child allocates 100 MB, the parent 1 MB
 *   exec PROGRAM ...      becomes that program
 *   callbacks             counts collections and heap growth by callbacks of its own
 *   count                 prints the number of bytes on its standard input
 *   pid [COMPLAINING]     prints its process id: another output every time
 *   complain              writes a line to its standard error
 *   interrupt             tells its parent to end (SIGTERM), and waits
 *   nudge                 tells its parent to end, and does not wait
 *   idle                  never touches the collector
 */
#define _GNU_SOURCE 1
#include <gc/gc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* volatile: the compiler would drop what nobody reads. */
static void* volatile ring[100];

static void allocate(long count, size_t size) {
  for (long i = 0; i < count; ++i) {
    char* p = (char*)GC_MALLOC(size);
    if (p == NULL) exit(99);
    p[0] = 1;
    ring[i % 100] = p;
  }
}

static void on_signal(int signal_number) {
  (void)signal_number;
  _exit(7);
}

static long started, ended, resized;

static void GC_CALLBACK on_event(GC_EventType event) {
  started += event == GC_EVENT_START;
  ended += event == GC_EVENT_END;
}

static void GC_CALLBACK on_resize(GC_word size) { resized += size > 0; }

static int callbacks(void) {
  GC_set_on_collection_event(on_event);
  GC_set_on_heap_resize(on_resize);
  if (GC_get_on_collection_event() != on_event) return 1;
  if (GC_get_on_heap_resize() != on_resize) return 2;
  GC_gcollect();
  allocate(10000, 1000);
  printf("callbacks: %s\n", started > 0 && started == ended && resized > 0 ? "called" : "lost");
  return 0;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "idle") == 0) return 0;
  GC_INIT();
  if (strcmp(what, "allocate") == 0 && argc == 4) {
    allocate(atol(argv[2]), (size_t)atol(argv[3]));
    printf("allocated %s objects\n", argv[2]);
    return 0;
  }
  if (strcmp(what, "exit") == 0 && argc == 3) {
    allocate(10, 10);
    return atoi(argv[2]);
  }
  if (strcmp(what, "quit") == 0 && argc == 3) {
    allocate(10000, 1000);
    _exit(atoi(argv[2]));
  }
  if (strcmp(what, "die") == 0 && argc == 3) {
    allocate(10000, 1000);
    kill(getpid(), atoi(argv[2]));
    pause();
  }
  if (strcmp(what, "wait") == 0 && argc == 3) {
    signal(atoi(argv[2]), on_signal);
    puts("ready");
    fflush(stdout);
    for (;;) pause();
  }
  if (strcmp(what, "sleep") == 0 && argc == 3) {
    puts("ready");
    fflush(stdout);
    sleep((unsigned)atoi(argv[2]));
    return 0;
  }
  if (strcmp(what, "fork") == 0) {
    pid_t child = fork();
    if (child == 0) {
      allocate(100000, 1000);
      exit(0);
    }
    allocate(1000, 1000);
    int status = 0;
    return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
  }
  if (strcmp(what, "nudge") == 0) return kill(getppid(), SIGTERM);
  if (strcmp(what, "exec") == 0 && argc > 2) {
    allocate(10000, 1000);
    execv(argv[2], argv + 2);
    return 98;
  }
  if (strcmp(what, "callbacks") == 0) return callbacks();
  if (strcmp(what, "count") == 0) {
    long bytes = 0;
    while (getchar() != EOF) ++bytes;
    printf("%ld\n", bytes);
    return 0;
  }
  if (strcmp(what, "complain") == 0) {
    fputs("a complaint\n", stderr);
    return 0;
  }
  if (strcmp(what, "interrupt") == 0) {
    kill(getppid(), SIGTERM);
    for (;;) pause();
  }
  if (strcmp(what, "pid") == 0) {
    printf("%ld\n", (long)getpid());
    if (argc > 2) fputs("a complaint\n", stderr);
    return 0;
  }
  return 97;
}
