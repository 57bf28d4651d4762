// A program with code that was compiled without exceptions, or which loads a plug-in.
#include <dlfcn.h>

#include <cstdio>

#include "linking.hpp"

extern "C" int run_throwing_tasks(int);

#if defined(WITH_PLUGIN)
int main(int, char** arguments) {
  void* plugin = dlopen(arguments[1], RTLD_NOW);
  if (plugin == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  const auto of_plugin = reinterpret_cast<int (*)(int)>(dlsym(plugin, "run_throwing_tasks"));
  return run_throwing_tasks(0) + of_plugin(0);
}
#else
int main() {
  Tasks tasks;
  calm_fork(tasks.scope);
  tasks.scope.join();
  return (calm_sum() == 4 ? 0 : 1) + run_throwing_tasks(0);
}
#endif
