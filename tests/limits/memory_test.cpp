// Memory that is not to be had: limits of the heap, of the address space, of the control group.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "child.hpp"
#include "emulator.hpp"
#include "gc_test.hpp"

// For tests of limits of a process's memory or address space.
#if defined(JD_SANITIZE_ADDRESS) || defined(JD_SANITIZE_THREAD)
#define JD_NEEDS_LIMITS() GTEST_SKIP() << "what the sanitizer has for itself counts, too"
#else
#define JD_NEEDS_LIMITS() JD_SKIP_IN_EMULATOR("needs memory and address space, too")
#endif

namespace jd::test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// Makes a list until allocation fails; the bytes it got. What it made is whole afterwards.
std::size_t fill(std::size_t size, std::size_t most, bool* whole) {
  struct Node {
    Node* next;
    std::size_t number;
  };
  Node* list = nullptr;
  std::size_t count = 0;
  while (count * size < most) {
    auto* node = static_cast<Node*>(GC_malloc(size));
    if (node == nullptr) break;
    node->next = list;
    node->number = count++;
    list = node;
  }
  std::size_t expected = count;
  *whole = true;
  for (const Node* p = list; p != nullptr; p = p->next) *whole &= p->number == --expected;
  *whole &= expected == 0;
  // Taken apart: a stale word may hold one node, but not all behind it.
  while (list != nullptr) {
    Node* next = list->next;
    list->next = nullptr;
    list = next;
  }
  return count * size;
}

// And after dropping all that, there is memory again.
bool recovers() {
  for (int i = 0; i < 5; ++i) {
    clear_stack();
    GC_gcollect();
  }
  return list_length(make_list(20000)) == 20000;
}

int fill_and_recover(std::size_t size, std::size_t most) {
  std::size_t bytes = 0;
  bool whole = false;
  far_away([&] { bytes = fill(size, most, &whole); });
  std::printf("%zu\n", bytes);
  if (!whole) return 1;
  return recovers() ? 0 : 2;
}

JD_CHILD(heap_limit_small) {
  GC_INIT();
  GC_set_max_heap_size(16 * kMiB);
  return fill_and_recover(64, std::size_t{1} << 32);
}
JD_CHILD(heap_limit_large) {
  GC_INIT();
  GC_set_max_heap_size(64 * kMiB);
  return fill_and_recover(kMiB, std::size_t{1} << 32);
}

TEST(Memory, TheHeapLimitEndsInNull) {
  const ChildResult small = run_child("heap_limit_small");
  EXPECT_TRUE(small.ok()) << small;
  EXPECT_GE(std::strtoull(small.out.c_str(), nullptr, 10), 8 * kMiB) << small;
  EXPECT_LE(std::strtoull(small.out.c_str(), nullptr, 10), 16 * kMiB) << small;
  const ChildResult large = run_child("heap_limit_large");
  EXPECT_TRUE(large.ok()) << large;
  EXPECT_GE(std::strtoull(large.out.c_str(), nullptr, 10), 40 * kMiB) << large;
  // bdwgc warns; silence would leave the user without a cause.
  EXPECT_GE(count_lines(small.err), 1u) << small;
  EXPECT_GE(count_lines(large.err), 1u) << large;
  EXPECT_LE(count_lines(small.err), kPeer ? 1000u : 3u) << small;
}

// The last collection found all of it alive, and nothing was allocated since; yet the program has
// let go of it.
JD_CHILD(heap_limit_let_go) {
  GC_INIT();
  GC_set_warn_proc(GC_ignore_warn_proc);
  GC_set_max_heap_size(16 * kMiB);
  constexpr std::size_t kBlock = 16000;
  static void* blocks[2048];
  std::size_t count = 0;
  for (void* block = GC_malloc(kBlock); block != nullptr && count < 2048;
       block = GC_malloc(kBlock)) {
    blocks[count++] = block;
  }
  asm volatile("" : : "r"(blocks) : "memory");
  if (count < 500 || count == 2048) return 1;
  std::fill(std::begin(blocks), std::end(blocks), nullptr);
  asm volatile("" : : "r"(blocks) : "memory");
  return GC_malloc(kBlock) != nullptr ? 0 : 2;
}

