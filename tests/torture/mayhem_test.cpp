// Everything at once: threads that come and go in every way, fork, signals, loading of libraries,
// blocking sections, suspension, explicit frees of each other's objects, collections. What each
// thread does is random and follows from the seed (how the threads meet does not), under options of
// the collector's that follow from it, too.
//
//   JD_SEED=7 bin/torture_mayhem           the run of that seed
//   JD_MAYHEM_RUNS=1000 bin/torture_mayhem so many runs, each with a seed of its own
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "child.hpp"
#include "gc_test.hpp"

namespace jd::test {
namespace {

// --- What all threads share ---------------------------------------------------------------------

constexpr int kMostThreads = 24;
std::atomic<int> threads_alive{0};
std::atomic<int> failures{0};
// Objects on their way from one thread to another; static data, so each is a root.
struct Parcel {
  std::uint32_t size;
  std::uint32_t tag;
};
std::atomic<Parcel*> parcels[64];
// The kernel's numbers of running threads, to send signals to.
std::atomic<int> numbers[kMostThreads * 2];
std::atomic<std::uint64_t> signals_handled{0};
std::atomic<std::uint64_t> finalized{0};
// Held for reading while a library is loaded and for writing while forking: glibc's loader leaves
// its lock held in a child that is forked in the middle of loading.
pthread_rwlock_t loading = PTHREAD_RWLOCK_INITIALIZER;

void fail(const char* what) {
  std::fprintf(stderr, "mayhem: %s\n", what);
  failures.fetch_add(1);
}

// A number in `numbers` while it lives.
class Presence {
 public:
  Presence() {
    const int number = static_cast<int>(syscall(SYS_gettid));
    for (auto& place : numbers) {
      int free = 0;
      if (place.compare_exchange_strong(free, number)) {
        place_ = &place;
        return;
      }
    }
  }
  ~Presence() {
    if (place_ != nullptr) *place_ = 0;
  }
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

