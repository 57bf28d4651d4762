// stop running|sleeping THREADS: how long it takes to stop a program's threads.
//
// Models: collections beside threads that compute, or that wait in a system call, as most threads
// of
//   most programs do. The main thread collects; between two collections it sleeps a little, so that
//   all are running, or asleep, again.
// Live: next to nothing.
// Shows: the median and the longest time from the event before the first signal to the event after
//   the last answer; the same from there to the event after everybody may run again.
#define GC_THREADS
#define GC_NO_THREAD_REDIRECTS
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "support/bench.hpp"

namespace {

constexpr int kCollections = 300;
constexpr int kQuickCollections = 20;

struct Times {
  double stopping[kCollections];
  double whole[kCollections];
  int count = 0;
  double began = 0;
};
// Written by the events, which come to the collecting thread.
Times times;

void GC_CALLBACK on_stop_event(GC_EventType event) {
  if (times.count == kCollections) return;
  if (event == GC_EVENT_PRE_STOP_WORLD) times.began = bench::now();
  if (event == GC_EVENT_POST_STOP_WORLD) {
    times.stopping[times.count] = bench::now() - times.began;
  }
  if (event == GC_EVENT_POST_START_WORLD) {
    times.whole[times.count++] = bench::now() - times.began;
  }
}

volatile bool finish;
volatile long work_done;

void* run(void*) {
  long done = 0;
  while (!finish) ++done;
  work_done = done;
  return nullptr;
}
void* sleep_long(void*) {
  while (!finish) usleep(1000000);
  return nullptr;
}

double median(double* values, int count) {
  qsort(values, static_cast<size_t>(count), sizeof(double), [](const void* a, const void* b) {
    const double x = *static_cast<const double*>(a);
    const double y = *static_cast<const double*>(b);
    return x < y ? -1 : x > y ? 1 : 0;
  });
  return values[count / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = bench::take_quick(&argc, argv);
  const bool running = argc == 3 && strcmp(argv[1], "running") == 0;
  if (argc != 3 || (!running && strcmp(argv[1], "sleeping") != 0)) {
    bench::die("usage: stop running|sleeping THREADS [--quick]");
  }
  const long threads = bench::number(argv[2]);
  GC_INIT();
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 128 * 1024);
  for (long i = 0; i < threads; ++i) {
    pthread_t thread;
    if (GC_pthread_create(&thread, &attributes, running ? run : sleep_long, nullptr) != 0) {
      bench::die("a thread could not be made");
    }
  }
  usleep(100000);
  GC_set_on_collection_event(on_stop_event);
  for (int i = 0; i < (quick ? kQuickCollections : kCollections); ++i) {
    GC_gcollect();
    usleep(2000);
  }
  finish = true;
  if (times.count == 0) bench::die("no stop was reported");
  const double stop = median(times.stopping, times.count);
  bench::report("stop", 0,
                {{"median stop", "s", stop},
                 {"longest stop", "s", times.stopping[times.count - 1]},
                 {"median pause", "s", median(times.whole, times.count)}});
  _exit(0);
}
