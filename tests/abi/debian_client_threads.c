/* debian_client_threads.c - threads, stacks, fork. See debian_client.c. */
#define GC_THREADS
#define GC_NO_THREAD_REDIRECTS /* GC_pthread_create is called by that name here */
#include <dlfcn.h>
#include <errno.h>
#include <gc/gc.h>
#include <gc/gc_mark.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "check.h"

/* A list of n cells of which the k-th holds k; built amid garbage, so that collections come. */
struct cell {
  struct cell* next;
  long value;
};
static struct cell* __attribute__((noinline)) build(long n) {
  struct cell* list = NULL;
  long i;
  for (i = 0; i < n; i++) {
    struct cell* c = GC_malloc(sizeof *c);
    c->value = i;
    c->next = list;
    list = c;
    GC_malloc(100);
  }
  return list;
}
static int intact(const struct cell* list, long n) {
  for (; list; list = list->next)
    if (list->value != --n) return 0;
  return n == 0;
}

enum { kThreads = 4, kCells = 20000 };

static void* work(void* arg) {
  struct cell* list = build(kCells);
  CHECK(GC_thread_is_registered());
  CHECK(arg == &check_failures);
  return list;
}

/* Created threads allocate, are stopped, and give a result that is held until it is asked for. */
static void created_threads(void) {
  pthread_t threads[kThreads];
  void* result;
  int i;
  GC_INIT();
  for (i = 0; i < kThreads; i++)
    CHECK_EQ(GC_pthread_create(&threads[i], NULL, work, &check_failures), 0);
  build(kCells);
  for (i = 0; i < kThreads; i++) {
    CHECK_EQ(GC_pthread_join(threads[i], &result), 0);
    CHECK(intact(result, kCells));
  }
  CHECK(GC_get_parallel() >= 0);
}

static void* exit_early(void* list) {
  GC_pthread_exit(list);
  return NULL;
}
static sem_t finished;
static void* post(void* list) {
  CHECK(intact(list, kCells));
  sem_post(&finished);
  return NULL;
}
static void exiting_and_detached_threads(void) {
  pthread_t thread;
  void* result = NULL;
  int i;
  GC_INIT();
  CHECK_EQ(GC_pthread_create(&thread, NULL, exit_early, build(kCells)), 0);
  CHECK_EQ(GC_pthread_join(thread, &result), 0);
  CHECK(intact(result, kCells));
  sem_init(&finished, 0, 0);
  for (i = 0; i < 10; i++) {
    CHECK_EQ(GC_pthread_create(&thread, NULL, post, build(kCells)), 0);
    CHECK_EQ(GC_pthread_detach(thread), 0);
  }
  for (i = 0; i < 10; i++) sem_wait(&finished);
  GC_gcollect();
}

/* A thread that libgc did not create registers itself. */
static struct cell* shared_list;
static void* foreign_thread(void* unused) {
  struct GC_stack_base sb;
  struct cell* list;
  (void)unused;
  CHECK(!GC_thread_is_registered());
  CHECK_EQ(GC_get_stack_base(&sb), GC_SUCCESS);
  CHECK((char*)sb.mem_base > (char*)&sb);
  CHECK_EQ(GC_register_my_thread(&sb), GC_SUCCESS);
  CHECK_EQ(GC_register_my_thread(&sb), GC_DUPLICATE);
  CHECK(GC_thread_is_registered());
  list = build(kCells);
  GC_gcollect();
  CHECK(intact(list, kCells));
  shared_list = list;
  list = NULL;
  CHECK_EQ(GC_unregister_my_thread(), GC_SUCCESS);
  CHECK(!GC_thread_is_registered());
  return NULL;
}
static void* with_base(struct GC_stack_base* sb, void* arg) {
  CHECK((char*)sb->mem_base > (char*)__builtin_frame_address(0));
  CHECK_EQ(GC_register_my_thread(sb), GC_SUCCESS);
  CHECK(intact(build(kCells), kCells));
  CHECK_EQ(GC_unregister_my_thread(), GC_SUCCESS);
  return arg;
}
static void* foreign_thread_with_base(void* arg) { return GC_call_with_stack_base(with_base, arg); }
static void registered_threads(void) {
  pthread_t thread;
  void* result;
  int i;
  GC_INIT();
  GC_allow_register_threads();
  CHECK(GC_thread_is_registered());
  for (i = 0; i < 3; i++) {
    CHECK_EQ(pthread_create(&thread, NULL, foreign_thread, NULL), 0);
    build(kCells);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    GC_gcollect();
    CHECK(intact(shared_list, kCells));
  }
  CHECK_EQ(pthread_create(&thread, NULL, foreign_thread_with_base, &check_failures), 0);
  CHECK_EQ(pthread_join(thread, &result), 0);
  CHECK(result == &check_failures);
}

