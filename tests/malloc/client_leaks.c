/* What leak-check is to find, and what not. */
#define _GNU_SOURCE 1

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"

/* Not static: the compiler would drop a variable that nobody reads. */
extern struct node* kept;
struct node* kept;
static void* volatile sink;

/* Exported, so that the report can name them. */
void lose_hundred_of_64(void* unused);
void lose_in_realloc(void* unused);
void lose_large(void* unused);
void lose_shrunk(void* unused);
void lose_list(void* unused);

__attribute__((noinline)) void lose_hundred_of_64(void* unused) {
  int i;
  for (i = 0; i < 100; ++i) sink = malloc(64);
  sink = NULL;
  (void)unused;
}

__attribute__((noinline)) void lose_in_realloc(void* unused) {
  int i;
  for (i = 0; i < 50; ++i) sink = realloc(malloc(10), 1000);
  sink = NULL;
  (void)unused;
}

__attribute__((noinline)) void lose_large(void* unused) {
  int i;
  for (i = 0; i < 20; ++i) sink = calloc(1, 100000);
  sink = NULL;
  (void)unused;
}

/* In place, so that a large part of each was not asked for in the end. */
__attribute__((noinline)) void lose_shrunk(void* unused) {
  sink = realloc(malloc(100 << 20), 60 << 20);
  sink = realloc(malloc(100 << 20), 98 << 20);
  sink = realloc(malloc(10 << 20), 6 << 20);
  sink = memalign(32 << 20, 10);
  sink = NULL;
  (void)unused;
}

__attribute__((noinline)) void lose_list(void* unused) {
  make_list(200);
  (void)unused;
}

__attribute__((noinline)) static void lose_overrun(void* unused) {
  static const unsigned char fill[] = {0xff, 0x41, 0x80};
  int i;
  for (i = 0; i < 30; ++i) {
    char* p = malloc(40);
    memset(opaque(p + malloc_usable_size(p)), fill[i % 3], sizeof(void*));
  }
  (void)unused;
}

/* Whoever writes beyond an object must not lead the report astray. */
void test_overrun(const char* argument) {
  (void)argument;
  far_away(lose_overrun, NULL);
  far_away(lose_hundred_of_64, NULL);
  clear_stack();
}

void test_leaks(const char* argument) {
  kept = make_list(1000);
  far_away(lose_hundred_of_64, NULL);
  far_away(lose_in_realloc, NULL);
  far_away(lose_large, NULL);
  far_away(lose_list, NULL);
  if (argument != NULL && strcmp(argument, "trim") == 0) malloc_trim(0);
  clear_stack();
}

void test_shrunk_leaks(const char* argument) {
  (void)argument;
  far_away(lose_shrunk, NULL);
  clear_stack();
}

static const char* plugin_path;
static char second_path[1000];

static void* load_and_lose(const char* path, size_t bytes) {
  void* (*allocate)(size_t);
  void* library = dlopen(path, RTLD_NOW);
  int i;
  REQUIRE(library != NULL);
  *(void**)&allocate = dlsym(library, "plugin_allocate");
  for (i = 0; i < 10; ++i) sink = allocate(bytes);
  sink = NULL;
  return library;
}

static void lose_in_plugins(void* unused) {
  int i;
  for (i = 0; i < 20; ++i) REQUIRE(dlclose(load_and_lose(plugin_path, 50)) == 0);
  REQUIRE(dlclose(load_and_lose(second_path, 70)) == 0);
  load_and_lose(plugin_path, 90);
  (void)unused;
}

/* A library is unloaded, and another comes to lie where it was, whose path has a 2 at its end. */
void test_plugins_leaks(const char* path) {
  plugin_path = path;
  REQUIRE((size_t)snprintf(second_path, sizeof second_path, "%s2", path) < sizeof second_path);
  far_away(lose_in_plugins, NULL);
  clear_stack();
}

__attribute__((noinline)) static void lose_below(int depth) {
  if (depth > 0) {
    lose_below(depth - 1);
  } else {
    sink = malloc(100);
  }
  sink = NULL;
}

static void lose_at_all_depths(void* unused) {
  int depth;
  for (depth = 0; depth < 10; ++depth) lose_below(depth);
  (void)unused;
}

/* Several processes report at once. */
void test_children_leaks(const char* argument) {
  enum { CHILDREN = 6 };
  int i;
  (void)argument;
  for (i = 0; i < CHILDREN; ++i) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      far_away(lose_at_all_depths, NULL);
      clear_stack();
      exit(0);
    }
  }
  for (i = 0; i < CHILDREN; ++i) REQUIRE(wait(NULL) > 0);
}

/* What the report is to go to is closed, and its numbers mean a file of the program's. */
void test_closed_files(const char* path) {
  int i;
  test_leaks(NULL);
  if (getenv("GC_LOG_FILE") != NULL) {
    closefrom(3);
  } else {
    close(2);
  }
  for (i = 0; i < 300; ++i) REQUIRE(open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) >= 0);
}

/* All but the standard files, whose numbers then mean a file of the program's. What is to be told
 * meanwhile is told where it can be, or nowhere. */
void test_closed_others(const char* path) {
  static char no_object[64];
  int i;
  test_leaks(NULL);
  closefrom(3);
  for (i = 0; i < 300; ++i) REQUIRE(open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) >= 0);
  free(opaque(no_object));
}

static void* thread(void* argument) {
  free(malloc(100));
  return argument;
}

/* Everything is freed, or can be reached at the end. */
void test_no_leaks(const char* argument) {
  struct node* on_stack = make_list(100);
  FILE* file = fopen("/dev/null", "w");
  pthread_t one;
  void* many[1000];
  int i;
  (void)argument;
  kept = make_list(1000);
  for (i = 0; i < 1000; ++i) many[i] = malloc((size_t)i * 7);
  for (i = 0; i < 1000; ++i) many[i] = realloc(many[i], (size_t)i * 11 + 1);
  for (i = 0; i < 1000; ++i) free(many[i]);
  REQUIRE(pthread_create(&one, NULL, thread, strdup("an argument")) == 0);
  REQUIRE(pthread_join(one, &many[0]) == 0);
  free(many[0]);
  REQUIRE(setenv("CLIENT", "value", 1) == 0);
  fprintf(file, "%s", getenv("CLIENT"));
  REQUIRE(list_is_whole(on_stack, 100));
  puts("ok");
  exit(list_is_whole(opaque(on_stack), 100) ? 0 : 1);
}

/* As daemons write what they do over their name. */
void test_renamed(const char* argument) {
  (void)argument;
  memset(program_invocation_short_name, '#', strlen(program_invocation_short_name));
}
