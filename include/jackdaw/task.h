/* Fork and join: tasks that idle processors take over.
 *
 *   static void left(void *work) { ... }
 *   static void right(void *work) { ... }
 *
 *   jd_task_par(left, work, right, work);
 *
 * calls both functions and returns when both have returned. Where another worker is idle, it runs
 * `right` meanwhile; otherwise one thread runs one after the other. Workers are threads that start
 * when the first task does; they number as many as there are CPUs, or as JACKDAW_WORKERS says. A
 * thread that is not a worker may call everything here: its work is done by the workers while it
 * waits, which costs some ten microseconds. (In C++ it runs itself what has proved shorter.)
 *
 * What a task may do. It may allocate from the collected heap, block, fork tasks of its own, and
 * (in C++, see task.hpp) throw. A function may go on in another thread after a call that forks or
 * joins: it must not hold a lock, an address of thread-local data, or a section of
 * GC_do_blocking across one. longjmp, pthread_exit and cancellation may not leave a task, nor C++
 * exceptions a function that those below call. Nothing here is for signal handlers.
 */
#ifndef JACKDAW_TASK_H
#define JACKDAW_TASK_H

/* What marks a fork's return address in the code: the displacement of a no-operation there. */
#define JD_TASK_SITE 0x6a64666b

#ifndef __ASSEMBLER__

#include <jackdaw/thread_word.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define JD_TASK_API __attribute__((visibility("default")))

/* ---- The workers ---- */

/* Starts that many workers (0: by JACKDAW_WORKERS, or as many as there are CPUs; 128 at most)
 * unless they run already; returns how many there are. Never needed: the first task does it. They
 * block the signals that the calling thread blocks, but for those that the library needs. */
JD_TASK_API unsigned jd_task_start(unsigned workers);
/* Ends the workers, and waits for the ends of their threads; the next task starts others. Call it
 * from no task, and while none runs. */
JD_TASK_API void jd_task_stop(void);
/* The number of workers, or how many there would be. */
JD_TASK_API unsigned jd_task_workers(void);
/* Is the caller a worker? In a blocking section it is none. */
JD_TASK_API int jd_task_in_worker(void);

/* How forks are made and stolen. JD_TASK_BARRIER: an un-stolen fork is a call, continuations are
 * found in the stack, and a thief stops its victim only for the first of several steals.
 * JD_TASK_STOP: the same with a stop at each steal. JD_TASK_DEQUE: a fork is pushed to a deque and
 * popped from it; works on every machine and under every tool. */
enum jd_task_mode { JD_TASK_DEQUE = 0, JD_TASK_STOP = 1, JD_TASK_BARRIER = 2 };
/* Chooses the mode of workers that do not run yet. Returns 1 if theirs is, or will be, that one; 0,
 * having changed nothing, if they run in another, if JACKDAW_TASK_MODE says another, or if the
 * machine or a tool leaves only JD_TASK_DEQUE. */
JD_TASK_API int jd_task_set_mode(enum jd_task_mode mode);
/* The mode of the workers, or what it would be. */
JD_TASK_API enum jd_task_mode jd_task_get_mode(void);

/* Runs function(argument) in a worker, where it may fork, and waits for it. A worker just calls. */
JD_TASK_API void jd_task_run(void (*function)(void*), void* argument);

/* ---- Two at a time ---- */

/* a(a_argument) and b(b_argument), maybe at the same time; returns when both have returned. */
JD_TASK_API void jd_task_par(void (*a)(void*), void* a_argument, void (*b)(void*),
                             void* b_argument);

/* ---- Any number ---- */

/* Tasks that one function forks and joins:
 *
 *   jd_task_scope scope;
 *   jd_task_scope_begin(&scope);
 *   for (...) jd_task_scope_fork(&scope, function, argument);
 *   jd_task_scope_join(&scope);
 *
 * Joined by the task that began it, which may then fork and join again. */
typedef struct jd_task_scope {
  void* waiter;         /* of the runtime, as what follows */
  void* owner;          /* the task that began it: where that began; null: none */
  uint32_t outstanding; /* tasks that have not ended, and one for the scope itself */
  uint32_t cancelled;
} jd_task_scope;

JD_TASK_API void jd_task_scope_begin(jd_task_scope* scope);
/* Makes function(argument) a task of the scope. The task may begin, and end, before this returns,
 * or at any time until the join. The caller runs it now where memory for a task has run out, or
 * where the scope is its own and thousands of tasks wait in its worker already. */
JD_TASK_API void jd_task_scope_fork(jd_task_scope* scope, void (*function)(void*), void* argument);
/* Returns when all tasks of the scope have ended. Then the scope may be used again, but for one
 * that was cancelled: it stays so, and what is forked in it is not run. */
