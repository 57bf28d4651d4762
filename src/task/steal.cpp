// Stealing from stacks, step by step as in docs/design/task.md, "The steal".
//
// Requirements: task.req.fork-is-a-call, task.req.one-stop, task.req.barrier-waits.
#include "task/steal.hpp"

#include <signal.h>

#include "os/context.hpp"
#include "os/cpu.hpp"
#include "os/log.hpp"
#include "os/modules.hpp"
#include "os/thread.hpp"
#include "task/delay.hpp"
#include "task/stacks.hpp"
#include "task/switch.hpp"
#include "world/stop.hpp"
#include "world/thread.hpp"

#if defined(__x86_64__) && !defined(__ILP32__)

namespace jd::task {
namespace {

static_assert(kRegisters == os::kContextRegisters);
static_assert(offsetof(jd_task, resume) == 8, "x86_64.S knows it");

// The signal by which a thief stops its victim: programs that do not know it ignore it.
constexpr int kSignal = SIGURG;

// Changes when code is loaded or unloaded: what unwinders remember may be of other code then. By
// thieves, read by their victims' handlers.
std::atomic<std::uint64_t> code_generation{0};

void note_code(Worker* worker, std::uint64_t generation) {
  if (worker->code_generation == generation) return;
  worker->code_generation = generation;
  worker->unwinder.forget();
}

bool is_in(const Stack& stack, Word address) {
  return address >= base::as_word(stack.low) && address < base::as_word(stack.high);
}

bool is_runtime_code(Word pc) {
  return pc >= base::as_word(jd_task_code_begin) && pc < base::as_word(jd_task_code_end);
}

bool is_barrier(Word slot) {
  return *static_cast<const void* const*>(static_cast<void*>(base::as_pointer(slot))) ==
         jd_task_barrier;
}

// Walks a stack from its new end to its old, from one fork to the next.
class Walk {
 public:
  Walk(Unwinder* unwinder, const Stack& stack, const Registers& registers, bool exactly)
      : unwinder_(unwinder), stack_(&stack), registers_(registers), exactly_(exactly) {}

  enum class Result : std::uint8_t { Fork, End, Elsewhere };

  // The next fork that is not behind a barrier: then slot() holds its return address and task() is
  // it. End: there is none, or the tables do not lead on. Elsewhere: this is no place to look from,
  // but a later one may be.
  Result next() {
    for (;;) {
      if (is_runtime_code(registers_.value[kPc])) return Result::Elsewhere;
      const Rule* rule = unwinder_->rule_for(registers_, exactly_);
      if (rule == nullptr) return exactly_ ? Result::Elsewhere : Result::End;
      // The C++ unwinder writes the registers of the frame it is about to go on in over those that
      // its own callers want back: what the table says of it leads past the frames between.
      if (rule->returns_oddly || (exactly_ && rule->half_restored)) return Result::Elsewhere;
      if (rule->is_site && slot_ != 0 && !reported_) {
        reported_ = true;
        const Word task = registers_.value[kR12];
        if (task > slot_ && task % alignof(jd_task) == 0 && is_in(*stack_, task)) {
          return Result::Fork;
        }
      }
      const Word frame = Unwinder::frame_address(*rule, registers_);
      if (frame % sizeof(Word) != 0 || frame <= registers_.value[kRsp] ||
          !is_in(*stack_, frame - 1)) {
        return Result::End;
      }
      slot_ = frame - sizeof(Word);
      reported_ = false;
      if (is_barrier(slot_) || !Unwinder::step(*rule, &registers_)) return Result::End;
      exactly_ = false;
    }
  }

  void** slot() const { return static_cast<void**>(static_cast<void*>(base::as_pointer(slot_))); }
  jd_task* task() const {
    return static_cast<jd_task*>(static_cast<void*>(base::as_pointer(registers_.value[kR12])));
  }
  // To go on later from the fork that next() has found.
  const Registers& registers() const { return registers_; }