TEST(Memory, WhatWasLetGoAfterTheLimitIsFoundAtOnce) {
  if (kPeer) GTEST_SKIP() << "bdwgc returns NULL once more";
  const ChildResult r = run_child("heap_limit_let_go");
  EXPECT_TRUE(r.ok()) << r;
}

JD_CHILD(heap_limit_raised_in_oom) {
  GC_INIT();
  GC_set_warn_proc(GC_ignore_warn_proc);
  GC_set_max_heap_size(16 * kMiB);
  static int calls;
  GC_set_oom_fn([](std::size_t bytes) -> void* {
    ++calls;
    GC_set_max_heap_size(64 * kMiB);
    return calls == 1 ? GC_malloc(bytes) : nullptr;
  });
  const int status = fill_and_recover(64, 40 * kMiB);
  return status != 0 ? status : calls == 1 ? 0 : 3;
}

TEST(Memory, TheLimitCanBeRaisedByTheOutOfMemoryFunction) {
  const ChildResult r = run_child("heap_limit_raised_in_oom");
  EXPECT_TRUE(r.ok()) << r;
}

int warnings_within = 0;
int warnings_nested = 0;
void allocate_in_warning(char*, GC_word) {
  warnings_nested = std::max(warnings_nested, ++warnings_within);
  opaque(GC_malloc(64));
  --warnings_within;
}

// In a heap without room, that allocation is worth a warning, too.
JD_CHILD(warn_procedure_that_allocates) {
  GC_INIT();
  GC_set_max_heap_size(4 * kMiB);
  GC_set_warn_proc(allocate_in_warning);
  bool whole = false;
  fill(64, SIZE_MAX, &whole);
  return whole && warnings_nested >= 1 && warnings_nested <= 8 ? 0 : 1;
}

TEST(Memory, AWarnProcedureMayAllocateWhereThereIsNoRoom) {
  JD_OURS_ONLY("calls it again and again");
  const ChildResult r = run_child("warn_procedure_that_allocates");
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_NE(r.err.find("Out of memory"), std::string::npos) << "the nested one";
}

// Some 150 KiB of all sizes and two kinds, of which each has blocks of its own.
JD_CHILD(many_sizes_in_a_small_heap) {
  GC_INIT();
  GC_set_max_heap_size(std::size_t{704} << 10);
  constexpr std::size_t kObjects = 200;
  auto** objects =
      static_cast<unsigned char**>(GC_malloc_uncollectable(kObjects * sizeof(unsigned char*)));
  Random random(1);
  std::vector<std::size_t> sizes(kObjects);
  const std::size_t count = rounds(100000);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t k = random.below(kObjects);
    if (objects[k] != nullptr) {
      const auto mark = static_cast<unsigned char>(k);
      if (objects[k][0] != mark || objects[k][sizes[k] - 1] != mark) return 2;
    }
    objects[k] = nullptr;
    sizes[k] = 32 + random.below(i % 20 == 0 ? 9000 : 300);
    void* made = i % 2 == 0 ? GC_malloc(sizes[k]) : GC_malloc_atomic(sizes[k]);
    if (made == nullptr) return 1;
    objects[k] = static_cast<unsigned char*>(made);
    objects[k][0] = objects[k][sizes[k] - 1] = static_cast<unsigned char>(k);
  }
  return GC_get_heap_size() <= std::size_t{704} << 10 ? 0 : 3;
}

TEST(Memory, ASmallHeapHoldsManySizes) {
  const ChildResult r = run_child("many_sizes_in_a_small_heap");
  EXPECT_TRUE(r.ok()) << r;
}

