// Changing stacks, and the return barrier, on x86-64 (System V). src/task/switch.hpp says what each
// function is for; docs/design/task.md, "The barrier", why it may be.

#include "task/machine.hpp"

#if JD_TASK_STACKS

#include <jackdaw/task.h>

// Offset of jd_task::resume.
#define RESUME 8

// Bytes above the outermost frame of a stack. Where an auditor (LD_AUDIT) wants to hear of a
// function's return, the loader copies what may be its arguments from above the caller's frame, as
// many bytes as the auditor says.
#define ABOVE_FIRST_FRAME 1024

        .text

// A thief that finds its victim between these two labels comes again later.
        .globl  jd_task_code_begin
        .hidden jd_task_code_begin
jd_task_code_begin:

// void jd_task_switch(void **save, void *load)
// The saved stack pointer addresses, upwards: the control words of the vector and x87 units, r15,
// r14, r13, r12, rbx, rbp, the return address.
        .globl  jd_task_switch
        .hidden jd_task_switch
        .type   jd_task_switch, @function
        .p2align 4
jd_task_switch:
        .cfi_startproc
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbp, 0
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbx, 0
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r12, 0
        pushq   %r13
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r13, 0
        pushq   %r14
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r14, 0
        pushq   %r15
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r15, 0
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        stmxcsr (%rsp)
        fnstcw  4(%rsp)
        movq    %rsp, (%rdi)
        // From here on the registers that the table describes are those of the other stack, which
        // has the same layout.
        movq    %rsi, %rsp
        ldmxcsr (%rsp)
        fldcw   4(%rsp)
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %r15
        .cfi_adjust_cfa_offset -8
        .cfi_restore r15
        popq    %r14
        .cfi_adjust_cfa_offset -8
        .cfi_restore r14
        popq    %r13
        .cfi_adjust_cfa_offset -8
        .cfi_restore r13
        popq    %r12
        .cfi_adjust_cfa_offset -8
        .cfi_restore r12
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbx
        popq    %rbp
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbp
        ret
        .cfi_endproc
        .size   jd_task_switch, . - jd_task_switch

// The return barrier. It is returned to from a child, so rsp and the callee-saved registers are the
// forker's, r12 addresses its jd_task, and rax and rdx hold what the child returns. Where the
// forker goes on stands in the task; unwinders (of debuggers, say) find it there, too. They look up
// the address before the one that is returned to: the `nop` is for them.
        .p2align 4
        .type   jd_task_barrier_frame, @function
jd_task_barrier_frame:
        .cfi_startproc
        .cfi_def_cfa rsp, 0
        // The return address stands at r12 + RESUME: DW_CFA_expression(rip, breg12 RESUME).
        .cfi_escape 0x10, 0x10, 0x02, 0x7c, RESUME
        nop
        .globl  jd_task_barrier
        .hidden jd_task_barrier
jd_task_barrier:
        pushq   RESUME(%r12)
        .cfi_def_cfa_offset 8
        .cfi_offset rip, -8
        pushq   %rax
        .cfi_def_cfa_offset 16
        pushq   %rdx
        .cfi_def_cfa_offset 24
        subq    $8, %rsp
        .cfi_def_cfa_offset 32
        movq    %r12, %rdi
        call    jd_task_at_barrier
        addq    $8, %rsp
        .cfi_def_cfa_offset 24
        popq    %rdx
        .cfi_def_cfa_offset 16
        addq    %rax, %rdx
        popq    %rax
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .size   jd_task_barrier_frame, . - jd_task_barrier_frame

        .globl  jd_task_code_end
        .hidden jd_task_code_end
jd_task_code_end:
        nop

// The outermost frame of a stack: rbx addresses its record.
        .p2align 4
        .type   jd_task_entry, @function
jd_task_entry:
        .cfi_startproc
        .cfi_undefined rip
        movq    %rbx, %rdi
        call    jd_task_first
        ud2
        .cfi_endproc
        .size   jd_task_entry, . - jd_task_entry

// void *jd_task_prepare(char *high, Stack *stack)
        .globl  jd_task_prepare
        .hidden jd_task_prepare
        .type   jd_task_prepare, @function
        .p2align 4
jd_task_prepare:
        .cfi_startproc
        leaq    -(80 + ABOVE_FIRST_FRAME)(%rdi), %rax
        andq    $-16, %rax
        stmxcsr (%rax)
        fnstcw  4(%rax)
        xorl    %ecx, %ecx
        movq    %rcx, 8(%rax)
        movq    %rcx, 16(%rax)
        movq    %rcx, 24(%rax)
        movq    %rcx, 32(%rax)
        movq    %rsi, 40(%rax)
        movq    %rcx, 48(%rax)
        leaq    jd_task_entry(%rip), %rdx
        movq    %rdx, 56(%rax)
        movq    %rcx, 64(%rax)
        movq    %rcx, 72(%rax)
        ret
        .cfi_endproc
        .size   jd_task_prepare, . - jd_task_prepare

// void jd_task_registers(Registers *registers)
// What callees need not keep is left as it is.
        .globl  jd_task_registers
        .hidden jd_task_registers
        .type   jd_task_registers, @function
        .p2align 4
jd_task_registers:
        .cfi_startproc
        movq    %rbx, 8*3(%rdi)
        movq    %rbp, 8*6(%rdi)
        leaq    8(%rsp), %rax
        movq    %rax, 8*7(%rdi)
        movq    %r12, 8*12(%rdi)
        movq    %r13, 8*13(%rdi)
        movq    %r14, 8*14(%rdi)
        movq    %r15, 8*15(%rdi)
        movq    (%rsp), %rax
        movq    %rax, 8*16(%rdi)
        ret
        .cfi_endproc
        .size   jd_task_registers, . - jd_task_registers

// void jd_task_call_at_site(jd_task *task, void (*function)(void *), void *argument)
        .globl  jd_task_call_at_site
        .hidden jd_task_call_at_site
        .type   jd_task_call_at_site, @function
        .p2align 4
jd_task_call_at_site:
        .cfi_startproc
        pushq   %r12
        .cfi_def_cfa_offset 16
        .cfi_offset r12, -16
        movq    %rdi, %r12
        movq    %rdx, %rdi
        call    *%rsi
        .byte   0x0f, 0x1f, 0x84, 0x00
        .long   JD_TASK_SITE
        popq    %r12
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .size   jd_task_call_at_site, . - jd_task_call_at_site

#endif

        .section .note.GNU-stack, "", @progbits
