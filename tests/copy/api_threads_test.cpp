// Typed objects and threads: who allocates, who collects, who comes and goes, and forks.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>

#include "api_support.hpp"
#include "child.hpp"
#include "threads.hpp"

namespace jd::test {
namespace {

class Threads : public EachSource {};
JD_EACH_SOURCE(Threads);

// Makes sparse lists and checks them, while others move them.
void make_and_check(const Nodes& nodes, std::size_t rounds, std::size_t length) {
  const auto cell = std::make_unique<Cell>();
  void* on_stack = nullptr;
  for (std::size_t round = 0; round < rounds; ++round) {
    cell->set(nodes.sparse_list(length, 3));
    on_stack = nodes.make(round, cell->get());
    for (int look = 0; look < 3; ++look) {
      ASSERT_TRUE(nodes.is_list(cell->get(), length));
      ASSERT_TRUE(nodes.is_list(nodes.next(on_stack), length));
      ASSERT_EQ(nodes.next(on_stack), cell->get());
    }
    ASSERT_EQ(nodes.value(on_stack), round);
  }
}

// Also objects whose own first words say how long they are (alloc.req.first-words): whoever makes
// one is stopped anywhere.
TEST_P(Threads, AllocateAndLinkWhileOthersCompact) {
  JD_SKIP_UNDER_TSAN("sees the collector's reads of words that threads write");
  const Nodes nodes(GetParam());
  std::atomic<int> running{3};
  run_threads(4, [&](std::size_t i) {
    if (i == 3) {
      while (running != 0) jd_collect(1);
      return;
    }
    make_and_check(nodes, rounds(200), 100);
    --running;
  });
}

// libgc's questions about objects that move, asked by threads that a collection may stop anywhere.
TEST_P(Threads, LibgcFindsObjectsWhileOthersCompact) {
  JD_SKIP_UNDER_TSAN("sees the collector's reads of words that threads write");
  const Nodes nodes(GetParam(), 3);
  const std::size_t before = nodes.layout()->offset;
  std::atomic<int> running{3};
  run_threads(4, [&](std::size_t i) {
    if (i == 3) {
      while (running != 0) jd_collect(1);
      return;
    }
    for (std::size_t round = 0; round < rounds(400); ++round) {
      const Cell list(nodes.sparse_list(40, 3));
      for (int look = 0; look < 10; ++look) {
        for (void* node = list.get(); node != nullptr; node = nodes.next(node)) {
          char* const memory = static_cast<char*>(node) - before;
          ASSERT_EQ(GC_base(static_cast<char*>(node) + 20), memory);
          ASSERT_GE(GC_size(memory), sizeof(Node) + 24);
          ASSERT_EQ(GC_same_obj(node, static_cast<char*>(node) + 9), node);
        }
      }
    }
    --running;
  });
}

// Everybody links into what everybody sees: a table of lists under a lock.
TEST_P(Threads, ShareObjects) {
  JD_SKIP_UNDER_TSAN("sees the collector's reads of words that threads write");
  const Nodes nodes(GetParam());
  constexpr std::size_t kLists = 16;
  struct Shared {
    std::mutex lock;
    Cell lists[kLists];
    std::size_t lengths[kLists] = {};
  };
  const auto shared = std::make_unique<Shared>();
  run_threads(4, [&](std::size_t thread) {
    Random random(thread + 1);
    for (std::size_t i = 0; i < rounds(20000); ++i) {
      const std::size_t which = random.below(kLists);
      const std::lock_guard guard(shared->lock);
      if (random.one_in(50)) {
        shared->lists[which].set(nullptr);
        shared->lengths[which] = 0;
      }
      shared->lists[which].set(nodes.make(shared->lengths[which]++, shared->lists[which].get()));
      if (random.one_in(500)) jd_collect(random.one_in(2) ? 1 : 0);
    }
  });
  compact();
  far_away([&] {
    for (std::size_t i = 0; i < kLists; ++i) {
      ASSERT_TRUE(nodes.is_list(shared->lists[i].get(), shared->lengths[i]));
    }
  });
}

// What threads that are gone leave in their holes is allocated from by others.
TEST_P(Threads, ComeAndGo) {
  JD_SKIP_UNDER_TSAN("sees the collector's reads of words that threads write");
  const Nodes nodes(GetParam());
  constexpr std::size_t kThreads = 40;
  std::vector<std::unique_ptr<Cell>> cells;
  for (std::size_t i = 0; i < kThreads; ++i) cells.push_back(std::make_unique<Cell>());
  for (std::size_t i = 0; i < kThreads; i += 4) {
    run_threads(4, [&](std::size_t k) { cells[i + k]->set(nodes.sparse_list(60 + i, 2)); });
    if (i % 8 == 0) compact();
  }
  compact();
  far_away([&] {
    for (std::size_t i = 0; i < kThreads; ++i) {
      ASSERT_TRUE(nodes.is_list(cells[i]->get(), 60 + i / 4 * 4)) << i;
    }
  });
}

// As C programs start their threads.
void run_plain_thread(void* (*body)(void*), void* argument) {
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, nullptr, body, argument), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
}

// The collector hears of a thread at its first allocation, and so again when the thread has taken
// itself off the list.
TEST_P(Threads, RegisterThemselvesByAllocating) {
  JD_SKIP_UNDER_TSAN("sees the collector's reads of words that threads write");
  Nodes nodes(GetParam());
  for (int i = 0; i < 5; ++i) {
    run_plain_thread(
        [](void* argument) -> void* {
          const auto& own = *static_cast<const Nodes*>(argument);
          EXPECT_EQ(GC_thread_is_registered(), 0);
          make_and_check(own, 3, 200);
          EXPECT_NE(GC_thread_is_registered(), 0);
          jd_collect(1);
          GC_unregister_my_thread();
          // Again, with holes that were its own before.
          make_and_check(own, 3, 200);
          EXPECT_NE(GC_thread_is_registered(), 0);
          return nullptr;
        },
        &nodes);
    compact();
  }
}

// A thread that only reads is looked at, and its objects stay where they are, once it says so.
TEST_P(Threads, MayRegisterToRead) {
  JD_SKIP_UNDER_TSAN("sees the collector's reads of words that threads write");
  struct Shared {
    Nodes nodes;
    Cell list;
    std::atomic<bool> stop{false};
    std::atomic<std::size_t> walks{0};
    std::atomic<std::size_t> wrong{0};
  } shared{Nodes(GetParam()), Cell()};
  constexpr std::size_t kNodes = 300;
  far_away([&] { shared.list.set(shared.nodes.sparse_list(kNodes, 3)); });
  pthread_t reader;
  ASSERT_EQ(pthread_create(
                &reader, nullptr,
                [](void* argument) -> void* {
                  auto* own = static_cast<Shared*>(argument);
                  EXPECT_NE(jd_thread_register(), 0);
                  EXPECT_NE(GC_thread_is_registered(), 0);
                  while (!own->stop) {
                    own->wrong += own->nodes.is_list(own->list.get(), kNodes) ? 0 : 1;
                    ++own->walks;
                  }
                  return nullptr;
                },
                &shared),
            0);
  while (shared.walks == 0) sched_yield();
  for (std::size_t i = 0; i < rounds(100); ++i) compact();
  shared.stop = true;
  ASSERT_EQ(pthread_join(reader, nullptr), 0);
  EXPECT_EQ(shared.wrong, 0U);
}

TEST_P(Threads, UnregisteredThreadsMayAskAndHold) {
  struct Shared {
    Nodes nodes;
    Cell cell;
  } shared{Nodes(GetParam()), Cell()};
  shared.cell.set(shared.nodes.make(5));
  run_plain_thread(
      [](void* argument) -> void* {
        auto* own = static_cast<Shared*>(argument);
        void* object = own->cell.get();
        EXPECT_EQ(jd_layout_of(object), own->nodes.layout());
        EXPECT_NE(jd_size_of(object), 0U);
        EXPECT_NE(jd_pin(object), 0);
        jd_unpin(object);
        EXPECT_EQ(jd_address_hash(object), jd_address_hash(object));
        const Cell another(object);
        EXPECT_NE(jd_weak_new(object), nullptr);
        return nullptr;
      },
      &shared);
}

// ---- Fork ----

// In a child, which then forks: the parent's other threads allocate meanwhile.
template <jd_source kSource>
int fork_while_threads_allocate() {
  GC_set_handle_fork(1);
  GC_INIT();
  GC_allow_register_threads();
  const Nodes nodes(kSource);
  std::atomic<bool> stop{false};
  std::vector<GcThread> threads;
  threads.reserve(3);
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!stop) make_and_check(nodes, 1, 50);
    });
  }
  int failures = 0;
  Cell list(nodes.sparse_list(500, 3));
  const int forks = allocations_are_dear() ? 2 : 8;
  for (int i = 0; i < forks; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      bool right = static_cast<bool>(nodes.is_list(list.get(), 500));
      const std::size_t length = allocations_are_dear() ? 50 : 500;
      for (int round = 0; round < 3; ++round) {
        Cell own(nodes.sparse_list(length, 3));
        jd_collect(1);
        right = right && nodes.is_list(own.get(), length) && nodes.is_list(list.get(), 500);
      }
      _exit(right ? 0 : 1);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) ++failures;
    jd_collect(1);
  }
  stop = true;
  for (GcThread& thread : threads) thread.join();
  return failures == 0 && nodes.is_list(list.get(), 500) && !testing::Test::HasFailure() ? 0 : 1;
}
JD_CHILD(fork_homogeneous) { return fork_while_threads_allocate<JD_HOMOGENEOUS>(); }
JD_CHILD(fork_self) { return fork_while_threads_allocate<JD_SELF>(); }
JD_CHILD(fork_header) { return fork_while_threads_allocate<JD_HEADER>(); }
TEST(Fork, ChildOfSeveralThreadsAllocatesAndMoves) {
  JD_SKIP_UNDER_TSAN("does not support new threads in the child of a program with several");
  Environment environment;
#if defined(__SANITIZE_ADDRESS__)
  // Its malloc may be locked in such a child, by a thread at the fork; starting helpers calls it.
  environment = {{"GC_MARKERS", "1"}};
#endif
  for (const char* child : {"fork_homogeneous", "fork_self", "fork_header"}) {
    const ChildResult r = run_child(child, environment, 100);
    EXPECT_TRUE(r.ok()) << child << r;
  }
}

