/*
 * unload.c - libgc is loaded by dlopen(), used, and given back with dlclose() by a thread that
 * goes on to end. What it left behind in the process (a destructor for the thread, handlers of
 * fork() and of the stop signal) must be harmless.
 *
 *   abi_unload LIBRARY
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void* use_library(void* path) {
  typedef void* Allocate(size_t);
  typedef void Collect(void);
  void* library = dlopen(path, RTLD_NOW);
  Allocate* allocate;
  Collect* collect;
  int i;
  if (library == NULL) return NULL;
  allocate = (Allocate*)dlsym(library, "GC_malloc");
  collect = (Collect*)dlsym(library, "GC_gcollect");
  if (allocate == NULL || collect == NULL) return NULL;
  for (i = 0; i < 20000; i++) {
    if (allocate(40) == NULL) return NULL;
  }
  collect();
  return dlclose(library) == 0 ? path : NULL;
}

int main(int argc, char** argv) {
  int i;
  if (argc != 2) return 2;
  for (i = 0; i < 3; i++) {
    pthread_t thread;
    void* result = NULL;
    int status = -1;
    pid_t child;
    if (pthread_create(&thread, NULL, use_library, argv[1]) != 0) return 3;
    pthread_join(thread, &result);
    if (result == NULL) {
      printf("FAILED: %s could not be used\n", argv[1]);
      return 1;
    }
    child = fork();
    if (child == 0) _exit(0);
    waitpid(child, &status, 0);
    if (status != 0) return 4;
  }
  return 0;
}