/* A program that has made a thread needs no permission to register others. */
static void* made_thread(void* arg) { return arg; }
static void registered_after_a_made_one(void) {
  pthread_t thread;
  GC_INIT();
  CHECK_EQ(GC_pthread_create(&thread, NULL, made_thread, NULL), 0);
  CHECK_EQ(GC_pthread_join(thread, NULL), 0);
  CHECK_EQ(pthread_create(&thread, NULL, foreign_thread, NULL), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  CHECK(intact(shared_list, kCells));
}

/* While it blocks, a thread is not waited for; what its callers hold is held. */
static sem_t blocked, go_on;
static struct cell* seen_in_callback;
static void* active_again(void* list) {
  seen_in_callback = build(kCells);
  GC_gcollect();
  return list;
}
static void* blocking(void* list) {
  void* same;
  sem_post(&blocked);
  sem_wait(&go_on);
  same = GC_call_with_gc_active(active_again, list);
  CHECK(same == list);
  return list;
}
static void* blocking_thread(void* unused) {
  struct cell* list = build(kCells);
  void* same = GC_do_blocking(blocking, list);
  (void)unused;
  CHECK(same == list && intact(list, kCells));
  CHECK(GC_call_with_gc_active(active_again, list) == list);
  return NULL;
}
static void blocked_threads(void) {
  sigset_t all, old;
  pthread_t thread;
  GC_INIT();
  sem_init(&blocked, 0, 0);
  sem_init(&go_on, 0, 0);
  /* Signals that are blocked in a blocked thread do not matter. */
  sigfillset(&all);
  CHECK_EQ(GC_pthread_sigmask(SIG_SETMASK, NULL, &old), 0);
  CHECK_EQ(GC_pthread_create(&thread, NULL, blocking_thread, NULL), 0);
  sem_wait(&blocked);
  GC_gcollect();
  build(kCells);
  sem_post(&go_on);
  CHECK_EQ(GC_pthread_join(thread, NULL), 0);
  CHECK(intact(seen_in_callback, kCells));
}

/* A thread that blocks all signals through libgc is still stopped. */
static int stop_spinning; /* atomic */
static void* spin(void* unused) {
  sigset_t all, now;
  struct cell* list = build(1000);
  (void)unused;
  sigfillset(&all);
  CHECK_EQ(GC_pthread_sigmask(SIG_BLOCK, &all, NULL), 0);
  CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &now), 0);
  CHECK(sigismember(&now, SIGUSR1));
  CHECK(!sigismember(&now, GC_get_suspend_signal()));
  sem_post(&blocked);
  while (!__atomic_load_n(&stop_spinning, __ATOMIC_ACQUIRE)) {
  }
  CHECK(intact(list, 1000));
  return NULL;
}
static void signals(void) {
  pthread_t thread;
  int i;
  GC_INIT();
  CHECK(GC_get_suspend_signal() > 0 && GC_get_suspend_signal() < NSIG);
  CHECK(GC_get_thr_restart_signal() > 0 && GC_get_thr_restart_signal() < NSIG);
  sem_init(&blocked, 0, 0);
  CHECK_EQ(GC_pthread_create(&thread, NULL, spin, NULL), 0);
  sem_wait(&blocked);
  for (i = 0; i < 20; i++) GC_gcollect();
  __atomic_store_n(&stop_spinning, 1, __ATOMIC_RELEASE);
  CHECK_EQ(GC_pthread_join(thread, NULL), 0);
}

/* ---- Fibers, as Crystal makes them ---- */

