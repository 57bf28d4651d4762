// malloc.req.threads, malloc.req.signals.
#include "malloc/interpose.hpp"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <threads.h>

#include <atomic>

#include "alloc/allocate.hpp"
#include "cycle/runtime.hpp"
#include "malloc/libraries.hpp"
#include "malloc/serve.hpp"
#include "os/libc_signals.hpp"
#include "os/log.hpp"
#include "os/symbols.hpp"
#include "world/stop.hpp"

using namespace jd;

#define JD_EXPORT extern "C" [[gnu::visibility("default")]]

namespace {

// libc's, each looked up when the library is loaded (find_libc_functions), or before by a thread
// that needs it: several may write the same, so all go by look_up (relaxed: code needs no order).
decltype(&pthread_create) real_pthread_create;
decltype(&thrd_create) real_thrd_create;
using Dlclose = int(void*);
Dlclose* real_dlclose;
decltype(&signal) real_signal;
decltype(&sigsuspend) real_sigsuspend;
decltype(&sigwait) real_sigwait;
decltype(&sigwaitinfo) real_sigwaitinfo;
decltype(&sigtimedwait) real_sigtimedwait;
decltype(&signalfd) real_signalfd;
decltype(&ppoll) real_ppoll;
decltype(&pselect) real_pselect;
decltype(&epoll_pwait) real_epoll_pwait;
// Not every libc has or declares these.
using EpollPwait2 = int(int, epoll_event*, int, const timespec*, const sigset_t*);
EpollPwait2* real_epoll_pwait2;
// <ucontext.h> is for src/os.
using Swapcontext = int(ucontext_t*, const ucontext_t*);
using Setcontext = int(const ucontext_t*);
Swapcontext* real_swapcontext;
Setcontext* real_setcontext;
using PpollChk = int(pollfd*, nfds_t, const timespec*, const sigset_t*, std::size_t);
PpollChk* real_ppoll_chk;

// Null if libc has no such function.
template <class Function>
Function* look_up(Function** place, const char* name) {
  Function* function = __atomic_load_n(place, __ATOMIC_RELAXED);
  if (function == nullptr) {
    function = reinterpret_cast<Function*>(os::next_function(name));
    __atomic_store_n(place, function, __ATOMIC_RELAXED);
  }
  return function;
}

template <class Function>
Function* find(Function** place, const char* name) {
  Function* const function = look_up(place, name);
  if (function == nullptr) os::fatal("libc has no function ", name);
  return function;
}

// What a new thread is to do. A root until the thread has it: the new thread is not known before.
template <class Routine>
struct Start {
  Routine routine;
  void* argument;
};

template <class Routine>
Start<Routine>* make_start(Routine routine, void* argument) {
  if (!serve::start()) return nullptr;
  void* place = alloc::allocate(sizeof(Start<Routine>), heap::kUncollectable);
  if (place == nullptr) return nullptr;
  auto* start = static_cast<Start<Routine>*>(place);
  *start = {routine, argument};
  return start;
}

template <class Result, class Routine>
Result run(void* data) {
  // Without memory for its record, the thread's first allocation tries again.
  if (world::self() == nullptr) static_cast<void>(world::register_self({}));
  auto* start = static_cast<Start<Routine>*>(data);
  const Start<Routine> todo = *start;
  alloc::free_object(start, "thread");
  return todo.routine(todo.argument);
}

// The stack on which the kernel runs a thread's handlers. Often nobody but the kernel has its
// address, so it is kept here, in the thread's own storage, which is a root.
thread_local void* alternate_stack;

bool is_ours(int number) { return cycle::started() && number == world::stop_signal(); }

// Whether the program's handler of each signal is to run with the stop signal blocked. It does not,
// but the program is told so when it asks. Written beside sigaction, by any thread, and read so
// (relaxed: programs that race there get either answer from the system, too).
std::atomic<bool> would_block_ours[NSIG];

// A set that the program passes to a call, without the stop signal.
class WithoutOurs {
 public:
  explicit WithoutOurs(const sigset_t* set) : set_(set) {
    if (set == nullptr || !cycle::started()) return;
    copy_ = *set;
    sigdelset(&copy_, world::stop_signal());
    set_ = &copy_;
  }
  WithoutOurs(const WithoutOurs&) = delete;
  WithoutOurs& operator=(const WithoutOurs&) = delete;
  [[nodiscard]] const sigset_t* get() const { return set_; }