 private:
  Unwinder* unwinder_;
  const Stack* stack_;
  Registers registers_;
  bool exactly_;
  Word slot_ = 0;         // where the present frame's child has its return address
  bool reported_ = true;  // the present frame's fork is told already
};

// Makes a fork that was found known to thieves and to at_barrier.
void publish(const Walk& walk, jd_task* newer) {
  jd_task* task = walk.task();
  task->slot = walk.slot();
  task->resume = *walk.slot();
  task->newer = newer;
  task->older = nullptr;
  __atomic_store_n(&task->join, kFresh, __ATOMIC_RELAXED);
  task->reserved = 0;
}

void install_barrier(jd_task* task) { *task->slot = const_cast<char*>(jd_task_barrier); }

// ---- The victim ----

// How many of its newest forks the victim keeps to itself where there are older ones: with the
// barrier right behind it, it would run into it while the thief still walks (task.md, "The steal").
constexpr unsigned kKept = 3;

// Finds and publishes a fork, from the interrupted registers or (not `exactly`) from those at a
// call. The thief holds the stack's lock.
Answer look(Worker* worker, const Registers& registers, bool exactly) {
  Stack* stack = worker->stack.load(std::memory_order_relaxed);
  if (stack == nullptr || stack != worker->asked || worker->away.load(std::memory_order_relaxed)) {
    return Answer::Refused;
  }
  // On its way from one stack to another.
  if (!is_in(*stack, registers.value[kRsp])) return Answer::Refused;
  note_code(worker, code_generation.load(std::memory_order_relaxed));
  Walk walk(&worker->unwinder, *stack, registers, exactly);
  switch (walk.next()) {
    case Walk::Result::End:
      return Answer::Empty;
    case Walk::Result::Elsewhere:
      return Answer::Refused;
    case Walk::Result::Fork:
      break;
  }
  if (runtime.mode == JD_TASK_BARRIER) {
    Walk further = walk;
    for (unsigned i = 0; i < kKept && further.next() == Walk::Result::Fork; ++i) walk = further;
  }
  jd_task* task = walk.task();
  publish(walk, nullptr);
  worker->newest = task;
  worker->walk = walk.registers();
  if (runtime.mode == JD_TASK_BARRIER) {
    // The victim may go on from here, and no further back than here.
    task->older = stack->top.load(std::memory_order_relaxed);
    stack->top.store(task, std::memory_order_relaxed);
    install_barrier(task);
  }
  return Answer::Found;
}

// Whether the request is there, and the caller's to answer.
bool accept(Worker* worker) {
  // Pairs with the thief's store: its `asked` is visible.
  std::uint32_t asked = kAsked;
  return worker->request.compare_exchange_strong(asked, kLooking, std::memory_order_acquire);
}

void give(Worker* worker, Answer answer) {
  worker->answer = answer;
  if (runtime.mode == JD_TASK_STOP && worker->answer == Answer::Found) {
    worker->request.store(kHolding, std::memory_order_release);
    // Not until it is kNone: the next thief may have asked by then.
    while (worker->request.load(std::memory_order_acquire) == kHolding) os::cpu_relax();
  } else {
    worker->request.store(kAnswered, std::memory_order_release);
  }
}

JD_SIGNAL_HANDLER void on_request(int, siginfo_t*, void* context) {
  Worker* worker = current();
  if (worker == nullptr || !accept(worker)) return;
  const std::uint64_t begin = os::ticks();
  unsigned long interrupted[kRegisters];
  Answer answer = Answer::Refused;
  if (os::interrupted_registers(context, &interrupted)) {
    Registers registers;
    for (int i = 0; i < kRegisters; ++i) registers.value[i] = interrupted[i];
    answer = look(worker, registers, true);
  }
  give(worker, answer);
  worker->handled_at = os::now_ns();
  const std::uint64_t ticks = os::ticks() - begin;
  add(&worker->counters.victim_stop_ticks, ticks);
  add_time(worker, JD_TASK_TIME_VICTIM_STOPPED, ticks);
}

// How long a thief waits for a poll before it sends its signal, which takes 7 to 50 µs in a virtual
// machine: a little more than a leaf of heat, 30 µs (task.md, "The steal").
constexpr std::uint64_t kPollPatience = 40000;  // ns

// ---- The thief ----

// Marks the oldest as stolen. Pre: the stack's lock is held, and there is one.
jd_task* take_oldest(Stack* stack) {
  jd_task* task = stack->oldest.load(std::memory_order_relaxed);
  stack->oldest.store(task->newer, std::memory_order_relaxed);
  __atomic_store_n(&task->join, kRunning, __ATOMIC_RELAXED);
  return task;
}

// Behind the newest fork that is published: publishes the older ones up to the last barrier, and
// returns the oldest. In barrier mode the victim runs meanwhile; what is read here it has left
// behind.
jd_task* publish_older(Worker* thief, const Stack& stack, const Registers& from, jd_task* newest) {
  note_code(thief, code_generation.load(std::memory_order_relaxed));
  jd_task* const beyond = newest->older;
  Walk walk(&thief->unwinder, stack, from, false);
  jd_task* oldest = newest;
  while (walk.next() == Walk::Result::Fork) {
    jd_task* task = walk.task();
    publish(walk, oldest);
    oldest->older = task;
    oldest = task;
  }
  oldest->older = beyond;
  return oldest;
}

// Fruitless requests make it wait longer until the next: a victim without forks is left in peace.
void note_answer(Worker* victim, Answer answer) {
  constexpr std::uint64_t kFirst = 50000;  // ns
  constexpr unsigned kDoublings = 6;
  const unsigned empty =
      answer == Answer::Empty
          ? base::min_of(victim->empty_answers.load(std::memory_order_relaxed) + 1, kDoublings)
          : 0;
  victim->empty_answers.store(empty, std::memory_order_relaxed);
  std::uint64_t pause = 0;
  if (answer == Answer::Empty) pause = kFirst << empty;
  if (answer == Answer::Refused) pause = kFirst / 8;
  victim->ask_again.store(pause == 0 ? 0 : os::now_ns() + pause, std::memory_order_relaxed);
}

// Waits for the victim's answer. False if it has taken its request back: since this thread is to
// stop meanwhile, and the victim may stand in a stop already, and would answer only after it; or
// since the victim takes no signals, which it may have blocked for as long as it likes.
bool wait_for_answer(Worker* victim, const world::Thread* self) {
  constexpr int kSpins = 2000;  // some 50 µs: what a running victim takes
  // Then it lets others run, for a millisecond if there are none. A sleep would end too late: the
  // victim that has answered runs on, and soon wants the stack's lock at its barrier.
  constexpr int kYields = 2000;
  for (int spin = 0;; ++spin) {
    const std::uint32_t request = victim->request.load(std::memory_order_acquire);
    if (request == kAnswered || request == kHolding) return true;
    std::uint32_t asked = kAsked;
    if ((self->stop_pending || spin == kSpins + kYields) &&
        victim->request.compare_exchange_strong(asked, kNone, std::memory_order_relaxed)) {
      if (!self->stop_pending) note_answer(victim, Answer::Empty);
      return false;
    }
    if (spin < kSpins) {
      os::cpu_relax();
    } else if (spin < kSpins + kYields) {
      os::yield();
    } else {
      os::sleep_ns(10000);
    }
  }
}

// Sends the signal. False if that is not possible, and nobody has answered at a poll meanwhile.
bool send_request(Worker* victim) {
  if (os::signal_thread(victim->thread, kSignal) == os::Signalled::Sent) return true;
  std::uint32_t asked = kAsked;
  return !victim->request.compare_exchange_strong(asked, kNone, std::memory_order_acq_rel);
}

// Tells the victim's next poll, or fork, of the request, and waits for it for a moment if they are
// known to come soon. True if the request was answered.
bool wait_for_poll(Worker* victim, const world::Thread* self) {
  if (__atomic_load_n(victim->wanted, __ATOMIC_RELAXED) == 0) {
    __atomic_store_n(victim->wanted, 1, __ATOMIC_RELEASE);
    // Release: whoever makes it 1 again sees that it is wanted (make_direct).
    __atomic_store_n(victim->direct, 0, __ATOMIC_RELEASE);
  }
  if (!victim->polls.load(std::memory_order_relaxed)) return false;
  const std::uint64_t end = os::now_ns() + kPollPatience;
  do {
    for (int i = 0; i < 8; ++i) {
      const std::uint32_t request = victim->request.load(std::memory_order_acquire);
      if (request == kAnswered || request == kHolding) return true;
      os::cpu_relax();
    }
  } while (os::now_ns() < end && !self->stop_pending);
  // Until it polls soon after a signal again.
  victim->polls.store(false, std::memory_order_relaxed);
  return false;
}

// Asks the victim and takes its oldest fork. Pre: the stack's lock is held.
jd_task* ask_and_take(Worker* thief, Worker* victim, Stack* stack, jd_task_time* how) {
  const Visit visit;
  if (victim->away.load(std::memory_order_seq_cst)) return nullptr;
  std::uint32_t none = kNone;
  if (!victim->request.compare_exchange_strong(none, kClaimed, std::memory_order_acq_rel)) {
    return nullptr;
  }
  victim->asked = stack;
  victim->request.store(kAsked, std::memory_order_release);
  if (wait_for_poll(victim, world::self())) {
    *how = JD_TASK_TIME_POLLED;
  } else {
    *how = JD_TASK_TIME_STOPPED;
    add(&thief->counters.requests);
    delay();
    if (!send_request(victim)) return nullptr;
    if (!wait_for_answer(victim, world::self())) return nullptr;
  }
  const Answer answer = victim->answer;
  note_answer(victim, answer);
  if (answer != Answer::Found) {
    victim->request.store(kNone, std::memory_order_release);
    if (answer == Answer::Empty) {
      add(&thief->counters.requests_empty);
    } else {
      add(&thief->counters.requests_refused);
    }
    return nullptr;
  }
  delay();
  jd_task* oldest = publish_older(thief, *stack, victim->walk, victim->newest);
  if (runtime.mode == JD_TASK_STOP) {
    // Stopped for each steal: nothing stays published but what is stolen.
    oldest->older = stack->top.load(std::memory_order_relaxed);
    stack->top.store(oldest, std::memory_order_relaxed);
    __atomic_store_n(&oldest->join, kRunning, __ATOMIC_RELAXED);
    install_barrier(oldest);
    victim->request.store(kNone, std::memory_order_release);
    return oldest;
  }
  // Only now may another thief, who knows the victim by another stack, have its answer.
  victim->request.store(kNone, std::memory_order_release);
  stack->oldest.store(oldest, std::memory_order_relaxed);
  return take_oldest(stack);
}

}  // namespace

bool has_signal_to_steal() { return world::stop_signal() != kSignal; }

bool prepare_stealing() {
  if (!has_signal_to_steal()) return false;
  // It may come where the stack has just enough room for the signal's frame.
  return os::install_handler(kSignal, on_request, os::Faults::Open);
}

void prepare_victim() { os::unblock_signal(kSignal); }

namespace {

// Pre: the stack's lock is held.
void publish_all(Worker* worker, Stack* stack) {
  Registers registers{};
  jd_task_registers(&registers);
  Walk walk(&worker->unwinder, *stack, registers, false);
  if (walk.next() != Walk::Result::Fork) return;
  jd_task* newest = walk.task();
  jd_task* top = stack->top.load(std::memory_order_relaxed);
  publish(walk, nullptr);
  newest->older = top;
  jd_task* oldest = publish_older(worker, *stack, walk.registers(), newest);
  if (stack->oldest.load(std::memory_order_relaxed) == nullptr) {
    stack->oldest.store(oldest, std::memory_order_relaxed);
  } else {
    top->newer = oldest;
  }
  stack->top.store(newest, std::memory_order_relaxed);
  install_barrier(newest);
}

}  // namespace

void publish_own(Worker* worker, bool and_wake) {
  Stack* stack = worker->stack.load(std::memory_order_relaxed);
  // To ask whether code was unloaded takes the loader's lock, whose owner may wait for this task.
  worker->unwinder.forget();
  const os::LockGuard guard(stack->lock);
  // Whoever wakes finds the lock taken, and looks again: it needs longer to come than publishing.
  if (and_wake) wake_one(Waker::RunsOn);
  publish_all(worker, stack);
}

void begin_to_wait(Stack* stack) {
  const os::LockGuard guard(runtime.waiting_lock);
  stack->next_waiting = runtime.waiting;
  runtime.waiting = stack;
  runtime.waiting_count.fetch_add(1, std::memory_order_relaxed);
}

void end_waiting(Stack* stack) {
  const os::LockGuard guard(runtime.waiting_lock);
  Stack** link = &runtime.waiting;
  while (*link != stack) link = &(*link)->next_waiting;
  *link = stack->next_waiting;
  runtime.waiting_count.fetch_sub(1, std::memory_order_relaxed);
}

jd_task* steal_from_waiting() {
  if (runtime.waiting_count.load(std::memory_order_relaxed) == 0) return nullptr;
  // Until it has one, none of them ends its wait.
  const os::LockGuard guard(runtime.waiting_lock);
  for (Stack* stack = runtime.waiting; stack != nullptr; stack = stack->next_waiting) {
    if (stack->oldest.load(std::memory_order_relaxed) == nullptr) continue;
    const os::LockGuard its_guard(stack->lock);
    if (stack->oldest.load(std::memory_order_relaxed) != nullptr) return take_oldest(stack);
  }
  return nullptr;
}

jd_task* steal_from_stack(Worker* thief, Worker* victim, jd_task_time* how) {
  Stack* stack = victim->stack.load(std::memory_order_acquire);
  if (stack == nullptr) return nullptr;
  // A glance: under the lock it is looked at again.
  const bool published = stack->oldest.load(std::memory_order_relaxed) != nullptr;
  if (!published) {
    const std::uint64_t again = victim->ask_again.load(std::memory_order_relaxed);
    if (again != 0 && !thief->insists && os::now_ns() < again) return nullptr;
    if (victim->away.load(std::memory_order_acquire)) return nullptr;
    // Before the lock, since this takes the loader's.
    if (!runtime.loader_lock.try_acquire()) return nullptr;
    code_generation.store(os::module_generation(), std::memory_order_relaxed);
    runtime.loader_lock.release();
  }
  if (!stack->lock.try_acquire()) return nullptr;
  delay();
  jd_task* task = nullptr;
  if (stack->oldest.load(std::memory_order_relaxed) != nullptr) {
    task = take_oldest(stack);
    *how = JD_TASK_TIME_BELOW_BARRIER;
  } else if (!published) {
    if (runtime.mode == JD_TASK_STOP) {
      // Where a stopped thief's victim would wait for the end of a collection, and that for the
      // victim.
      const world::NoStop no_stop(world::self());
      task = ask_and_take(thief, victim, stack, how);
    } else {
      task = ask_and_take(thief, victim, stack, how);
    }
  }
  delay();
  stack->lock.release();
  return task;
}

}  // namespace jd::task

