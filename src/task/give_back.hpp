// A frame that can go on is given back to the worker that forked in it, if that looks for work at
// this moment (task.req.last-continues).
#pragma once

#include "task/worker.hpp"

namespace jd::task {

// By the worker that ended last. False: it goes on itself, since the forker has found other work,
// or does not answer at once.
bool give_back(const Worker* last, Stack* stack);

// By a worker that looks for work: is there a frame of its own?
inline bool is_given(const Worker* worker) {
  return worker->given.load(std::memory_order_relaxed) != nullptr;
}
// And takes it; null if there is none, or its giver has lost patience.
Stack* take_given(Worker* worker);

}  // namespace jd::task