 private:
  const sigset_t* set_;
  sigset_t copy_;
};

// In place: a copy would have to outlive the call, on a stack that may be a small one.
[[gnu::noinline]] void unblock_ours(const ucontext_t* context) {
  if (!cycle::started()) return;
  sigset_t* const mask = &const_cast<ucontext_t*>(context)->uc_sigmask;
  if (sigismember(mask, world::stop_signal()) == 1) sigdelset(mask, world::stop_signal());
}

// The next two functions leave no frame of their own when they call libc's: a context that was
// saved within one may be resumed more than once.
#if defined(__clang__)
#define JD_OPTIMIZED
#define JD_LAST_CALL [[clang::musttail]]
#else
#define JD_OPTIMIZED [[gnu::optimize("O2")]]
#define JD_LAST_CALL
#endif

}  // namespace

void serve::find_libc_functions() {
  look_up(&real_pthread_create, "pthread_create");
  look_up(&real_thrd_create, "thrd_create");
  look_up(&real_dlclose, "dlclose");
  look_up(&real_signal, "signal");
  look_up(&real_sigsuspend, "sigsuspend");
  look_up(&real_swapcontext, "swapcontext");
  look_up(&real_setcontext, "setcontext");
  look_up(&real_sigwait, "sigwait");
  look_up(&real_sigwaitinfo, "sigwaitinfo");
  look_up(&real_sigtimedwait, "sigtimedwait");
  look_up(&real_signalfd, "signalfd");
  look_up(&real_ppoll, "ppoll");
  look_up(&real_pselect, "pselect");
  look_up(&real_epoll_pwait, "epoll_pwait");
  look_up(&real_epoll_pwait2, "epoll_pwait2");
  look_up(&real_ppoll_chk, "__ppoll_chk");
}

JD_EXPORT int pthread_create(pthread_t* handle, const pthread_attr_t* attributes,
                             void* (*routine)(void*), void* argument) {
  if (serve::is_bypassed()) {
    return find(&real_pthread_create, "pthread_create")(handle, attributes, routine, argument);
  }
  auto* start = make_start(routine, argument);
  if (start == nullptr) return EAGAIN;
  const int error = find(&real_pthread_create, "pthread_create")(
      handle, attributes, run<void*, void* (*)(void*)>, start);
  if (error != 0) alloc::free_object(start, "pthread_create");
  return error;
}

JD_EXPORT int thrd_create(thrd_t* handle, thrd_start_t routine, void* argument) {
  if (serve::is_bypassed())
    return find(&real_thrd_create, "thrd_create")(handle, routine, argument);
  auto* start = make_start(routine, argument);
  if (start == nullptr) return thrd_nomem;
  const int result = find(&real_thrd_create, "thrd_create")(handle, run<int, thrd_start_t>, start);
  if (result != thrd_success) alloc::free_object(start, "thrd_create");
  return result;
}

// What leak-check has noted of a library's calls is to be told from what another's are that comes
// to lie there. (<dlfcn.h> is for src/os.)
extern "C" [[gnu::visibility("default")]] Dlclose dlclose;
int dlclose(void* handle) {
  auto* const close = find(&real_dlclose, "dlclose");
  if (serve::is_bypassed() || serve::mode() != base::MallocMode::LeakCheck) return close(handle);
  serve::look_at_libraries();
  const int result = close(handle);
  serve::look_at_libraries();
  return result;
}

// The signal by which the collector stops threads is blocked nowhere, not even for the time of a
// call, and waited for by nobody ...
JD_EXPORT int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) {
  if (how != SIG_BLOCK && how != SIG_SETMASK) return os::change_signal_mask(how, set, old);
  return os::change_signal_mask(how, WithoutOurs(set).get(), old);
}

JD_EXPORT int sigprocmask(int how, const sigset_t* set, sigset_t* old) {
  const int error = pthread_sigmask(how, set, old);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

JD_EXPORT int sigsuspend(const sigset_t* set) {
  return find(&real_sigsuspend, "sigsuspend")(WithoutOurs(set).get());
}

extern "C" [[gnu::visibility("default")]] Swapcontext swapcontext;
JD_OPTIMIZED int swapcontext(ucontext_t* from, const ucontext_t* to) {
  Swapcontext* const swap = find(&real_swapcontext, "swapcontext");
  unblock_ours(to);
  JD_LAST_CALL return swap(from, to);
}

extern "C" [[gnu::visibility("default")]] Setcontext setcontext;
JD_OPTIMIZED int setcontext(const ucontext_t* to) {
  Setcontext* const set = find(&real_setcontext, "setcontext");
  unblock_ours(to);
  JD_LAST_CALL return set(to);
}

JD_EXPORT int sigwait(const sigset_t* set, int* number) {
  return find(&real_sigwait, "sigwait")(WithoutOurs(set).get(), number);
}

JD_EXPORT int sigwaitinfo(const sigset_t* set, siginfo_t* info) {
  return find(&real_sigwaitinfo, "sigwaitinfo")(WithoutOurs(set).get(), info);
}

JD_EXPORT int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* timeout) {
  return find(&real_sigtimedwait, "sigtimedwait")(WithoutOurs(set).get(), info, timeout);
}

