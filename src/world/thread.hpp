// Threads that the collector knows: their records, and the registry of these (docs/design/world.md,
// "The registry").
//
// A thread that is in the middle of changing its hole defers a stop by a NoStop guard; so a stopped
// world never shows a half-changed hole, and no lock is needed for changing one.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "base/bits.hpp"
#include "os/extent.hpp"

namespace jd::world {

using base::Word;

struct Thread;
// A record's place in a list, from which it is taken without a walk. Under the heap's lock.
struct Links {
  Thread* next = nullptr;
  Thread** from = nullptr;  // what leads to the record
};

struct Thread {
  // Among `threads`, `finished_threads`, or free records (forward only).
  Links in_list;
  // In the registry's tables: by the kernel's id while registered, by the handle until the record
  // is free.
  Links by_id;
  Links by_handle;

  // Written by the thread as it registers, under the heap's lock, and then only read under it. (In
  // the child of a fork the id is another; in the one table it stays where it was.)
  int id = 0;  // the kernel's
  pthread_t handle{};
  void* control_block = nullptr;

  // Where scanning ends (high); low is null while it is unknown (a stack of the client's own).
  // Written by the thread itself, or under the lock; read by its own handler, and by the collector
  // while it is stopped.
  os::Extent stack;
  // A high bound that was looked up, and the lowest address from which on all up to it is mapped,
  // as far as was looked. The collector's, in a stopped world.
  os::Extent checked;
  // Follows GC_stackbottom, which programs may set themselves. Written as it registers.
  bool is_main = false;
  // Nobody asked for it to be registered: it allocated. Not of the thread that started the
  // collector. Written and read by the thread alone.
  bool by_itself = false;

  // > 0 while the thread must not be stopped. Written by the thread, read by its own handler.
  volatile int no_stop = 0;
  // The handler found no_stop set. Both by this thread.
  volatile bool stop_pending = false;
  // Its answer to a stop or a suspension is awaited. Set by the collector (release) before the
  // signal; taken back, by an exchange (acquire), by the thread that answers, or by the collector
  // once that thread is gone, or its signal could not be sent: one of the two has it.
  std::atomic<bool> awaited{false};
  // Between its answer and the end of the stop, as it sees it. Written by the thread, read by the
  // next collector (relaxed: only for how long that waits).
  std::atomic<bool> in_stop{false};
  // Stack pointer while stopped. Written by the handler before the answer is counted (release);
  // read by the collector after it has counted all answers (acquire).
  char* stopped_at = nullptr;
  // The alternate signal stack that stopped_at is on, if any. As stopped_at.
  os::Extent alternate;
  // Where the handler stands on an alternate stack and has interrupted another, whose stack pointer
  // stopped_at is then: the part of the alternate stack that is in use, with the interrupted
  // registers. Otherwise empty. As stopped_at; emptied by the thread when it leaves the stop.
  os::Extent signal_frame;

  // In GC_do_blocking: it promises not to touch the heap and is not stopped. Both are written by
  // the thread under the lock (which it therefore reads without), and read by the collector.
  bool blocked = false;
  char* blocked_at = nullptr;
  // Of a blocked thread: since which state of the loaded modules (loaded_generation) all its
  // thread-local variables are known to lie on its stack; 0 while that is not known. The
  // collector's; cleared by the thread when it is blocked no longer. Under the lock.
  std::uint64_t locals_on_stack_since = 0;
  // GC_suspend_thread and GC_resume_thread, counted: odd while it is suspended. Written under the
  // lock (release); the thread itself waits on it (acquire).
  std::atomic<std::uint32_t> suspensions{0};
  bool parked = false;  // it has answered a suspension and waits; under the lock
  // It was signalled for the present stop; under the lock.
  bool signalled = false;
  // It ended without a word; its record goes when the world runs again. Under the lock.
  bool gone = false;

  // Started by create_thread: the value that join will return is a root until then. `joinable` and
  // `finished` under the lock; `result` is the thread's, until it is finished.
  bool joinable = false;
  bool finished = false;
  void* result = nullptr;

