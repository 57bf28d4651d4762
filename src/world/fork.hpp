// fork() in a program with several threads: the child keeps a working collector
// (world.req.fork).
#pragma once

namespace jd::world {

// Is this another process than the one that installed the handlers, or that they led to? A child of
// vfork() is, and shares its parent's memory: it must stop nobody.
bool is_borrowed_process();
// As the caller, whose process has that number, has just asked.
bool is_borrowed_process(int process);

// Lets adopt_process tell children apart. Before there are any. Pre: the heap's lock is not held.
void recognise_children();
// In a child of which no handler heard, but with memory of its own (_Fork(), or clone() by the
// program): does what after_fork_in_child would have done. Pre: the heap's lock is held.
void adopt_process();

// Is it the calling thread that holds the heap's lock, interrupted by the handler that it is in?
bool interrupts_lock_holder();

// Has the three functions called by every fork(). False if the system refuses.
bool install_fork_handlers();

// What is to be called before the heap's lock is taken, and after it is free again: by each of the
// functions below, in whatever way they are called. The same for ever. Pre of set_fork_hooks: the
// heap's lock is held.
struct ForkHooks {
  void (*before)() = nullptr;
  void (*in_parent)() = nullptr;
  void (*in_child)() = nullptr;
};
void set_fork_hooks(const ForkHooks& hooks);

// For programs that call them themselves (GC_atfork_prepare and so on). Between prepare and the
// others the heap's lock is held, so that no collection is under way in the child.
void before_fork();
void after_fork_in_parent();
void after_fork_in_child();

}  // namespace jd::world