// A poll of a worker whose word is set.
extern "C" void jd_task_answer(void) {
  using namespace jd::task;
  __atomic_store_n(&jd_task_wanted, 0, __ATOMIC_RELAXED);
  Worker* worker = current();
  if (worker == nullptr) return;
  if (with_stacks() && !worker->away.load(std::memory_order_relaxed)) make_direct(worker);
  // A collection that stopped this thread before it has answered would wait for a thief that must
  // not be stopped (stop mode), and that for the answer. In the handler signals are blocked.
  const jd::world::NoStop no_stop(jd::world::self());
  if (!accept(worker)) {
    // The signal was faster. Would this have come soon enough?
    worker->polls.store(jd::os::now_ns() - worker->handled_at < kPollPatience / 2,
                        std::memory_order_relaxed);
    return;
  }
  const std::uint64_t begin = jd::os::ticks();
  Registers registers{};
  jd_task_registers(&registers);
  give(worker, look(worker, registers, false));
  worker->polls.store(true, std::memory_order_relaxed);
  add(&worker->counters.polls_answered);
  const std::uint64_t ticks = jd::os::ticks() - begin;
  add(&worker->counters.victim_poll_ticks, ticks);
  add_time(worker, JD_TASK_TIME_VICTIM_POLLED, ticks);
}

