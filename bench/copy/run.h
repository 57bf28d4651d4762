/*
 * run.h - what the eight programs share beside their objects: main() but for its name, the check
 * of results, random numbers, and the report.
 *
 * COPY_REPORT=FILE in the environment appends one line of JSON to FILE when the program ends: what
 * the run took and what the collector did. With COPY_LIVE=N it also has the live data
 * that every N-th collection found and the memory that held it, and its times mean nothing. A
 * program that was compiled with -DCOUNT_SIZES always has those, of every collection, and what it
 * allocated, by size.
 *
 * A program that finds no memory says so and ends with status 3.
 */
#pragma once

#include "../support/library.h"
#include "typed.h"

#include <gc/gc.h>
#include <gc/gc_mark.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct Program {
  const char* name;
  void (*define_types)(void);
  void (*run)(long scale);
} Program;

static const char* program_name;

/* --- checks and numbers ----------------------------------------------------------------------- */

__attribute__((noreturn, format(printf, 1, 2))) static inline void wrong(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "%s: wrong result: ", program_name);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(1);
}

/* Ends the program with status 1 and a message if a result is not what it has to be. */
#define CHECK(right, ...)             \
  do {                                \
    if (!(right)) wrong(__VA_ARGS__); \
  } while (0)

/* The same numbers in every run: a step of splitmix64. */
static inline uint64_t random_next(uint64_t* state) {
  uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

/* One of 0 .. bound - 1. */
static inline uint64_t random_below(uint64_t* state, uint64_t bound) {
  return (random_next(state) >> 32) * bound >> 32;
}

static void* GC_CALLBACK out_of_memory(size_t bytes) {
  fprintf(stderr, "%s: out of memory (%zu bytes)\n", program_name, bytes);
  exit(3);
}

/* --- the report ------------------------------------------------------------------------------- */

static inline double seconds(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* What the collections saw. Written by the collector's callback, under its lock. */
typedef struct Seen {
  size_t peak_heap;
  unsigned long collections;
  double mark_began;
  double marking;           /* seconds */
  double sum_of_stack;      /* bytes of the stack, for the mean */
  const char* stack_base;   /* where the stack began */
  unsigned long live_every; /* how many collections until one counts what is live; 0: none does */
  unsigned long live_counts;
  size_t live; /* bytes of the objects that the last collection found */
  size_t peak_live;
  double sum_of_live; /* for the mean */
  double sum_of_used; /* of the blocks that were not free then */
} Seen;
static Seen seen;

static inline void see_heap(void) {
  const size_t heap = GC_get_heap_size();
  if (heap > seen.peak_heap) seen.peak_heap = heap;
}

static inline void see_stack(void) {
  const char here = 0;
  const uintptr_t at = (uintptr_t)&here;
  const uintptr_t base = (uintptr_t)seen.stack_base;
  seen.sum_of_stack += at < base ? (double)(base - at) : 0;
}

static inline void GC_CALLBACK see_object(void* object, size_t bytes, void* unused) {
  (void)object;
  (void)unused;
  seen.live += bytes;
}

static inline void see_live(void) {
  seen.live = 0;
  GC_enumerate_reachable_objects_inner(see_object, NULL);
  if (seen.live > seen.peak_live) seen.peak_live = seen.live;
  seen.sum_of_live += (double)seen.live;
  seen.sum_of_used += (double)(GC_get_heap_size() - GC_get_free_bytes());
  seen.live_counts++;
}

static inline double mean_of(double sum, unsigned long count) {
  return count == 0 ? 0 : sum / (double)count;
}

#ifdef COUNT_SIZES
static inline unsigned long live_interval(void) { return 1; }

static inline void print_sizes(FILE* out) {
  static const char* const kinds[2] = {"with_pointers", "pointer_free"};
  fprintf(out, ", \"sizes\": {");
  for (int leaf = 0; leaf < 2; leaf++) {
    fprintf(out, "%s\"%s\": [", leaf == 0 ? "" : ", ", kinds[leaf]);
    const char* separator = "";
    for (int i = 0; i < SizeClasses; i++) {
      if (size_counts[i].objects[leaf] == 0) continue;
      char words[16];
      snprintf(words, sizeof(words), "%d", i + 1);
      fprintf(out, "%s{\"words\": \"%s\", \"objects\": %llu, \"bytes\": %llu}", separator,
              i < 16    ? words
              : i == 16 ? "17-64"
              : i == 17 ? "65-256"
                        : "257-",
              (unsigned long long)size_counts[i].objects[leaf],
              (unsigned long long)size_counts[i].bytes[leaf]);
      separator = ", ";
    }
    fprintf(out, "]");
  }
  fprintf(out, "}");
}
#else
static inline void print_sizes(FILE* out) { (void)out; }

static inline unsigned long live_interval(void) {
  const char* every = getenv("COPY_LIVE");
  return every == NULL ? 0 : strtoul(every, NULL, 10);
}
#endif

static inline void GC_CALLBACK on_collection(GC_EventType event) {
  switch (event) {
    case GC_EVENT_START:
      see_heap();
      see_stack();
      seen.collections++;
      break;
    case GC_EVENT_MARK_START:
      seen.mark_began = seconds(CLOCK_MONOTONIC);
      break;
    case GC_EVENT_MARK_END:
      seen.marking += seconds(CLOCK_MONOTONIC) - seen.mark_began;
      break;
    case GC_EVENT_END:
      if (seen.live_every != 0 && seen.collections % seen.live_every == 0) see_live();
      break;
    default:
      break;
  }
}

/* A program's own figures, for its line. */
typedef struct Figure {
  char name[40];
  double value;
} Figure;
enum { MostFigures = 64 };
static Figure figures[MostFigures];
static int figure_count;

static inline void add_figure(const char* name, double value) {
  CHECK(figure_count < MostFigures, "more than %d figures", MostFigures);
  Figure* figure = &figures[figure_count++];
  snprintf(figure->name, sizeof(figure->name), "%s", name);
  figure->value = value;
}

/* The line `NAME: N kB` of /proc/self/status, in bytes. */
static inline size_t process_bytes(const char* name) {
  FILE* file = fopen("/proc/self/status", "r");
  if (file == NULL) return 0;
  char line[256];
  size_t kilobytes = 0;
  while (fgets(line, sizeof(line), file) != NULL) {
    const size_t length = strlen(name);
    if (strncmp(line, name, length) == 0 && line[length] == ':') {
      kilobytes = strtoul(line + length + 1, NULL, 10);
    }
  }
  fclose(file);
  return kilobytes * 1024;
}

static inline void write_report(const char* file_name, long scale, double wall, double cpu) {
  see_heap();
  FILE* out = fopen(file_name, "a");
  if (out == NULL) {
    fprintf(stderr, "%s: cannot write %s\n", program_name, file_name);
    exit(1);
  }
  fprintf(out,
          "{\"program\": \"%s\", \"backend\": \"%s\", \"scale\": %ld, \"wall\": %.6f, "
          "\"cpu\": %.6f, \"collections\": %lu, \"collecting\": %.3f, \"allocated\": %zu, "
          "\"heap\": %zu, \"peak_heap\": %zu, \"peak_rss\": %zu, \"marking\": %.6f, "
          "\"stack_mean\": %.0f",
          program_name, BACKEND_NAME, scale, wall, cpu, (unsigned long)GC_get_gc_no(),
          (double)GC_get_full_gc_total_time() / 1e3, GC_get_total_bytes(), GC_get_heap_size(),
          seen.peak_heap, process_bytes("VmHWM"), seen.marking,
          mean_of(seen.sum_of_stack, seen.collections));
  if (seen.live_every != 0) {
    fprintf(out, ", \"live_peak\": %zu, \"live_mean\": %.0f, \"used_mean\": %.0f", seen.peak_live,
            mean_of(seen.sum_of_live, seen.live_counts),
            mean_of(seen.sum_of_used, seen.live_counts));
  }
  print_library(out, "GC_get_gc_no");
  print_sizes(out);
  backend_report(out);
  for (int i = 0; i < figure_count; i++) {
    fprintf(out, ", \"%s\": %.9g", figures[i].name, figures[i].value);
  }
  fprintf(out, "}\n");
  if (fclose(out) != 0) {
    fprintf(stderr, "%s: cannot write %s\n", program_name, file_name);
    exit(1);
  }
}

/* --- main ------------------------------------------------------------------------------------- */

static inline int run_program(const Program* program, int argc, char** argv) {
  program_name = program->name;
  long scale = 1;
  if (argc == 2) {
    char* end = NULL;
    scale = strtol(argv[1], &end, 10);
    if (end == argv[1] || *end != '\0' || scale < 0 || scale > 1000000) argc = 3;
  }
  if (argc > 2) {
    fprintf(stderr, "usage: %s [SCALE]\n  SCALE  0 for a quick run, 1 (default) or more\n",
            argv[0]);
    return 2;
  }

  const char* report = getenv("COPY_REPORT");
  GC_INIT();
  GC_set_oom_fn(out_of_memory);
  if (report != NULL) {
    struct GC_stack_base base;
    CHECK(GC_get_stack_base(&base) == GC_SUCCESS, "where does the stack begin?");
    seen.stack_base = base.mem_base;
    seen.live_every = live_interval();
    GC_start_performance_measurement();
    GC_set_on_collection_event(on_collection);
  }
  program->define_types();

  const double wall = seconds(CLOCK_MONOTONIC);
  const double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
  program->run(scale);
  const double wall_taken = seconds(CLOCK_MONOTONIC) - wall;
  const double cpu_taken = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;

  if (fflush(stdout) != 0) {
    fprintf(stderr, "%s: cannot write the result\n", program_name);
    return 1;
  }
  if (report != NULL) write_report(report, scale, wall_taken, cpu_taken);
  return 0;
}

#define PROGRAM(name, run)                                    \
  int main(int argc, char** argv) {                           \
    static const Program program = {name, define_types, run}; \
    return run_program(&program, argc, argv);                 \
  }                                                           \
  _Static_assert(sizeof(name) > 1, "a program has a name")
