// Threads that allocate, and where their memory comes from: a collector's library, or malloc with
// explicit frees.
#pragma once

#define GC_THREADS
#define GC_NO_THREAD_REDIRECTS
#include <pthread.h>

#include "bench.hpp"

namespace bench {

struct Collected {
  static constexpr bool kReleases = false;
  static void* make(size_t bytes) { return must(GC_MALLOC(bytes)); }
  static void* make_atomic(size_t bytes) { return must(GC_MALLOC_ATOMIC(bytes)); }
  static void release(void* /*object*/) {}
  static void start(pthread_t* thread, void* (*body)(void*), void* argument) {
    if (GC_pthread_create(thread, nullptr, body, argument) != 0) die("no thread");
  }
  static void join(pthread_t thread) {
    if (GC_pthread_join(thread, nullptr) != 0) die("a thread cannot be joined");
  }
};

// What malloc gives is not cleared: the programs write all that they read.
struct Freed {
  static constexpr bool kReleases = true;
  static void* make(size_t bytes) { return must(malloc(bytes)); }
  static void* make_atomic(size_t bytes) { return must(malloc(bytes)); }
  static void release(void* object) { free(object); }
  static void start(pthread_t* thread, void* (*body)(void*), void* argument) {
    if (pthread_create(thread, nullptr, body, argument) != 0) die("no thread");
  }
  static void join(pthread_t thread) {
    if (pthread_join(thread, nullptr) != 0) die("a thread cannot be joined");
  }
};

inline constexpr unsigned kMostClients = 256;

// Runs work(client) in each of `clients` threads, which all begin at the same moment, once each is
// up. Returns the time from then to the end of the last, in seconds; what the processors spent
// meanwhile, the library's own threads included, goes to *cpu.
template <class Memory, class Work>
double run_clients(unsigned clients, double* cpu, Work work) {
  struct Client {
    Work* work;
    unsigned number;
    pthread_barrier_t* ready;
    pthread_t thread;
  };
  static Client all[kMostClients];
  if (clients > kMostClients) die("too many threads");
  const auto body = [](void* argument) -> void* {
    auto* client = static_cast<Client*>(argument);
    pthread_barrier_wait(client->ready);
    pthread_barrier_wait(client->ready);
    (*client->work)(client->number);
    return nullptr;
  };
  const auto cpu_now = [] {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
  };
  pthread_barrier_t ready;
  pthread_barrier_init(&ready, nullptr, clients + 1);
  for (unsigned i = 0; i < clients; ++i) {
    all[i] = {&work, i, &ready, {}};
    Memory::start(&all[i].thread, body, &all[i]);
  }
  pthread_barrier_wait(&ready);
  const double cpu_before = cpu_now();
  const double began = now();
  pthread_barrier_wait(&ready);
  for (unsigned i = 0; i < clients; ++i) Memory::join(all[i].thread);
  const double took = now() - began;
  *cpu = cpu_now() - cpu_before;
  pthread_barrier_destroy(&ready);
  return took;
}

}  // namespace bench
