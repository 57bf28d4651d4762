// The sequential program with each fork a call of a function that is not inlined: what a fork that
// nobody steals is to cost. CMakeLists.txt keeps its calls calls: GCC would make a loop of fib's
// second one, and the program one with half as many calls as it has forks and joins.
#pragma once

#define BENCH_TASK_ATTRIBUTE [[gnu::noinline]]

#include "sequential.hpp"
