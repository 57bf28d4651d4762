// Compiled without exceptions: the same functions of the headers', for the same types, as in
// throwing.cpp, and some that the linker may not take for those.
#include "linking.hpp"

int calm_sum() {
  const auto of_functions = jd::par(one, one);
  const auto of_closures = jd::par([] { return 1; }, [] { return 2; });
  Tasks tasks;
  tasks.scope.fork(nothing);
  tasks.scope.join();
  jd::parallel_for(0, 2, ignore);
  return of_functions.first + of_closures.second + jd::run(one);
}

void calm_fork(jd::scope& scope) { scope.fork(nothing); }