 private:
  std::atomic<int>* place_ = nullptr;
};

// --- Single things that a thread may do ---------------------------------------------------------

// A list of lists, built and looked through.
struct Node {
  Node* next;
  void* list;
  std::size_t length;
};
Node* build(Random* random, std::size_t nodes) {
  Node* head = nullptr;
  for (std::size_t i = 0; i < nodes; ++i) {
    Node* node = GC_NEW(Node);
    node->length = random->below(12);
    node->list = make_list(node->length, 16 + 16 * random->below(10));
    node->next = head;
    head = node;
  }
  return head;
}
bool is_whole(const Node* head, std::size_t nodes) {
  for (; head != nullptr; head = head->next, --nodes) {
    if (list_length(head->list) != head->length) return false;
  }
  return nodes == 0;
}

Parcel* make_parcel(Random* random) {
  const std::size_t size =
      sizeof(Parcel) + (random->one_in(50) ? random->below(100000) : random->below(600));
  auto* parcel = static_cast<Parcel*>(random->one_in(2) ? GC_malloc(size) : GC_malloc_atomic(size));
  *parcel = {static_cast<std::uint32_t>(size), static_cast<std::uint32_t>(random->next())};
  fill_pattern(parcel + 1, size - sizeof(Parcel), parcel->tag);
  return parcel;
}

// Takes a parcel of another's, looks into it, and lets go of it in some way.
void pass_parcel(Random* random) {
  auto& place = parcels[random->below(std::size(parcels))];
  Parcel* other = place.exchange(make_parcel(random));
  if (other == nullptr) return;
  const std::uint32_t size = other->size;
  if (!holds_pattern(other + 1, size - sizeof(Parcel), other->tag)) fail("a parcel was damaged");
  switch (random->below(4)) {
    case 0:
      GC_free(other);
      break;
    case 1: {
      const std::size_t wanted = sizeof(Parcel) + random->below(2 * size + 10);
      other = static_cast<Parcel*>(GC_realloc(other, wanted));
      const std::size_t common = wanted < size ? wanted : size;
      if (!holds_pattern(other + 1, common - sizeof(Parcel), other->tag)) {
        fail("a parcel was damaged when its size was changed");
      }
      break;
    }
    default:
      break;
  }
}

[[maybe_unused]] void load_library(Random* random) {
  pthread_rwlock_rdlock(&loading);
  void* handle = random->one_in(2) ? GC_dlopen(JD_TEST_PLUGIN, RTLD_NOW | RTLD_LOCAL)
                                   : dlopen(JD_TEST_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    fail("dlopen");
  } else {
    auto** own = reinterpret_cast<void** (*)()>(dlsym(handle, "plugin_tls_slots"))();
    own[0] = make_list(20);
    if (random->one_in(3)) GC_gcollect();
    opaque(make_list(50));
    if (list_length(own[0]) != 20) fail("a thread-local root of a library was lost");
    own[0] = nullptr;
    dlclose(handle);
  }
  pthread_rwlock_unlock(&loading);
}

void* in_blocking_section(void* data) {
  auto* random = static_cast<Random*>(data);
  if (random->one_in(2)) usleep(static_cast<useconds_t>(random->below(300)));
  if (random->one_in(2)) {
    GC_call_with_gc_active(
        [](void* inner) -> void* {
          auto* r = static_cast<Random*>(inner);
          const std::size_t nodes = r->below(40);
          Node* head = build(r, nodes);
          if (r->one_in(4)) GC_gcollect();
          if (!is_whole(head, nodes)) fail("a list of an active section was damaged");
          return nullptr;
        },
        random);
  }
  if (random->one_in(2)) usleep(static_cast<useconds_t>(random->below(100)));
  return nullptr;
}

// A large object is cleared, and what it gains by growing, while others collect.
void use_large(Random* random) {
  static const GC_descr first_word = [] {
    const GC_word bitmap[1] = {1};
    return GC_make_descriptor(bitmap, 1);
  }();
  const auto is_clear = [](void** words, std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      if (words[i] != nullptr) return false;
    }
    return true;
  };
  std::size_t words = 1500 + random->below(100000);
  const bool typed = random->one_in(3);
  auto** object =
      static_cast<void**>(typed ? GC_malloc_explicitly_typed(words * sizeof(void*), first_word)
                                : GC_malloc(words * sizeof(void*)));
  if (object == nullptr) return fail("no memory");
  if (!is_clear(object, 0, words)) fail("a large object is not clear");
  object[0] = make_list(20);
  if (!typed) {
    for (int i = 0; i < 3; ++i) {
      const std::size_t more = words + random->below(words);
      object = static_cast<void**>(GC_realloc(object, more * sizeof(void*)));
      if (!is_clear(object, words, more)) fail("what a large object gained is not clear");
      words = more;
    }
  }
  if (list_length(object[0]) != 20) fail("a list in a large object was damaged");
  // Not clear any more for whoever gets the memory next.
  std::memset(object, 0x55, words * sizeof(void*));
  if (random->one_in(2)) GC_free(object);
}

void send_signal(Random* random) {
  const int number = numbers[random->below(std::size(numbers))];
  if (number != 0) syscall(SYS_tgkill, getpid(), number, SIGUSR1);
}

void watch_object(Random* random) {
  void* object = GC_malloc(32 + random->below(100));
  GC_register_finalizer(
      object, [](void*, void*) { finalized.fetch_add(1, std::memory_order_relaxed); }, nullptr,
      nullptr, nullptr);
  // A link in an object that dies with what it refers to, or before, or after.
  auto** link = static_cast<void**>(GC_malloc_atomic(sizeof(void*)));
  *link = object;
  GC_general_register_disappearing_link(link, object);
  if (random->one_in(3)) GC_unregister_disappearing_link(link);
}

#if defined(JD_TEST_EMULATED)
void fork_once(Random*) {}  // its own locks stay held in a child (docs/guide/building.md)
#else
// The child of a fork has one thread and whole data.
int in_child(Random* random, const Node* head, std::size_t nodes) {
  if (!is_whole(head, nodes)) return 10;
  for (int i = 0; i < 3; ++i) {
    const std::size_t more = random->below(300);
    Node* own = build(random, more);
    GC_gcollect();
    if (!is_whole(own, more)) return 11;
    if (!is_whole(head, nodes)) return 12;
    pass_parcel(random);
  }
#if !defined(JD_SANITIZE_THREAD)  // which can't start threads there
  if (random->one_in(2)) {
    pthread_t thread;
    void* list = nullptr;
    if (GC_pthread_create(
            &thread, nullptr, [](void*) -> void* { return make_list(100); }, nullptr) != 0) {
      return 13;
    }
    GC_gcollect();
    if (GC_pthread_join(thread, &list) != 0 || list_length(list) != 100) return 14;
  }
#endif
  return failures.load() == 0 ? 0 : 15;
}

void fork_once(Random* random) {
#if defined(JD_SANITIZE_THREAD)
  // The child would want helpers, which are threads.
  if (std::strcmp(std::getenv("GC_MARKERS"), "1") != 0) return;
#endif
  const std::size_t nodes = random->below(100);
  Node* head = build(random, nodes);
  pthread_rwlock_wrlock(&loading);
  const int before = failures.load();
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(60);
    failures = 0;
    _exit(in_child(random, head, nodes));
  }
  pthread_rwlock_unlock(&loading);
  if (pid < 0) return fail("fork");
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0 && before == 0) {
    std::fprintf(stderr, "mayhem: child's status %#x\n", status);
    failures.fetch_add(1);
  }
  if (!is_whole(head, nodes)) fail("a list was damaged by a fork");
}
#endif

