// task.req.markers: workers with nothing to do mark.
#include <dirent.h>
#include <gtest/gtest.h>
#include <jackdaw/task.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "gc/gc.h"
#include "mark/team.hpp"

namespace jd::test {
namespace {

struct Node {
  Node* left;
  Node* right;
  long depth;
};

Node* make_tree(long depth) {
  auto* node = static_cast<Node*>(GC_malloc(sizeof(Node)));
  node->depth = depth;
  if (depth > 0) {
    node->left = make_tree(depth - 1);
    node->right = make_tree(depth - 1);
  }
  return node;
}

long count(const Node* node) {
  return node == nullptr ? 0 : 1 + count(node->left) + count(node->right);
}

constexpr long kDepth = 19;
constexpr long kNodes = (2L << kDepth) - 1;

std::uint64_t guests() { return mark::team.counts().guests; }

unsigned threads_called(const char* name) {
  unsigned found = 0;
  DIR* threads = opendir("/proc/self/task");
  if (threads == nullptr) return 0;
  while (const dirent* entry = readdir(threads)) {
    std::FILE* file =
        std::fopen(("/proc/self/task/" + std::string(entry->d_name) + "/comm").c_str(), "r");
    if (file == nullptr) continue;
    char line[64] = {};
    if (std::fgets(line, sizeof line, file) != nullptr &&
        std::strncmp(line, name, std::strlen(name)) == 0) {
      ++found;
    }
    std::fclose(file);
  }
  closedir(threads);
  return found;
}

class Markers : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    // Before the collector starts: how many markers there may be, on a machine with one CPU, too.
    setenv("GC_MARKERS", "3", 1);
    setenv("JACKDAW_MARK_PATIENCE", "2048", 1);  // or one might mark alone, where that is quicker
    GC_INIT();
    jd_task_start(2);
  }
  static void TearDownTestSuite() { jd_task_stop(); }
};

// A wake may come too late for one phase; not for all of so many.
constexpr int kMostCollections = 200;

TEST_F(Markers, AreIdleWorkers) {
  Node* const tree = make_tree(kDepth);
  const std::uint64_t before = guests();
  for (int i = 0; i < kMostCollections && guests() == before; ++i) {
    GC_gcollect();
    EXPECT_EQ(count(tree), kNodes);
  }
  EXPECT_GT(guests(), before) << "no idle worker came to mark";
}

// While they run tasks they are stopped, and others mark.
TEST_F(Markers, AreNotWorkersThatHaveTasks) {
  Node* const tree = make_tree(kDepth);
  static std::atomic<int> running;
  static std::atomic<bool> end;
  running = 0;
  end = false;
  const auto spin = [](void*) {
    ++running;
    while (!end) {
    }
  };
  std::thread first([&] { jd_task_run(spin, nullptr); });
  std::thread second([&] { jd_task_run(spin, nullptr); });
  while (running != 2) std::this_thread::yield();
  const std::uint64_t before = guests();
  for (int i = 0; i < 20; ++i) {
    GC_gcollect();
    EXPECT_EQ(count(tree), kNodes);
  }
  EXPECT_EQ(guests(), before);
  EXPECT_GT(threads_called("gc-marker"), 0U) << "nobody marks for the workers";
  end = true;
  first.join();
  second.join();
}

// Collections, tasks and naps in every order: workers come and go while the world stops.
TEST_F(Markers, ComeAndGoWhileTasksBegin) {
  Node* const tree = make_tree(kDepth - 5);
  std::atomic<bool> end{false};
  std::thread client([&] {
    for (unsigned i = 0; !end; ++i) {
      jd_task_run([](void*) { static_cast<void>(make_tree(6)); }, nullptr);
      if (i % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(i % 1000));
    }
  });
  for (int i = 0; i < 300; ++i) {
    GC_gcollect();
    EXPECT_EQ(count(tree), (2L << (kDepth - 5)) - 1);
  }
  end = true;
  client.join();
}

}  // namespace
}  // namespace jd::test
