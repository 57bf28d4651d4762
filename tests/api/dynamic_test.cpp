// Static and thread-local data of libraries that are loaded and unloaded, and thread-local data of
// the program itself.
#include <dlfcn.h>
#include <sched.h>

#include <atomic>
#include <cstring>

#include "gc_test.hpp"
#include "threads.hpp"

namespace jd::test {
namespace {

constexpr const char* kTlsOfPeer = "bdwgc does not search thread-local data on Linux";

using Slots = void** (*)();
using Count = std::size_t (*)();

class Plugin {
 public:
  explicit Plugin(const char* file = JD_TEST_PLUGIN)
      : handle_(GC_dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(handle_, nullptr) << dlerror();
  }
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;
  ~Plugin() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  void** slots(const char* function) const {
    return reinterpret_cast<Slots>(dlsym(handle_, function))();
  }
  std::size_t count(const char* function) const {
    return reinterpret_cast<Count>(dlsym(handle_, function))();
  }

 private:
  void* handle_;
};

void fill(void** slots, std::size_t count, Watch* watch) {
  far_away([&] {
    for (std::size_t i = 0; i < count; ++i) {
      opaque(GC_malloc(48));
      slots[i] = GC_malloc(48);
      watch->add(slots[i]);
    }
  });
}

TEST(Dynamic, StaticDataOfALoadedLibraryHolds) {
  for (int round = 0; round < 5; ++round) {
    Watch watch;
    {
      Plugin plugin;
      const std::size_t count = plugin.count("plugin_slot_count");
      fill(plugin.slots("plugin_static_slots"), count, &watch);
      fill(plugin.slots("plugin_data_slots"), count, &watch);
      collect();
      collect();
      EXPECT_TRUE(all_alive(watch));
    }
    EXPECT_TRUE(most_collected(watch)) << "after dlclose";
  }
}

TEST(Dynamic, ALibraryThatLeavesTakesNothingWithIt) {
  // Collections while it comes and goes must not touch what is unmapped.
  for (int round = 0; round < 30; ++round) {
    {
      Plugin plugin;
      plugin.slots("plugin_static_slots")[0] = make_list(100);
      GC_gcollect();
      EXPECT_EQ(list_length(plugin.slots("plugin_static_slots")[0]), 100u);
    }
    GC_gcollect();
  }
}

void expect_thread_locals_to_hold(const Plugin& plugin) {
  Watch watch;
  void** const slots = plugin.slots("plugin_tls_slots");
  const std::size_t count = plugin.count("plugin_tls_count");
  fill(slots, count, &watch);
  collect();
  collect();
  EXPECT_TRUE(all_alive(watch));
  std::memset(slots, 0, count * sizeof(void*));
}

TEST(Dynamic, ThreadLocalsOfALoadedLibraryHold) {
  JD_OURS_ONLY(kTlsOfPeer);
  expect_thread_locals_to_hold(Plugin());
}

TEST(Dynamic, StaticThreadLocalsOfALoadedLibraryHold) {
  JD_OURS_ONLY(kTlsOfPeer);
  const Plugin plugin(JD_TEST_PLUGIN_EARLY);
  expect_thread_locals_to_hold(plugin);  // the first thread: its block is in no stack
  run_threads(2, [&](std::size_t) { expect_thread_locals_to_hold(plugin); });
}

TEST(Dynamic, ThreadLocalsOfALoadedLibraryInOtherThreadsHold) {
  JD_OURS_ONLY(kTlsOfPeer);
  Plugin plugin;
  run_threads(3, [&](std::size_t) {
    Watch watch;
    fill(plugin.slots("plugin_tls_slots"), plugin.count("plugin_tls_count"), &watch);
    collect();
    collect();
    EXPECT_TRUE(all_alive(watch));
  });
}

void set_the_same_stack_bottom() {
  struct Set {
    static void* bottom(void* base) {
      GC_set_stackbottom(nullptr, static_cast<GC_stack_base*>(base));
      return nullptr;
    }
  };
  GC_stack_base base{};
  ASSERT_NE(GC_get_my_stackbottom(&base), nullptr);
  GC_call_with_alloc_lock(Set::bottom, &base);
}

TEST(Dynamic, StaticThreadLocalsHoldWhereTheStacksLowEndIsNotKnown) {
  JD_OURS_ONLY(kTlsOfPeer);
  const Plugin plugin(JD_TEST_PLUGIN_EARLY);
  set_the_same_stack_bottom();
  expect_thread_locals_to_hold(plugin);
}

// A thread's vector still has the block of a library that is gone, under the number that another
// has now.
TEST(Dynamic, ALibraryMayTakeAnothersNumberWithMoreThreadLocals) {
  JD_SKIP_UNDER_TSAN("keeps a block's memory of its own");
  const auto check = [](bool blocked) {
    { EXPECT_NE(Plugin().slots("plugin_tls_slots"), nullptr); }
    const Plugin large(JD_TEST_PLUGIN_LARGE);
    if (blocked) {
      GC_do_blocking(
          [](void*) -> void* {
            GcThread([] { GC_gcollect(); }).join();
            return nullptr;
          },
          nullptr);
    } else {
      GC_gcollect();
    }
  };
  check(false);
  check(true);
  run_threads(2, [&](std::size_t number) { check(number == 1); });
}

// Read while the thread may run on, and so by way of a copy.
TEST(Dynamic, ThreadLocalsHoldInABlockingSection) {
  JD_OURS_ONLY(kTlsOfPeer);
  Plugin plugin;
  run_threads(2, [&](std::size_t) {
    Watch watch;
    fill(plugin.slots("plugin_tls_slots"), plugin.count("plugin_tls_count"), &watch);
    std::atomic<bool> blocked{false};
    std::atomic<bool> enough{false};
    GcThread collector([&] {
      while (!blocked) sched_yield();
      collect();
      collect();
      enough = true;
    });
    struct Wait {
      std::atomic<bool>* blocked;
      std::atomic<bool>* enough;
    } wait{&blocked, &enough};
    GC_do_blocking(
        [](void* data) -> void* {
          auto* flags = static_cast<Wait*>(data);
          *flags->blocked = true;
          while (!*flags->enough) sched_yield();
          return nullptr;
        },
        &wait);
    collector.join();
    EXPECT_TRUE(all_alive(watch));
  });
}

constexpr std::size_t kTlsSlots = 200;
thread_local void* tls_bss[kTlsSlots];
thread_local void* tls_data[kTlsSlots] = {reinterpret_cast<void*>(1)};

void check_own_tls() {
  for (void** slots : {tls_bss, tls_data}) {
    Watch watch;
    fill(slots, kTlsSlots, &watch);
    collect();
    collect();
    EXPECT_TRUE(all_alive(watch));
    std::memset(slots, 0, kTlsSlots * sizeof(void*));
    EXPECT_TRUE(most_collected(watch));
  }
}

TEST(Dynamic, ThreadLocalsOfTheProgramHoldInTheMainThread) {
  JD_OURS_ONLY(kTlsOfPeer);
  check_own_tls();
}

TEST(Dynamic, ThreadLocalsOfTheProgramHoldInOtherThreads) {
  JD_OURS_ONLY(kTlsOfPeer);
  run_threads(1, [](std::size_t) { check_own_tls(); });
  run_registered_thread(check_own_tls);
}

void* collect_in_another_thread(void* /*argument*/) {
  GcThread([] {
    for (int i = 0; i < 3; ++i) GC_gcollect();
  }).join();
  return nullptr;
}

// Of a blocked thread, the collector looks only once where its variables are.
TEST(Dynamic, ThreadLocalsHoldThroughCollectionsInABlockingSection) {
  JD_OURS_ONLY(kTlsOfPeer);
  const auto check = [] {
    Watch before;
    fill(tls_bss, kTlsSlots, &before);
    Watch during;
    GC_do_blocking(
        [](void* watch) -> void* {
          collect_in_another_thread(nullptr);
          GC_call_with_gc_active(
              [](void* w) -> void* {
                fill(tls_data, kTlsSlots, static_cast<Watch*>(w));
                return nullptr;
              },
              watch);
          return collect_in_another_thread(nullptr);
        },
        &during);
    EXPECT_TRUE(all_alive(before));
    EXPECT_TRUE(all_alive(during));
    for (void** slots : {tls_bss, tls_data}) std::memset(slots, 0, kTlsSlots * sizeof(void*));
    EXPECT_TRUE(most_collected(before));
    EXPECT_TRUE(most_collected(during));
  };
  run_threads(2, [&](std::size_t) { check(); });
}

TEST(Dynamic, ThreadLocalsOfAnEndedThreadRelease) {
  Watch watch;
  run_threads(1, [&](std::size_t) { fill(tls_bss, kTlsSlots, &watch); });
  EXPECT_TRUE(most_collected(watch));
}

// A section can be declared free of pointers by name, for as long as the program wants.
std::atomic<int> plugin_has_roots{0};
int has_roots(const char* name, void*, size_t) {
  return std::strstr(name, "plugin") != nullptr ? plugin_has_roots.load() : 1;
}

TEST(Dynamic, TheRootsCallbackExcludesALibrary) {
  GC_register_has_static_roots_callback(has_roots);
  {
    Plugin plugin;
    Watch watch;
    void** const slots = plugin.slots("plugin_static_slots");
    fill(slots, plugin.count("plugin_slot_count"), &watch);
    EXPECT_TRUE(most_collected(watch));
    plugin_has_roots = 1;
    Watch later;
    fill(slots, plugin.count("plugin_slot_count"), &later);
    GC_gcollect();
    EXPECT_TRUE(all_alive(later));
    plugin_has_roots = 0;
    EXPECT_TRUE(most_collected(later));
  }
  GC_register_has_static_roots_callback(nullptr);
}

}  // namespace
}  // namespace jd::test
