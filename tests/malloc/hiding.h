#ifndef JACKDAW_TESTS_MALLOC_HIDING_H
#define JACKDAW_TESTS_MALLOC_HIDING_H

#include <stddef.h>

struct pattern;
struct pattern* FcPatternCreate(void);
void FcPatternAdd(struct pattern* pattern, int element);
int FcPatternIs(struct pattern* pattern, int count);
void FcPatternDestroy(struct pattern* pattern);

#endif
