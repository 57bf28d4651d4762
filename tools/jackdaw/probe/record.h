/*
 * record.h - what the probe writes down and the jackdaw command reads.
 *
 * A file that both map, so that what was measured survives any end of the program:
 * a signal, _exit(), the OOM killer. The command creates it and clears it; the child writes its
 * own process id into `owner` before it executes the program; from then on only the probe in that
 * process writes. Every field is written by a relaxed store and read by the command after the
 * process has ended, which orders everything.
 */
#ifndef JACKDAW_PROBE_RECORD_H
#define JACKDAW_PROBE_RECORD_H

#include <stdint.h>

/* The environment variable that names the file. */
#define JD_PROBE_ENV "JD_PROBE_RECORD"

#define JD_PROBE_MAGIC UINT64_C(0x6a64707231)

/* How far the probe got. */
enum {
  JD_PROBE_ABSENT = 0,   /* its constructor never ran */
  JD_PROBE_NO_LIBGC = 1, /* it ran, and there was no libgc in the process */
  JD_PROBE_ATTACHED = 2  /* its callbacks are in place */
};

/* A C name in a header for C and C++. */
struct jd_record {  // NOLINT(readability-identifier-naming)
  uint64_t magic;
  uint64_t owner;         /* the process that is measured */
  uint64_t serves_malloc; /* 1: the collector that is measured is the one that serves malloc */
  uint64_t images; /* how often that process started a program with the probe: exec() adds one */
  uint64_t state;
  uint64_t ended; /* 1 once the probe saw exit() or _exit() */

  /* From the collection events; times in nanoseconds. */
  uint64_t collections_begun;
  uint64_t collections_ended;
  uint64_t collect_total_ns;
  uint64_t collect_longest_ns;
  uint64_t pauses;
  uint64_t pause_total_ns;
  uint64_t pause_longest_ns;

  /* From the library's own counters, read at each event and at the end. */
  uint64_t gc_no;
  uint64_t gc_no_at_start;
  uint64_t heap_peak_bytes;
  uint64_t allocated_bytes;

  uint64_t resident_peak_kib; /* VmHWM at the end; 0: the end was not seen */

  uint64_t version;   /* GC_get_version() */
  char library[1536]; /* the file the libgc came from, or its beginning */
};

#endif
