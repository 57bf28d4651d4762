// What the files of linking_test.sh have in common.
#pragma once

#include <jackdaw/task.hpp>

// With names that others see, so that instances of templates for their types have such, too.
inline int one() { return 1; }
inline void nothing() {}
inline void ignore(int) {}

struct Tasks {
  jd::scope scope;
  jd::cancellation cancellation;
  jd::foreign_exception exception;
};

// In calm.cpp.
int calm_sum();
void calm_fork(jd::scope& scope);
