#ifndef JACKDAW_TESTS_MALLOC_HIDING_H
#define JACKDAW_TESTS_MALLOC_HIDING_H

#include <stddef.h>

/* By the names that the loader knows. */
struct pattern;
struct pattern* create_pattern(void) __asm__("FcPatternCreate");
void add_to_pattern(struct pattern* pattern, int element) __asm__("FcPatternAdd");
int pattern_is(struct pattern* pattern, int count) __asm__("FcPatternIs");
void destroy_pattern(struct pattern* pattern) __asm__("FcPatternDestroy");

#endif
