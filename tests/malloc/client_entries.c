/* Each entry of the malloc family, by libc's documentation (malloc.req.libc). */
#define _GNU_SOURCE 1

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "client.h"

static int is_filled(const unsigned char* p, size_t from, size_t to, unsigned char with) {
  for (; from < to; ++from) {
    if (p[from] != with) return 0;
  }
  return 1;
}

static void check_block(void* p, size_t size, size_t alignment) {
  REQUIRE(p != NULL);
  REQUIRE((uintptr_t)p % alignment == 0);
  REQUIRE(malloc_usable_size(p) >= size);
  memset(p, 0xa5, malloc_usable_size(p));
}

static void check_sizes(void) {
  static const size_t sizes[] = {0,    1,    8,     15,    16,    17,    24,     25,      31,
                                 32,   33,   100,   1000,  1024,  4000,  8176,   8183,    8184,
                                 8185, 8192, 16000, 16384, 20000, 65536, 100000, 1000000, 5000000};
  size_t i;
  size_t alignment;
  for (i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
    const size_t size = sizes[i];
    void* a = malloc(size);
    void* b = malloc(size);
    unsigned char* c = calloc(size, 1);
    check_block(a, size, 16);
    check_block(b, size, 16);
    REQUIRE(a != b);
    REQUIRE(is_filled(c, 0, size, 0));
    check_block(c, size, 16);
    free(c);
    c = calloc(1, size); /* most likely the same place */
    REQUIRE(is_filled(c, 0, size, 0));
    free(a);
    free(b);
    free(c);
    for (alignment = 8; alignment <= 65536; alignment *= 2) {
      void* p = NULL;
      void* q = aligned_alloc(alignment, size);
      void* r = memalign(alignment, size);
      REQUIRE(posix_memalign(&p, alignment, size) == 0);
      check_block(p, size, alignment);
      check_block(q, size, alignment);
      check_block(r, size, alignment);
      free(p);
      free(q);
      free(r);
    }
  }
}

static void* resized(void* p, size_t size) {
  void* q = realloc(p, size);
  REQUIRE(q != NULL && malloc_usable_size(q) >= size);
  return q;
}

static void check_resizing(void) {
  unsigned char* p = NULL;
  size_t size = 0;
  size_t next;
  /* Up and down again, small and large, in place or not. */
  for (next = 1; next < 3000000; next += next / 2 + 1) {
    p = resized(p, next);
    REQUIRE(is_filled(p, 0, size, 0x33));
    memset(p, 0x33, next);
    size = next;
  }
  for (; next > 4; next = next * 2 / 3) {
    p = resized(p, next);
    REQUIRE(is_filled(p, 0, next < size ? next : size, 0x33));
    size = next;
  }
  /* What a cleared object gains by growing need not be clear, but must be its own. */
  p = resized(p, 100000);
  memset(p, 1, 100000);
  unsigned char* other = malloc(100000);
  memset(other, 2, 100000);
  REQUIRE(is_filled(p, 0, 100000, 1));
  p = reallocarray(p, 1000, 400);
  memset(p + 100000, 1, 300000);
  REQUIRE(is_filled(p, 0, 400000, 1) && is_filled(other, 0, 100000, 2));
  free(p);
  free(other);
  p = malloc(10);
  REQUIRE(realloc(p, 0) == NULL);
}

/* Whoever has the function's address has the function. */
static void* (*volatile by_address)(size_t);

void test_entries(const char* argument) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  (void)argument;
  check_sizes();
  check_resizing();
  by_address = malloc; /* by code: then a program for fixed addresses has it in itself */
  void* p = by_address(10);
  check_block(p, 10, 16);
  free(p);
  p = valloc(10);
  check_block(p, 10, page);
  free(p);
  p = pvalloc(page + 1);
  check_block(p, 2 * page, page);
  free(p);
  REQUIRE(malloc_usable_size(NULL) == 0);
  free(NULL);
  p = malloc(100);
  errno = 12345;
  free(p);
  REQUIRE(errno == 12345);
  p = malloc(10000000);
  errno = 12345;
  free(p);
  REQUIRE(errno == 12345);
  /* libc's own allocations. */
  char* text = NULL;
  REQUIRE(asprintf(&text, "%d and %s", 7, "seven") == 11);
  REQUIRE(strcmp(text, "7 and seven") == 0);
  free(text);
  text = strdup("copy");
  REQUIRE(strcmp(text, "copy") == 0);
  free(text);
}

