#include "os/thread.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.hpp"
#include "os/context.hpp"
#include "os/kept_errno.hpp"
#include "os/safe_reading.hpp"
#include "os/thread_locals.hpp"

// Set by the dynamic loader (and by static start-up code) before anything of ours runs: the end of
// the stack that the kernel made, known without /proc. Weak, so that the library names no loader
// among its needs.
extern "C" [[gnu::weak]] void* __libc_stack_end;

namespace jd::os {
namespace {

// The main thread's stack begins above the arguments and the environment; that page end is the
// root. What lies between __libc_stack_end and it are strings, so nothing is lost by stopping at
// the page's end.
constexpr std::size_t kStackPage = 4096;

// The kernel leaves this much room under a main stack at least, whatever its limit was when the
// program started. A limit that the program raises gives it no more: other mappings may be there.
constexpr std::size_t kMostStack = 64 * base::kMiB;

// As libc knows it, which notes the holder of a lock. Of its own structures, this one is public.
int thread_id_by_libc() {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  const int id = mutex.__data.__owner;
  pthread_mutex_unlock(&mutex);
  return id;
}

}  // namespace

int thread_id() {
  const KeptErrno kept;
  const auto id = static_cast<int>(syscall(SYS_gettid));
  if (id > 0) return id;
  // A sandbox refuses it.
  return thread_id_by_libc();
}
int process_id() { return static_cast<int>(getpid()); }
void end_process(int status) { _exit(status); }

std::size_t count_threads() {
  struct stat folder {};
  const KeptErrno kept;
  const bool known = stat("/proc/self/task", &folder) == 0;
  // One link of the folder's is from each thread's.
  return known && folder.st_nlink > 2 ? folder.st_nlink - 2 : 0;
}

char* main_stack_high() {
  return base::as_pointer(base::align_up(base::as_word(__libc_stack_end) + 1, kStackPage));
}

std::size_t stack_bytes(const void* low, const void* high) {
  const bool is_main = high == main_stack_high() && low < __libc_stack_end;
  const void* end = is_main ? __libc_stack_end : high;
  return static_cast<std::size_t>(static_cast<const char*>(end) - static_cast<const char*>(low));
}

namespace {

Extent main_stack() {
  Extent bounds;
  bounds.high = main_stack_high();
  rlimit limit{};
  std::size_t size = kMostStack;
  if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < size) size = limit.rlim_cur;
  const base::Word high = base::as_word(bounds.high);
  bounds.low = base::as_pointer(size < high ? high - size : kStackPage);
  return bounds;
}

// As libc knows the calling thread's stack; for a main thread it asks /proc.
Extent stack_by_libc() {
  Extent bounds;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return bounds;
  void* low = nullptr;
  std::size_t size = 0;
  if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
    bounds.low = static_cast<char*>(low);
    bounds.high = bounds.low + size;
  }
  pthread_attr_destroy(&attributes);
  return bounds;
}

// What libc said of the calling thread's stack, where that is not the main thread's, which grows.
constinit thread_local Extent known_stack;

}  // namespace

Extent own_stack() {
  if (known_stack.high != nullptr) return known_stack;
  if (thread_id() != process_id()) return known_stack = stack_by_libc();
  const Extent initial = main_stack();
  if (initial.contains(frame_address())) return initial;
  // The main thread on a stack of the program's own; or, in the child of a fork, what was another
  // thread before.
  const Extent known = stack_by_libc();
  return known.high == nullptr || known.contains(__libc_stack_end) ? initial : known;
}

Extent own_stack_by_mapping() {
  if (thread_id() == process_id()) return {};
  const void* const block = own_thread_control_block();
  auto* const low = static_cast<char*>(start_of_mapping(block));
  const Extent stack{low, base::as_pointer(base::align_up(base::as_word(block) + 1, kStackPage))};
  return low != nullptr && stack.contains(frame_address()) ? stack : Extent{};
}

bool start_thread(void* (*function)(void*), void* argument, std::size_t stack_size,
                  const char* name, pthread_t* to_join, std::size_t guard) {
  const KeptErrno kept;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  if (to_join == nullptr) pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, stack_size);
  if (guard != 0) pthread_attr_setguardsize(&attributes, guard);
  // The new thread's mask, not the caller's, which must be open all the while: pthread_create
  // allocates, maybe through us, and so may wait for a collector that waits for this thread's
  // answer to a signal.
  sigset_t all;
  sigfillset(&all);
  pthread_t thread;
  const bool started = pthread_attr_setsigmask_np(&attributes, &all) == 0 &&
                       pthread_create(&thread, &attributes, function, argument) == 0;
  pthread_attr_destroy(&attributes);
  if (!started) return false;
  pthread_setname_np(thread, name);
  if (to_join != nullptr) *to_join = thread;
  return true;
}

void join_thread(pthread_t thread) { pthread_join(thread, nullptr); }

}  // namespace jd::os
