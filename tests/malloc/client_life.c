/* Threads that come and go, processes, libraries, signals. */
#define _GNU_SOURCE 1

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include "client.h"

enum { LENGTH = 300, GARBAGE = 40, STOP_SIGNAL = 60 };

/* 600 MiB that nobody frees; what is resident tells whether they were collected. */
void test_garbage(const char* argument) {
  struct rusage usage;
  struct node* kept = make_list(10000);
  (void)argument;
  make_garbage(600);
  REQUIRE(list_is_whole(kept, 10000));
  getrusage(RUSAGE_SELF, &usage);
  printf("resident %ld KiB\n", usage.ru_maxrss);
}

static void* work(void* argument) {
  struct node* list = make_list(LENGTH);
  char* own = strdup(argument);
  void* passed;
  int i;
  for (i = 0; i < 200; ++i) {
    free(malloc((size_t)i * 50));
    char* longer = realloc(own, strlen(own) + 1 + (size_t)i);
    REQUIRE(longer != NULL);
    own = longer;
  }
  passed = list_is_whole(list, LENGTH) ? list : NULL;
  free(own);
  return passed;
}

static int work_c11(void* argument) { return work(argument) != NULL ? 7 : 0; }

static void* start_others(void* argument) {
  pthread_t inner;
  void* result = NULL;
  if (pthread_create(&inner, NULL, work, argument) != 0) return NULL;
  pthread_join(inner, &result);
  return result;
}

static void free_list(struct node* list) {
  while (list != NULL) {
    struct node* next = list->next;
    free(list);
    list = next;
  }
}

/* Each is known before its function runs (malloc.req.threads). */
void test_threads(const char* argument) {
  enum { AT_ONCE = 12, ROUNDS = 25 };
  pthread_t threads[AT_ONCE];
  pthread_attr_t detached;
  thrd_t c11;
  int round;
  int i;
  (void)argument;
  pthread_attr_init(&detached);
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  for (round = 0; round < ROUNDS; ++round) {
    int result = 0;
    pthread_t one;
    for (i = 0; i < AT_ONCE; ++i) {
      REQUIRE(pthread_create(&threads[i], NULL, i % 3 == 0 ? start_others : work, strdup("some")) ==
              0);
    }
    REQUIRE(pthread_create(&one, &detached, work, strdup("text")) == 0);
    REQUIRE(thrd_create(&c11, work_c11, strdup("more")) == thrd_success);
    make_garbage(4);
    for (i = 0; i < AT_ONCE; ++i) {
      void* list = NULL;
      REQUIRE(pthread_join(threads[i], &list) == 0);
      REQUIRE(list != NULL && list_is_whole(list, LENGTH));
      if (i % 2 == 0) free_list(list);
    }
    REQUIRE(thrd_join(c11, &result) == thrd_success && result == 7);
  }
}

static volatile int stop_working;

static void* keep_working(void* argument) {
  while (!stop_working) free_list(make_list(LENGTH));
  return argument;
}

static int status_of(pid_t child) {
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

void test_fork(const char* argument) {
  pthread_t threads[3];
  struct node* before = make_list(LENGTH);
  int i;
  for (i = 0; i < 3; ++i) REQUIRE(pthread_create(&threads[i], NULL, keep_working, NULL) == 0);
  for (i = 0; i < 20; ++i) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      pthread_t one;
      void* list = NULL;
      make_garbage(GARBAGE);
      REQUIRE(list_is_whole(before, LENGTH));
      REQUIRE(pthread_create(&one, NULL, work, (void*)"a thread of the child's") == 0);
      REQUIRE(pthread_join(one, &list) == 0 && list_is_whole(list, LENGTH));
      if (i % 2 == 0) {
        /* And its own child. */
        const pid_t inner = fork();
        if (inner == 0) {
          make_garbage(GARBAGE);
          _exit(list_is_whole(before, LENGTH) ? 5 : 1);
        }
        REQUIRE(status_of(inner) == 5 << 8);
      }
      _exit(4);
    }
    REQUIRE(status_of(child) == 4 << 8);
    free_list(make_list(LENGTH));
  }
  stop_working = 1;
  for (i = 0; i < 3; ++i) REQUIRE(pthread_join(threads[i], NULL) == 0);
  REQUIRE(list_is_whole(before, LENGTH));
  (void)argument;
}

