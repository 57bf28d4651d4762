// What every benchmark shares: the clock, random numbers, the times of collections, and the one
// line of JSON at the end. Only C's run-time is used, so that a benchmark's process is as small as
// a C program's.
//
// Every program takes --quick as its last argument: small sizes, for a test that it runs at all.
#pragma once

#include <gc/gc.h>
#include <gc/gc_mark.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "library.h"

namespace bench {

inline double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

[[noreturn]] inline void die(const char* what) {
  fprintf(stderr, "benchmark: %s\n", what);
  exit(1);
}

template <class T>
T* must(T* p) {
  if (p == nullptr) die("out of memory");
  return p;
}

// Removes a last argument "--quick" and says whether it was there.
inline bool take_quick(int* argc, char** argv) {
  if (*argc < 2 || strcmp(argv[*argc - 1], "--quick") != 0) return false;
  --*argc;
  return true;
}

inline long number(const char* text) {
  char* end = nullptr;
  const long value = strtol(text, &end, 10);
  if (end == text || *end != '\0' || value <= 0) die("an argument is not a positive number");
  return value;
}

// For qsort(), of numbers of type double.
inline int ascending(const void* a, const void* b) {
  const double x = *static_cast<const double*>(a);
  const double y = *static_cast<const double*>(b);
  return x < y ? -1 : x > y ? 1 : 0;
}

// xorshift64*, with a fixed seed: every run, on any library, does the same.
class Random {
 public:
  Random() = default;
  // Another sequence. Pre: the seed is not 0.
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * UINT64_C(0x2545F4914F6CDD1D);
  }
  // Evenly in 0 .. bound-1.
  uint64_t below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
  }

 private:
  uint64_t state_ = UINT64_C(0x9E3779B97F4A7C15);
};

// A table outside of the collected heap, where the collector neither looks nor counts. It does
// count in the process's peak memory, on every library alike.
template <class T>
class Scratch {
 public:
  explicit Scratch(size_t count) : bytes_(count * sizeof(T)) {
    void* p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) die("no memory for a table");
    data_ = static_cast<T*>(p);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { munmap(data_, bytes_); }
  T& operator[](size_t i) { return data_[i]; }

 private:
  T* data_;
  size_t bytes_;
};

// Fills a table with 0 .. n-1 in random order.
inline void shuffle(Scratch<uint32_t>& order, size_t n, Random& random) {
  for (size_t i = 0; i < n; ++i) order[i] = static_cast<uint32_t>(i);
  for (size_t i = n - 1; i > 0; --i) {
    const size_t j = random.below(i + 1);
    const uint32_t t = order[i];
    order[i] = order[j];
    order[j] = t;
  }
}

// --- times of collections, from the library's events --------------------------------------------

// Written by the callback, which runs under the allocation lock; read when no collection runs.
struct CollectionTimes {
  double began = 0, total = 0;
  bool is_told = false;  // between a collection's beginning and its end
  double mark_began = 0, marking = 0;
  double pause_began = 0, pause_total = 0, pause_longest = 0;
  long pauses = 0;
};
inline CollectionTimes collection_times;

// For bench/cachegrind.py. Of the objects that all collections marked, counted if
// JD_BENCH_COUNT is set, since it takes a walk over the heap; of those that the program made,
// if it says how many.
inline size_t marked_objects;
inline size_t made_objects;

inline void GC_CALLBACK count_object(void* /*object*/, size_t /*bytes*/, void* /*data*/) {
  ++marked_objects;
}

// Functions of their own, because a simulator starts a new account when one of them is called.
__attribute__((noinline)) inline void marking_begins() { collection_times.mark_began = now(); }
__attribute__((noinline)) inline void marking_ends() {
  collection_times.marking += now() - collection_times.mark_began;
}

inline void GC_CALLBACK on_event(GC_EventType event) {
  CollectionTimes& t = collection_times;
  switch (event) {
    case GC_EVENT_START:
      t.began = now();
      t.is_told = true;
      break;
    case GC_EVENT_END:
      t.total += now() - t.began;
      t.is_told = false;
      // The marks stand until the next collection.
      if (getenv("JD_BENCH_COUNT") != nullptr) {
        GC_enumerate_reachable_objects_inner(count_object, nullptr);
      }
      break;
    case GC_EVENT_MARK_START:
      marking_begins();
      break;
    case GC_EVENT_MARK_END:
      marking_ends();
      break;
    case GC_EVENT_PRE_STOP_WORLD:
      t.pause_began = now();
      break;
    case GC_EVENT_POST_START_WORLD: {
      const double took = now() - t.pause_began;
      t.pause_total += took;
      // A step of a collection, no more of which is told.
      if (!t.is_told) t.total += took;
      if (took > t.pause_longest) t.pause_longest = took;
      ++t.pauses;
      break;
    }
    default:
      break;
  }
}

inline void watch_collections() { GC_set_on_collection_event(on_event); }

// --- the line of JSON ----------------------------------------------------------------------------

struct Figure {
  const char* name;
  const char* unit;  // "s", "ms", "ns", "B", or nothing
  double value;
};

// The function whose library the line names: what the benchmark ran on.
inline const char* measured_function = "GC_get_gc_no";

// The first figure is what the benchmark is about.
inline void report(const char* name, size_t live_bytes, const Figure* figures, size_t count) {
  printf("{\"bench\": \"%s\", \"figures\": [", name);
  for (size_t i = 0; i < count; ++i) {
    printf("%s{\"name\": \"%s\", \"unit\": \"%s\", \"value\": %.9g}", i == 0 ? "" : ", ",
           figures[i].name, figures[i].unit, figures[i].value);
  }
  printf("], \"live_bytes\": %zu, \"collections\": %lu, \"heap_bytes\": %zu", live_bytes,
         static_cast<unsigned long>(GC_get_gc_no()), GC_get_heap_size());
  if (made_objects != 0) printf(", \"made_objects\": %zu", made_objects);
  if (marked_objects != 0) printf(", \"marked_objects\": %zu", marked_objects);
  print_library(stdout, measured_function);
  printf("}\n");
}

template <size_t N>
void report(const char* name, size_t live_bytes, const Figure (&figures)[N]) {
  report(name, live_bytes, figures, N);
}

// --- marking -------------------------------------------------------------------------------------

// Times forced collections of a heap at rest. Every object of it was allocated with the collector
// disabled, so none is garbage, and GC_gcollect() does little but mark. The first collection also
// touches side tables for the first time and is left out.
inline void measure_marking(const char* name, size_t objects, size_t live_bytes) {
  constexpr int kCollections = 3;
  made_objects = objects;
  watch_collections();
  GC_gcollect();
  collection_times = {};
  const unsigned long before = static_cast<unsigned long>(GC_get_gc_no());
  const double began = now();
  for (int i = 0; i < kCollections; ++i) GC_gcollect();
  const double took = now() - began;
  if (GC_get_gc_no() < before + kCollections) die("GC_gcollect() did not collect");
  const double scale = 1e9 / kCollections / static_cast<double>(objects);
  report(name, live_bytes,
         {{"collection, per object", "ns", took * scale},
          {"marking, per object", "ns", collection_times.marking * scale},
          {"heap", "B", static_cast<double>(GC_get_heap_size())}});
}

}  // namespace bench
