#include "heap/arena.hpp"

#include "base/bits.hpp"
#include "os/memory.hpp"

namespace jd::heap {
namespace {

constexpr std::size_t kChunk = 64 * base::kKiB;

// What is left of the newest chunk. Under the heap's lock.
char* cursor;
char* end;

}  // namespace

void* arena_take(std::size_t bytes) {
  bytes = base::align_up(bytes, base::kLine);
  if (bytes > kChunk / 4) return os::map(base::align_up(bytes, os::page_size()));
  if (static_cast<std::size_t>(end - cursor) < bytes) {
    char* chunk = static_cast<char*>(os::map(kChunk));
    if (chunk == nullptr) return nullptr;
    cursor = chunk;
    end = chunk + kChunk;
  }
  void* p = cursor;
  cursor += bytes;
  return p;
}

void* table_take(std::size_t bytes) { return os::map(base::align_up(bytes, os::page_size())); }

void table_give(void* p, std::size_t bytes) {
  os::release(p, base::align_up(bytes, os::page_size()));
}

}  // namespace jd::heap
