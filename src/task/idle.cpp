// What workers do that have nothing to do: they look around, nap, sleep until they are woken, and
// mark meanwhile.
//
// Requirements (docs/design/task.md): task.req.idle, task.req.markers.
#include "task/idle.hpp"

#include "heap/space.hpp"
#include "mark/team.hpp"
#include "os/cpu.hpp"
#include "os/futex.hpp"
#include "task/blocking.hpp"
#include "task/give_back.hpp"
#include "task/schedule.hpp"
#include "world/blocking.hpp"

namespace jd::task {
namespace {

// How long an idle worker looks for work before it sleeps: longer than the 50 µs that waking one
// takes, so that short gaps cost nobody a system call.
constexpr std::uint64_t kSpinTime = 100000;  // ns
// Where there are more workers than processors it yields so often instead, to one that may have
// work. With 1 or 20 it is as fast, and slower with none (docs/design/task-measured.md).
constexpr int kYields = 4;
// Then it naps, twice as long each time. While it naps, forks are not told that it is there; so a
// program whose forks are too small to be stolen is not made to wake it all the time.
constexpr std::uint64_t kFirstNap = 50000;   // ns
constexpr std::uint64_t kLastNap = 3200000;  // 6.3 ms together: under task.req.idle's 10
// Then it sleeps until somebody wakes it; a wake that was missed costs this much once.
constexpr std::uint64_t kSleep = 50000000;  // ns

// ---- Marking ----

unsigned marking_at_need() { return runtime.markers.load(std::memory_order_relaxed); }
// Not a wake for work: the word stays.
void call_markers(unsigned most) { os::futex_wake(&runtime.wake_word, static_cast<int>(most)); }

struct Wait {
  std::uint32_t word;
  std::uint64_t nanoseconds;
};

// Until the word changes, or at most so long. Meanwhile collections don't stop this thread, which
// marks for them.
void wait_or_mark(std::uint32_t word, std::uint64_t nanoseconds) {
  Wait wait{word, nanoseconds};
  world::call_blocking(
      [](void* argument) -> void* {
        const auto* wait = static_cast<const Wait*>(argument);
        const bool ends = wait->nanoseconds != os::kForever;
        const std::uint64_t begin = os::now_ns();
        for (std::uint64_t waited = 0; !ends || waited < wait->nanoseconds;
             waited = os::now_ns() - begin) {
          runtime.markers.fetch_add(1, std::memory_order_relaxed);
          os::futex_wait(&runtime.wake_word, wait->word,
                         ends ? wait->nanoseconds - waited : os::kForever);
          runtime.markers.fetch_sub(1, std::memory_order_relaxed);
          // A guest that comes too late for a phase stays at hand: a collection may have several,
          // and the heap's lock, which going back takes, is held to its end.
          mark::team.help_as_guest();
          // A wake for work changes the word.
          if (runtime.wake_word.load(std::memory_order_acquire) != wait->word) break;
        }
        return nullptr;
      },
      &wait);
}

}  // namespace

void prepare_markers(unsigned workers) {
  os::LockGuard guard(heap::heap_lock);
  mark::team.prepare_guests({marking_at_need, call_markers}, workers);
}

// ---- Sleeping and waking ----

static void wake_any() {
  runtime.wake_word.fetch_add(1, std::memory_order_release);
  os::futex_wake(&runtime.wake_word, 1);
}

// Only one can be meant, where several sleep the kernel chooses.
static void wake_the_only_one_elsewhere() {
  const Visit visit;
  const std::uint32_t count = runtime.count.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < count; ++i) {
    os::WakingPlace& place = runtime.workers[i].load(std::memory_order_relaxed)->waking_place;
    if (!place.leave_this_cpu()) continue;
    wake_any();
    place.put_back();
    return;
  }
  wake_any();
}

void wake_one(Waker waker) {
  const std::uint32_t sleepers = runtime.sleepers.load(std::memory_order_seq_cst);
  if (sleepers == 0) return;
  if (sleepers == 1 && waker == Waker::RunsOn) {
    wake_the_only_one_elsewhere();
  } else {
    wake_any();
  }
}

namespace {

// The next fork of each worker comes to the library and wakes somebody.
void arm_all() {
  const Visit visit;
  const std::uint32_t count = runtime.count.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < count; ++i) {
    Worker* worker = runtime.workers[i].load(std::memory_order_relaxed);
    worker->armed.store(1, std::memory_order_seq_cst);
    if (!worker->away.load(std::memory_order_seq_cst)) {
      __atomic_store_n(worker->direct, 0, __ATOMIC_RELAXED);
    }
  }
}

enum class Rest : std::uint8_t {
  Nap,      // forks are not told that it is there
  Armed,    // whoever forks from here on wakes somebody
  NoRoots,  // nobody forks, until somebody comes from outside
};