  // The room above keeps its cache here (alloc::ThreadCache), if the thread has one. Changed under
  // the lock, by the thread itself or once it is gone.
  void* cache = nullptr;
};

// What the room above does when a thread goes; called with the lock held. is_gone: it is not the
// thread itself that calls; it ended without a word, or a fork has left it in the parent.
extern void (*const thread_leaves)(Thread* thread, bool is_gone);  // defined by alloc
// What the rooms above do where others will run on stacks, in the order of their addresses, no two
// of which overlap: nothing that lay there is the program's any more. Likewise.
extern void (*const stacks_are_gone)(const os::Extent* stacks,
                                     std::size_t count);  // defined by cycle
// In the child of a fork(): does that for the stacks added by then, all at once, for it looks
// through whole tables. Pre: the lock is held.
void add_gone_stack(const os::Extent& stack);
void forget_gone_stacks();

// The calling thread's record, or null while it is not registered. One initial-exec load.
extern constinit thread_local Thread* self_record;
inline Thread* self() { return self_record; }

inline bool on_alternate_stack(const Thread& thread, const char* sp) {
  return thread.alternate.contains(sp);
}

// Registers the calling thread. With bounds unknown (high null) the thread's own stack is taken.
// joinable: create_thread has made it so. False if there is no memory. Pre: not registered; the
// lock is not held.
bool register_self(os::Extent stack, bool joinable = false);
// Pre: the lock is not held. Post: self() is null.
void unregister_self();

// The signal handlers and the exit hook. Once.
void initialise_threads();

// Takes records marked `gone` off. Pre: the lock is held, the world runs.
void drop_gone_threads();

// The registry; thread.cpp alone changes it. Pre of what follows, where nothing else is said: the
// lock is held.
extern Thread* threads;           // registered
extern Thread* finished_threads;  // ended, not joined: their results are roots
// Calls visit(thread) for every registered thread.
template <class Visit>
void for_each_thread(Visit visit) {
  for (Thread* t = threads; t != nullptr; t = t->in_list.next) visit(t);
}
// Registered threads. Any thread may ask; exact only under the lock.
unsigned thread_count();
// One that is registered, or has ended and may be joined.
Thread* find_thread(pthread_t handle);

// Tells on which stack the calling thread runs from now on.
void set_own_stack(const os::Extent& stack);
// Changes where the scan of the thread's stack ends; nothing is known of its low end from then on.
// Pre: the lock is held, or it is the caller's.
void set_stack_high(Thread* thread, char* high);
// The main thread's stack end: the variable that the ABI exports as GC_stackbottom.
extern char** main_stack_bottom;

// Between the files of this room only. Pre of these: the lock is held.
//
// The newest record with that handle of a thread that is to be joined, running or finished. Null if
// there is none.
Thread* find_joinable(pthread_t handle);
// Takes the record of a finished thread off.
void forget_record(Thread* thread);
// Before a fork: forgets the threads that have ended without a word, whose stacks may be anybody's
// memory by now, which the child goes on to use. (Not those whose ids the kernel has given to
// threads that are not registered.)
void forget_ended_threads();
// After a fork only the calling thread exists. `is_main`: it was the process's main thread.
void keep_only_self_in_child(bool is_main);

// For as long as one exists, a stop of the calling thread is put off. Nothing in between may wait
// for the heap's lock. Nests. Costs two stores where no stop comes.
class NoStop {
 public:
  explicit NoStop(Thread* thread) : thread_(thread) {
    thread_->no_stop = thread_->no_stop + 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~NoStop() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    thread_->no_stop = thread_->no_stop - 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (thread_->stop_pending && thread_->no_stop == 0) answer_pending_stop(thread_);
  }
  NoStop(const NoStop&) = delete;
  NoStop& operator=(const NoStop&) = delete;

 private:
  static void answer_pending_stop(Thread* thread);
  Thread* thread_;
};

}  // namespace jd::world
