#include "base/bits.hpp"
#include "jackdaw/task.h"
#include "os/cpu.hpp"
#include "os/lock.hpp"
#include "os/log.hpp"
#include "task/switch.hpp"

// The C++ run-time's, where the program had one when this library was loaded (Itanium C++ ABI,
// 2.2.2).
extern "C" [[gnu::weak]] void* __cxa_get_globals() noexcept;

namespace jd::task {
namespace {

// What the run-time keeps for a thread, as far as the ABI says it.
struct Globals {
  void* caught;
  unsigned uncaught;
};

using Getter = void* (*)();

// A program may have a run-time that came later, or several: a library with a static one of its own
// beside everybody else's. Under the lock; read without it (acquire).
struct Runtimes {
  os::Lock lock;
  std::atomic<Getter> getters[ExceptionState::kMost]{};
  unsigned users[ExceptionState::kMost] = {};  // under the lock
  // How many call one now: it is not to be unloaded meanwhile.
  std::atomic<unsigned> callers{0};
} runtimes;

class Calling {
 public:
  Calling() { runtimes.callers.fetch_add(1, std::memory_order_seq_cst); }
  ~Calling() { runtimes.callers.fetch_sub(1, std::memory_order_release); }
  Calling(const Calling&) = delete;
  Calling& operator=(const Calling&) = delete;
};

Getter getter_of(unsigned number) {
  return runtimes.getters[number].load(std::memory_order_seq_cst);
}
bool is_known(Getter getter) {
  for (unsigned i = 0; i < ExceptionState::kMost; ++i) {
    if (getter_of(i) == getter) return true;
  }
  return false;
}

}  // namespace

void ExceptionState::save() {
  // Set when it is in the table (release); twice there does no harm.
  static std::atomic<bool> own_is_known{false};
  if (&__cxa_get_globals != nullptr && !own_is_known.load(std::memory_order_acquire)) {
    jd_task_exceptions_are_of(__cxa_get_globals);
    own_is_known.store(true, std::memory_order_release);
  }
  const Calling calling;
  for (unsigned i = 0; i < kMost; ++i) {
    const Getter getter = getter_of(i);
    kept_[i] = {};
    if (getter == nullptr) continue;
    const auto* globals = static_cast<Globals*>(getter());
    kept_[i] = {getter, globals->caught, globals->uncaught};
  }
  // Only now: several may give the same.
  for (const Kept& kept : kept_) {
    if (kept.globals != nullptr) *static_cast<Globals*>(kept.globals()) = {nullptr, 0};
  }
}

void ExceptionState::hold() { runtimes.lock.acquire(); }
void ExceptionState::let_go() { runtimes.lock.release(); }

void ExceptionState::reset_in_child() {
  runtimes.lock.reset_in_child();
  runtimes.callers.store(0, std::memory_order_relaxed);
}

void ExceptionState::restore() const {
  const Calling calling;
  for (const Kept& kept : kept_) {
    if (kept.globals == nullptr || !is_known(kept.globals)) continue;
    *static_cast<Globals*>(kept.globals()) = {kept.caught, kept.uncaught};
  }
}

}  // namespace jd::task

extern "C" void jd_task_exceptions_are_of(void* (*globals)(void)) {
  using jd::task::runtimes;
  const jd::os::LockGuard guard(runtimes.lock);
  // Where it is already, or else where none is.
  for (void* (*const wanted)(void) : {globals, static_cast<void* (*)(void)>(nullptr)}) {
    for (unsigned i = 0; i < jd::task::ExceptionState::kMost; ++i) {
      if (runtimes.getters[i].load(std::memory_order_relaxed) != wanted) continue;
      ++runtimes.users[i];
      runtimes.getters[i].store(globals, std::memory_order_release);
      return;
    }
  }
  static bool told = false;  // under the lock
  if (told) return;
  told = true;
  jd::os::warn("the program has more than ", jd::task::ExceptionState::kMost,
               " C++ run-times that fork: exceptions of the others may not cross a join");
}

extern "C" void jd_task_exceptions_are_no_more_of(void* (*globals)(void)) {
  using jd::task::runtimes;
  const jd::os::LockGuard guard(runtimes.lock);
  for (unsigned i = 0; i < jd::task::ExceptionState::kMost; ++i) {
    if (runtimes.getters[i].load(std::memory_order_relaxed) != globals) continue;
    if (--runtimes.users[i] != 0) return;
    runtimes.getters[i].store(nullptr, std::memory_order_seq_cst);
    while (runtimes.callers.load(std::memory_order_seq_cst) != 0) jd::os::yield();
    return;
  }
}
