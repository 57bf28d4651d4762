// Helpers for tests that see the collector as a client does, through <gc/gc.h> only. The same
// binaries run on Debian's libgc (configure with -DJD_TEST_PEER=ON), which validates the tests
// themselves: a test that fails there says something wrong about libgc.
//
// Rules of a conservative collector that every test here obeys:
//  - "Is still there" is exact. "Was collected" is not: a stale word on the stack or in a register
//    may hold a few objects. Make many, drop them all, demand most of them: most_collected().
//  - Objects that are to die are made by far_away(), below the frames that look for them, and
//    collect() overwrites that part of the stack first.
//  - Whoever watches an object must not hold it: Watch keeps hidden words in malloc'ed memory.
//  - Roots of many objects are in an uncollectable object, where a word holds exactly what it
//    points into. A word in a stack or in static data may also hold a neighbour.
#pragma once

#ifndef GC_THREADS
#define GC_THREADS
#endif
#ifndef GC_NO_THREAD_REDIRECTS
#define GC_NO_THREAD_REDIRECTS
#endif
#include <gc/gc.h>
#include <gc/gc_disclaim.h>
#include <gc/gc_gcj.h>
#include <gc/gc_inline.h>
#include <gc/gc_mark.h>
#include <gc/gc_typed.h>
#include <gc/javaxfc.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>

namespace jd::test {

// True when the tests are linked with Debian's library.
#ifdef JD_TEST_PEER
inline constexpr bool kPeer = true;
#else
inline constexpr bool kPeer = false;
#endif

// What the peer leaves undefined, or does otherwise on purpose, is tested on ours only.
#define JD_OURS_ONLY(why)                                            \
  do {                                                               \
    if (jd::test::kPeer) GTEST_SKIP() << "not on the peer: " << why; \
  } while (0)

// What ThreadSanitizer itself can't do: docs/guide/building.md lists these tests with the reasons.
#if defined(JD_SANITIZE_THREAD)
#define JD_SKIP_UNDER_TSAN(why) GTEST_SKIP() << "ThreadSanitizer " << why
#else
#define JD_SKIP_UNDER_TSAN(why) static_cast<void>(0)
#endif
// As above, of AddressSanitizer.
#if defined(JD_SANITIZE_ADDRESS)
#define JD_SKIP_UNDER_ASAN(why) GTEST_SKIP() << "AddressSanitizer " << why
#else
#define JD_SKIP_UNDER_ASAN(why) static_cast<void>(0)
#endif

// Calls f some KiB further down the stack than any frame of the caller, so that what f leaves
// behind there can be overwritten.
void far_away(const std::function<void()>& f);

// Overwrites the stack below the caller, and the registers a call may change.
void clear_stack();

// A full collection without stale words in the way; finalizers may run.
void collect();

// Collects, and runs finalizers, until nothing changes any more.
void collect_all();

// Follows objects without holding them.
class Watch {
 public:
  Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() { forget(); }

  // The object's number.
  std::size_t add(void* object);
  bool alive(std::size_t number) const { return links_[number] != nullptr; }
  std::size_t count() const { return links_.size(); }
  std::size_t count_alive() const;
  // Stops watching. Needed before a watched object is freed by hand: the link would dangle.
  void forget();
  // The object itself, or null if it was collected.
  void* get(std::size_t number) const;

 private:
  // Bitwise complements of addresses; the collector zeroes an entry when its object dies. A deque
  // in malloc'ed memory: the entries never move, and nobody scans them.
  std::deque<void*> links_;
};

// For EXPECT_TRUE: at least 95 of 100 watched objects are gone, after a few collections if need be.
testing::AssertionResult most_collected(const Watch& watch);
testing::AssertionResult all_alive(const Watch& watch);

// A cell that is a root of its own: what it points to lives as long as the holder.
template <typename T>
class Root {
 public:
  explicit Root(T* value = nullptr) : cell_(static_cast<T**>(GC_malloc_uncollectable(sizeof(T*)))) {
    *cell_ = value;
  }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;
  ~Root() { GC_free(cell_); }
  T* get() const { return *cell_; }
  void set(T* value) { *cell_ = value; }
  T* operator->() const { return *cell_; }

 private:
  T** cell_;
};

// A random sequence that a seed repeats (splitmix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  // 0 .. bound-1
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(next() % bound); }
  bool one_in(std::size_t n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

// JD_SEED if it is set, a fresh one otherwise; printed, so that a failure can be repeated.
std::uint64_t test_seed();

// Fewer rounds where each is dear: under a stress setting of the environment or a sanitizer.
std::size_t rounds(std::size_t normal);

// Bytes of pattern `tag` in memory, and whether they are still there.
void fill_pattern(void* memory, std::size_t size, std::uint32_t tag);
bool holds_pattern(const void* memory, std::size_t size, std::uint32_t tag);

// Of this process; 0 where /proc does not say.
std::size_t resident_bytes();

// A chain of `length` nodes whose first word points to the next one.
void* make_list(std::size_t length, std::size_t node_size = 16);
std::size_t list_length(const void* list);

// Keeps the value, and the compiler from reasoning about it.
template <typename T>
inline T opaque(T value) {
  asm volatile("" : "+r"(value) : : "memory");
  return value;
}

// Holds the pointer in the caller's frame up to here.
inline void keep_here(const void* p) { asm volatile("" : : "g"(p) : "memory"); }

// Does every allocation cost a good part of a collection? Then there are to be few.
bool allocations_are_dear();

}  // namespace jd::test
