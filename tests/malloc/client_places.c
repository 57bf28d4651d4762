/* Where ordinary programs keep their pointers: for most of these a client of libgc would have to
   say something (malloc.req.roots). */
#define _GNU_SOURCE 1

#include <dlfcn.h>
#include <pthread.h>
#include <search.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "client.h"

enum { LENGTH = 500, GARBAGE = 60 };

static struct node* in_data = (struct node*)1;
static struct node* in_bss;
static __thread struct node* in_tls;
static struct node** mapped;
static struct node** protected_page;
static struct node** protected_file;
static struct node** shared;
static struct node** shared_elsewhere;
static struct node** in_plugin;
static struct node** in_plugin_tls;
static char* guarded;
static unsigned char* code;
static char* past_end;
static void* tree;
static pthread_key_t key;
static ucontext_t main_context;
static ucontext_t fiber_context;
static volatile int fiber_is_right;

static void fiber(void) {
  /* Only on this stack, which is an object of the heap's. */
  struct node* list = make_list(LENGTH);
  swapcontext(&fiber_context, &main_context);
  fiber_is_right = list_is_whole(list, LENGTH);
  make_garbage(GARBAGE);
  fiber_is_right &= list_is_whole(list, LENGTH);
  swapcontext(&fiber_context, &main_context);
}

enum { CODE_WORDS = 9 };

static unsigned char* code_word(int i) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  return i == 8 ? code + page - 3 : code + 16 * i + i;
}

static void keep_in_code(unsigned char* at, struct node* list) { memcpy(at, &list, sizeof list); }

static struct node* kept_in_code(const unsigned char* at) {
  struct node* list;
  memcpy(&list, at, sizeof list);
  return list;
}