JD_CHILD(heap_limit_all_functions) {
  GC_INIT();
  GC_set_warn_proc(GC_ignore_warn_proc);
  GC_set_max_heap_size(16 * kMiB);
  const std::size_t much = opaque(64 * kMiB);
  errno = 0;
  if (GC_malloc(much) != nullptr) return 1;
  if (GC_malloc_atomic(much) != nullptr) return 2;
  if (GC_malloc_uncollectable(much) != nullptr) return 3;
  if (GC_malloc_atomic_uncollectable(much) != nullptr) return 4;
  if (GC_malloc_ignore_off_page(much) != nullptr) return 5;
  if (GC_malloc_atomic_ignore_off_page(much) != nullptr) return 6;
  if (GC_memalign(16, much) != nullptr) return 7;
  void* p = &p;
  if (GC_posix_memalign(&p, 64, much) != ENOMEM) return 8;
  if (GC_debug_malloc(much, "x.c", 1) != nullptr) return 9;
  if (GC_malloc_explicitly_typed(much, GC_DS_LENGTH) != nullptr) return 10;
  if (GC_calloc_explicitly_typed(much / 8, 8, GC_DS_LENGTH) != nullptr) return 11;
  void* small = GC_malloc(100);
  fill_pattern(small, 100, 1);
  if (GC_realloc(small, much) != nullptr) return 12;
  if (!holds_pattern(small, 100, 1)) return 13;
  if (GC_expand_hp(much) != 0) return 14;
  auto* text = static_cast<char*>(std::malloc(much + 1));
  std::memset(text, 'x', much);
  text[much] = '\0';
  errno = 0;
  if (GC_strdup(text) != nullptr || errno != ENOMEM) return 15;
  return recovers() ? 0 : 16;
}

TEST(Memory, EveryFunctionReportsTheShortage) {
  const ChildResult r = run_child("heap_limit_all_functions");
  EXPECT_TRUE(r.ok()) << r;
}

// Between two guards, where a wrong idea of its size would write.
struct {
  std::size_t before;
  alignas(16) char memory[64];
  std::size_t behind;
} last_resort = {1, {}, 2};
void* give_last_resort(std::size_t) { return last_resort.memory; }
// The compiler believes that what an allocator returns is no variable of the program's.
char* volatile last_resort_address = last_resort.memory;
bool is_last_resort(const void* p) { return p == last_resort_address; }

JD_CHILD(typed_from_the_oom_function) {
  GC_INIT();
  GC_set_warn_proc(GC_ignore_warn_proc);
  const GC_word bitmap = 1;
  const GC_descr descriptor = GC_make_descriptor(&bitmap, 1);
  GC_set_oom_fn(give_last_resort);
  constexpr std::size_t kTooMuch = std::size_t{1} << 60;
  if (!is_last_resort(GC_malloc_explicitly_typed(kTooMuch, descriptor))) return 1;
  if (!is_last_resort(GC_calloc_explicitly_typed(kTooMuch / 16, 16, descriptor))) return 2;
  GC_init_gcj_malloc(GC_GCJ_RESERVED_MARK_PROC_INDEX, nullptr);
  static void* type[2];
  if (!is_last_resort(GC_gcj_malloc(kTooMuch, static_cast<void*>(type)))) return 5;
  if (!is_last_resort(GC_debug_gcj_malloc(kTooMuch, static_cast<void*>(type), "", 1))) return 6;
  for (const char c : last_resort.memory) {
    if (c != 0) return 3;
  }
  return last_resort.before == 1 && last_resort.behind == 2 ? 0 : 4;
}

TEST(Memory, TypedAllocationLeavesTheOutOfMemoryFunctionsMemoryAlone) {
  JD_OURS_ONLY("bdwgc writes into it");
  const ChildResult r = run_child("typed_from_the_oom_function");
  EXPECT_TRUE(r.ok()) << r;
}

JD_CHILD(dont_expand) {
  GC_INIT();
  if (GC_expand_hp(8 * kMiB) == 0) return 9;
  GC_set_dont_expand(1);
  const std::size_t before = GC_get_heap_size();
  for (int i = 0; i < 2000000; ++i) opaque(GC_malloc(64));
  return GC_get_heap_size() <= before + kMiB ? 0 : 1;
}