// --- Threads ------------------------------------------------------------------------------------

struct Order {
  std::uint64_t seed;
  std::size_t steps;
};
// Their results: as long as the order's seed says.
std::size_t result_length(const Order& order) { return 10 + order.seed % 50; }

void act(Random* random, std::size_t steps);

void* run_order(void* data) {
  const Order order = *static_cast<Order*>(data);
  const Presence presence;
  Random random(order.seed);
  act(&random, order.steps);
  return make_list(result_length(order));
}

void* run_ordinary(void* data) {
  void* result = run_order(data);
  threads_alive.fetch_sub(1);
  if (static_cast<Order*>(data)->seed % 3 == 0) GC_pthread_exit(result);
  return result;
}

// Made by plain pthread_create; its order is malloc'ed, and it has no result.
void* run_registering(void* data) {
  GC_stack_base base;
  GC_get_stack_base(&base);
  if (GC_register_my_thread(&base) != GC_SUCCESS) fail("GC_register_my_thread");
  run_order(data);
  if (static_cast<Order*>(data)->seed % 3 != 0) GC_unregister_my_thread();
  std::free(data);
  threads_alive.fetch_sub(1);
  return nullptr;
}

struct Child {
  pthread_t thread;
  std::size_t length;  // of its result
};

// Starts a thread in a way by chance. True if it is to be joined.
bool start(Random* random, std::size_t steps, Child* child) {
  if (threads_alive.fetch_add(1) >= kMostThreads) {
    threads_alive.fetch_sub(1);
    return false;
  }
  const Order order{random->next(), steps};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  const bool detached = random->one_in(3);
  if (detached) pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, 256 * 1024 + 4096 * random->below(100));
  if (random->one_in(3)) {
    sigset_t all;
    sigfillset(&all);
    pthread_attr_setsigmask_np(&attributes, &all);
  }
  int error = 0;
  if (detached && random->one_in(2)) {
    auto* own = static_cast<Order*>(std::malloc(sizeof(Order)));
    *own = order;
    error = pthread_create(&child->thread, &attributes, run_registering, own);
    if (error != 0) std::free(own);
  } else {
    auto* own = static_cast<Order*>(GC_malloc_atomic(sizeof(Order)));
    *own = order;
    error = GC_pthread_create(&child->thread, &attributes, run_ordinary, own);
  }
  pthread_attr_destroy(&attributes);
  child->length = result_length(order);
  if (error == 0) return !detached;
  threads_alive.fetch_sub(1);
  if (error != EAGAIN) fail("pthread_create");
  return false;
}

