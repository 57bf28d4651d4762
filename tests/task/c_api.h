/* The tests of task.h, in C. */
#ifndef JD_TESTS_TASK_C_API_H
#define JD_TESTS_TASK_C_API_H

#ifdef __cplusplus
extern "C" {
#endif

/* An empty text, or what went wrong. */
const char* run_c_tests(void);

#ifdef __cplusplus
}
#endif

#endif