void test_children(const char* argument) {
  pthread_t thread;
  int i;
  REQUIRE(pthread_create(&thread, NULL, keep_working, NULL) == 0);
  for (i = 0; i < 10; ++i) {
    char* const command[] = {(char*)"/bin/sh", (char*)"-c", (char*)"exit 6", NULL};
    pid_t child;
    FILE* pipe;
    char line[20] = "";
    REQUIRE(posix_spawn(&child, command[0], NULL, NULL, command, environ) == 0);
    REQUIRE(status_of(child) == 6 << 8);
    child = vfork();
    if (child == 0) {
      execve(command[0], command, environ);
      _exit(1);
    }
    REQUIRE(status_of(child) == 6 << 8);
    REQUIRE(system("exit 6") == 6 << 8);
    pipe = popen("echo a child", "r");
    REQUIRE(pipe != NULL && fgets(line, sizeof line, pipe) != NULL);
    REQUIRE(strcmp(line, "a child\n") == 0 && pclose(pipe) == 0);
    make_garbage(2);
  }
  stop_working = 1;
  REQUIRE(pthread_join(thread, NULL) == 0);
  (void)argument;
}

static const char* plugin_path;

static void* load(void* argument) {
  int i;
  for (i = 0; i < 100; ++i) {
    void* library = dlopen(plugin_path, RTLD_NOW);
    struct node*** word;
    REQUIRE(library != NULL);
    word = dlsym(library, "plugin_thread_word");
    *word = (struct node**)make_list(LENGTH);
    free_list((struct node*)*word);
    *word = NULL;
    REQUIRE(dlclose(library) == 0);
  }
  return argument;
}

void test_loading(const char* plugin) {
  pthread_t threads[3];
  struct node* list = make_list(LENGTH);
  int i;
  plugin_path = plugin;
  for (i = 0; i < 3; ++i) REQUIRE(pthread_create(&threads[i], NULL, load, NULL) == 0);
  for (i = 0; i < 20; ++i) make_garbage(GARBAGE / 10);
  for (i = 0; i < 3; ++i) REQUIRE(pthread_join(threads[i], NULL) == 0);
  REQUIRE(list_is_whole(list, LENGTH));
}

static volatile int handled;
static volatile int handled_right;

static void on_signal(int number) {
  char local;
  (void)number;
  handled_right += strcmp(opaque(memcpy(&local, "", 1)), "") == 0;
  ++handled;
}

/* Nobody but the kernel knows where this stack is. */
static void give_stack(void* unused) {
  stack_t stack = {0};
  stack.ss_size = 65536;
  stack.ss_sp = malloc(stack.ss_size);
  memset(stack.ss_sp, 0x11, stack.ss_size);
  REQUIRE(sigaltstack(&stack, NULL) == 0);
  (void)unused;
}

/* Older functions are used on purpose. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

void test_signals(const char* argument) {
  struct sigaction action = {0};
  pthread_t thread;
  sigset_t all;
  sigset_t old;
  stack_t stack;
  int number;
  int i;
  (void)argument;
  far_away(give_stack, NULL);
  clear_stack();
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK;
  REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0);
  make_garbage(GARBAGE);
  REQUIRE(sigaltstack(NULL, &stack) == 0);
  for (i = 0; i < 60000; ++i) REQUIRE(((char*)stack.ss_sp)[i] == 0x11);
  raise(SIGUSR1);
  REQUIRE(handled == 1 && handled_right == 1);
  /* As a daemon does it. */
  for (number = 1; number < 32; ++number) signal(number, SIG_DFL);
  action.sa_handler = SIG_DFL;
  for (number = 1; number < 32; ++number) sigaction(number, &action, NULL);
  /* And as older programs do. */
  for (number = 1; number < 32; ++number) {
    sigset(number, SIG_DFL);
    sysv_signal(number, SIG_DFL);
    if (number != SIGKILL && number != SIGSTOP) REQUIRE(sigignore(number) == 0);
  }
  REQUIRE(sigset(SIGUSR2, SIG_HOLD) == SIG_IGN && sigset(SIGUSR2, SIG_HOLD) == SIG_HOLD);
  REQUIRE(sigset(SIGUSR2, SIG_DFL) == SIG_HOLD && sigset(SIGUSR2, SIG_DFL) == SIG_DFL);
  REQUIRE(sysv_signal(SIGUSR2, on_signal) == SIG_DFL && ssignal(SIGUSR2, SIG_IGN) == on_signal);
  REQUIRE(sighold(SIGUSR2) == 0 && sigrelse(SIGUSR2) == 0 && sighold(1000) == -1);
  REQUIRE(sigblock(~0) == 0 && sigsetmask(~0) != 0);
  sigfillset(&all);
  REQUIRE(sigprocmask(SIG_BLOCK, &all, &old) == 0);
  REQUIRE(pthread_create(&thread, NULL, keep_working, NULL) == 0);
  make_garbage(GARBAGE);
  REQUIRE(sigprocmask(SIG_SETMASK, &old, NULL) == 0);
  stop_working = 1;
  REQUIRE(pthread_join(thread, NULL) == 0);
  REQUIRE(pthread_sigmask(SIG_BLOCK, NULL, &all) == 0 && sigismember(&all, SIGUSR2));
  REQUIRE(sigsetmask(0) != 0);
  REQUIRE(pthread_sigmask(SIG_BLOCK, NULL, &all) == 0 && !sigismember(&all, SIGUSR2));
}

