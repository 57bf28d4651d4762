/* What the files of the test client share. */
#ifndef JACKDAW_TESTS_MALLOC_CLIENT_H
#define JACKDAW_TESTS_MALLOC_CLIENT_H

#include <stddef.h>

__attribute__((noreturn)) void fail(const char* what, int line);
#define REQUIRE(condition) ((condition) ? (void)0 : fail(#condition, __LINE__))

void* opaque(void* p);
void far_away(void (*function)(void*), void* argument);
void clear_stack(void);

struct node {
  struct node* next;
  int number;
  unsigned char fill[36];
};
struct node* make_list(int length);
int list_is_whole(const struct node* list, int length);
void make_garbage(size_t mebibytes);

/* Those that the client knows by name (client.c). */
void test_entries(const char* argument);
void test_limits(const char* argument);
void test_refused(const char* argument);
void test_wrong_free(const char* argument);
void test_garbage(const char* argument);
void test_places(const char* plugin);
void test_thread_places(const char* argument);
void test_timers(const char* argument);
void test_contexts(const char* argument);
void test_threads(const char* argument);
void test_fork(const char* argument);
void test_children(const char* argument);
void test_loading(const char* plugin);
void test_deep_binding(const char* plugin);
void test_signals(const char* argument);
void test_waiting(const char* argument);
void test_in_handler(const char* argument);
void test_main_ends(const char* argument);
void test_vfork(const char* argument);
void test_unnoticed_children(const char* argument);
void test_dead_output(const char* argument);
void test_no_proc(const char* argument);
void test_leaks(const char* argument);
void test_shrunk_leaks(const char* argument);
void test_plugins_leaks(const char* path);
void test_children_leaks(const char* argument);
void test_closed_files(const char* path);
void test_closed_others(const char* path);
void test_fork_in_handler(const char* argument);
void test_collectors_signals(const char* argument);
void test_replaced_handler(const char* argument);
void test_full_queue(const char* argument);
void test_full_queue_at_the_end(const char* argument);
void test_full_mappings(const char* argument);
void test_refused_handler(const char* argument);
void test_untouched(const char* argument);
void test_sparse(const char* argument);
void test_old_words(const char* argument);
void test_renamed(const char* argument);
void test_clear(const char* argument);
void test_trim(const char* argument);
void test_userfault(const char* argument);
void test_zeros_moved(const char* argument);
void test_regrown(const char* argument);
void test_no_leaks(const char* argument);
void test_overrun(const char* argument);

#endif