// Each of the threads has a root on its stack. In the child those stacks are other threads', or no
// memory any more: what lies there is none of the program's roots and links.
JD_CHILD(fork_beside_roots_on_stacks) {
  GC_set_handle_fork(1);
  GC_INIT();
  GC_allow_register_threads();
  const Nodes nodes(JD_HOMOGENEOUS);
  const Cell shared(nodes.make());
  std::atomic<int> ready{0};
  std::atomic<bool> stop{false};
  std::array<void**, 8> links{};
  std::vector<GcThread> threads;
  threads.reserve(links.size());
  for (void**& known : links) {
    threads.emplace_back([&] {
      char depth[6000];
      void* own[4] = {};
      void* link = shared.get();
      for (void*& root : own) {
        root = nodes.make();
        if (jd_root_add(&root) == 0) abort();
      }
      if (GC_general_register_disappearing_link(&link, shared.get()) != GC_SUCCESS) abort();
      known = &link;
      asm volatile("" : : "r"(depth), "r"(own), "r"(&link) : "memory");
      ++ready;
      while (!stop) usleep(1000);
      for (void*& root : own) jd_root_remove(&root);
      GC_unregister_disappearing_link(&link);
    });
  }
  while (ready < 8) usleep(1000);
  const pid_t child = fork();
  if (child == 0) {
    bool right = true;
    for (void** link : links) {
      right = right && GC_unregister_disappearing_link(link) == 0;
      GcThread([&] {
        // As many words as a stack of the others' has, each the only one that means its object.
        std::array<void*, 1000> words{};
        std::array<GC_word, 1000> hidden{};
        for (std::size_t k = 0; k < words.size(); ++k) {
          words[k] = nodes.make();
          hidden[k] = GC_HIDE_POINTER(words[k]);
        }
        jd_collect(1);
        for (std::size_t k = 0; k < words.size(); ++k) {
          right = right && hidden[k] == GC_HIDE_POINTER(words[k]);
        }
      }).join();
      jd_collect(1);
    }
    _exit(right ? 0 : 1);
  }
  int status = 0;
  const bool ended = child > 0 && waitpid(child, &status, 0) == child;
  stop = true;
  for (GcThread& thread : threads) thread.join();
  return ended && status == 0 ? 0 : 1;
}
TEST(Fork, RootsOnStacksOfThreadsThatAreNotThereAreForgotten) {
  JD_SKIP_UNDER_TSAN("does not support new threads in the child of a program with several");
  for (const char* policy : {"evacuate", "mcc"}) {
    Environment environment = {{"JACKDAW_POLICY", policy}};
#if defined(__SANITIZE_ADDRESS__)
    environment.emplace_back("GC_MARKERS", "1");  // as above
#endif
    const ChildResult r = run_child("fork_beside_roots_on_stacks", environment, 100);
    EXPECT_TRUE(r.ok()) << policy << r;
  }
}