void test_limits(const char* argument) {
  /* Not constants: the compiler would know the answers. */
  volatile size_t most = SIZE_MAX;
  volatile size_t uneven = 24;
  static const size_t less[] = {0, 1, 15, 16, 31, 4095, SIZE_MAX / 2, SIZE_MAX / 2 + 1};
  size_t i;
  void* p = (void*)1;
  void* kept = malloc(100);
  (void)argument;
  for (i = 0; i < sizeof less / sizeof less[0]; ++i) {
    errno = 0;
    REQUIRE(malloc(most - less[i]) == NULL && errno == ENOMEM);
    errno = 0;
    REQUIRE(calloc(most - less[i], 1) == NULL && errno == ENOMEM);
    errno = 0;
    REQUIRE(realloc(opaque(kept), most - less[i]) == NULL && errno == ENOMEM);
    errno = 0;
    REQUIRE(memalign(64, most - less[i]) == NULL && errno == ENOMEM);
    REQUIRE(posix_memalign(&p, 4096, most - less[i]) == ENOMEM && p == (void*)1);
    errno = 0;
    REQUIRE(pvalloc(most - less[i]) == NULL && errno == ENOMEM);
  }
  errno = 0;
  REQUIRE(calloc(most / 2 + 2, 2) == NULL && errno == ENOMEM);
  errno = 0;
  REQUIRE(reallocarray(opaque(kept), most / 8, 16) == NULL && errno == ENOMEM);
  errno = 0;
  REQUIRE(malloc(most >> 4) == NULL && errno == ENOMEM);
  REQUIRE(posix_memalign(&p, uneven, 10) == EINVAL && posix_memalign(&p, 4, 10) == EINVAL);
  errno = 0;
  REQUIRE(aligned_alloc(most / 2 + 2, 10) == NULL && errno == EINVAL);
  errno = 0;
  REQUIRE(memalign(most / 2 + 2, 10) == NULL && errno == EINVAL);
  errno = 0;
  REQUIRE(memalign(most / 2 + 1, 10) == NULL && errno == ENOMEM);
  /* As before glibc 2.38. */
  p = aligned_alloc(uneven, 10);
  REQUIRE(p != NULL && (uintptr_t)p % 32 == 0);
  free(p);
  p = aligned_alloc(most - most, 10);
  REQUIRE(p != NULL);
  free(p);
  free(kept);
}

void test_wrong_free(const char* argument) {
  static int not_ours;
  char* object = malloc(100);
  char* large = malloc(200000);
  (void)argument;
  free(opaque(&not_ours));
  free(large);
  free(opaque(large));
  free(opaque(object + 16));
  REQUIRE(realloc(opaque(object + 32), 200) == NULL);
  free(object);
  free(opaque(object));
  REQUIRE(malloc(10) != NULL);
}

/* More than the machine has, though not more than an address can tell. */
void test_refused(const char* argument) {
  const size_t pages = (size_t)sysconf(_SC_PHYS_PAGES);
  const size_t more = 2 * pages * (size_t)sysconf(_SC_PAGESIZE);
  struct node* list = make_list(10000);
  void* kept = malloc(100);
  int i;
  (void)argument;
  for (i = 0; i < 100; ++i) {
    errno = 0;
    REQUIRE(malloc(more) == NULL && errno == ENOMEM);
    errno = 0;
    REQUIRE(calloc(more, 1) == NULL && errno == ENOMEM);
    errno = 0;
    REQUIRE(memalign(4096, more) == NULL && errno == ENOMEM);
    errno = 0;
    REQUIRE(realloc(opaque(kept), more) == NULL && errno == ENOMEM);
    free(malloc(100));
  }
  free(kept);
  REQUIRE(list_is_whole(list, 10000));
}

/* Most of a large object was never written: it is zero where it goes, too. */
void test_zeros_moved(const char* argument) {
  enum { SIZE = 16 << 20, LARGER = 40 << 20, PAGE = 4096 };
  static const size_t written[] = {0, 5 * PAGE + 8, 300 * PAGE + 1, (6 << 20) + 9, SIZE - 1};
  unsigned char* zeros = calloc(1, SIZE);
  /* There is to be no room behind it. */
  unsigned char* behind = malloc(100000);
  unsigned char* filled = malloc(96 << 20);
  size_t next = 0;
  size_t at;
  int i;
  (void)argument;
  REQUIRE(zeros != NULL && behind != NULL && filled != NULL);
  memset(filled, 0xaa, 96 << 20);
  free(filled);
  for (i = 0; i < 5; ++i) zeros[written[i]] = (unsigned char)(i + 1);
  zeros = realloc(zeros, LARGER);
  REQUIRE(zeros != NULL);
  for (at = 0; at < SIZE; ++at) {
    const int is_next = next < 5 && at == written[next];
    REQUIRE(zeros[at] == (is_next ? next + 1 : 0));
    if (is_next) ++next;
  }
  free(zeros);
  free(behind);
}

/* A large object that grows bit by bit, with others in between. */
void test_regrown(const char* argument) {
  enum { STEP = 2 << 20, STEPS = 80 };
  struct rusage usage;
  unsigned char* p = NULL;
  size_t i;
  (void)argument;
  for (i = 0; i < STEPS; ++i) {
    p = realloc(p, (i + 1) * STEP);
    REQUIRE(p != NULL);
    memset(p + i * STEP, (int)i + 1, STEP);
    opaque(malloc(100000));
  }
  for (i = 0; i < (size_t)STEPS * STEP; i += 64) REQUIRE(p[i] == i / STEP + 1);
  getrusage(RUSAGE_SELF, &usage);
  printf("resident %ld KiB\n", usage.ru_maxrss);
  free(p);
}
