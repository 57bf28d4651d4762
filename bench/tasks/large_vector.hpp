// The problems' large arrays. On pages of 4 KiB it is luck, and another one in each process, which
// of an array's parts share sets of a physically indexed cache: tasks-sequential jacobi took 0.173
// to 0.228 s in six processes, and 0.151 to 0.194 s with huge pages, in turn.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

namespace bench {

template <class T>
struct HugePages {
  using value_type = T;
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;

  HugePages() = default;
  template <class U>
  HugePages(const HugePages<U>&) {}  // NOLINT(google-explicit-constructor): allocators convert

  T* allocate(std::size_t count) {
    const std::size_t bytes = (count * sizeof(T) + kHugePage - 1) / kHugePage * kHugePage;
    void* memory = std::aligned_alloc(kHugePage, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    // A system without huge pages refuses; then it is as with any other array.
    static_cast<void>(madvise(memory, bytes, MADV_HUGEPAGE));
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t) { std::free(memory); }

  friend bool operator==(const HugePages&, const HugePages&) { return true; }
};

template <class T>
using LargeVector = std::vector<T, HugePages<T>>;

}  // namespace bench