TEST(Memory, DontExpandKeepsTheHeapSmall) {
  const ChildResult r = run_child("dont_expand");
  EXPECT_TRUE(r.ok()) << r;
}

// --- Limits of the address space
// ---------------------------------------------------------------------

int with_address_space(std::size_t bytes) {
  const rlimit limit = {bytes, bytes};
  if (setrlimit(RLIMIT_AS, &limit) != 0) {
    std::perror("setrlimit");
    return kCannotTry;
  }
  GC_INIT();
  return fill_and_recover(1000, std::size_t{1} << 32);
}

JD_CHILD(address_space_2g) { return with_address_space(2048 * kMiB); }
JD_CHILD(address_space_512m) { return with_address_space(512 * kMiB); }
JD_CHILD(address_space_128m) { return with_address_space(128 * kMiB); }
JD_CHILD(address_space_64m) { return with_address_space(64 * kMiB); }

class AddressSpace : public testing::TestWithParam<std::pair<const char*, std::size_t>> {};

TEST_P(AddressSpace, IsUsedAndThenEndsInNull) {
  JD_NEEDS_LIMITS();
  JD_OURS_ONLY("bdwgc crashes when it can't get what it needs for itself");
  const auto& [name, bytes] = GetParam();
  const ChildResult r = run_child(name, {}, 100);
  JD_SKIP_IF_CANNOT_TRY(r);
  EXPECT_TRUE(r.ok()) << r;
  // The program has some of it, and ours keeps some back; a third of it must be usable.
  EXPECT_GE(std::strtoull(r.out.c_str(), nullptr, 10), bytes / 3) << r;
  EXPECT_GE(count_lines(r.err), 1u) << r;
}

INSTANTIATE_TEST_SUITE_P(All, AddressSpace,
                         testing::Values(std::pair{"address_space_2g", 2048 * kMiB},
                                         std::pair{"address_space_512m", 512 * kMiB},
                                         std::pair{"address_space_128m", 128 * kMiB},
                                         std::pair{"address_space_64m", 64 * kMiB}),
                         [](const auto& info) { return std::string(info.param.first); });

JD_CHILD(address_space_none) {
  // So little that not even the collector's own tables fit.
  const rlimit limit = {4096, 4096};
  if (setrlimit(RLIMIT_AS, &limit) != 0) return kCannotTry;
  GC_INIT();
  opaque(GC_malloc(100));
  return 0;
}

TEST(Memory, NoAddressSpaceAtAllIsOneLine) {
  JD_NEEDS_LIMITS();
  JD_OURS_ONLY("bdwgc prints two lines");
  const ChildResult r = run_child("address_space_none");
  JD_SKIP_IF_CANNOT_TRY(r);
  EXPECT_FALSE(r.timed_out) << r;
  EXPECT_EQ(r.signal, SIGABRT) << r;
  EXPECT_EQ(count_lines(r.err), 1u) << r;
}

JD_CHILD(limit_lowered_later) {
  GC_INIT();
  opaque(make_list(1000));
  const rlimit limit = {256 * kMiB, 256 * kMiB};
  if (setrlimit(RLIMIT_AS, &limit) != 0) return kCannotTry;
  // The reservation may be there already, and larger: then nothing new may be mapped.
  void* list = make_list(10000);
  GC_gcollect();
  if (list_length(list) != 10000) return 1;
  return 0;
}

TEST(Memory, ALimitThatComesLaterIsSurvived) {
  JD_NEEDS_LIMITS();
  const ChildResult r = run_child("limit_lowered_later");
  JD_SKIP_IF_CANNOT_TRY(r);
  EXPECT_TRUE(r.ok()) << r;
}

constexpr int kNewThreads = 40;
pthread_barrier_t together;