namespace jd::task {
namespace {

// Takes the returning child's fork, the stack's newest, from the published ones, and puts the
// barrier above the next. True if it was stolen. Pre: nobody else changes the stack.
bool take_back(Stack* stack, jd_task* task) {
  delay();
  JD_CHECK(stack->top.load(std::memory_order_relaxed) == task, "a return past a barrier");
  const bool stolen = __atomic_load_n(&task->join, __ATOMIC_RELAXED) != kFresh;
  jd_task* older = task->older;
  stack->top.store(older, std::memory_order_relaxed);
  if (!stolen && stack->oldest.load(std::memory_order_relaxed) == task) {
    stack->oldest.store(nullptr, std::memory_order_relaxed);
  }
  if (older != nullptr) {
    older->newer = nullptr;
    install_barrier(older);
  }
  delay();
  return stolen;
}

// The same, if the lock is in the hand of a thief that waits for this very victim's answer. It does
// nothing until it has one, so the victim need not wait for it, only answer late: that there is
// nothing more on the stack, for all that is left is published. False if there is no such thief.
bool take_back_from_asker(Worker* worker, Stack* stack, jd_task* task, bool* stolen) {
  if (worker->request.load(std::memory_order_relaxed) != kAsked) return false;
  const world::NoStop no_stop(world::self());  // as at a poll
  if (!accept(worker)) return false;
  const bool is_ours = worker->asked == stack;
  if (is_ours) *stolen = take_back(stack, task);
  give(worker, Answer::Refused);
  return is_ours;
}

bool take_back_after_waiting(Worker* worker, Stack* stack, jd_task* task) {
  add(&worker->counters.barrier_waits);
  const std::uint64_t begin = os::ticks();
  const auto note_wait = [&] { add(&worker->counters.victim_barrier_ticks, os::ticks() - begin); };
  constexpr int kSpins = 4000;  // some 100 µs: longer than any steal of a thief that runs
  for (int spin = 0;; ++spin) {
    bool stolen = false;
    if (take_back_from_asker(worker, stack, task, &stolen)) {
      note_wait();
      return stolen;
    }
    if (stack->lock.try_acquire()) break;
    if (spin == kSpins) {
      stack->lock.acquire();
      break;
    }
    os::cpu_relax();
  }
  note_wait();
  const bool stolen = take_back(stack, task);
  stack->lock.release();
  return stolen;
}

}  // namespace
}  // namespace jd::task

