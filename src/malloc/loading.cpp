// dlopen without RTLD_DEEPBIND (malloc.req.deep-binding): a library that is loaded with it has
// libc's malloc and free, and what it gets from others it can't free.
#include "malloc/found_later.hpp"
#include "malloc/serve.hpp"
#include "os/log.hpp"
#include "os/symbols.hpp"

#define JD_EXPORT extern "C" [[gnu::visibility("default")]]

namespace {

// As <dlfcn.h> has it, which is for src/os.
constexpr int kDeepBinding = 8;

using Dlopen = void*(const char*, int);

// libc's.
Dlopen* find_dlopen() {
  static constinit jd::serve::FoundLater known;
  Dlopen* const function =
      known.get([] { return reinterpret_cast<Dlopen*>(jd::os::next_function("dlopen")); });
  if (function == nullptr) jd::os::fatal("libc has no function dlopen");
  return function;
}

// A program with a malloc of its own keeps the flag, too.
int served_mode(int mode) { return jd::serve::is_bypassed() ? mode : mode & ~kDeepBinding; }

}  // namespace

#if defined(__x86_64__)

extern "C" [[gnu::used]] void* jd_find_dlopen() { return reinterpret_cast<void*>(find_dlopen()); }
extern "C" [[gnu::used]] int jd_served_mode(int mode) { return served_mode(mode); }

// A jump, not a call: the loader searches the run path of the library that its caller is in, which
// it knows by the return address.
asm(R"(
    .pushsection .text
    .globl dlopen
    .type dlopen, @function
dlopen:
    .cfi_startproc
    endbr64
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    movl %esi, %edi
    call jd_served_mode
    movl %eax, 8(%rsp)
    call jd_find_dlopen
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    jmp *%rax
    .cfi_endproc
    .size dlopen, . - dlopen
    .popsection
)");

#else

// The compiler makes a jump of it where it optimizes, which it has to for the same reason.
#if defined(__clang__)
#define JD_OPTIMIZED
#else
#define JD_OPTIMIZED [[gnu::optimize("O2")]]
#endif
JD_EXPORT JD_OPTIMIZED void* dlopen(const char* path, int mode) {
  return find_dlopen()(path, served_mode(mode));
}

#endif
