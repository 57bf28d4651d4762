#include "threads.hpp"

#include <pthread.h>

#include <cstdlib>

#include "gc_test.hpp"

namespace jd::test {

struct GcThread::State {
  std::function<void()> body;
  pthread_t thread{};
  bool running = false;

  static void* run(void* self) {
    static_cast<State*>(self)->body();
    return nullptr;
  }
};

GcThread::GcThread(std::function<void()> body) : state_(new State{std::move(body)}) {
  const int error = GC_pthread_create(&state_->thread, nullptr, State::run, state_.get());
  EXPECT_EQ(error, 0) << "GC_pthread_create";
  state_->running = error == 0;
}

GcThread::GcThread(GcThread&& other) noexcept = default;

GcThread::~GcThread() {
  if (state_ != nullptr) join();
}

void GcThread::join() {
  if (!state_->running) return;
  state_->running = false;
  EXPECT_EQ(GC_pthread_join(state_->thread, nullptr), 0);
}

void run_threads(std::size_t count, const std::function<void(std::size_t)>& body) {
  std::vector<GcThread> threads;
  threads.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&body, i] { body(i); });
  }
  for (GcThread& thread : threads) thread.join();
}

void run_registered_thread(const std::function<void()>& body) {
  struct Start {
    static void* run(void* argument) {
      GC_stack_base base;
      if (GC_get_stack_base(&base) != GC_SUCCESS) std::abort();
      if (GC_register_my_thread(&base) != GC_SUCCESS) std::abort();
      (*static_cast<const std::function<void()>*>(argument))();
      if (GC_unregister_my_thread() != GC_SUCCESS) std::abort();
      return nullptr;
    }
  };
  GC_allow_register_threads();
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, nullptr, Start::run, const_cast<std::function<void()>*>(&body)),
            0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
}

}  // namespace jd::test
