#include "gc_test.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace jd::test {
namespace {

constexpr std::size_t kDeep = 48 * 1024;
constexpr std::size_t kCleared = 192 * 1024;

[[gnu::noinline]] void call_with_padding(const std::function<void()>& f) {
  // The array keeps f's frames away from those of the caller.
  volatile char padding[kDeep];
  padding[0] = 0;
  padding[kDeep - 1] = 0;
  f();
  padding[0] = padding[kDeep - 1];
}

[[gnu::noinline]] void overwrite_stack(std::size_t size) {
  auto* area = static_cast<volatile unsigned char*>(__builtin_alloca(size));
  for (std::size_t i = 0; i < size; ++i) area[i] = 0;
}

#if defined(__x86_64__)
#define JD_CALLEE_SAVED "rbx", "r12", "r13", "r14", "r15"
#elif defined(__aarch64__)
#define JD_CALLEE_SAVED "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28"
#endif

}  // namespace

void far_away(const std::function<void()>& f) {
  call_with_padding(f);
  // Naming the registers makes the compiler save the caller's and drop what the call left in them.
  asm volatile("" : : : JD_CALLEE_SAVED, "memory");
}

void clear_stack() {
  overwrite_stack(kCleared);
  asm volatile("" : : : JD_CALLEE_SAVED, "memory");
}

void collect() {
  clear_stack();
  GC_gcollect();
}

void collect_all() {
  for (int i = 0; i < 8; ++i) {
    collect();
    if (GC_invoke_finalizers() == 0 && i >= 2) break;
  }
}

void Watch::forget() {
  for (void*& link : links_) {
    if (link != nullptr) GC_unregister_disappearing_link(&link);
  }
  links_.clear();
}

std::size_t Watch::add(void* object) {
  links_.push_back(reinterpret_cast<void*>(GC_HIDE_POINTER(object)));
  GC_general_register_disappearing_link(&links_.back(), object);
  return links_.size() - 1;
}

std::size_t Watch::count_alive() const {
  std::size_t alive = 0;
  for (const void* link : links_) alive += link != nullptr;
  return alive;
}

void* Watch::get(std::size_t number) const {
  struct Reveal {
    static void* under_lock(void* entry) {
      void* link = *static_cast<void**>(entry);
      return link == nullptr ? nullptr : GC_REVEAL_POINTER(link);
    }
  };
  return GC_call_with_alloc_lock(Reveal::under_lock, const_cast<void**>(&links_[number]));
}

testing::AssertionResult most_collected(const Watch& watch) {
  // A single object may be held by bad luck, so a watch of few cannot be judged.
  if (watch.count() < 100) {
    return testing::AssertionFailure() << "only " << watch.count() << " objects watched";
  }
  std::size_t alive = 0;
  for (int attempt = 0; attempt < 4; ++attempt) {
    collect();
    alive = watch.count_alive();
    if (alive * 20 <= watch.count()) return testing::AssertionSuccess();
    GC_invoke_finalizers();
  }
  return testing::AssertionFailure()
         << alive << " of " << watch.count() << " unreachable objects are still there";
}

testing::AssertionResult all_alive(const Watch& watch) {
  const std::size_t alive = watch.count_alive();
  if (alive == watch.count()) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << watch.count() - alive << " of " << watch.count() << " reachable objects were collected";
}

std::uint64_t Random::next() {
  state_ += 0x9e3779b97f4a7c15u;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::uint64_t test_seed() {
  const char* text = std::getenv("JD_SEED");
  const std::uint64_t seed =
      text != nullptr ? std::strtoull(text, nullptr, 0)
                      : static_cast<std::uint64_t>(
                            std::chrono::steady_clock::now().time_since_epoch().count()) ^
                            (static_cast<std::uint64_t>(getpid()) << 40);
  std::printf("seed: JD_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  return seed;
}

std::size_t rounds(std::size_t normal) {
  const char* every = std::getenv("JACKDAW_COLLECT_EVERY");
  std::size_t divisor = every != nullptr && std::strcmp(every, "0") != 0 ? 20 : 1;
  bool verified = std::getenv("JACKDAW_VERIFY") != nullptr;
#if defined(JD_DEBUG_CHECKS)
  verified = true;  // by default
#endif
  if (verified) divisor *= 4;
  if (const char* chosen = std::getenv("JD_ROUNDS_DIVISOR"))
    divisor = std::strtoul(chosen, nullptr, 0);
  const std::size_t fewer = normal / (divisor != 0 ? divisor : 1);
  return fewer != 0 ? fewer : 1;
}

void fill_pattern(void* memory, std::size_t size, std::uint32_t tag) {
  auto* bytes = static_cast<unsigned char*>(memory);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<unsigned char>(tag * 31u + i * 7u + (i >> 8));
  }
}

bool holds_pattern(const void* memory, std::size_t size, std::uint32_t tag) {
  const auto* bytes = static_cast<const unsigned char*>(memory);
  for (std::size_t i = 0; i < size; ++i) {
    if (bytes[i] != static_cast<unsigned char>(tag * 31u + i * 7u + (i >> 8))) return false;
  }
  return true;
}

std::size_t resident_bytes() {
  std::size_t pages = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  if (std::fscanf(file, "%*u %zu", &pages) != 1) pages = 0;
  std::fclose(file);
  return pages * static_cast<std::size_t>(getpagesize());
}

void* make_list(std::size_t length, std::size_t node_size) {
  void* list = nullptr;
  for (std::size_t i = 0; i < length; ++i) {
    auto** node = static_cast<void**>(GC_malloc(node_size));
    if (node == nullptr) return nullptr;
    *node = list;
    list = node;
  }
  return list;
}

std::size_t list_length(const void* list) {
  std::size_t length = 0;
  for (; list != nullptr; list = *static_cast<void* const*>(list)) ++length;
  return length;
}

bool allocations_are_dear() {
  const char* every = std::getenv("JACKDAW_COLLECT_EVERY");
  return every != nullptr && std::strcmp(every, "0") != 0;
}

}  // namespace jd::test