/* Threads that wait with every signal blocked, or for every signal, but for the one that ends it.
 */
static void* wait_by_sigsuspend(void* list) {
  sigset_t set;
  sigfillset(&set);
  pthread_sigmask(SIG_SETMASK, &set, NULL);
  sigdelset(&set, SIGUSR1);
  while (!stop_working) sigsuspend(&set);
  return list;
}

static void* wait_by_sigwait(void* list) {
  sigset_t set;
  int number = 0;
  sigfillset(&set);
  pthread_sigmask(SIG_SETMASK, &set, NULL);
  REQUIRE(sigwait(&set, &number) == 0 && number == SIGUSR1);
  return list;
}

static void* wait_by_signalfd(void* list) {
  struct signalfd_siginfo info;
  sigset_t set;
  sigfillset(&set);
  pthread_sigmask(SIG_SETMASK, &set, NULL);
  const int file = signalfd(-1, &set, 0);
  REQUIRE(file >= 0);
  REQUIRE(read(file, &info, sizeof info) == sizeof info && info.ssi_signo == SIGUSR1);
  close(file);
  return list;
}

static void* wait_by_ppoll(void* list) {
  sigset_t set;
  sigfillset(&set);
  pthread_sigmask(SIG_SETMASK, &set, NULL);
  sigdelset(&set, SIGUSR1);
  while (!stop_working) ppoll(NULL, 0, NULL, &set);
  return list;
}

static void* wait_by_pselect(void* list) {
  sigset_t set;
  sigfillset(&set);
  sigdelset(&set, SIGUSR1);
  while (!stop_working) pselect(0, NULL, NULL, NULL, NULL, &set);
  return list;
}

/* As a fortified program does it. */
typedef int ppoll_chk(struct pollfd*, nfds_t, const struct timespec*, const sigset_t*, size_t);

static void* wait_by_ppoll_chk(void* list) {
  ppoll_chk* chk = (ppoll_chk*)(uintptr_t)dlsym(RTLD_DEFAULT, "__ppoll_chk");
  sigset_t set;
  REQUIRE(chk != NULL);
  sigfillset(&set);
  sigdelset(&set, SIGUSR1);
  while (!stop_working) chk(NULL, 0, NULL, &set, 0);
  return list;
}

/* The system or its libc may be too old for it. */
typedef int epoll_pwait_2(int, struct epoll_event*, int, const struct timespec*, const sigset_t*);

static void* wait_by_epoll_pwait2(void* list) {
  epoll_pwait_2* wait = (epoll_pwait_2*)(uintptr_t)dlsym(RTLD_DEFAULT, "epoll_pwait2");
  const int file = epoll_create1(0);
  struct epoll_event event;
  sigset_t set;
  REQUIRE(wait != NULL && file >= 0);
  sigfillset(&set);
  sigdelset(&set, SIGUSR1);
  while (!stop_working) {
    if (wait(file, &event, 1, NULL, &set) < 0 && errno == ENOSYS) return wait_by_ppoll(list);
  }
  close(file);
  return list;
}

static int leave[2];

static void wait_in_handler(int number) {
  char byte;
  (void)number;
  handled = 1;
  while (read(leave[0], &byte, 1) != 1) {
  }
}

