/* What such a library has beside the malloc family. */
#ifndef JACKDAW_TESTS_MALLOC_OTHER_MALLOC_H
#define JACKDAW_TESTS_MALLOC_OTHER_MALLOC_H

/* Pieces that it has given out. */
int others_in_use(void);

void* others_new(void);
void others_delete(void* object);

#endif
