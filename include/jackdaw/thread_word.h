/* For heap.h and the headers of tasks: thread-local words of the library's in inline functions.
 *
 * After a fork a function may go on in another thread. So the word is looked up at each use: where
 * a compiler knows that it is thread-local, it may keep its address for the whole function (clang
 * does so on x86-64), and would go on with the word of the first thread.
 */
#ifndef JACKDAW_THREAD_WORD_H
#define JACKDAW_THREAD_WORD_H

/* Only there can a function go on in another thread. */
#if defined(__x86_64__) && !defined(__ILP32__)
#define JD_THREAD_WORD_OFFSET(name) \
  "mov{q\t" name "@gottpoff(%%rip), %q0|\t%q0, qword ptr " name "@gottpoff[rip]}\n\t"
/* Copies the calling thread's word of that name into a variable of its type. */
#define JD_READ_THREAD_WORD(variable, name)                                            \
  __asm__ volatile(JD_THREAD_WORD_OFFSET(#name) "mov{\t%%fs:(%q0), %0|\t%0, fs:[%q0]}" \
                   : "=&r"(variable))
#else
#define JD_READ_THREAD_WORD(variable, name) ((variable) = (name))
#endif

#endif
