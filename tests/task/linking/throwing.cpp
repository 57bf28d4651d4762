// Tasks that throw, in a program that has other code, or another C++ run-time, beside them.
#include <cstdio>
#include <stdexcept>

#include "linking.hpp"

namespace {

// Of types that other files know.
int throws_number() { throw std::runtime_error("mine"); }
void throws_nothing() { throw std::runtime_error("mine"); }
void throws_at(int i) {
  if (i == 1) throw std::runtime_error("mine");
}

template <class F>
int catches(const char* what, F f) {
  for (int i = 0; i < 10; ++i) {
    try {
      f();
      std::fprintf(stderr, "%s: nothing was thrown\n", what);
      return 1;
    } catch (const std::runtime_error&) {
      continue;
    } catch (const std::exception& other) {
      std::fprintf(stderr, "%s: %s\n", what, other.what());
      return 1;
    }
  }
  return 0;
}

}  // namespace

extern "C" int run_throwing_tasks(int) {
  return catches("run", [] { jd::run(throws_number); }) +
         catches("par", [] { jd::par(throws_number, one); }) +
         catches("par in a worker", [] { jd::run([] { jd::par(throws_number, one); }); }) +
         catches("the other part", [] { jd::run([] { jd::par(one, throws_number); }); }) +
         catches("closures",
                 [] {
                   jd::run([] {
                     const auto results = jd::par([] { return throws_number(); }, [] { return 2; });
                     return results.second;
                   });
                 }) +
         catches("blocking", [] { jd::run([] { jd::blocking(throws_number); }); }) +
         catches("parallel_for", [] { jd::parallel_for(0, 2, throws_at); }) +
         catches("scope",
                 [] {
                   Tasks tasks;
                   tasks.scope.fork(throws_nothing);
                   tasks.scope.join();
                 }) +
         catches("scope in a worker", [] {
           jd::run([] {
             Tasks tasks;
             tasks.scope.fork(throws_nothing);
             tasks.scope.join();
           });
         });
}