// Waits for a wake at most so long, having looked around once more in between.
jd_task* sleep(Worker* worker, Rest rest, std::uint64_t nanoseconds) {
  const std::uint32_t word = runtime.wake_word.load(std::memory_order_acquire);
  runtime.sleepers.fetch_add(1, std::memory_order_seq_cst);
  if (rest == Rest::Armed) arm_all();
  worker->insists = rest == Rest::Armed;
  jd_task* task = find_task(worker);
  worker->insists = false;
  // It may have been overlooked by the first that came.
  const bool too_late = rest == Rest::NoRoots && runtime.roots.load(std::memory_order_seq_cst) != 0;
  if (task == nullptr && !too_late && !runtime.quitting.load(std::memory_order_acquire)) {
    add(&worker->counters.sleeps);
    if (rest != Rest::Nap) worker->waking_place.begin_sleep(worker->thread);
    wait_or_mark(word, nanoseconds);
    if (rest != Rest::Nap) worker->waking_place.end_sleep();
  }
  runtime.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  return task;
}

bool has_ended() { return runtime.quitting.load(std::memory_order_acquire); }

}  // namespace

void make_direct(Worker* worker) {
  // Against arm_all() and a thief that asks: of its two stores and these, whichever come last,
  // armed or wanted and not direct go together, or a fork comes here once for nothing.
  __atomic_exchange_n(worker->direct, 1, __ATOMIC_SEQ_CST);
  if (worker->armed.load(std::memory_order_seq_cst) != 0 ||
      __atomic_load_n(worker->wanted, __ATOMIC_SEQ_CST) != 0) {
    __atomic_store_n(worker->direct, 0, __ATOMIC_RELAXED);
  }
}

void disarm(Worker* worker) {
  worker->armed.store(0, std::memory_order_seq_cst);
  if (with_stacks()) make_direct(worker);
}

void begin_to_fork(Worker* worker) {
  disarm(worker);
  // Whoever sleeps wants to hear of this one's forks.
  if (runtime.sleepers.load(std::memory_order_seq_cst) == 0) return;
  worker->armed.store(1, std::memory_order_seq_cst);
  __atomic_store_n(worker->direct, 0, __ATOMIC_RELAXED);
}

namespace {

// Waits for a task, and says whether it was woken for one. Null if the runtime stops, or there is a
// stack to go on with.
jd_task* wait_until_found(Worker* worker, bool* was_woken) {
  for (bool woken = false;;) {
    worker->next = take_given(worker);
    if (worker->next != nullptr || has_ended() || !make_room()) return nullptr;
    // Somebody was woken, since there is work.
    worker->insists = woken;
    jd_task* task = find_task(worker);
    worker->insists = false;
    if (task != nullptr) return task;
    woken = false;
    if (runtime.roots.load(std::memory_order_acquire) == 0) {
      task = sleep(worker, Rest::NoRoots, os::kForever);
      if (task != nullptr) return task;
      woken = *was_woken = true;
      continue;
    }
    // Each round waits a little longer between two looks.
    int looks = 16;
    int yields = 0;
    const std::uint64_t begin = os::now_ns();
    while (os::now_ns() - begin < kSpinTime) {
      if (runtime.crowded) {
        if (yields++ == kYields) break;
        os::yield();
      } else {
        for (int i = 0; i < looks && !is_given(worker); ++i) os::cpu_relax();
      }
      worker->next = take_given(worker);
      if (worker->next != nullptr) return nullptr;
      if (looks < 512) looks *= 2;
      task = find_task(worker);
      if (task != nullptr) return task;
      if (has_ended()) return nullptr;
      if (runtime.roots.load(std::memory_order_acquire) == 0) break;
    }
    const std::uint32_t before = runtime.wake_word.load(std::memory_order_acquire);
    for (std::uint64_t nap = kFirstNap; nap <= kLastNap; nap *= 2) {
      if (runtime.roots.load(std::memory_order_acquire) == 0 || has_ended()) break;
      task = sleep(worker, Rest::Nap, nap);
      if (task != nullptr) return task;
      woken = runtime.wake_word.load(std::memory_order_acquire) != before;
      *was_woken |= woken;
      if (woken) break;
    }
    while (runtime.roots.load(std::memory_order_acquire) != 0 && !has_ended()) {
      const std::uint32_t word = runtime.wake_word.load(std::memory_order_acquire);
      task = sleep(worker, Rest::Armed, kSleep);
      if (task != nullptr) return task;
      woken = runtime.wake_word.load(std::memory_order_acquire) != word;
      *was_woken |= woken;
      if (woken) break;
    }
  }
}

}  // namespace

jd_task* wait_for_work(Worker* worker) {
  bool was_woken = false;
  jd_task* task = wait_until_found(worker, &was_woken);
  // Whoever forks wakes one, and that one the next, as long as there is something for each.
  if (task != nullptr && was_woken) wake_one(Waker::RunsOn);
  return task;
}

}  // namespace jd::task