static void* run_handler(void* list) {
  raise(SIGUSR1);
  return list;
}

/* A handler with everything blocked lasts until the others have collected. */
void test_in_handler(const char* argument) {
  struct sigaction action = {0};
  struct sigaction now;
  pthread_t thread;
  void* list = NULL;
  char byte = 'x';
  int number;
  (void)argument;
  REQUIRE(pipe(leave) == 0);
  action.sa_handler = wait_in_handler;
  sigfillset(&action.sa_mask);
  REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0);
  REQUIRE(pthread_create(&thread, NULL, run_handler, make_list(LENGTH)) == 0);
  while (!handled) usleep(1000);
  make_garbage(GARBAGE);
  REQUIRE(write(leave[1], &byte, 1) == 1);
  REQUIRE(pthread_join(thread, &list) == 0 && list_is_whole(list, LENGTH));
  /* It is told what it said. */
  REQUIRE(sigaction(SIGUSR1, NULL, &now) == 0 && now.sa_handler == wait_in_handler);
  for (number = 1; number < 32; ++number) {
    REQUIRE(sigismember(&now.sa_mask, number) || number == SIGKILL || number == SIGSTOP);
  }
  action.sa_handler = SIG_IGN;
  sigemptyset(&action.sa_mask);
  REQUIRE(sigaction(SIGUSR1, &action, &now) == 0 && sigismember(&now.sa_mask, STOP_SIGNAL));
  REQUIRE(sigaction(SIGUSR1, NULL, &now) == 0 && !sigismember(&now.sa_mask, STOP_SIGNAL));
}

static volatile int forks;

static void fork_in_handler(int number) {
  const pid_t child = fork();
  int status = -1;
  (void)number;
  if (child == 0) _exit(0);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status == 0) ++forks;
}

/* Wherever the program's only thread is just then. */
void test_fork_in_handler(const char* argument) {
  struct sigaction action = {0};
  const struct itimerval every = {{0, 1000}, {0, 1000}};
  const struct itimerval never = {{0, 0}, {0, 0}};
  struct node* list = make_list(LENGTH);
  (void)argument;
  action.sa_handler = fork_in_handler;
  action.sa_flags = SA_RESTART;
  REQUIRE(sigaction(SIGALRM, &action, NULL) == 0);
  REQUIRE(setitimer(ITIMER_REAL, &every, NULL) == 0);
  while (forks < 100) free(opaque(malloc(20000)));
  REQUIRE(setitimer(ITIMER_REAL, &never, NULL) == 0);
  REQUIRE(list_is_whole(list, LENGTH));
}

/* The signals by which bdwgc stops and restarts threads are a program's own; a child may run on it.
 */
void test_collectors_signals(const char* argument) {
  struct sigaction action = {0};
  struct sigaction now;
  (void)argument;
  action.sa_handler = on_signal;
  REQUIRE(sigaction(SIGPWR, &action, NULL) == 0 && sigaction(SIGXCPU, &action, NULL) == 0);
  REQUIRE(sigaction(SIGPWR, NULL, &now) == 0 && now.sa_handler == on_signal);
  handled = 0;
  raise(SIGPWR);
  raise(SIGXCPU);
  REQUIRE(handled == 2);
}

/* As run-times do it that call no libc. */
void test_replaced_handler(const char* argument) {
  struct {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
  } action = {SIG_IGN, 0, NULL, 0};
  pthread_t thread;
  struct node* list = make_list(LENGTH);
  (void)argument;
  REQUIRE(syscall(SYS_rt_sigaction, STOP_SIGNAL, &action, NULL, 8L) == 0);
  REQUIRE(pthread_create(&thread, NULL, keep_working, NULL) == 0);
  make_garbage(GARBAGE);
  stop_working = 1;
  REQUIRE(pthread_join(thread, NULL) == 0);
  REQUIRE(list_is_whole(list, LENGTH));
}

