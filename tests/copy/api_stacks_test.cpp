// Typed objects of threads whose stacks are objects of the heap themselves, and roots that are not
// what they were when the collection looked first.
#include <pthread.h>
#include <ucontext.h>

#include <atomic>

#include "api_support.hpp"
#include "child.hpp"
#include "threads.hpp"

namespace jd::test {
namespace {

constexpr std::size_t kStack = kSmallStack;
constexpr std::size_t kPage = 4096;

// Where a collection copies everything, and where it moves all that it may; each is checked.
void expect_survival(const char* child) {
  const Environment movers[] = {{{"JACKDAW_POLICY", "mcc"}, {"JACKDAW_VERIFY", "1"}},
                                {{"JACKDAW_MOVE", "1"}, {"JACKDAW_VERIFY", "1"}}};
  for (const Environment& mover : movers) {
    const ChildResult r = run_child(child, mover);
    EXPECT_TRUE(r.ok()) << mover[0].first << "=" << mover[0].second << r;
  }
}

std::size_t wrong_lists(const Nodes& nodes, void* list, std::size_t length) {
  return nodes.is_list(list, length) ? 0 : 1;
}

// Links into a list while the same thread collects. How many lists were not as they should be.
std::size_t link_and_collect(const Nodes& nodes) {
  constexpr std::size_t kLength = 60;
  std::size_t wrong = 0;
  void* list = nullptr;
  for (std::size_t i = 0; i < kLength; ++i) {
    list = nodes.make(i, list);
    if (i % 10 == 0) jd_collect(1);
    void* own = nodes.sparse_list(10, 3);
    opaque(nodes.sparse_list(rounds(100), 0));
    wrong += wrong_lists(nodes, own, 10);
  }
  return wrong + wrong_lists(nodes, list, kLength);
}

// A thread on a stack that is an uncollectable object.
class ThreadInHeap {
 public:
  ThreadInHeap(void* (*body)(void*), void* argument) {
    // On whole pages, as pthread_attr_setstack wants it.
    auto* memory = static_cast<char*>(GC_malloc_uncollectable(kStack + kPage));
    const std::size_t to_page = (0 - reinterpret_cast<std::uintptr_t>(memory)) % kPage;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    made_ = pthread_attr_setstack(&attributes, memory + to_page, kStack) == 0 &&
            GC_pthread_create(&thread_, &attributes, body, argument) == 0;
    pthread_attr_destroy(&attributes);
  }
  // False if there was none.
  [[nodiscard]] bool join() const { return made_ && GC_pthread_join(thread_, nullptr) == 0; }

