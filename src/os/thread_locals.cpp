#include "os/thread_locals.hpp"

#include <dlfcn.h>

#include "base/bits.hpp"
#include "os/safe_reading.hpp"

namespace jd::os {

void* own_thread_control_block() {
#if defined(__x86_64__)
  void* block;
  asm("mov %%fs:0x10, %0" : "=r"(block));
  return block;
#elif defined(__aarch64__)
  void* block;
  asm("mrs %0, tpidr_el0" : "=r"(block));
  return block;
#else
#error "thread-local storage: unknown architecture"
#endif
}

namespace {

// glibc's thread control block: its word that points to the vector of thread-local blocks, whose
// entry -1 holds the number of entries.
#if defined(__x86_64__)
constexpr int kVectorWord = 1;
#else
constexpr int kVectorWord = 0;
#endif
constexpr base::Word kUnallocated = ~base::Word{0};

}  // namespace

void* thread_local_block(void* control_block, std::size_t module) {
  const auto* vector = static_cast<ThreadLocalBlocks::Entry* const*>(control_block)[kVectorWord];
  if (vector == nullptr || module == 0 || module > vector[-1].block) return nullptr;
  const base::Word block = vector[module].block;
  return block == kUnallocated ? nullptr : base::as_pointer(block);
}

// False if it could not be read at once, or glibc has put another vector in its place meanwhile, so
// that the copy may be of what was freed.
bool ThreadLocalBlocks::copy(const void* const* vector_word, std::size_t wanted) {
  alignas(Entry) char copied[kCopied * sizeof(Entry) + sizeof(void*)];
  const std::size_t size = wanted * sizeof(Entry);
  // The vector's address after its entries.
  const Piece pieces[] = {{vector_ - 1, size}, {vector_word, sizeof(void*)}};
  if (!read_pieces_safely(copied, pieces, 2)) return false;
  const void* vector = nullptr;
  base::copy_bytes(&vector, copied + size, sizeof vector);
  if (vector != vector_) return false;
  base::copy_bytes(entries_, copied, size);
  copied_ = wanted;
  return true;
}

ThreadLocalBlocks::ThreadLocalBlocks(const void* control_block, std::size_t last_module) {
  const auto* word = static_cast<const void* const*>(control_block) + kVectorWord;
  // With the entry before the first, which holds their number, and entry 0, which is unused.
  const std::size_t wanted = base::min_of(last_module + 2, kCopied);
  for (int attempt = 0; attempt < 3 && copied_ == 0; ++attempt) {
    if (!read_safely(&vector_, word, sizeof vector_)) vector_ = nullptr;
    if (vector_ == nullptr) return;
    copy(word, wanted);
  }
  // The vector may be shorter, and where it ends so may what is mapped.
  if (copied_ == 0 && read_safely(entries_, vector_ - 1, sizeof(Entry))) copied_ = 1;
  if (copied_ != 0) count_ = entries_[0].block;
}

void* ThreadLocalBlocks::of_module(std::size_t module) const {
  if (module == 0 || module > count_) return nullptr;
  Entry entry{};
  if (module + 1 < copied_) {
    entry = entries_[module + 1];
  } else if (!read_safely(&entry, vector_ + module, sizeof entry)) {
    return nullptr;
  }
  return entry.block == kUnallocated ? nullptr : base::as_pointer(entry.block);
}

namespace {

std::size_t static_thread_local_bytes = 0;

// When the library is loaded, since it takes the loader's lock: whoever allocates in a constructor
// holds that, too.
[[gnu::constructor]] void ask_for_size_of_static_thread_locals() {
  using Ask = void(std::size_t * size, std::size_t * alignment);
  void* const function = dlsym(RTLD_DEFAULT, "_dl_get_tls_static_info");
  if (function == nullptr) return;
  std::size_t alignment = 0;
  reinterpret_cast<Ask*>(function)(&static_thread_local_bytes, &alignment);
}

}  // namespace

Extent static_thread_locals(void* control_block) {
  if (static_thread_local_bytes == 0) return {};
  auto* const at = static_cast<char*>(control_block);
#if defined(__x86_64__)
  return {at - static_thread_local_bytes, at};
#else
  return {at, at + static_thread_local_bytes};
#endif
}

}  // namespace jd::os
