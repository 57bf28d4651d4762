/* What leak-check is to find, and what not. */
#define _GNU_SOURCE 1

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
  (void)argument;
  kept = make_list(1000);
  far_away(lose_hundred_of_64, NULL);
  far_away(lose_in_realloc, NULL);
  far_away(lose_large, NULL);
  far_away(lose_list, NULL);
  clear_stack();
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
