// The sequential program with each fork a call of a function that is not inlined: what a fork that
// nobody steals is to cost.
#pragma once

#define BENCH_TASK_ATTRIBUTE [[gnu::noinline]]

#include "sequential.hpp"