#if defined(JD_SANITIZE_THREAD) || defined(__SANITIZE_ADDRESS__)
void cancel_one(Random*) {}  // their own clean-up is not up to it (docs/guide/building.md)
#else
void* wait_to_be_cancelled(void* blocking) {
  void* volatile list = make_list(30);
  for (;;) {
    if (blocking != nullptr) {
      GC_do_blocking([](void*) -> void* { return reinterpret_cast<void*>(pause()); }, nullptr);
    } else {
      opaque(make_list(10));
      pthread_testcancel();
    }
    if (list_length(list) != 30) fail("the list of a thread that is to be cancelled was damaged");
  }
}

void cancel_one(Random* random) {
  if (threads_alive.fetch_add(1) < kMostThreads) {
    pthread_t thread;
    const int error = GC_pthread_create(&thread, nullptr, wait_to_be_cancelled,
                                        random->one_in(2) ? random : nullptr);
    if (error == 0) {
      usleep(static_cast<useconds_t>(random->below(300)));
      if (GC_pthread_cancel(thread) != 0) fail("GC_pthread_cancel");
      void* result = nullptr;
      GC_pthread_join(thread, &result);
      if (result != PTHREAD_CANCELED) fail("a cancelled thread went on");
    } else if (error != EAGAIN) {
      fail("pthread_create");
    }
  }
  threads_alive.fetch_sub(1);
}
#endif

void act(Random* random, std::size_t steps) {
  constexpr int kMostChildren = 4;
  Child children[kMostChildren];
  int count = 0;
  for (std::size_t step = 0; step < steps; ++step) {
    switch (random->below(24)) {
      case 0:
        GC_gcollect();
        break;
      case 1:
        if (random->one_in(4)) GC_gcollect_and_unmap();
        if (random->one_in(4)) cancel_one(random);
        break;
      case 2:
      case 3:
        if (count < kMostChildren && steps > 4 && start(random, steps / 3, &children[count])) {
          ++count;
        }
        break;
      case 4:
        if (random->one_in(6)) fork_once(random);
        break;
      case 5:
#if !defined( \
    JD_SANITIZE_THREAD)  // which hands no signal to a thread that waits for the loader's lock
        if (random->one_in(2)) load_library(random);
#endif
        break;
      case 6:
      case 7:
        GC_do_blocking(in_blocking_section, random);
        break;
      case 8:
      case 9:
        send_signal(random);
        break;
      case 10:
        watch_object(random);
        break;
      case 11:
        use_large(random);
        break;
      case 12:
      case 13:
      case 14:
      case 15:
        for (int i = 0; i < 20; ++i) pass_parcel(random);
        break;
      default: {
        const std::size_t nodes = random->below(60);
        Node* head = build(random, nodes);
        if (random->one_in(10)) GC_gcollect();
        if (!is_whole(head, nodes)) fail("a list was damaged");
      }
    }
  }
  for (int i = 0; i < count; ++i) {
    void* result = nullptr;
    if (GC_pthread_join(children[i].thread, &result) != 0) fail("GC_pthread_join");
    if (list_length(result) != children[i].length) fail("a thread's result was lost");
  }
}

// Threads that are suspended: they only allocate and collect, so that nobody needs a lock of libc's
// that one of them has.
std::atomic<bool> finish_victims{false};
void* be_victim(void* seed) {
  Random random(reinterpret_cast<std::uintptr_t>(seed));
  const Presence presence;
  while (!finish_victims) {
    const std::size_t nodes = random.below(60);
    Node* head = build(&random, nodes);
    if (random.one_in(20)) GC_gcollect();
    pass_parcel(&random);
    if (random.one_in(10)) GC_do_blocking(in_blocking_section, &random);
    if (!is_whole(head, nodes)) fail("a suspended thread's list was damaged");
  }
  return nullptr;
}

struct Jailer {
  pthread_t victims[2];
  std::uint64_t seed;
};
void* suspend_now_and_then(void* data) {
  const auto* jailer = static_cast<Jailer*>(data);
  Random random(jailer->seed);
  while (!finish_victims) {
    const pthread_t victim = jailer->victims[random.below(2)];
    GC_suspend_thread(victim);
    // Unless it ended before.
    if (GC_is_thread_suspended(victim) == 0 && !finish_victims) fail("a suspended thread is not");
    usleep(static_cast<useconds_t>(random.below(500)));
    GC_resume_thread(victim);
    usleep(static_cast<useconds_t>(random.below(1000)));
  }
  return nullptr;
}

