#include "base/bits.hpp"
#include "jackdaw/task.h"
#include "os/cpu.hpp"
#include "os/lock.hpp"
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

Globals* globals_by(unsigned number) {
  const Getter getter = runtimes.getters[number].load(std::memory_order_seq_cst);
  return getter != nullptr ? static_cast<Globals*>(getter()) : nullptr;
}
// Null also where another, before it, gives the same.
Globals* globals_of(unsigned number) {
  Globals* globals = globals_by(number);
  for (unsigned i = 0; i < number; ++i) {
    if (globals_by(i) == globals) return nullptr;
  }
  return globals;
}

}  // namespace

void ExceptionState::save() {
  if (&__cxa_get_globals != nullptr &&
      runtimes.getters[0].load(std::memory_order_relaxed) == nullptr) {
    jd_task_exceptions_are_of(__cxa_get_globals);
  }
  const Calling calling;
  for (unsigned i = 0; i < kMost; ++i) {
    Globals* globals = globals_of(i);
    if (globals == nullptr) continue;
    kept_[i] = {globals->caught, globals->uncaught};
    *globals = {nullptr, 0};
  }
}

void ExceptionState::reset_in_child() {
  runtimes.lock.reset_in_child();
  runtimes.callers.store(0, std::memory_order_relaxed);
}

void ExceptionState::restore() const {
  const Calling calling;
  for (unsigned i = 0; i < kMost; ++i) {
    if (Globals* globals = globals_of(i)) *globals = {kept_[i].caught, kept_[i].uncaught};
  }
}

}  // namespace jd::task

extern "C" void jd_task_exceptions_are_of(void* (*globals)(void)) {
  using jd::task::runtimes;
  const jd::os::LockGuard guard(runtimes.lock);
  for (unsigned i = 0; i < jd::task::ExceptionState::kMost; ++i) {
    const auto known = runtimes.getters[i].load(std::memory_order_relaxed);
    if (known != nullptr && known != globals) continue;
    ++runtimes.users[i];
    runtimes.getters[i].store(globals, std::memory_order_release);
    return;
  }
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
