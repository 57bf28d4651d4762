/* A program without libgc: linked statically it is one no library can be put under. With an
   argument it loads that library while it runs, as Nim's programs do with libgc. */
#include <stdio.h>
#ifdef WITH_DLOPEN
#include <dlfcn.h>
#endif

int main(int argc, char** argv) {
#ifdef WITH_DLOPEN
  if (argc > 1) {
    void* library = dlopen(argv[1], RTLD_NOW);
    void* (*allocate)(unsigned long) =
        library ? (void* (*)(unsigned long))dlsym(library, "GC_malloc") : 0;
    if (allocate == 0 || allocate(1000) == 0) return 1;
    for (int i = 0; i < 20000; i++) allocate(1000);
  }
#endif
  (void)argv;
  puts(argc > 1 ? "loaded" : "plain");
  return 0;
}
