/* A library that the client loads and unloads. */
#include <stdlib.h>

void* plugin_word = &plugin_word;
__thread void* plugin_thread_word;
static void* own_list;

__attribute__((constructor)) static void begin(void) { own_list = malloc(1000); }
__attribute__((destructor)) static void end(void) { free(own_list); }

void* plugin_allocate(size_t bytes);
void plugin_release(void* object);
/* The call is not the last thing it does, so that it is on the stack. */
void* plugin_allocate(size_t bytes) {
  void* volatile object = malloc(bytes);
  return object;
}
void plugin_release(void* object) { free(object); }