void* allocate_first(void*) {
  pthread_barrier_wait(&together);  // all are there
  pthread_barrier_wait(&together);  // no more memory
  void* p = GC_malloc(48);
  pthread_barrier_wait(&together);  // nobody gives a record back before
  if (is_last_resort(p)) return &last_resort;
  return p != nullptr && GC_base(p) == p ? p : nullptr;
}

JD_CHILD(first_allocations_without_memory) {
  GC_INIT();
  GC_set_warn_proc(GC_ignore_warn_proc);
  GC_set_oom_fn(give_last_resort);
  pthread_barrier_init(&together, nullptr, kNewThreads + 1);
  pthread_t threads[kNewThreads];
  for (pthread_t& thread : threads) {
    if (pthread_create(&thread, nullptr, allocate_first, nullptr) != 0) return kCannotTry;
  }
  pthread_barrier_wait(&together);
  const rlimit limit = {16 * kMiB, 16 * kMiB};
  if (setrlimit(RLIMIT_AS, &limit) != 0) return kCannotTry;
  pthread_barrier_wait(&together);
  pthread_barrier_wait(&together);
  int refused = 0;
  for (const pthread_t thread : threads) {
    void* result = nullptr;
    pthread_join(thread, &result);
    if (result == nullptr) return 1;
    if (result == &last_resort) ++refused;
  }
  // So many records don't fit into what the collector had in stock.
  return refused > 0 ? 0 : 2;
}

TEST(Memory, AThreadWithoutRoomForItsRecordGetsTheOutOfMemoryFunctionsAnswer) {
  JD_NEEDS_LIMITS();
  JD_OURS_ONLY("bdwgc wants threads to be registered");
  const ChildResult r = run_child("first_allocations_without_memory");
  JD_SKIP_IF_CANNOT_TRY(r);
  EXPECT_TRUE(r.ok()) << r;
}

JD_CHILD(data_limit) {
  const rlimit limit = {128 * kMiB, 128 * kMiB};
  if (setrlimit(RLIMIT_DATA, &limit) != 0) return kCannotTry;
  GC_INIT();
  return fill_and_recover(1000, std::size_t{1} << 32);
}

JD_CHILD(data_limit_none) {
  // So little that the address space for the heap is to be had, but none of it can be used.
  GC_set_warn_proc(GC_ignore_warn_proc);
  const rlimit limit = {4096, 4096};
  if (setrlimit(RLIMIT_DATA, &limit) != 0) return kCannotTry;
  GC_INIT();
  opaque(GC_malloc(100));
  return 0;
}

// Regression: the line did not say which limit to look at.
TEST(Memory, ADataLimitWithoutRoomForAnythingIsNamed) {
  JD_NEEDS_LIMITS();
  JD_OURS_ONLY("bdwgc names no limit");
  const ChildResult r = run_child("data_limit_none");
  JD_SKIP_IF_CANNOT_TRY(r);
  EXPECT_EQ(r.signal, SIGABRT) << r;
  EXPECT_NE(r.err.find("ulimit"), std::string::npos) << r;
  EXPECT_NE(r.err.find("-d"), std::string::npos) << r;
}

TEST(Memory, TheDataLimitEndsInNull) {
  JD_NEEDS_LIMITS();
  const ChildResult r = run_child("data_limit", {}, 100);
  JD_SKIP_IF_CANNOT_TRY(r);
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_GE(std::strtoull(r.out.c_str(), nullptr, 10), 80 * kMiB) << r;
}

// --- A system that refuses
// ----------------------------------------------------------------------------

JD_CHILD(os_fails) {
  GC_INIT();
  return fill_and_recover(1000, 64 * kMiB);
}

