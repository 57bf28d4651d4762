/* A library between a program and libgc. */
#include <gc/gc.h>

void* middle_allocate(unsigned long size);
void* middle_allocate(unsigned long size) { return GC_MALLOC(size); }