JD_TASK_API void jd_task_scope_join(jd_task_scope* scope);
/* Tasks that have not begun will not begin; those that run may ask. Any thread may call these. */
JD_TASK_API void jd_task_scope_cancel(jd_task_scope* scope);
JD_TASK_API int jd_task_scope_cancelled(const jd_task_scope* scope);

/* ---- Ranges ---- */

/* Calls body(begin, end, argument) for pieces of [begin, end) that cover it. No piece that could
 * be cut is longer than grain (0: chosen by the length and the number of workers). */
JD_TASK_API void jd_task_for(size_t begin, size_t end, size_t grain,
                             void (*body)(size_t begin, size_t end, void* argument),
                             void* argument);

/* Reduces [begin, end) into *result, of `size` bytes: map(begin, end, r, argument) stores the
 * result of a piece in r, combine(left, right, argument) puts the right one's into the left one's.
 * A result of more than 256 bytes has one piece only, and so one thread. Neighbours are combined in
 * order. For an empty range, map is called with it. Where r and right are not the caller's result,
 * they are aligned to 64 bytes. */
#define JD_TASK_REDUCE_MOST 256
#define JD_TASK_REDUCE_ALIGNMENT 64
JD_TASK_API void jd_task_reduce(size_t begin, size_t end, size_t grain, size_t size,
                                void (*map)(size_t begin, size_t end, void* result, void* argument),
                                void (*combine)(void* left, const void* right, void* argument),
                                void* argument, void* result);

/* Sorts `count` elements of `size` bytes in place, as qsort_r does; not stable. */
JD_TASK_API void jd_task_sort(void* base, size_t count, size_t size,
                              int (*compare)(const void*, const void*, void*), void* argument);

/* ---- Waiting ---- */

/* Calls function(argument), which may wait for long; meanwhile another worker has this one's slot.
 * Tasks that it forks are run by others. There are at most 256 threads of workers, those that wait
 * here included; beyond that nobody takes the slot, and a line on stderr says so, once. */
JD_TASK_API void jd_task_blocking(void (*function)(void*), void* argument);

/* ---- Polling ---- */

/* A thief that finds nothing published stops its victim with a signal, which takes long. Code that
 * forks (jd_task_par) or polls often (in its innermost loop, say: every microsecond or so) answers
 * thieves without one; a poll costs a load and a branch, and such a fork is one anyway. Where they
 * come late or not at all, thieves use the signal.
 * In threads that are not workers it does nothing. Not for signal handlers.
 */
static inline void jd_task_poll(void);

/* ---- Counters ---- */

/* Since the workers started, but for stacks, which outlive them; of all workers together. Ticks are
 * those of the processor's time-stamp counter. Exact while no task runs. */
typedef struct jd_task_counters {
  uint64_t pushed;               /* forks that were pushed to a deque */
  uint64_t steals;               /* tasks that another worker took: from stacks and from deques */
  uint64_t stack_steals;         /* of these, from stacks */
  uint64_t requests;             /* signals sent to victims */
  uint64_t requests_empty;       /* answered: nothing to steal */
  uint64_t requests_refused;     /* answered: not at this place of the program */
  uint64_t barrier_hits;         /* returns into a barrier */
  uint64_t barrier_waits;        /* of these, returns that had to wait for a thief */
  uint64_t joins_suspended;      /* joins that were not the last to arrive */
  uint64_t stacks;               /* task stacks that the process has made */
  uint64_t stacks_peak;          /* the most of them in use at once */
  uint64_t sleeps;               /* waits of idle workers in the kernel */
  uint64_t victim_stop_ticks;    /* lost by victims in the handler of the thief's signal */
  uint64_t victim_barrier_ticks; /* lost by victims that waited at a barrier */
  uint64_t thief_ticks;          /* from a thief's decision to the task, successful steals only */
  uint64_t polls_answered;       /* requests that a poll answered, so that no signal was sent */
  uint64_t victim_poll_ticks;    /* lost by victims that answered at a poll */
  uint64_t given_back;           /* frames whose forker went on, though a thief had ended last */
} jd_task_counters;
JD_TASK_API void jd_task_get_counters(jd_task_counters* counters);

/* How long single steps took, each kind by itself, since the workers started. Of thieves: from the
 * decision to steal to the task, successful steals only. Of victims: what one request took. */