// ---- Threads that come and go ----

// Each leaves a block of which it used an object's bytes, and which no other allocates from.
JD_CHILD(short_threads) {
  GC_INIT();
  for (const jd_source source : {JD_HOMOGENEOUS, JD_SELF, JD_HEADER}) {
    const Nodes nodes(source);
    for (int i = 0; i < 300; ++i) GcThread([&] { static_cast<void>(nodes.make()); }).join();
  }
  return GC_get_heap_size() < 8U << 20 ? 0 : 1;
}
TEST(ThreadsThatComeAndGo, DoNotFillTheHeap) {
  for (const char* policy : {"evacuate", "mcc"}) {
    const ChildResult r = run_child("short_threads", {{"JACKDAW_POLICY", policy}});
    EXPECT_TRUE(r.ok()) << policy << r;
  }
}

// ---- Libraries ----

TEST(Plugin, DefinesALayout) {
  void* library = dlopen(JD_COPY_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto define = reinterpret_cast<const jd_layout* (*)()>(dlsym(library, "plugin_define"));
  const auto make =
      reinterpret_cast<void* (*)(const jd_layout*, std::size_t)>(dlsym(library, "plugin_make"));
  const auto check = reinterpret_cast<std::size_t (*)(void*)>(dlsym(library, "plugin_check"));
  ASSERT_TRUE(define != nullptr && make != nullptr && check != nullptr);
  const jd_layout* layout = define();
  ASSERT_NE(layout, nullptr);
  Cell list;
  far_away([&] { list.set(make(layout, 2000)); });
  compact();
  EXPECT_EQ(check(list.get()), 2000U);
  EXPECT_EQ(jd_layout_of(list.get()), layout);
  // In another thread, whose holes are its own.
  run_threads(2, [&](std::size_t) { EXPECT_EQ(check(make(layout, 500)), 500U); });
  compact();
  EXPECT_EQ(check(list.get()), 2000U);
}

}  // namespace
}  // namespace jd::test
