// Tasks that are suspended while they handle exceptions, in a library that brings the C++ run-time.
#include <jackdaw/task.hpp>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>

namespace {

std::atomic<int> wrong{0};

void spin_for(std::chrono::microseconds time) {
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < time) {
  }
}

// The second part is stolen and takes longer than the first, so the handler goes on in the thief.
void handle(int number) {
  using namespace std::chrono_literals;
  const std::string text = "the exception of task " + std::to_string(number);
  try {
    throw std::runtime_error(text);
  } catch (const std::exception& caught) {
    jd::par([] { spin_for(100us); }, [] { spin_for(400us); });
    if (caught.what() != text) ++wrong;
    try {
      throw;
    } catch (const std::exception& again) {
      if (again.what() != text) ++wrong;
    }
  }
}

}  // namespace

extern "C" int exceptions_kept_apart() {
  for (int round = 0; round < 50; ++round) {
    jd::run([] {
      jd::scope scope;
      for (int i = 0; i < 8; ++i) scope.fork([i] { handle(i); });
      scope.join();
    });
  }
  return wrong.load() == 0 ? 0 : 1;
}