 private:
  pthread_t thread_ = {};
  bool made_ = false;
};

struct Work {
  explicit Work(const Nodes& its) : nodes(its) {}
  const Nodes& nodes;
  std::atomic<std::size_t> wrong{0};
  std::atomic<int> stage{0};
};

JD_CHILD(collect_in_thread_on_object) {
  GC_INIT();
  const Nodes nodes(JD_HOMOGENEOUS);
  const Cell kept(nodes.sparse_list(300, 3));
  Work work(nodes);
  const ThreadInHeap thread(
      [](void* argument) -> void* {
        auto* own = static_cast<Work*>(argument);
        own->wrong = link_and_collect(own->nodes);
        return nullptr;
      },
      &work);
  return thread.join() && work.wrong == 0 && nodes.is_list(kept.get(), 300) ? 0 : 1;
}
// Regression: under JD_MCC the collection read its own frames as the object's words, and marked
// what it had copied: "a header word was overwritten".
TEST(StackObjects, AThreadOnOneCollects) {
  JD_SKIP_UNDER_ASAN("forbids what lies between a frame's variables, which the object has");
  expect_survival("collect_in_thread_on_object");
}

// It is stopped there, and then stands in a blocking section there, while another collects.
JD_CHILD(stand_in_thread_on_object) {
  GC_INIT();
  const Nodes nodes(JD_HOMOGENEOUS);
  Work work(nodes);
  const ThreadInHeap thread(
      [](void* argument) -> void* {
        auto* own = static_cast<Work*>(argument);
        void* list = own->nodes.sparse_list(100, 3);
        own->stage = 1;
        while (own->stage == 1) own->wrong += wrong_lists(own->nodes, list, 100);
        GC_do_blocking(
            [](void* same) -> void* {
              auto* work = static_cast<Work*>(same);
              work->stage = 3;
              while (work->stage == 3) {
              }
              return nullptr;
            },
            own);
        own->wrong += wrong_lists(own->nodes, list, 100);
        return nullptr;
      },
      &work);
  for (const int stage : {1, 3}) {
    while (work.stage != stage) {
    }
    work.wrong += link_and_collect(nodes);
    work.stage = stage + 1;
  }
  return thread.join() && work.wrong == 0 ? 0 : 1;
}
TEST(StackObjects, AThreadStandsOnOneWhileAnotherCollects) {
  JD_SKIP_UNDER_ASAN("forbids what lies between a frame's variables, which the object has");
  JD_SKIP_UNDER_TSAN("sees the collector's reads of words that threads write");
  expect_survival("stand_in_thread_on_object");
}

// ---- Coroutines ----

ucontext_t caller;
ucontext_t coroutine;
const Nodes* coroutines_nodes;
std::size_t coroutines_wrong;

// Changes to it for a while and collects on either side, until it has ended. How many lists were
// wrong.
std::size_t alternate_with_coroutine(void* stack) {
  getcontext(&coroutine);
  coroutine.uc_stack.ss_sp = stack;
  coroutine.uc_stack.ss_size = kStack;
  coroutine.uc_link = &caller;
  constexpr std::size_t kRounds = 40;
  makecontext(
      &coroutine,
      +[] {
        void* list = nullptr;
        for (std::size_t i = 0; i < kRounds; ++i) {
          list = coroutines_nodes->make(i, list);
          if (i % 10 == 0) jd_collect(1);
          void* own = coroutines_nodes->sparse_list(10, 3);
          swapcontext(&coroutine, &caller);
          coroutines_wrong += wrong_lists(*coroutines_nodes, own, 10);
        }
        coroutines_wrong += wrong_lists(*coroutines_nodes, list, kRounds);
      },
      0);
  coroutines_wrong = 0;
  void* mine = coroutines_nodes->sparse_list(300, 3);
  for (std::size_t i = 0; i <= kRounds; ++i) {
    void* own = coroutines_nodes->sparse_list(17, 3);
    swapcontext(&caller, &coroutine);
    coroutines_wrong += wrong_lists(*coroutines_nodes, own, 17);
    if (i % 8 == 0) jd_collect(1);
  }
  return coroutines_wrong + wrong_lists(*coroutines_nodes, mine, 300);
}

JD_CHILD(collect_in_coroutine_on_object) {
  GC_INIT();
  const Nodes nodes(JD_HOMOGENEOUS);
  coroutines_nodes = &nodes;
  // Lies before the stack, and moves to behind it.
  const Cell kept(nodes.sparse_list(300, 3));
  jd_collect(1);
  return alternate_with_coroutine(GC_malloc(kStack)) == 0 ? 0 : 1;
}
// Regression: as above. And the verifier took what lay behind the stack for more of it: "the object
// that ends at ... is held".
TEST(StackObjects, ACoroutineOnOneCollects) {
  JD_SKIP_UNDER_ASAN("forbids what lies between a frame's variables, which the object has");
  expect_survival("collect_in_coroutine_on_object");
}

// ---- Roots that change ----

const Cell* pushed_cell;
int pushes;

JD_CHILD(roots_that_change) {
  GC_INIT();
  const Nodes nodes(JD_HOMOGENEOUS);
  Cell list;
  far_away([&] { list.set(nodes.sparse_list(300, 3)); });
  pushed_cell = &list;
  GC_set_on_collection_event([](GC_EventType event) {
    if (event == GC_EVENT_MARK_START) pushes = 0;
  });
  // The second time that the collection asks, and not the first. Were it a thread in a blocking
  // section that writes it, time would tell.
  GC_set_push_other_roots([] {
    void* word = ++pushes == 2 ? pushed_cell->get() : nullptr;
    GC_push_all_eager(&word, &word + 1);
  });
  for (int i = 0; i < 3; ++i) compact();
  return nodes.is_list(list.get(), 300) ? 0 : 1;
}
// Regression, as AThreadOnOneCollects.
TEST(AmbiguousRoots, AWordThatIsWrittenBetweenTwoLooksMeansNothing) {
  expect_survival("roots_that_change");
}

}  // namespace
}  // namespace jd::test