/* Written through one mapping, and seen through another. */
static void keep_in_two_places(size_t page) {
  const int file = memfd_create("places", 0);
  struct node** written;
  REQUIRE(file >= 0 && ftruncate(file, (off_t)(64 * page)) == 0);
  written = mmap(NULL, 64 * page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  shared_elsewhere = mmap(NULL, 64 * page, PROT_READ, MAP_SHARED, file, 0);
  REQUIRE(written != MAP_FAILED && shared_elsewhere != MAP_FAILED);
  written[20 * page / sizeof *written] = make_list(LENGTH);
  REQUIRE(((struct node* volatile*)shared_elsewhere)[20 * page / sizeof *written] != NULL);
  REQUIRE(munmap(written, 64 * page) == 0);
  close(file);
}

static int compare(const void* a, const void* b) { return strcmp(a, b); }

static void fill(void* plugin) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  void* library;
  FILE* file;
  char name[20];
  int i;
  in_data = make_list(LENGTH);
  in_bss = make_list(LENGTH);
  in_tls = make_list(LENGTH);
  mapped = mmap(NULL, 64 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mapped[50 * page / sizeof *mapped] = make_list(LENGTH);
  protected_page = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  protected_page[3] = make_list(LENGTH);
  REQUIRE(mprotect(protected_page, page, PROT_READ) == 0);
  file = tmpfile();
  REQUIRE(file != NULL && ftruncate(fileno(file), (off_t)page) == 0);
  protected_file = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
  fclose(file);
  protected_file[3] = make_list(LENGTH);
  REQUIRE(mprotect(protected_file, page, PROT_READ) == 0);
  shared = mmap(NULL, 64 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  shared[50 * page / sizeof *shared] = make_list(LENGTH);
  keep_in_two_places(page);
  guarded = mmap(NULL, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(guarded, 1, 8 * page);
  /* MADV_GUARD_INSTALL: on Linux 6.13 and later, a page that can't be read. */
  (void)madvise(guarded + 3 * page, page, 102);
  *(struct node**)(guarded + 4 * page) = make_list(LENGTH);
  /* Words within instructions, at every place that one can have; one of them on two pages. */
  code = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  /* Held until it is code. */
  for (i = 0; i < CODE_WORDS; ++i) mapped[i] = make_list(LENGTH);
  for (i = 0; i < CODE_WORDS; ++i) keep_in_code(code_word(i), mapped[i]);
  REQUIRE(mprotect(code, 2 * page, PROT_READ | PROT_EXEC) == 0);
  memset(mapped, 0, CODE_WORDS * sizeof *mapped);
  library = dlopen(plugin, RTLD_NOW);
  REQUIRE(library != NULL);
  in_plugin = dlsym(library, "plugin_word");
  *in_plugin = make_list(LENGTH);
  in_plugin_tls = dlsym(library, "plugin_thread_word");
  *in_plugin_tls = make_list(LENGTH);
  /* Only a pointer to one past its end, and that in an object (malloc.req.past-end). */
  past_end = malloc(sizeof(char*));
  char* object = malloc(48);
  strcpy(object, "held by its end");
  *(char**)past_end = object + 48;
  for (i = 0; i < LENGTH; ++i) {
    snprintf(name, sizeof name, "name%d", i);
    REQUIRE(tsearch(strdup(name), &tree, compare) != NULL);
  }
  REQUIRE(pthread_key_create(&key, NULL) == 0);
  REQUIRE(pthread_setspecific(key, make_list(LENGTH)) == 0);
  REQUIRE(setenv("CLIENT", "an entry of libc's own table", 1) == 0);
  getcontext(&fiber_context);
  fiber_context.uc_stack.ss_size = 256 * 1024;
  fiber_context.uc_stack.ss_sp = malloc(fiber_context.uc_stack.ss_size);
  fiber_context.uc_link = NULL;
  makecontext(&fiber_context, fiber, 0);
  swapcontext(&main_context, &fiber_context);
}

void test_places(const char* plugin) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char name[20];
  int i;
  int k;
  FILE* file = fopen("/dev/null", "w");
  far_away(fill, (void*)plugin);
  clear_stack();
  for (i = 0; i < 3; ++i) {
    make_garbage(GARBAGE);
    REQUIRE(list_is_whole(in_data, LENGTH));
    REQUIRE(list_is_whole(in_bss, LENGTH));
    REQUIRE(list_is_whole(in_tls, LENGTH));
    REQUIRE(list_is_whole(mapped[50 * page / sizeof *mapped], LENGTH));
    REQUIRE(list_is_whole(protected_page[3], LENGTH));
    REQUIRE(list_is_whole(protected_file[3], LENGTH));
    REQUIRE(list_is_whole(shared[50 * page / sizeof *shared], LENGTH));
    REQUIRE(list_is_whole(shared_elsewhere[20 * page / sizeof *shared_elsewhere], LENGTH));
    REQUIRE(list_is_whole(*(struct node**)(guarded + 4 * page), LENGTH));
    for (k = 0; k < CODE_WORDS; ++k) REQUIRE(list_is_whole(kept_in_code(code_word(k)), LENGTH));
    REQUIRE(list_is_whole(*in_plugin, LENGTH));
    REQUIRE(list_is_whole(*in_plugin_tls, LENGTH));
    REQUIRE(strcmp(*(char**)past_end - 48, "held by its end") == 0);
    REQUIRE(list_is_whole(pthread_getspecific(key), LENGTH));
    REQUIRE(strcmp(getenv("CLIENT"), "an entry of libc's own table") == 0);
  }
  for (i = 0; i < LENGTH; ++i) {
    snprintf(name, sizeof name, "name%d", i);
    REQUIRE(tfind(name, &tree, compare) != NULL);
  }
  swapcontext(&main_context, &fiber_context);
  REQUIRE(fiber_is_right);
  REQUIRE(fprintf(file, "%d\n", 1) == 2 && fclose(file) == 0);
}

static int ready[2];
static int go[2];

static void* keep_on_stack(void* argument) {
  struct node* list = make_list(LENGTH);
  char byte = 'x';
  long right;
  (void)argument;
  in_tls = make_list(LENGTH);
  REQUIRE(write(ready[1], &byte, 1) == 1);
  while (read(go[0], &byte, 1) != 1) {
  }
  right = list_is_whole(list, LENGTH) && list_is_whole(in_tls, LENGTH);
  return right ? make_list(LENGTH) : NULL;
}

static void* wait_for_nothing(void* argument) {
  sigset_t all;
  char byte = 'x';
  struct node* list = make_list(LENGTH);
  (void)argument;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  REQUIRE(write(ready[1], &byte, 1) == 1);
  while (read(go[0], &byte, 1) != 1) {
  }
  return list_is_whole(list, LENGTH) ? make_list(LENGTH) : NULL;
}

void test_thread_places(const char* argument) {
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  pthread_attr_t own_stack;
  void* results[THREADS];
  char byte = 'x';
  int i;
  (void)argument;
  REQUIRE(pipe(ready) == 0 && pipe(go) == 0);
  pthread_attr_init(&own_stack);
  pthread_attr_setstack(&own_stack, aligned_alloc(4096, 1 << 20), 1 << 20);
  for (i = 0; i < THREADS; ++i) {
    REQUIRE(pthread_create(&threads[i], i == 2 ? &own_stack : NULL,
                           i == 1 ? wait_for_nothing : keep_on_stack, NULL) == 0);
  }
  for (i = 0; i < THREADS; ++i) {
    while (read(ready[0], &byte, 1) != 1) {
    }
  }
  make_garbage(2 * GARBAGE);
  for (i = 0; i < THREADS; ++i) REQUIRE(write(go[1], &byte, 1) == 1);
  /* They end; their results are held by nobody but libc. */
  sleep(1);
  make_garbage(2 * GARBAGE);
  for (i = 0; i < THREADS; ++i) {
    REQUIRE(pthread_join(threads[i], &results[i]) == 0);
    REQUIRE(list_is_whole(results[i], LENGTH) && results[i] != NULL);
  }
}

/* A thread that libc makes by itself, whose first request comes from within libc, with a lock of
   the thread's held. Regression: to know its stack, the collector asked for the same lock. */
static struct node* volatile of_timer;

static void ask_for_stack(union sigval value) {
  pthread_attr_t attributes;
  struct node* list;
  (void)value;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  pthread_attr_destroy(&attributes);
  list = make_list(LENGTH);
  make_garbage(GARBAGE);
  if (list_is_whole(list, LENGTH)) of_timer = list;
}

void test_timers(const char* argument) {
  struct sigevent event = {0};
  const struct itimerspec soon = {{0, 0}, {0, 1000000}};
  timer_t timer;
  int i;
  (void)argument;
  event.sigev_notify = SIGEV_THREAD;
  event.sigev_notify_function = ask_for_stack;
  REQUIRE(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
  REQUIRE(timer_settime(timer, 0, &soon, NULL) == 0);
  for (i = 0; i < 10000 && of_timer == NULL; ++i) usleep(1000);
  REQUIRE(of_timer != NULL && list_is_whole(of_timer, LENGTH));
  REQUIRE(timer_delete(timer) == 0);
}

/* A context may ask for every signal to be blocked, the collector's too. */
static ucontext_t blocking_context;
static ucontext_t its_caller;
static volatile int in_context;
static volatile int leave_context;

static void wait_in_context(void) {
  struct node* list = make_list(LENGTH);
  in_context = 1;
  while (!leave_context) usleep(1000);
  REQUIRE(list_is_whole(list, LENGTH));
  /* By the other way. */
  sigfillset(&its_caller.uc_sigmask);
  setcontext(&its_caller);
}

static void* run_context(void* argument) {
  volatile int resumed = 0;
  getcontext(&blocking_context);
  blocking_context.uc_stack.ss_size = 256 * 1024;
  blocking_context.uc_stack.ss_sp = malloc(blocking_context.uc_stack.ss_size);
  blocking_context.uc_link = NULL;
  sigfillset(&blocking_context.uc_sigmask);
  makecontext(&blocking_context, wait_in_context, 0);
  swapcontext(&its_caller, &blocking_context);
  /* One that was saved can be resumed again, when the frames of what saved it are overwritten. */
  clear_stack();
  if (++resumed < 3) setcontext(&its_caller);
  in_context = 2;
  while (leave_context < 2) usleep(1000);
  return argument;
}

void test_contexts(const char* argument) {
  pthread_t thread;
  (void)argument;
  alarm(30);
  REQUIRE(pthread_create(&thread, NULL, run_context, NULL) == 0);
  while (in_context < 1) usleep(1000);
  make_garbage(GARBAGE);
  leave_context = 1;
  while (in_context < 2) usleep(1000);
  make_garbage(GARBAGE);
  leave_context = 2;
  REQUIRE(pthread_join(thread, NULL) == 0);
}

/* The process may have no more mappings: nor may the collector, for what it notes of them. */
void test_full_mappings(const char* argument) {
  enum { MOST = 200000, PAGE = 4096 };
  struct node* kept = make_list(10000);
  int i;
  (void)argument;
  for (i = 0; i < MOST; ++i) {
    const int protection = i % 2 == 0 ? PROT_READ : PROT_READ | PROT_WRITE;
    if (mmap(NULL, PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) break;
  }
  if (i == MOST) exit(77);
  make_garbage(20);
  REQUIRE(list_is_whole(kept, 10000));
}

/* What the library gets, the program frees, and what it frees came from the program
   (malloc.req.deep-binding). */
void test_deep_binding(const char* plugin) {
  int i;
  for (i = 0; i < 10; ++i) {
    void* library = dlopen(plugin, RTLD_NOW | RTLD_DEEPBIND);
    void* (*allocate)(size_t) = NULL;
    void (*release)(void*) = NULL;
    REQUIRE(library != NULL);
    *(void**)&allocate = dlsym(library, "plugin_allocate");
    *(void**)&release = dlsym(library, "plugin_release");
    REQUIRE(allocate != NULL && release != NULL);
    free(allocate(100));
    release(malloc(100));
    REQUIRE(dlclose(library) == 0);
  }
}
