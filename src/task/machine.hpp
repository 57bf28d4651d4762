// Whether tasks have stacks of their own on this machine, which thieves walk and take forks from.
// Elsewhere there is deque mode alone. For assembly, too.
#pragma once

#if defined(__x86_64__) && !defined(__ILP32__)
#define JD_TASK_STACKS 1
#else
#define JD_TASK_STACKS 0
#endif
