// Libraries that are loaded and unloaded while other threads collect: their data are roots from the
// first moment (cycle.req.roots), and threads are stopped that hold the loader's lock
// (world.req.quiet).
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <vector>

#include "gc_test.hpp"
#include "threads.hpp"

namespace jd::test {
namespace {

void load_and_unload(void* (*open)(const char*, int), std::size_t times) {
  std::atomic<bool> finish{false};
  std::atomic<int> bad{0};
  std::vector<GcThread> collectors;
  collectors.reserve(2);
  for (int t = 0; t < 2; ++t) {
    collectors.emplace_back([&] {
      while (!finish.load()) {
        opaque(make_list(200));
        GC_gcollect();
      }
    });
  }
  for (std::size_t i = 0; i < times; ++i) {
    void* handle = open(JD_TEST_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(handle, nullptr) << dlerror();
    auto slots = reinterpret_cast<void** (*)()>(dlsym(handle, "plugin_static_slots"))();
    for (int k = 0; k < 20; ++k) slots[k] = make_list(10);
    GC_gcollect();
    for (int k = 0; k < 20; ++k) bad += list_length(slots[k]) != 10;
    ASSERT_EQ(dlclose(handle), 0);
  }
  finish = true;
  collectors.clear();
  EXPECT_EQ(bad.load(), 0);
}

TEST(Loading, ThroughGcDlopen) { load_and_unload(GC_dlopen, rounds(300)); }

TEST(Loading, ThroughPlainDlopen) {
  JD_OURS_ONLY("bdwgc may deadlock with the dynamic loader's lock");
  load_and_unload(dlopen, rounds(300));
}

TEST(Loading, InManyThreads) {
  JD_OURS_ONLY("bdwgc may deadlock with the dynamic loader's lock");
  JD_SKIP_UNDER_TSAN("hands no signal over to a thread that waits for the loader's lock");
  std::atomic<int> bad{0};
  run_threads(4, [&](std::size_t) {
    const std::size_t times = rounds(100);
    for (std::size_t i = 0; i < times; ++i) {
      void* handle = dlopen(JD_TEST_PLUGIN, RTLD_NOW | RTLD_LOCAL);
      if (handle == nullptr) {
        ++bad;
        continue;
      }
      auto tls = reinterpret_cast<void** (*)()>(dlsym(handle, "plugin_tls_slots"))();
      tls[0] = make_list(10);
      if (i % 4 == 0) GC_gcollect();
      opaque(make_list(100));
      if (list_length(tls[0]) != 10) ++bad;
      tls[0] = nullptr;
      dlclose(handle);
    }
  });
  EXPECT_EQ(bad.load(), 0);
}

}  // namespace
}  // namespace jd::test
