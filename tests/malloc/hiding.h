#ifndef JACKDAW_TESTS_MALLOC_HIDING_H
#define JACKDAW_TESTS_MALLOC_HIDING_H

#include <stddef.h>

#ifndef HIDING_CREATE
#define HIDING_CREATE "HidingCreate"
#endif

/* By the names that the loader knows. */
struct pattern;
struct pattern* create_pattern(void) __asm__(HIDING_CREATE);
void add_to_pattern(struct pattern* pattern, int element) __asm__("HidingAdd");
int pattern_is(struct pattern* pattern, int count) __asm__("HidingIs");
void destroy_pattern(struct pattern* pattern) __asm__("HidingDestroy");

#endif
