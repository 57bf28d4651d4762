// Stacks that are objects of the heap, of which nobody tells the collector.
#include <pthread.h>
#include <ucontext.h>

#include <cstdio>

#include "child.hpp"
#include "gc_test.hpp"
#include "threads.hpp"

namespace jd::test {
namespace {

constexpr std::size_t kStack = kSmallStack;

ucontext_t caller;
ucontext_t coroutine;
std::size_t wrong_lists;

// One list after another is garbage.
void make_garbage() {
  constexpr std::size_t kLength = 2000;
  const std::size_t rounds_here = rounds(400);
  for (std::size_t i = 0; i < rounds_here; ++i) {
    wrong_lists += list_length(make_list(kLength, 32)) != kLength;
  }
}

// False if there was no room for a stack.
bool make_garbage_on(void* stack) {
  if (stack == nullptr) return false;
  getcontext(&coroutine);
  coroutine.uc_stack.ss_sp = stack;
  coroutine.uc_stack.ss_size = kStack;
  coroutine.uc_link = &caller;
  makecontext(&coroutine, make_garbage, 0);
  swapcontext(&caller, &coroutine);
  return true;
}

// A collection that takes the rest of the heap for the stack holds nearly all of the 25 MB or 50
// that are allocated.
int result() {
  std::printf("%zu KiB, %zu wrong\n", GC_get_heap_size() / 1024, wrong_lists);
  return GC_get_heap_size() < std::size_t{8} << 20 && wrong_lists == 0 ? 0 : 1;
}

JD_CHILD(garbage_in_coroutine) {
  GC_INIT();
  void* volatile on_main_stack = make_list(10);
  if (!make_garbage_on(GC_malloc_uncollectable(kStack))) return 1;
  wrong_lists += list_length(on_main_stack) != 10;
  return result();
}

// As above, of a thread whose own stack is an object, too. The coroutine's lies before it, and then
// behind it.
JD_CHILD(garbage_in_coroutines_of_thread) {
  GC_INIT();
  constexpr std::size_t kPage = 4096;
  static void* before;
  static void* behind;
  before = GC_malloc_uncollectable(kStack);
  auto* memory = static_cast<char*>(GC_malloc_uncollectable(kStack + kPage));
  behind = GC_malloc_uncollectable(kStack);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  const std::size_t to_page = (0 - reinterpret_cast<std::uintptr_t>(memory)) % kPage;
  if (pthread_attr_setstack(&attributes, memory + to_page, kStack) != 0) return 1;
  pthread_t thread;
  const auto body = [](void*) -> void* {
    void* volatile on_own_stack = make_list(10);
    for (void* stack : {before, behind}) {
      make_garbage_on(stack);
      wrong_lists += list_length(on_own_stack) != 10;
    }
    return nullptr;
  };
  if (GC_pthread_create(&thread, &attributes, body, nullptr) != 0) return 1;
  GC_pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  return result();
}

// Regression: such a stack was read to the end of its mapping, which is the heap's, and all that
// lay behind the stack was held.
TEST(StackObjects, ACoroutineOnOneHoldsNoOthers) {
  JD_SKIP_UNDER_ASAN("forbids what lies between a frame's variables, which the object has");
  JD_OURS_ONLY("bdwgc walks from the foreign stack to the thread's bottom");
  const ChildResult r = run_child("garbage_in_coroutine");
  EXPECT_TRUE(r.ok()) << r;
}
TEST(StackObjects, ACoroutineOfAThreadOnOneHoldsNoOthers) {
  JD_SKIP_UNDER_ASAN("forbids what lies between a frame's variables, which the object has");
  JD_OURS_ONLY("bdwgc walks from the foreign stack to the thread's bottom");
  const ChildResult r = run_child("garbage_in_coroutines_of_thread");
  EXPECT_TRUE(r.ok()) << r;
}

}  // namespace
}  // namespace jd::test
