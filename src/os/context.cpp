#include "os/context.hpp"

#include <ucontext.h>

namespace jd::os {

bool interrupted_registers(const void* signal_context,
                           unsigned long (*registers)[kContextRegisters]) {
#if defined(__x86_64__)
  constexpr int kOrder[kContextRegisters] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                             REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                             REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  const auto* context = static_cast<const ucontext_t*>(signal_context);
  for (int i = 0; i < kContextRegisters; ++i) {
    (*registers)[i] = static_cast<unsigned long>(context->uc_mcontext.gregs[kOrder[i]]);
  }
  return true;
#else
  static_cast<void>(signal_context);
  static_cast<void>(registers);
  return false;
#endif
}

[[gnu::noinline, gnu::no_sanitize_address]] void clear_stack_below() {
  // More than the deepest way from an allocation to the point from which the stack is scanned.
  constexpr int kBytes = 2048;
  char dead[kBytes];
  __builtin_memset(dead, 0, sizeof dead);
  asm volatile("" : : "r"(dead) : "memory");
}

void clear_vector_registers() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    asm volatile(
        ".irp number, 16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n\t"
        "vpxord %%zmm\\number, %%zmm\\number, %%zmm\\number\n\t"
        ".endr"
        :
        :
        : "memory");
  }
  if (__builtin_cpu_supports("avx")) {
    asm volatile("vzeroall"
                 :
                 :
                 : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                   "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
  }
#elif defined(__aarch64__)
  asm volatile(
      ".irp number, 0,1,2,3,4,5,6,7,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n\t"
      "movi v\\number\\().2d, #0\n\t"
      ".endr"
      :
      :
      : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v20", "v21",
        "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "memory");
#endif
}

[[gnu::noinline]] void call_with_registers_on_stack(void (*function)(void* argument,
                                                                     char* stack_top),
                                                    void* argument) {
  // Has the compiler store every register that the calling convention lets a callee keep: all else
  // was stored by our callers before the call. Where in the frame is its own affair.
  __builtin_unwind_init();
  char* frame_end;
#if defined(__x86_64__)
  asm volatile("movq %%rsp, %0" : "=r"(frame_end));
#elif defined(__aarch64__)
  asm volatile("mov %0, sp" : "=r"(frame_end));
#else
#error "registers: unknown architecture"
#endif
  function(argument, frame_end);
  // Keeps this frame alive until the callee returns: no tail call.
  asm volatile("" : : : "memory");
}

FloatingControl floating_control() {
  FloatingControl control;
#if defined(__x86_64__)
  unsigned mxcsr = 0;
  unsigned short x87 = 0;
  asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr), "=m"(x87));
  control.words[0] = mxcsr;
  control.words[1] = x87;
#elif defined(__aarch64__)
  asm volatile("mrs %0, fpcr" : "=r"(control.words[0]));
#endif
  return control;
}

void set_floating_control(const FloatingControl& control) {
#if defined(__x86_64__)
  const auto mxcsr = static_cast<unsigned>(control.words[0]);
  const auto x87 = static_cast<unsigned short>(control.words[1]);
  asm volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(mxcsr), "m"(x87));
#elif defined(__aarch64__)
  asm volatile("msr fpcr, %0" : : "r"(control.words[0]));
#else
  static_cast<void>(control);
#endif
}

}  // namespace jd::os