void test_waiting(const char* argument) {
  void* (*const ways[])(void*) = {wait_by_sigsuspend,  wait_by_sigwait, wait_by_signalfd,
                                  wait_by_ppoll,       wait_by_pselect, wait_by_ppoll_chk,
                                  wait_by_epoll_pwait2};
  enum { WAYS = sizeof ways / sizeof ways[0] };
  pthread_t threads[WAYS];
  struct sigaction action = {0};
  sigset_t set;
  int i;
  (void)argument;
  action.sa_handler = on_signal;
  REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0);
  /* The threads begin with it blocked. Where it may arrive between a look at stop_working and the
     wait, it is handled too early, and the wait has no end. */
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  REQUIRE(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
  for (i = 0; i < WAYS; ++i) {
    REQUIRE(pthread_create(&threads[i], NULL, ways[i], make_list(LENGTH)) == 0);
  }
  make_garbage(GARBAGE);
  stop_working = 1;
  for (i = 0; i < WAYS; ++i) {
    void* list = NULL;
    REQUIRE(pthread_kill(threads[i], SIGUSR1) == 0);
    REQUIRE(pthread_join(threads[i], &list) == 0 && list_is_whole(list, LENGTH));
  }
}

static struct node* left_by_main;
static pthread_t main_thread;

static void* outlive_main(void* argument) {
  REQUIRE(pthread_join(main_thread, NULL) == 0);
  make_garbage(GARBAGE);
  REQUIRE(list_is_whole(left_by_main, LENGTH));
  puts("ok");
  exit(0);
  return argument;
}

/* Then /proc/self shows nothing any more. */
void test_main_ends(const char* argument) {
  pthread_t thread;
  (void)argument;
  main_thread = pthread_self();
  left_by_main = make_list(LENGTH);
  REQUIRE(pthread_create(&thread, NULL, outlive_main, NULL) == 0);
  pthread_exit(NULL);
}

/* A child that shares the memory allocates until a collection would be due. */
void test_vfork(const char* argument) {
  struct node* list = make_list(LENGTH);
  volatile pid_t child;
  volatile int round;
  (void)argument;
  for (round = 0; round < 5; ++round) {
    child = vfork();
    if (child == 0) {
      make_garbage(GARBAGE / 4);
      _exit(0);
    }
    REQUIRE(status_of(child) == 0);
    make_garbage(GARBAGE / 4);
    REQUIRE(list_is_whole(list, LENGTH));
  }
}

/* Where nothing shows what is mapped, nothing may be reclaimed. Status 77: not permitted. */
void test_no_proc(const char* argument) {
  struct node* list = make_list(LENGTH);
  (void)argument;
  if (chroot("/dev") != 0) exit(77);
  make_garbage(GARBAGE);
  REQUIRE(list_is_whole(list, LENGTH));
}

/* The queue of signals, which is the user's and not this process's alone, has no room for a while.
 */
void test_full_queue(const char* argument) {
  struct rlimit limit;
  struct rlimit none;
  struct rusage usage;
  pthread_t threads[2];
  struct node* kept = make_list(10000);
  int i;
  (void)argument;
  REQUIRE(getrlimit(RLIMIT_SIGPENDING, &limit) == 0);
  none = limit;
  none.rlim_cur = 0;
  stop_working = 0;
  for (i = 0; i < 2; ++i) REQUIRE(pthread_create(&threads[i], NULL, keep_working, NULL) == 0);
  REQUIRE(setrlimit(RLIMIT_SIGPENDING, &none) == 0);
  make_garbage(60);
  REQUIRE(setrlimit(RLIMIT_SIGPENDING, &limit) == 0);
  make_garbage(600);
  stop_working = 1;
  for (i = 0; i < 2; ++i) REQUIRE(pthread_join(threads[i], NULL) == 0);
  REQUIRE(list_is_whole(kept, 10000));
  getrusage(RUSAGE_SELF, &usage);
  printf("resident %ld KiB\n", usage.ru_maxrss);
}

static int is_there;
static void* stay(void* argument) {
  __atomic_store_n(&is_there, 1, __ATOMIC_RELEASE);
  for (;;) pause();
  return argument;
}

/* At its end, too, where another thread is left. */
void test_full_queue_at_the_end(const char* argument) {
  struct rlimit none;
  pthread_t thread;
  (void)argument;
  REQUIRE(getrlimit(RLIMIT_SIGPENDING, &none) == 0);
  none.rlim_cur = 0;
  REQUIRE(pthread_create(&thread, NULL, stay, NULL) == 0);
  while (!__atomic_load_n(&is_there, __ATOMIC_ACQUIRE)) usleep(1000);
  REQUIRE(setrlimit(RLIMIT_SIGPENDING, &none) == 0);
}