// The barrier: the child has returned, and its forker's frame is the stack's newest.
extern "C" unsigned long jd_task_at_barrier(jd_task* task) {
  using namespace jd::task;
  constexpr unsigned long kStolen = 2;  // as task.hpp has it
  Worker* worker = current();
  Stack* stack = worker->stack.load(std::memory_order_relaxed);
  add(&worker->counters.barrier_hits);
  bool stolen = false;
  if (stack->lock.try_acquire()) {
    stolen = take_back(stack, task);
    stack->lock.release();
  } else {
    stolen = take_back_after_waiting(worker, stack, task);
  }
  if (!stolen) return 0;
  delay();
  wait_for_task(task);
  return kStolen;
}

#else

// Elsewhere there is deque mode alone.
namespace jd::task {
bool has_signal_to_steal() { return false; }
bool prepare_stealing() { return false; }
void prepare_victim() {}
void publish_own(Worker*, bool) {}
jd_task* steal_from_stack(Worker*, Worker*, jd_task_time*) { return nullptr; }
void begin_to_wait(Stack*) {}
void end_waiting(Stack*) {}
jd_task* steal_from_waiting() { return nullptr; }
}  // namespace jd::task

extern "C" {
void jd_task_answer(void) {}
void jd_task_switch(void**, void*) { __builtin_trap(); }
void* jd_task_prepare(char*, jd::task::Stack*) { __builtin_trap(); }
void jd_task_call_at_site(jd_task*, void (*)(void*), void*) { __builtin_trap(); }
}

#endif
