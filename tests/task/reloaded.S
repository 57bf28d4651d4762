// One of three libraries whose code stands at the same places, and means something else: see
// reload_test.cpp. JD_RELOADED_MARK follows the call, and JD_RELOADED_ROOM is its frame's size.

// unsigned long call_with(void (*function)(void), void* task): calls the function, with the task in
// r12 as at a fork, and returns what it leaves in rdx.
  .text
  .globl call_with
  .type call_with, @function
  .p2align 4
call_with:
  .cfi_startproc
  pushq %r12
  .cfi_def_cfa_offset 16
  .cfi_offset r12, -16
  subq $JD_RELOADED_ROOM, %rsp
  .cfi_def_cfa_offset 16 + JD_RELOADED_ROOM
  movq %rsi, %r12
  xorl %edx, %edx
  call *%rdi
  .byte 0x0f, 0x1f, 0x84, 0x00
  .long JD_RELOADED_MARK
  movq %rdx, %rax
  addq $JD_RELOADED_ROOM, %rsp
  .cfi_def_cfa_offset 16
  popq %r12
  .cfi_def_cfa_offset 8
  ret
  .cfi_endproc
  .size call_with, . - call_with
  .section .note.GNU-stack, "", @progbits
