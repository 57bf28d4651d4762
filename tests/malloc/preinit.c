/* Allocates before libc has been initialised, and loses ten objects later. */
#include <stdio.h>
#include <stdlib.h>

static void* early;
static void allocate_early(void) { early = malloc(100); }
__attribute__((section(".preinit_array"), used)) static void (*const entry)(void) = allocate_early;

__attribute__((noinline)) static void lose(void) {
  volatile char* p = malloc(1000);
  p[0] = 1;
}

int main(void) {
  int i;
  volatile char cleared[4096];
  for (i = 0; i < 10; ++i) lose();
  for (i = 0; i < (int)sizeof cleared; ++i) cleared[i] = 0;
  puts(early != NULL ? "ok" : "no memory");
  return 0;
}
