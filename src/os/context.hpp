// Putting every callee-saved register where a scan of the stack finds it.
#pragma once

namespace jd::os {

// Calls function(argument, stack_top) with the registers that a callee keeps stored above
// stack_top, so that the words from stack_top upward are everything that the caller can reach.
void call_with_registers_on_stack(void (*function)(void* argument, char* stack_top),
                                  void* argument);

// Overwrites the dead part of the stack just below the caller's frame, so that the frames of the
// calls that follow hold no words of frames that are long gone: those would be ambiguous roots.
// (bdwgc's GC_clear_stack has the same purpose.)
void clear_stack_below();

// Zeroes the vector registers that no call keeps: in a thread that is stopped later they are roots.
// A copy by the C library leaves its words there, on x86-64 in some that only AVX-512 has names
// for, and there they stay for as long as no other copy comes.
void clear_vector_registers();

// How the calling thread rounds, and which exceptions of floating-point arithmetic it traps: what a
// call keeps of the processor's state beside registers. Elsewhere than on x86-64 and AArch64
// nothing.
struct FloatingControl {
  unsigned long words[2] = {};
};
FloatingControl floating_control();
void set_floating_control(const FloatingControl& control);

// An address inside the caller's frame; where this is not inlined, one just below it.
inline char* frame_address() { return static_cast<char*>(__builtin_frame_address(0)); }

// How much a function may keep below its stack pointer, by the ABI: on x86-64 the "red zone" of
// those that call nothing.
#if defined(__x86_64__)
inline constexpr int kBelowStackPointer = 128;
#else
inline constexpr int kBelowStackPointer = 0;
#endif

// The registers that a signal interrupted, from the third argument of its handler: on x86-64 by
// DWARF's numbers, and last the program counter. False on other machines.
inline constexpr int kContextRegisters = 17;
bool interrupted_registers(const void* signal_context,
                           unsigned long (*registers)[kContextRegisters]);

}  // namespace jd::os