// os.req.refusal
TEST(Memory, EveryRefusedRequestEndsInNullOrALine) {
  JD_OURS_ONLY("a setting of ours");
  std::size_t refused = 0;
  for (int call = 1; call <= 60; call += call < 20 ? 1 : 7) {
    const std::string text = std::to_string(call);
    const ChildResult r = run_child("os_fails", {{"JACKDAW_FAIL_OS", text.c_str()}}, 20);
    ASSERT_FALSE(r.timed_out) << "call " << call << " " << r;
    // Exit status 2 is "no memory again": the system goes on refusing.
    EXPECT_TRUE(r.status == 0 || r.status == 2 || r.signal == SIGABRT)
        << "call " << call << " " << r;
    EXPECT_GE(count_lines(r.err), r.status == 0 ? 0u : 1u) << "call " << call << " " << r;
    if (r.status != 0) ++refused;
  }
  // Some at the start and some that the program saw; else nothing was tried.
  EXPECT_GE(refused, 5u);
}

// --- Control groups
// -------------------------------------------------------------------------------------

// A memory group of our own, in either version's hierarchy.
class MemoryGroup {
 public:
  explicit MemoryGroup(std::size_t bytes) {
    const std::string name = "/jackdaw-test-" + std::to_string(getpid());
    for (const auto& [parent, file] :
         {std::pair<std::string, std::string>{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
          std::pair<std::string, std::string>{"/sys/fs/cgroup", "memory.max"}}) {
      if (access((parent + "/cgroup.procs").c_str(), W_OK) != 0) continue;
      path_ = parent + name;
      if (mkdir(path_.c_str(), 0755) != 0) {
        path_.clear();
        continue;
      }
      std::ofstream limit(path_ + "/" + file);
      limit << bytes << std::flush;
      if (limit) return;
      rmdir(path_.c_str());
      path_.clear();
    }
  }
  ~MemoryGroup() {
    if (!path_.empty()) rmdir(path_.c_str());
  }
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

JD_CHILD(in_memory_group) {
  std::ofstream procs(std::string(std::getenv("JD_TEST_GROUP")) + "/cgroup.procs");
  procs << getpid() << std::flush;
  if (!procs) {
    std::fputs("cannot enter the control group\n", stderr);
    return kCannotTry;
  }
  GC_INIT();
  GC_set_warn_proc(GC_ignore_warn_proc);
  // Garbage of many times the limit, with little of it live.
  Root<void> kept;
  for (int i = 0; i < 400; ++i) {
    void* list = make_list(5000, 256);
    std::memset(GC_malloc_atomic(kMiB), 1, kMiB);
    if (i % 50 == 0) kept.set(list);
  }
  return list_length(kept.get()) == 5000 ? 0 : 1;
}

TEST(Memory, GarbageFitsIntoASmallControlGroup) {
  JD_NEEDS_LIMITS();
  const MemoryGroup group(64 * kMiB);
  if (group.path().empty()) GTEST_SKIP() << "no memory control group can be made here";
  const ChildResult r =
      run_child("in_memory_group", {{"JD_TEST_GROUP", group.path().c_str()}}, 100);
  JD_SKIP_IF_CANNOT_TRY(r);
  EXPECT_TRUE(r.ok()) << r;
}

JD_CHILD(fill_memory_group) {
  std::ofstream procs(std::string(std::getenv("JD_TEST_GROUP")) + "/cgroup.procs");
  procs << getpid() << std::flush;
  if (!procs) {
    std::fputs("cannot enter the control group\n", stderr);
    return kCannotTry;
  }
  GC_INIT();
  return fill_and_recover(1000, std::size_t{1} << 30);
}

TEST(Memory, AFullControlGroupEndsInNull) {
  JD_NEEDS_LIMITS();
  JD_OURS_ONLY("bdwgc does not look at the group and is killed");
  const MemoryGroup group(128 * kMiB);
  if (group.path().empty()) GTEST_SKIP() << "no memory control group can be made here";
  const ChildResult r =
      run_child("fill_memory_group", {{"JD_TEST_GROUP", group.path().c_str()}}, 100);
  JD_SKIP_IF_CANNOT_TRY(r);
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_GE(std::strtoull(r.out.c_str(), nullptr, 10), 60 * kMiB) << r;
  EXPECT_GE(count_lines(r.err), 1u) << r;
}

}  // namespace
}  // namespace jd::test
