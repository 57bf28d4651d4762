// stop RUNNING SLEEPING [BLOCKED]: how long it takes to stop a program's threads.
//
// Models: a program whose threads compute, or wait in the kernel, when a collection begins. RUNNING
//   threads count without allocating; SLEEPING threads wait for a moment that does not come;
//   BLOCKED threads have allocated a little and wait likewise, within GC_do_blocking. The main
//   thread forces collections of a heap without objects, with 200 microseconds between them, in
//   which the others go on.
// Live: nothing.
// Shows: from the library's event before it stops the world to the one after it: the median, the
//   longest, and the median from there until the world runs again.
#include "support/clients.hpp"

namespace {

using bench::Collected;

constexpr size_t kMostStops = 2000;
constexpr unsigned kMostThreads = 4096;
double stop_took[kMostStops];
double pause_took[kMostStops];
size_t stops;
double stop_began;
double stopped;

void GC_CALLBACK on_event(GC_EventType event) {
  if (event == GC_EVENT_PRE_STOP_WORLD) stop_began = bench::now();
  if (event == GC_EVENT_POST_STOP_WORLD) stopped = bench::now();
  if (event != GC_EVENT_POST_START_WORLD || stops == kMostStops) return;
  stop_took[stops] = stopped - stop_began;
  pause_took[stops++] = bench::now() - stopped;
}

// Read and written by all, as a flag.
bool over;
unsigned started;

void* compute(void* /*argument*/) {
  __atomic_fetch_add(&started, 1, __ATOMIC_RELAXED);
  volatile unsigned long count = 0;
  while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) count = count + 1;
  return nullptr;
}

pthread_mutex_t sleep_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t wake = PTHREAD_COND_INITIALIZER;

void* wait_for_the_end(void* /*argument*/) {
  __atomic_fetch_add(&started, 1, __ATOMIC_RELAXED);
  pthread_mutex_lock(&sleep_lock);
  while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) pthread_cond_wait(&wake, &sleep_lock);
  pthread_mutex_unlock(&sleep_lock);
  return nullptr;
}

void* wait_blocked(void* /*argument*/) {
  for (size_t bytes = 16; bytes <= 256; bytes += 16) GC_MALLOC(bytes);
  return GC_do_blocking(wait_for_the_end, nullptr);
}

void sleep_microseconds(long microseconds) {
  const timespec t = {0, microseconds * 1000};
  nanosleep(&t, nullptr);
}

// Unlike bench::number, it may be zero.
unsigned count_of(const char* text) { return strcmp(text, "0") == 0 ? 0 : bench::number(text); }

}  // namespace

int main(int argc, char** argv) {
  const bool quick = bench::take_quick(&argc, argv);
  if (argc != 3 && argc != 4) bench::die("usage: stop RUNNING SLEEPING [BLOCKED] [--quick]");
  const unsigned running = count_of(argv[1]);
  const unsigned sleeping = count_of(argv[2]);
  const unsigned blocked = argc == 4 ? count_of(argv[3]) : 0;
  const unsigned all = running + sleeping + blocked;
  if (all > kMostThreads) bench::die("too many threads");
  const size_t wanted = quick ? 20 : 500;
  GC_INIT();
  auto* threads = static_cast<pthread_t*>(calloc(all, sizeof(pthread_t)));
  if (threads == nullptr) bench::die("no memory");
  for (unsigned i = 0; i < all; ++i) {
    Collected::start(&threads[i],
                     i < running              ? compute
                     : i < running + sleeping ? wait_for_the_end
                                              : wait_blocked,
                     nullptr);
  }
  while (__atomic_load_n(&started, __ATOMIC_RELAXED) < all) sleep_microseconds(1000);
  sleep_microseconds(10000);  // until the sleepers sleep
  GC_gcollect();
  GC_set_on_collection_event(on_event);
  for (size_t i = 0; i < wanted; ++i) {
    GC_gcollect();
    sleep_microseconds(200);
  }
  GC_set_on_collection_event(nullptr);
  pthread_mutex_lock(&sleep_lock);
  __atomic_store_n(&over, true, __ATOMIC_RELAXED);
  pthread_cond_broadcast(&wake);
  pthread_mutex_unlock(&sleep_lock);
  for (unsigned i = 0; i < all; ++i) Collected::join(threads[i]);
  if (stops < wanted) bench::die("a collection did not tell of its stop");
  qsort(stop_took, stops, sizeof stop_took[0], bench::ascending);
  qsort(pause_took, stops, sizeof pause_took[0], bench::ascending);
  bench::report("stop", 0,
                {{"stop, median", "s", stop_took[stops / 2]},
                 {"stop, longest", "s", stop_took[stops - 1]},
                 {"then until it runs, median", "s", pause_took[stops / 2]}});
  free(threads);
}
