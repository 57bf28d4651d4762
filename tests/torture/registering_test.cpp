// Threads that register and leave again and again: what they know of themselves from before, and
// when it is not so any more.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "child.hpp"
#include "emulator.hpp"
#include "gc_test.hpp"
#include "threads.hpp"

namespace jd::test {
namespace {

constexpr std::size_t kLength = 1000;

GC_stack_base own_base() {
  GC_stack_base base{};
  GC_get_stack_base(&base);
  return base;
}

void register_again(int times) {
  const GC_stack_base base = own_base();
  for (int i = 0; i < times; ++i) {
    GC_unregister_my_thread();
    GC_register_my_thread(&base);
    opaque(GC_malloc(32));
  }
}

// The process ends at the first such call. False if that can't be had.
bool end_at(unsigned call) {
  sock_filter filter[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, call},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_TRAP},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog program = {4, filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

JD_CHILD(registers_without_asking) {
  GC_INIT();
  GC_allow_register_threads();
  int status = 1;
  GcThread other([&status] {
    register_again(3);
    if (!end_at(SYS_gettid) || !end_at(SYS_getpid)) {
      status = kCannotTry;
      return;
    }
    register_again(100);
    status = 0;
  });
  other.join();
  return status;
}

TEST(Registering, AsksTheSystemForItsNumbersNoMore) {
  JD_OURS_ONLY("how bdwgc knows a thread is its own business");
#if defined(JD_SANITIZE_ADDRESS) || defined(JD_SANITIZE_THREAD)
  GTEST_SKIP() << "the sanitizer asks";
#endif
  const ChildResult r = run_child("registers_without_asking");
  JD_SKIP_IF_CANNOT_TRY(r);
  EXPECT_TRUE(r.ok()) << r;
}

// Registers anew in a child, and leaves what only its stack holds to a collection by another
// thread: that finds a thread whose number is wrong to be gone, and frees it.
int hold_while_another_collects() {
  register_again(3);
  void* volatile list = make_list(kLength);
  run_threads(1, [](std::size_t) {
    for (int i = 0; i < 3; ++i) {
      GC_gcollect();
      opaque(make_list(10 * kLength));
    }
  });
  return list_length(list) == kLength ? 0 : 10;
}

int status_of(pid_t pid) {
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) return 20;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 21;
}

template <class Fork>
int register_on_both_sides_of(Fork make_child) {
  GC_INIT();
  GC_allow_register_threads();
  register_again(3);
  const pid_t pid = make_child();
  if (pid == 0) {
    int status = hold_while_another_collects();
    const pid_t grandchild = make_child();
    if (grandchild == 0) _exit(hold_while_another_collects());
    if (status == 0) status = status_of(grandchild);
    _exit(status);
  }
  const int status = status_of(pid);
  return status != 0 ? status : hold_while_another_collects();
}

JD_CHILD(registers_after_fork) { return register_on_both_sides_of(fork); }
// Nothing of libc's or ours is told of it.
JD_CHILD(registers_after_a_fork_unseen) {
  return register_on_both_sides_of(
      [] { return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); });
}

Environment without_helpers() { return {{"GC_MARKERS", "1"}}; }

TEST(Registering, InTheChildOfAForkIsUnderItsOwnNumber) {
  const ChildResult r = run_child("registers_after_fork", without_helpers(), 60);
  EXPECT_TRUE(r.ok()) << r;
}

TEST(Registering, InTheChildOfAForkThatNobodySawIsUnderItsOwnNumber) {
  JD_OURS_ONLY("bdwgc has no word for it");
  JD_SKIP_IN_EMULATOR("keeps in a child what the kernel would clear there (MADV_WIPEONFORK)");
#if defined(JD_SANITIZE_ADDRESS) || defined(JD_SANITIZE_THREAD)
  GTEST_SKIP() << "the sanitizer's locks want fork()";
#endif
  const ChildResult r = run_child("registers_after_a_fork_unseen", without_helpers(), 60);
  EXPECT_TRUE(r.ok()) << r;
}

// The signal by which it is stopped: blocked by the program between two registrations.
JD_CHILD(blocks_signals_between_registrations) {
  GC_INIT();
  GC_allow_register_threads();
  std::atomic<bool> ready{false};
  std::atomic<bool> finish{false};
  GcThread other([&] {
    register_again(3);
    GC_unregister_my_thread();
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    const GC_stack_base base = own_base();
    GC_register_my_thread(&base);
    ready = true;
    while (!finish.load()) sched_yield();
  });
  while (!ready.load()) sched_yield();
  GC_gcollect();
  finish = true;
  other.join();
  return 0;
}

TEST(Registering, OpensTheMaskThatTheProgramHasClosedSince) {
  JD_OURS_ONLY("bdwgc waits for ever");
  const ChildResult r = run_child("blocks_signals_between_registrations");
  EXPECT_TRUE(r.ok()) << r;
}

// A thread that asks for memory in its last destructor ends without a word, and libc gives its
// stack to the next, whose links lie there.
pthread_key_t last_words;
bool speaks_late = false;
void speak_late(void* round) {
  const auto number = reinterpret_cast<std::uintptr_t>(round);
  if (number < PTHREAD_DESTRUCTOR_ITERATIONS) {
    pthread_setspecific(last_words, reinterpret_cast<void*>(number + 1));
  } else if (speaks_late) {
    opaque(GC_malloc(32));
  }
}
void* end_without_a_word(void*) {
  opaque(GC_malloc(16));
  pthread_setspecific(last_words, reinterpret_cast<void*>(1));
  return nullptr;
}
constexpr int kLinks = 50;
[[gnu::noinline]] void make_links(void** links) {
  for (int i = 0; i < kLinks; ++i) {
    void* object = GC_malloc_atomic(64);
    links[i] = reinterpret_cast<void*>(GC_HIDE_POINTER(object));
    GC_general_register_disappearing_link(&links[i], object);
  }
}
int links_left_after_a_collection(void* const* links) {
  clear_stack();
  GC_gcollect();
  clear_stack();
  GC_gcollect();
  int left = 0;
  for (int i = 0; i < kLinks; ++i) left += links[i] != nullptr ? 1 : 0;
  return left;
}
// The result is the number of links that are not cleared; with an argument, in a child.
void* count_links_left(void* in_child) {
  void* links[kLinks];
  opaque(GC_malloc(16));
  make_links(links);
  if (in_child == nullptr) {
    // The first collection drops the other's record, while the objects live.
    void* objects[kLinks];
    for (int i = 0; i < kLinks; ++i) {
      objects[i] = GC_REVEAL_POINTER(reinterpret_cast<GC_hidden_pointer>(links[i]));
    }
    GC_gcollect();
    asm volatile("" : : "r"(objects) : "memory");
    std::memset(static_cast<void*>(objects), 0, sizeof objects);
    asm volatile("" : : "r"(objects) : "memory");
    return reinterpret_cast<void*>(
        static_cast<std::intptr_t>(links_left_after_a_collection(links)));
  }
  const pid_t child = fork();
  if (child == 0) _exit(links_left_after_a_collection(links));
  int status = -1;
  waitpid(child, &status, 0);
  return reinterpret_cast<void*>(
      static_cast<std::intptr_t>(WIFEXITED(status) ? WEXITSTATUS(status) : 255));
}
std::intptr_t links_left(bool in_child) {
  pthread_t thread;
  pthread_create(&thread, nullptr, end_without_a_word, nullptr);
  pthread_join(thread, nullptr);
  void* left = nullptr;
  pthread_create(&thread, nullptr, count_links_left, in_child ? &thread : nullptr);
  pthread_join(thread, &left);
  return reinterpret_cast<std::intptr_t>(left);
}
JD_CHILD(stack_of_one_without_a_word) {
  GC_set_handle_fork(1);
  GC_INIT();
  GC_allow_register_threads();
  if (pthread_key_create(&last_words, speak_late) != 0) return 1;
  constexpr std::intptr_t kStragglers = 5;
  for (const bool late : {false, true}) {
    speaks_late = late;
    if (links_left(false) > kStragglers) return late ? 2 : 3;
    if (links_left(true) > kStragglers) return late ? 4 : 5;
  }
  return 0;
}
TEST(Registering, AStacksNextThreadKeepsItsLinks) {
  JD_SKIP_UNDER_TSAN("runs nothing in the last round of a thread's destructors");
  const ChildResult r = run_child("stack_of_one_without_a_word");
  EXPECT_TRUE(r.ok()) << r;
}

#if !defined(__SANITIZE_THREAD__)
constexpr std::size_t kStackBytes = std::size_t{1} << 20;
alignas(4096) char stack_memory[kStackBytes];

pthread_t start_on(char* memory, std::size_t size, void* (*function)(void*), void* argument) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, memory, size);
  pthread_t thread;
  pthread_create(&thread, &attributes, function, argument);
  pthread_attr_destroy(&attributes);
  return thread;
}