JD_EXPORT int signalfd(int file, const sigset_t* set, int flags) {
  return find(&real_signalfd, "signalfd")(file, WithoutOurs(set).get(), flags);
}

JD_EXPORT int ppoll(pollfd* files, nfds_t count, const timespec* timeout, const sigset_t* set) {
  return find(&real_ppoll, "ppoll")(files, count, timeout, WithoutOurs(set).get());
}

// NOLINTBEGIN(bugprone-reserved-identifier): ppoll, as fortified programs call it.
extern "C" [[gnu::visibility("default")]] PpollChk __ppoll_chk;
int __ppoll_chk(pollfd* files, nfds_t count, const timespec* timeout, const sigset_t* set,
                std::size_t bytes) {
  return find(&real_ppoll_chk, "__ppoll_chk")(files, count, timeout, WithoutOurs(set).get(), bytes);
}
// NOLINTEND(bugprone-reserved-identifier)

JD_EXPORT int pselect(int count, fd_set* reading, fd_set* writing, fd_set* exceptions,
                      const timespec* timeout, const sigset_t* set) {
  return find(&real_pselect, "pselect")(count, reading, writing, exceptions, timeout,
                                        WithoutOurs(set).get());
}

JD_EXPORT int epoll_pwait(int file, epoll_event* events, int most, int timeout,
                          const sigset_t* set) {
  return find(&real_epoll_pwait, "epoll_pwait")(file, events, most, timeout,
                                                WithoutOurs(set).get());
}

JD_EXPORT int epoll_pwait2(int file, epoll_event* events, int most, const timespec* timeout,
                           const sigset_t* set) {
  EpollPwait2* const wait = look_up(&real_epoll_pwait2, "epoll_pwait2");
  if (wait == nullptr) {
    errno = ENOSYS;
    return -1;
  }
  return wait(file, events, most, timeout, WithoutOurs(set).get());
}

// ... nor while a handler runs, and keeps its own: a program that resets every signal's would be
// killed by the next stop.
JD_EXPORT int sigaction(int number, const struct sigaction* action, struct sigaction* old) {
  if (is_ours(number)) {
    if (old != nullptr) {
      *old = {};
      old->sa_handler = SIG_DFL;
    }
    return 0;
  }
  if (!cycle::started() || number <= 0 || number >= NSIG) {
    return os::change_action(number, action, old);
  }
  struct sigaction copy;
  bool blocks = false;
  if (action != nullptr) {
    copy = *action;
    blocks = sigismember(&copy.sa_mask, world::stop_signal()) == 1;
    sigdelset(&copy.sa_mask, world::stop_signal());
    action = &copy;
  }
  const int result = os::change_action(number, action, old);
  if (result != 0) return result;
  std::atomic<bool>& noted = would_block_ours[number];
  const bool before = action != nullptr ? noted.exchange(blocks) : noted.load();
  if (old != nullptr && before) sigaddset(&old->sa_mask, world::stop_signal());
  return 0;
}

JD_EXPORT sighandler_t signal(int number, sighandler_t handler) {
  if (is_ours(number)) return SIG_DFL;
  const sighandler_t old = find(&real_signal, "signal")(number, handler);
  if (old != SIG_ERR && number > 0 && number < NSIG) would_block_ours[number] = false;
  return old;
}

JD_EXPORT int sigaltstack(const stack_t* stack, stack_t* old) {
  const int result = os::change_alternate_stack(stack, old);
  if (result == 0 && stack != nullptr) {
    alternate_stack = (stack->ss_flags & SS_DISABLE) != 0 ? nullptr : stack->ss_sp;
    // The kernel reads it, if nobody else does.
    asm volatile("" : : "r"(&alternate_stack) : "memory");
  }
  return result;
}