static ucontext_t main_context, fiber_context;
static char fiber_stack[256 * 1024];
static struct cell* fiber_result;
static struct GC_stack_base main_base, fiber_base;
static void* handle;
static void* switch_base(void* base) {
  GC_set_stackbottom(handle, base);
  return NULL;
}
static void fiber(void) {
  struct cell* list = build(kCells / 2);
  GC_gcollect();
  CHECK(intact(list, kCells / 2));
  GC_call_with_alloc_lock(switch_base, &main_base);
  swapcontext(&fiber_context, &main_context);
  /* Meanwhile the main stack was in use, and this stack was pushed by push_fiber. */
  CHECK(intact(list, kCells / 2));
  fiber_result = build(kCells);
  GC_call_with_alloc_lock(switch_base, &main_base);
}
static void (*push_stacks)(void);
static int fiber_is_suspended;
static void push_fiber(void) {
  if (fiber_is_suspended) GC_push_all_eager(fiber_stack, fiber_stack + sizeof fiber_stack);
  push_stacks();
}
static void fibers(void) {
  struct cell* list;
  GC_INIT();
  handle = GC_get_my_stackbottom(&main_base);
  CHECK(handle != NULL && main_base.mem_base == (void*)GC_stackbottom);
  push_stacks = GC_get_push_other_roots();
  GC_set_push_other_roots(push_fiber);
  list = build(1000);
  fiber_base.mem_base = fiber_stack + sizeof fiber_stack;
  getcontext(&fiber_context);
  fiber_context.uc_stack.ss_sp = fiber_stack;
  fiber_context.uc_stack.ss_size = sizeof fiber_stack;
  fiber_context.uc_link = &main_context;
  makecontext(&fiber_context, fiber, 0);
  /* While the fiber runs, this stack is not searched: keep what it holds from elsewhere. */
  shared_list = list;
  GC_call_with_alloc_lock(switch_base, &fiber_base);
  swapcontext(&main_context, &fiber_context);
  fiber_is_suspended = 1;
  GC_gcollect();
  CHECK(intact(build(kCells), kCells));
  CHECK(intact(list, 1000));
  fiber_is_suspended = 0;
  GC_call_with_alloc_lock(switch_base, &fiber_base);
  swapcontext(&main_context, &fiber_context);
  CHECK(intact(fiber_result, kCells));
}

/* ---- fork() ---- */

static void* keep_busy(void* unused) {
  (void)unused;
  while (!__atomic_load_n(&stop_spinning, __ATOMIC_ACQUIRE)) build(100);
  return NULL;
}
/* The child of a program with threads goes on allocating and collecting. */
static void forking(void) {
  pthread_t threads[2];
  struct cell* list;
  int i, status;
  GC_set_handle_fork(1);
  GC_INIT();
  list = build(kCells);
  for (i = 0; i < 2; i++) CHECK_EQ(GC_pthread_create(&threads[i], NULL, keep_busy, NULL), 0);
  for (i = 0; i < 5; i++) {
    pid_t child = fork();
    if (child == 0) {
      pthread_t thread;
      void* result;
      GC_gcollect();
      CHECK(intact(list, kCells));
      CHECK(intact(build(kCells), kCells));
      CHECK_EQ(GC_pthread_create(&thread, NULL, work, &check_failures), 0);
      CHECK_EQ(GC_pthread_join(thread, &result), 0);
      CHECK(intact(result, kCells));
      fflush(stdout);
      _exit(check_failures != 0);
    }
    waitpid(child, &status, 0);
    CHECK_EQ(status, 0);
  }
  __atomic_store_n(&stop_spinning, 1, __ATOMIC_RELEASE);
  for (i = 0; i < 2; i++) GC_pthread_join(threads[i], NULL);
  CHECK(intact(list, kCells));
}

/* The child's only thread is on the stack that it was on in the parent. */
static void* fork_here(void* unused) {
  struct GC_stack_base before, after;
  int status = -1;
  pid_t child;
  CHECK_EQ(GC_get_stack_base(&before), GC_SUCCESS);
  child = fork();
  if (child == 0)
    _exit(GC_get_stack_base(&after) != GC_SUCCESS || after.mem_base != before.mem_base);
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
  return unused;
}
static void stack_base_in_a_forked_child(void) {
  pthread_t thread;
  GC_INIT();
  fork_here(NULL);
  CHECK_EQ(GC_pthread_create(&thread, NULL, fork_here, NULL), 0);
  CHECK_EQ(GC_pthread_join(thread, NULL), 0);
}

static void loading(void) {
  void* library;
  GC_INIT();
  library = GC_dlopen("libm.so.6", RTLD_NOW);
  CHECK(library != NULL && dlsym(library, "cos") != NULL);
  CHECK(!GC_is_disabled());
  GC_gcollect();
  dlclose(library);
  GC_gcollect();
  CHECK(GC_dlopen("/nonexistent.so", RTLD_NOW) == NULL);
}

const struct TestCase threads_cases[] = {
    {"created_threads", created_threads},
    {"exiting_and_detached_threads", exiting_and_detached_threads},
    {"registered_threads", registered_threads},
    {"registered_after_a_made_one", registered_after_a_made_one},
    {"blocked_threads", blocked_threads},
    {"signals", signals},
    {"fibers", fibers},
    {"forking", forking},
    {"stack_base_in_a_forked_child", stack_base_in_a_forked_child},
    {"loading", loading},
    {NULL, NULL}};
