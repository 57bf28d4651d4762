// threads TOGETHER ROUNDS: what it costs that threads come and go.
//
// Models: a server with a thread for each of many connections (TOGETHER is large), or one that
//   starts a thread for each request (TOGETHER is 1, and there are many rounds). In each round the
//   main thread starts TOGETHER threads, each of which allocates a little in several sizes and then
//   waits until all have done so, and joins them.
// Live: nothing.
// Shows: elapsed and processor time for each thread, its creation and its end included.
#include <errno.h>

#include "support/clients.hpp"

namespace {

using bench::Collected;

constexpr unsigned kMostThreads = 16384;
pthread_t threads[kMostThreads];
pthread_barrier_t all_have_allocated;

void* allocate_and_wait(void* /*argument*/) {
  for (size_t bytes = 16; bytes <= 256; bytes += 16) GC_MALLOC(bytes);
  pthread_barrier_wait(&all_have_allocated);
  return nullptr;
}

double cpu_now() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

// The system's own limit is told by its name: a machine with few threads for a process is no error
// of a library's.
void start(pthread_t* thread) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size_t{256} << 10);
  const int error = GC_pthread_create(thread, &attributes, allocate_and_wait, nullptr);
  pthread_attr_destroy(&attributes);
  if (error == EAGAIN) bench::die("the system refuses so many threads (ulimit -u)");
  if (error != 0) bench::die("no thread");
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = bench::take_quick(&argc, argv);
  if (argc != 3) bench::die("usage: threads TOGETHER ROUNDS [--quick]");
  auto together = static_cast<unsigned>(bench::number(argv[1]));
  auto rounds = static_cast<unsigned>(bench::number(argv[2]));
  if (together > kMostThreads) bench::die("too many threads");
  if (quick) {
    if (together > 50) together = 50;
    if (rounds > 50) rounds = 50;
  }
  GC_INIT();
  pthread_barrier_init(&all_have_allocated, nullptr, together);
  const double cpu_before = cpu_now();
  const double began = bench::now();
  for (unsigned round = 0; round < rounds; ++round) {
    for (unsigned i = 0; i < together; ++i) start(&threads[i]);
    for (unsigned i = 0; i < together; ++i) Collected::join(threads[i]);
  }
  const double count = static_cast<double>(together) * rounds;
  const double took = bench::now() - began;
  bench::report("threads", 0,
                {{"per thread", "s", took / count},
                 {"of the processors, per thread", "s", (cpu_now() - cpu_before) / count}});
  pthread_barrier_destroy(&all_have_allocated);
}
