#include "os/thread.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/bits.hpp"
#include "base/text.hpp"
#include "os/context.hpp"
#include "os/cpu.hpp"
#include "os/files.hpp"
#include "os/kept_errno.hpp"
#include "os/log.hpp"
#include "os/memory.hpp"
#include "os/signals.hpp"

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

}  // namespace

namespace {

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

}  // namespace

namespace {

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

Extent active_alternate_stack() {
  Extent bounds;
  stack_t current{};
  const KeptErrno kept;
  if (change_alternate_stack(nullptr, &current) == 0 && (current.ss_flags & SS_ONSTACK) != 0) {
    bounds.low = static_cast<char*>(current.ss_sp);
    bounds.high = bounds.low + current.ss_size;
  }
  return bounds;
}

char* interrupted_stack_pointer(const void* signal_context) {
  const auto& machine = static_cast<const ucontext_t*>(signal_context)->uc_mcontext;
#if defined(__x86_64__)
  return base::as_pointer(static_cast<base::Word>(machine.gregs[REG_RSP]));
#else
  return base::as_pointer(static_cast<base::Word>(machine.sp));
#endif
}

// Not by sigaltstack(): what was set with SS_AUTODISARM is none as long as a handler runs there.
Extent alternate_stack_at(const void* signal_context) {
  const stack_t& stack = static_cast<const ucontext_t*>(signal_context)->uc_stack;
  if ((stack.ss_flags & SS_DISABLE) != 0) return {};
  auto* const low = static_cast<char*>(stack.ss_sp);
  return {low, low + stack.ss_size};
}

void* own_thread_control_block() {
#if defined(__x86_64__)
  void* block;
  asm("mov %%fs:0x10, %0" : "=r"(block));
  return block;
#elif defined(__aarch64__)
  void* block;
  asm("mrs %0, tpidr_el0" : "=r"(block));
  return block;
#else
#error "thread-local storage: unknown architecture"
#endif
}

namespace {

// glibc's thread control block: its word that points to the vector of thread-local blocks, whose
// entry -1 holds the number of entries.
#if defined(__x86_64__)
constexpr int kVectorWord = 1;
#else
constexpr int kVectorWord = 0;
#endif
constexpr base::Word kUnallocated = ~base::Word{0};

}  // namespace

void* thread_local_block(void* control_block, std::size_t module) {
  const auto* vector = static_cast<ThreadLocalBlocks::Entry* const*>(control_block)[kVectorWord];
  if (vector == nullptr || module == 0 || module > vector[-1].block) return nullptr;
  const base::Word block = vector[module].block;
  return block == kUnallocated ? nullptr : base::as_pointer(block);
}

// False if it could not be read at once, or glibc has put another vector in its place meanwhile, so
// that the copy may be of what was freed.
bool ThreadLocalBlocks::copy(const void* const* vector_word, std::size_t wanted) {
  alignas(Entry) char copied[kCopied * sizeof(Entry) + sizeof(void*)];
  const std::size_t size = wanted * sizeof(Entry);
  // The vector's address after its entries.
  const Piece pieces[] = {{vector_ - 1, size}, {vector_word, sizeof(void*)}};
  if (!read_pieces_safely(copied, pieces, 2)) return false;
  const void* vector = nullptr;
  base::copy_bytes(&vector, copied + size, sizeof vector);
  if (vector != vector_) return false;
  base::copy_bytes(entries_, copied, size);
  copied_ = wanted;
  return true;
}

ThreadLocalBlocks::ThreadLocalBlocks(const void* control_block, std::size_t last_module) {
  const auto* word = static_cast<const void* const*>(control_block) + kVectorWord;
  // With the entry before the first, which holds their number, and entry 0, which is unused.
  const std::size_t wanted = base::min_of(last_module + 2, kCopied);
  for (int attempt = 0; attempt < 3 && copied_ == 0; ++attempt) {
    if (!read_safely(&vector_, word, sizeof vector_)) vector_ = nullptr;
    if (vector_ == nullptr) return;
    copy(word, wanted);
  }
  // The vector may be shorter, and where it ends so may what is mapped.
  if (copied_ == 0 && read_safely(entries_, vector_ - 1, sizeof(Entry))) copied_ = 1;
  if (copied_ != 0) count_ = entries_[0].block;
}

void* ThreadLocalBlocks::of_module(std::size_t module) const {
  if (module == 0 || module > count_) return nullptr;
  Entry entry{};
  if (module + 1 < copied_) {
    entry = entries_[module + 1];
  } else if (!read_safely(&entry, vector_ + module, sizeof entry)) {
    return nullptr;
  }
  return entry.block == kUnallocated ? nullptr : base::as_pointer(entry.block);
}

namespace {

std::size_t static_thread_local_bytes = 0;

// When the library is loaded, since it takes the loader's lock: whoever allocates in a constructor
// holds that, too.
[[gnu::constructor]] void ask_for_size_of_static_thread_locals() {
  using Ask = void(std::size_t * size, std::size_t * alignment);
  void* const function = dlsym(RTLD_DEFAULT, "_dl_get_tls_static_info");
  if (function == nullptr) return;
  std::size_t alignment = 0;
  reinterpret_cast<Ask*>(function)(&static_thread_local_bytes, &alignment);
}

}  // namespace

Extent static_thread_locals(void* control_block) {
  if (static_thread_local_bytes == 0) return {};
  auto* const at = static_cast<char*>(control_block);
#if defined(__x86_64__)
  return {at - static_thread_local_bytes, at};
#else
  return {at, at + static_thread_local_bytes};
#endif
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

namespace {

// Calls visit(text behind the label) for a thread's line of that label in /proc.
template <class Visit>
void read_status(int thread, const char* label, Visit visit) {
  base::Text path;
  path.add("/proc/self/task/", thread).add("/status");
  for_each_line(path.c_str(), [&](const char* line) {
    const char* rest = base::after(line, label);
    if (rest != nullptr) visit(rest);
    return rest == nullptr;
  });
}

}  // namespace

Signalled signal_thread(int thread, int signal) {
  return signal_thread(process_id(), thread, signal);
}

Signalled signal_thread(int process, int thread, int signal) {
  const KeptErrno kept;
  if (syscall(SYS_tgkill, process, thread, signal) == 0) return Signalled::Sent;
  if (errno == ESRCH) return Signalled::ThreadGone;
  return errno == EAGAIN ? Signalled::NoRoom : Signalled::Refused;
}

bool thread_has_ended(int thread) {
  if (signal_thread(thread, 0) == Signalled::ThreadGone) return true;
  // Others than the main thread leave nothing behind that could be signalled.
  if (thread != process_id()) return false;
  bool ended = false;
  read_status(thread, "State:\t",
              [&](const char* state) { ended = *state == 'Z' || *state == 'X'; });
  return ended;
}

bool install_handler(int signal, void (*handler)(int, siginfo_t*, void*), Faults faults,
                     RunsOn stack) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  if (stack == RunsOn::Alternate) action.sa_flags |= SA_ONSTACK;
  // While a thread is stopped no other handler of the client's may run in it, nor may it end.
  action.sa_mask = all_signals();
  if (faults == Faults::Open) sigdelset(&action.sa_mask, SIGSEGV);
  return change_action(signal, &action, nullptr) == 0;
}

namespace {

// Changes the calling thread's mask by one signal. True if it was blocked.
bool change_mask(int how, int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  sigset_t before;
  return change_signal_mask(how, &set, &before) == 0 && sigismember(&before, signal) == 1;
}

}  // namespace

sigset_t blocked_signals() {
  sigset_t mask;
  change_signal_mask(SIG_BLOCK, nullptr, &mask);
  return mask;
}

void unblock_signals_but(const sigset_t& kept) {
  sigset_t opened;
  sigemptyset(&opened);
  for (int signal = 1; signal < NSIG; ++signal) {
    if (sigismember(&kept, signal) == 0) sigaddset(&opened, signal);
  }
  change_signal_mask(SIG_UNBLOCK, &opened, nullptr);
}

bool unblock_signal(int signal) { return change_mask(SIG_UNBLOCK, signal); }

SignalOpening::~SignalOpening() {
  if (was_blocked_) change_mask(SIG_BLOCK, signal_);
}

SignalEffect effect_of_signal(int signal, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action {};
  if (change_action(signal, nullptr, &action) != 0) return SignalEffect::Another;
  if ((action.sa_flags & SA_SIGINFO) == 0) {
    return action.sa_handler == SIG_IGN ? SignalEffect::Ignored : SignalEffect::Another;
  }
  return action.sa_sigaction == handler ? SignalEffect::Handled : SignalEffect::Another;
}

SignalWait why_signal_waits(int thread, int signal) {
  const auto has_signal = [thread, signal](const char* set) {
    base::Word mask = 0;
    read_status(thread, set, [&](const char* digits) { parse_hex(digits, &mask); });
    return ((mask >> (signal - 1)) & 1) != 0;
  };
  if (!has_signal("SigBlk:\t")) return SignalWait::NotKnown;
  return has_signal("SigPnd:\t") ? SignalWait::Blocked : SignalWait::Taken;
}

SignalsBlocked::SignalsBlocked() {
  const sigset_t all = all_signals();
  change_whole_mask(SIG_BLOCK, &all, &saved_);
}

SignalsBlocked::~SignalsBlocked() { change_whole_mask(SIG_SETMASK, &saved_, nullptr); }

}  // namespace jd::os