JD_CHILD(mayhem) {
  GC_set_handle_fork(1);
  GC_INIT();
  GC_allow_register_threads();
  struct sigaction action {};
  action.sa_handler = [](int) {
    const int saved = errno;
    signals_handled.fetch_add(1, std::memory_order_relaxed);
    // It may run for a while, and deep.
    volatile char room[2000];
    for (volatile char& c : room) c = 1;
    errno = saved;
  };
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);

#if defined(JD_SANITIZE_THREAD)
  // libc loads the unwinder for the first thread that leaves so (load_library says what is wrong
  // with loading).
  pthread_t first;
  if (pthread_create(
          &first, nullptr, [](void*) -> void* { pthread_exit(nullptr); }, nullptr) != 0) {
    return 1;
  }
  pthread_join(first, nullptr);
#endif
  Random random(test_seed());
  Jailer jailer{};
  jailer.seed = random.next();
  for (pthread_t& victim : jailer.victims) {
    if (GC_pthread_create(&victim, nullptr, be_victim, reinterpret_cast<void*>(random.next())) !=
        0) {
      return 1;
    }
  }
  pthread_t thread;
  if (GC_pthread_create(&thread, nullptr, suspend_now_and_then, &jailer) != 0) return 1;
  for (int i = 0; i < 3; ++i) act(&random, rounds(200));
  finish_victims = true;
  GC_pthread_join(thread, nullptr);
  for (const pthread_t victim : jailer.victims) GC_pthread_join(victim, nullptr);
  while (threads_alive.load() > 0) usleep(1000);
  GC_gcollect();
  return failures.load() == 0 ? 0 : 2;
}

// A run's options: what a user may set, and what makes rare things frequent.
Environment options_for(Random* random, std::string* seed) {
  static const char* const markers[] = {"1", "2", "3", "4"};
  Environment options = {
      {"JD_SEED", seed->c_str()},
      {"GC_MARKERS", markers[random->below(4)]},
      // A stop that is not answered is to be waited for until the test's time is up.
      {"GC_RETRY_SIGNALS", "0"}};
  const auto sometimes = [&](std::size_t n, const char* name, const char* value) {
    if (random->one_in(n)) options.emplace_back(name, value);
  };
  sometimes(2, "JACKDAW_MARK_PATIENCE", "1");
  sometimes(4, "JACKDAW_MARK_STACK", "16");
  sometimes(4, "JACKDAW_STOP_DELAY", "50");
  sometimes(4, "JACKDAW_POISON", "1");
  sometimes(6, "JACKDAW_VERIFY", "1");
  sometimes(6, "JACKDAW_SWEEP", "eager");
  sometimes(4, "GC_UNMAP_THRESHOLD", "1");
  sometimes(8, "JACKDAW_PAD_OBJECTS", "1");
  sometimes(8, "JACKDAW_COLLECT_EVERY", "20");
  return options;
}

TEST(Mayhem, EverythingAtOnce) {
  JD_OURS_ONLY("bdwgc may deadlock with the dynamic loader's lock");
  const std::uint64_t seed = test_seed();
  const char* chosen = std::getenv("JD_MAYHEM_RUNS");
  const std::size_t runs = chosen != nullptr ? std::strtoul(chosen, nullptr, 0) : 4;
  for (std::size_t run = 0; run < runs; ++run) {
    std::string text = std::to_string(seed + run);
    Random random(seed + run);
    const Environment options = options_for(&random, &text);
    const ChildResult r = run_child("mayhem", options, 120);
    // On a busy machine threads may get no time for as long as it takes the collector to wonder.
    if (r.ok() && count_lines(r.err) == lines_with(r.err, "does not answer signal")) continue;
    std::string all;
    for (const auto& [name, value] : options) all += std::string(name) + "=" + value + " ";
    FAIL() << "repeat with JD_SEED=" << text << "; options " << all << "\n" << r;
  }
}

}  // namespace
}  // namespace jd::test