// The memory of a stack is the program's again, and a child's, too.
JD_CHILD(memory_of_one_without_a_word) {
  GC_set_handle_fork(1);
  GC_INIT();
  GC_allow_register_threads();
  if (pthread_key_create(&last_words, speak_late) != 0) return 1;
  speaks_late = true;
  pthread_join(start_on(stack_memory, kStackBytes, end_without_a_word, nullptr), nullptr);
  auto** const links = reinterpret_cast<void**>(stack_memory + kStackBytes / 2);
  GC_add_roots(links, links + kLinks);
  make_links(links);
  const pid_t child = fork();
  if (child == 0) _exit(links_left_after_a_collection(links));
  int status = -1;
  waitpid(child, &status, 0);
  constexpr int kStragglers = 5;
  return WIFEXITED(status) && WEXITSTATUS(status) <= kStragglers ? 0 : 2;
}
TEST(Registering, MemoryThatWasAStackKeepsItsLinksInAChild) {
  const ChildResult r = run_child("memory_of_one_without_a_word");
  EXPECT_TRUE(r.ok()) << r;
}

// A thread whose stack is a buffer on another's; both are left in the parent by a fork, and a
// thread of the child's runs on the other's stack. Links that lay there are no more.
std::atomic<int> standing{0};
std::atomic<bool> may_end{false};
void* stand(void*) {
  opaque(GC_malloc(16));
  ++standing;
  while (!may_end.load()) sched_yield();
  return nullptr;
}
[[gnu::noinline]] void stand_on_own_stack() {
  constexpr std::size_t kPart = 128 * 1024;
  alignas(4096) char part[kPart];
  pthread_join(start_on(part, sizeof part, stand, nullptr), nullptr);
}
void* hold_links_above_another(void*) {
  void* links[kLinks];
  opaque(GC_malloc(16));
  make_links(links);
  ++standing;
  stand_on_own_stack();
  for (void*& link : links) GC_unregister_disappearing_link(&link);
  return nullptr;
}
// How many words of its stack somebody else has written.
void* collect_on_stack(void*) {
  constexpr std::size_t kWords = kStackBytes / 2 / sizeof(std::uintptr_t);
  volatile std::uintptr_t words[kWords];
  for (volatile std::uintptr_t& word : words) word = 0x1111;
  GC_gcollect();
  GC_gcollect();
  std::intptr_t changed = 0;
  for (const volatile std::uintptr_t& word : words) changed += word != 0x1111 ? 1 : 0;
  return reinterpret_cast<void*>(changed);
}
JD_CHILD(stack_on_a_stack) {
  GC_set_handle_fork(1);
  GC_INIT();
  GC_allow_register_threads();
  const pthread_t outer = start_on(stack_memory, kStackBytes, hold_links_above_another, nullptr);
  while (standing.load() < 2) sched_yield();
  const pid_t child = fork();
  if (child == 0) {
    void* changed = nullptr;
    pthread_join(start_on(stack_memory, kStackBytes, collect_on_stack, nullptr), &changed);
    _exit(changed == nullptr ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  may_end = true;
  pthread_join(outer, nullptr);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 2;
}
TEST(Registering, AChildForgetsLinksOnAStackWithAnotherOnIt) {
  const ChildResult r = run_child("stack_on_a_stack");
  EXPECT_TRUE(r.ok()) << r;
}
#endif

}  // namespace
}  // namespace jd::test