enum jd_task_time {
  JD_TASK_TIME_DEQUE = 0,      /* a thief: from a deque */
  JD_TASK_TIME_BELOW_BARRIER,  /* a thief: from a stack, where the victim was not asked */
  JD_TASK_TIME_STOPPED,        /* a thief: with a signal to the victim */
  JD_TASK_TIME_POLLED,         /* a thief: the victim answered at a poll */
  JD_TASK_TIME_VICTIM_STOPPED, /* a victim: in the handler of the signal */
  JD_TASK_TIME_VICTIM_POLLED,  /* a victim: in the poll */
  JD_TASK_TIME_KINDS
};
/* Ticks by classes, four to each power of two: jd_task_time_class_begin says where one begins. The
 * difference of two, class by class, is what happened in between. */
#define JD_TASK_TIME_CLASSES 160
typedef struct jd_task_times {
  uint64_t count[JD_TASK_TIME_CLASSES];
} jd_task_times;
/* Any thread may ask, also while tasks run: each count is then one of some instant. */
JD_TASK_API void jd_task_get_times(enum jd_task_time kind, jd_task_times* times);
/* In ticks. Pre: time_class <= JD_TASK_TIME_CLASSES, where the last class ends. */
JD_TASK_API uint64_t jd_task_time_class_begin(unsigned time_class);
/* The ticks that so many of the times are below: 0.5 for the median. 0 if there are none. */
JD_TASK_API double jd_task_times_quantile(const jd_task_times* times, double quantile);

/* ---- For task.hpp ---- */

/* One fork: the frame's part that the runtime uses. A call that forks sets run alone; the rest
 * is the runtime's, and undefined until somebody takes the fork, or waits for it. */
typedef struct jd_task {
  void (*run)(struct jd_task* task); /* what another worker may run */
  void* resume;                      /* where the forker goes on: the return address replaced */
  void** slot;                       /* and where that stands in the stack */
  struct jd_task* older;             /* in the same stack */
  struct jd_task* newer;
  void* waiter;
  uint32_t join;
  uint32_t reserved;
} jd_task;

/* Not 0 in a worker whose next fork may be a plain call: nobody wants to hear of it. Also in a
 * thread that is none while it runs itself what is short, if there is one worker: task.hpp sets
 * that, and clears it. */
extern JD_TASK_API __thread int jd_task_direct __attribute__((tls_model("initial-exec")));
static inline int jd_task_is_direct(void) {
  int direct;
  JD_READ_THREAD_WORD(direct, jd_task_direct);
  return direct;
}
/* For a thread that is no worker. */
JD_TASK_API void jd_task_set_direct(int direct);

/* Not 0 in a worker that a thief has asked for work since it last polled. Set by thieves, cleared
 * by the worker's poll, and only a hint: the request itself orders what they write. */
extern JD_TASK_API __thread int jd_task_wanted __attribute__((tls_model("initial-exec")));
/* The rest of jd_task_poll. */
JD_TASK_API void jd_task_answer(void);
static inline void jd_task_poll(void) {
  int wanted;
  JD_READ_THREAD_WORD(wanted, jd_task_wanted);
  if (__builtin_expect(wanted != 0, 0)) jd_task_answer();
}

/* May the caller, who is no worker, run itself what it would hand over? 1 if it has about as much
 * stack as a task. */
JD_TASK_API int jd_task_may_run_here(void);

/* Not 0 if somebody would take a fork of the caller's, a worker in whom jd_task_direct is 0. */
JD_TASK_API int jd_task_fork_is_wanted(void);

/* Calls a(argument) while others may run task->run(task). Returns 1 if one did, and it has ended;
 * 0 if the caller has to do it now; 2 if workers did both, for a caller that is none: then
 * task->reserved is how long that took, from when they began, in nanoseconds. */
JD_TASK_API int jd_task_fork(jd_task* task, void (*a)(void*), void* argument);

/* Memory that the collector takes for a root until it is released; null if there is none. */
JD_TASK_API void* jd_task_allocate(size_t size, size_t alignment);
JD_TASK_API void jd_task_release(void* memory);
/* Forks a task of the scope's whose memory is the caller's until function(task, cancelled) has it.
 */
JD_TASK_API void jd_task_scope_push(jd_task_scope* scope, jd_task* task,
                                    void (*function)(jd_task* task, int cancelled));

/* Tasks throw by the C++ run-time whose __cxa_get_globals this is: what it knows of a task that is
 * in a handler goes along where that goes on in another thread. Up to four different ones, of
 * further ones a line on standard error tells; each call is to be taken back before the run-time
 * is unloaded. task.hpp calls both. Any thread. */
JD_TASK_API void jd_task_exceptions_are_of(void* (*globals)(void));
JD_TASK_API void jd_task_exceptions_are_no_more_of(void* (*globals)(void));

#ifdef __cplusplus
}
#endif

#endif /* __ASSEMBLER__ */
#endif
