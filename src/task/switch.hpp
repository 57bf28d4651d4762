// Leaving one stack for another: what src/task/<machine>.S has, and what goes along.
#pragma once

#include "base/bits.hpp"
#include "jackdaw/task.h"

namespace jd::task {

struct Stack;

// A C++ thread counts the exceptions that it is handling. A task that is suspended in a handler
// takes its own along to whatever thread it goes on in.
class ExceptionState {
 public:
  static constexpr unsigned kMost = 4;  // C++ run-times that are known
  void save();
  void restore() const;
  // What is known of run-times, around a fork(): in the child no entry is half written. Threads
  // that were in save() or restore() are not there.
  static void hold();
  static void let_go();
  static void reset_in_child();

 private:
  struct Kept {
    void* (*globals)() = nullptr;  // the run-time's; null: none
    void* caught = nullptr;
    unsigned uncaught = 0;
  };
  Kept kept_[kMost];
};

}  // namespace jd::task

extern "C" {
#pragma GCC visibility push(hidden)

// Stores the callee-saved registers on the stack and the stack pointer in *save, and goes on where
// `load` was stored. Returns when somebody does so with *save.
void jd_task_switch(void** save, void* load);
// Lays out an unused stack so that switching to the result calls jd_task_first(stack).
void* jd_task_prepare(char* high, jd::task::Stack* stack);
[[noreturn]] void jd_task_first(jd::task::Stack* stack);
// function(argument), at a fork's site: a thief finds `task` there.
void jd_task_call_at_site(jd_task* task, void (*function)(void*), void* argument);
// What the registers will be when this has returned, by DWARF's numbers (task::Registers).
void jd_task_registers(void* registers);
// The return barrier: the address that thieves put in a slot. Whoever returns into it calls
// jd_task_at_barrier, whose result is added to what the child has left in rdx.
extern const char jd_task_barrier[];
unsigned long jd_task_at_barrier(jd_task* task);
// What is written in assembly of the switch and of the barrier lies between these two. (The site of
// jd_task_call_at_site must not: a fork there may be stolen.)
extern const char jd_task_code_begin[];
extern const char jd_task_code_end[];

#pragma GCC visibility pop
}
