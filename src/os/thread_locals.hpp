// Where threads' thread-local data are, by glibc's own structures (docs/design/os.md, "Thread-local
// data").
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/extent.hpp"

namespace jd::os {

// The calling thread's control block: what thread_local_block() wants.
void* own_thread_control_block();
// The memory of loaded module `module`'s thread-local variables in a thread given by its control
// block, or null if that thread has none yet. The thread must be the caller or be stopped.
// glibc's layout: the control block's second word (x86-64; first on AArch64) is the dynamic
// thread vector, whose entry of 16 bytes begins with the block's address; entry -1 counts them.
void* thread_local_block(void* control_block, std::size_t module);
// The same while that thread runs, when nothing read there can be trusted: never faults, and a
// result must be tried before it is used. A copy, so that the blocks of all modules cost two
// questions to the system as a rule.
class ThreadLocalBlocks {
 public:
  // Of a thread given by its control block, for modules up to this one.
  ThreadLocalBlocks(const void* control_block, std::size_t last_module);
  [[nodiscard]] void* of_module(std::size_t module) const;

  struct Entry {  // as glibc has it
    std::uintptr_t block;
    std::uintptr_t to_free;
  };

 private:
  static constexpr std::size_t kCopied = 32;  // the rest is read one by one; a guess

  bool copy(const void* const* vector_word, std::size_t wanted);

  const Entry* vector_ = nullptr;
  std::size_t count_ = 0;   // of the vector's entries, as it says
  std::size_t copied_ = 0;  // those that are here
  Entry entries_[kCopied];
};

// Where glibc puts a thread's static thread-local storage: that of the libraries loaded at the
// start, and some room for those loaded later that want theirs there (initial-exec, and what
// AArch64's compilers make). The latter have no entry in the vector until somebody asks for one.
// Both null if its size is not known.
Extent static_thread_locals(void* control_block);

}  // namespace jd::os
