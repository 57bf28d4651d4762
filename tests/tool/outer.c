/* A program that comes to libgc only through libmiddle.so. */
void* middle_allocate(unsigned long size);

int main(void) { return middle_allocate(10) == 0; }
