// The thread that marks beside the program (cycle.req.incremental): whatever threads do meanwhile,
// nothing that they hold is lost. Tiny turns (JACKDAW_MARK_TURN) have it take the heap's lock and
// leave it all the time.
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <random>

#include "child.hpp"
#include "partial.hpp"

namespace jd::test::partial {
namespace {

const Environment beside = {{"JACKDAW_MARK_BESIDE", "1"},     {"GC_MARKERS", "2"},
                            {"GC_ENABLE_INCREMENTAL", "1"},   {"GC_PAUSE_TIME_TARGET", "0"},
                            {"GC_PRINT_STATS", "1"},          {"JACKDAW_VERIFY", "1"},
                            {"JACKDAW_POISON", "1"},          {"JACKDAW_MARK_STACK", kUnset},
                            {"JACKDAW_COLLECT_EVERY", kUnset}};

// As the child's collections report.
bool marked_beside(const ChildResult& r) {
  const std::string text = " us of it beside";
  for (std::size_t at = r.err.find(text); at != std::string::npos; at = r.err.find(text, at + 1)) {
    if (r.err[at - 1] != '0' || r.err[at - 2] != ' ') return true;
  }
  return false;
}

// Whether anything is marked beside a program that never waits is the system's choice.
enum class Program : std::uint8_t { Waits, Runs };
void expect_well(const char* child, Program program = Program::Waits) {
  for (const char* turn : {"1024", "3"}) {
    Environment environment = beside;
    environment.emplace_back("JACKDAW_MARK_TURN", turn);
    const ChildResult r = run_child(child, environment);
    EXPECT_TRUE(r.ok()) << turn << ": " << r;
    if (program == Program::Runs) continue;
    EXPECT_TRUE(marked_beside(r)) << turn << ": nothing was marked beside the program";
  }
}

// They take long to mark.
struct Lists : SameLists {
  Lists() : SameLists(20, 10000) {}
};

// A list of objects that only a stopped world tells how to scan.
class DescribedObjects {
 public:
  explicit DescribedObjects(std::size_t count) : count_(count) {
    GC_init_gcj_malloc(GC_GCJ_RESERVED_MARK_PROC_INDEX, reinterpret_cast<void*>(never_called));
    for (std::size_t i = 0; i < count; ++i) prepend();
  }
  void prepend() {
    auto** const object = static_cast<void**>(GC_gcj_malloc(32, &vtable));
    object[1] = *head_.get();
    *head_.get() = object;
  }
  void free_first() {
    void* const gone = *head_.get();
    *head_.get() = static_cast<void**>(gone)[1];
    GC_free(gone);
  }
  [[nodiscard]] bool are_intact() const {
    std::size_t length = 0;
    for (void* object = *head_.get(); object != nullptr; object = static_cast<void**>(object)[1]) {
      if (*static_cast<void**>(object) != &vtable) return false;
      ++length;
    }
    return length == count_;
  }

 private:
  struct VTable {
    void* other;
    GC_word descriptor;
  };
  static GC_ms_entry* never_called(GC_word*, GC_ms_entry* stack, GC_ms_entry*, GC_word) {
    return stack;
  }
  inline static VTable vtable = {nullptr, (GC_word{3} << 61) | GC_DS_BITMAP};

  std::size_t count_;
  Root<void*> head_{static_cast<void**>(GC_malloc(sizeof(void*)))};
};

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](timeval t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// A program that waits gets its collection marked; it goes on with the last pause.
JD_CHILD(waits_meanwhile) {
  GC_INIT();
  GC_set_full_freq(0);
  const Lists lists;
  collect();
  // The first one asks for the thread.
  for (int i = 0; i < 3; ++i) {
    GC_start_incremental_collection();
    for (int k = 0; k < 1000; ++k) opaque(GC_malloc(64));
    usleep(20000);
    while (GC_collect_a_little() != 0) {
    }
  }
  return lists.are_intact() ? 0 : 1;
}
TEST(Beside, AWaitingProgramIsMarkedFor) {
  JD_NEEDS_MODE();
  expect_well("waits_meanwhile");
}

// The thread sleeps when it can't go on, though the collection is not over.
JD_CHILD(waits_with_what_is_put_aside) {
  GC_INIT();
  GC_set_full_freq(0);
  const DescribedObjects objects(2000);
  for (int i = 0; i < 3; ++i) {
    GC_start_incremental_collection();
    for (int k = 0; k < 1000; ++k) opaque(GC_malloc(64));
    usleep(20000);
    const double before = cpu_seconds();
    usleep(200000);
    if (cpu_seconds() - before > 0.1) return 1;
    while (GC_collect_a_little() != 0) {
    }
  }
  return objects.are_intact() ? 0 : 2;
}
TEST(Beside, WhatIsPutAsideKeepsNobodyAwake) {
  JD_NEEDS_MODE();
  const ChildResult r = run_child("waits_with_what_is_put_aside", beside);
  EXPECT_TRUE(r.ok()) << r;
}

// The last pause is refused again and again, then not.
JD_CHILD(refuses_the_last_pause) {
  GC_INIT();
  GC_set_full_freq(0);
  const Lists lists;
  for (int round = 0; round < 5; ++round) {
    // None that allocation began before.
    while (GC_collect_a_little() != 0) {
    }
    GC_start_incremental_collection();
    usleep(20000);
    static int asked;
    asked = 0;
    GC_set_stop_func([] {
      ++asked;
      return 1;
    });
    if (GC_collect_a_little() != 0) return 1;
    for (int k = 0; k < 20000; ++k) opaque(GC_malloc(32));
    if (asked == 0 || asked > 1000) return 2;
    GC_set_stop_func([] { return 0; });
    const GC_word before = GC_get_gc_no();
    GC_start_incremental_collection();
    while (GC_collect_a_little() != 0) {
    }
    if (GC_get_gc_no() == before || !lists.are_intact()) return 3;
  }
  return 0;
}
TEST(Beside, ARefusedPauseIsNoStep) {
  JD_NEEDS_MODE();
  const ChildResult r = run_child("refuses_the_last_pause", beside);
  EXPECT_TRUE(r.ok()) << r;
}

// A program that allocates much, and refuses collections now and then.
void allocate_much() {
  constexpr std::size_t kCells = 20000;
  const Root<void*> cells(static_cast<void**>(GC_malloc(kCells * sizeof(void*))));
  Random random(3);
  for (int i = 0; i < 1000000; ++i) {
    auto** object = static_cast<void**>(GC_malloc(32 + random.below(700)));
    void*& cell = cells.get()[random.below(kCells)];
    object[0] = cell;
    if (cell != nullptr) *static_cast<void**>(cell) = nullptr;
    cell = object;
  }
}
unsigned asked;

void expect_ok_with_limits(const char* child) {
  for (const char* const target : {"0", "2"}) {
    Environment environment = beside;
    environment.emplace_back("GC_PAUSE_TIME_TARGET", target);
    const ChildResult r = run_child(child, environment);
    EXPECT_TRUE(r.ok()) << r;
  }
}

// Each that is allowed to begin is refused when the threads stand. The program goes on.
JD_CHILD(refuses_what_it_allowed) {
  GC_INIT();
  GC_set_stop_func([] { return ++asked % 3 == 0 ? 0 : 1; });
  allocate_much();
  GC_finish_and_disable();
  const GC_word collections = GC_get_gc_no();
  for (int i = 0; i < 10000; ++i) opaque(GC_malloc(100));
  return asked > 100 && GC_get_gc_no() == collections ? 0 : 1;
}
TEST(Beside, ARefusedStepIsNotTriedAgainAtOnce) {
  JD_NEEDS_MODE();
  expect_ok_with_limits("refuses_what_it_allowed");
}

// What was marked before a refusal is not marked again: collections end, and the heap stays small.
JD_CHILD(refuses_half) {
  GC_INIT();
  static Random answers(7);
  GC_set_stop_func([] {
    ++asked;
    return static_cast<int>(answers.below(2));
  });
  allocate_much();
  // 100 MiB on an idle machine, a third more where the marker beside waits for a processor; in all
  // it allocates twice the limit.
  constexpr std::size_t kMostHeap = 192 << 20;
  const std::size_t heap = GC_get_heap_size();
  if (heap > kMostHeap || GC_get_gc_no() < 10) {
    std::printf("%zu bytes, %lu collections, asked %u times\n", heap, GC_get_gc_no(), asked);
    return 1;
  }
  return 0;
}
TEST(Beside, ARefusalLosesNothingThatIsMarked) {
  JD_NEEDS_MODE();
  expect_ok_with_limits("refuses_half");
}

// Nor is it asked for ever: without steps neither, a heap stays small.
JD_CHILD(refuses_always) {
  GC_INIT();
  GC_set_stop_func([] {
    ++asked;
    return 1;
  });
  allocate_much();
  std::printf("%zu bytes, %lu collections, asked %u times\n", GC_get_heap_size(), GC_get_gc_no(),
              asked);
  return GC_get_heap_size() < std::size_t{128} << 20 && GC_get_gc_no() >= 5 && asked < 1000 ? 0 : 1;
}
// Nor where a collection comes before the heap grows at all, again and again; nor where it comes
// only when the whole heap is filled, as with large objects.
JD_CHILD(refuses_always_before_growth) {
  GC_INIT();
  GC_dont_expand = std::getenv("JD_EXPANDS") == nullptr ? 1 : 0;
  const std::size_t bytes = std::strtoul(std::getenv("JD_BYTES"), nullptr, 10);
  GC_set_stop_func([] {
    ++asked;
    return 1;
  });
  constexpr std::size_t kAll = std::size_t{2} << 30;
  for (std::size_t done = 0; done < kAll; done += 64 * bytes) {
    for (int i = 0; i < 64; ++i) opaque(GC_malloc_atomic(bytes));
  }
  std::printf("%zu bytes, %lu collections, asked %u times\n", GC_get_heap_size(), GC_get_gc_no(),
              asked);
  return GC_get_heap_size() < std::size_t{64} << 20 && GC_get_gc_no() >= 5 && asked < 10000 ? 0 : 1;
}
TEST(Refusal, HoldsBackTheNextTryBeforeGrowthToo) {
  for (const char* const bytes : {"64", "5000", "100000"}) {
    for (const char* const expands : {kUnset, "1"}) {
      const ChildResult r = run_child(
          "refuses_always_before_growth",
          {{"JACKDAW_COLLECT_EVERY", kUnset}, {"JD_BYTES", bytes}, {"JD_EXPANDS", expands}});
      EXPECT_TRUE(r.ok()) << bytes << r;
    }
  }
}

TEST(Refusal, IsTriedAgainNowAndThenAndNotForEver) {
  for (const char* const incremental : {kUnset, "1"}) {
    const ChildResult r = run_child("refuses_always", {{"GC_ENABLE_INCREMENTAL", incremental},
                                                       {"JACKDAW_COLLECT_EVERY", kUnset}});
    EXPECT_TRUE(r.ok()) << r;
  }
}

// --- What threads do meanwhile
// --------------------------------------------------------------------

struct Cell {
  Cell* next;
  std::uint64_t tag;
};

constexpr std::uint64_t kMade = 0x6a61636b64617700;

Cell* make_cell(Cell* next, std::uint64_t number) {
  auto* const cell = static_cast<Cell*>(GC_malloc(sizeof(Cell)));
  *cell = {next, kMade ^ number};
  return cell;
}

// A table whose lists change all the time: heads come and go, tails move from one to another by way
// of the stack, cells are freed by hand. Each thread has its own.
class ChangingLists {
 public:
  explicit ChangingLists(unsigned seed) : random_(seed) {
    for (std::uint64_t i = 0; i < kLists; ++i) {
      for (std::uint64_t k = 0; k < kLength; ++k) heads_.get()[i] = make_cell(heads_.get()[i], k);
      lengths_[i] = kLength;
    }
  }
  void change() {
    const std::size_t i = random_() % kLists;
    const std::size_t j = random_() % kLists;
    Cell*& head = heads_.get()[i];
    switch (random_() % 4) {
      case 0:
        head = make_cell(head, lengths_[i]++);
        break;
      case 1:
        if (lengths_[i] > 1) {
          Cell* const gone = head;
          head = head->next;
          --lengths_[i];
          GC_free(gone);
        }
        break;
      case 2:
        std::swap(head, heads_.get()[j]);
        std::swap(lengths_[i], lengths_[j]);
        break;
      default:
        // All cells are new, and hold the old tail for a while.
        if (lengths_[i] > 1) {
          Cell* const second = make_cell(head->next->next, lengths_[i] - 2);
          head->next = nullptr;
          head = make_cell(second, lengths_[i] - 1);
        }
        break;
    }
  }
  [[nodiscard]] bool are_intact() const {
    for (std::size_t i = 0; i < kLists; ++i) {
      std::uint64_t left = lengths_[i];
      for (const Cell* cell = heads_.get()[i]; cell != nullptr; cell = cell->next) {
        if (left == 0 || cell->tag != (kMade ^ --left)) return false;
      }
      if (left != 0) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kLists = 16;
  static constexpr std::uint64_t kLength = 300;
  std::minstd_rand random_;
  Root<Cell*> heads_{static_cast<Cell**>(GC_malloc(kLists * sizeof(Cell*)))};
  std::array<std::uint64_t, kLists> lengths_{};
};

bool change_for_long(unsigned seed) {
  ChangingLists lists(seed);
  for (std::size_t round = 0; round < rounds(200); ++round) {
    for (int k = 0; k < 500; ++k) lists.change();
    // Begins one, or takes a step.
    if (round % 4 == 0) GC_start_incremental_collection();
    if (round % 16 == 0) usleep(1000);
    if (!lists.are_intact()) return false;
  }
  return true;
}

JD_CHILD(changes_lists) {
  GC_INIT();
  GC_set_full_freq(1);
  return change_for_long(1) ? 0 : 1;
}
TEST(Beside, WhatChangesMeanwhileIsKept) {
  JD_NEEDS_MODE();
  expect_well("changes_lists", Program::Runs);
}

JD_CHILD(changes_lists_in_threads) {
  GC_INIT();
  GC_allow_register_threads();
  GC_set_full_freq(1);
  std::atomic<bool> well{true};
  std::array<pthread_t, 3> threads{};
  struct Argument {
    unsigned seed;
    std::atomic<bool>* well;
  };
  std::array<Argument, 3> arguments{};
  for (unsigned i = 0; i < 3; ++i) {
    arguments[i] = {i + 2, &well};
    const int made = GC_pthread_create(
        &threads[i], nullptr,
        [](void* argument) -> void* {
          const auto* const mine = static_cast<Argument*>(argument);
          if (!change_for_long(mine->seed)) mine->well->store(false);
          return nullptr;
        },
        &arguments[i]);
    if (made != 0) return 1;
  }
  for (const pthread_t thread : threads) GC_pthread_join(thread, nullptr);
  return well ? 0 : 2;
}
TEST(Beside, SeveralThreadsMayChangeThings) {
  JD_NEEDS_MODE();
  expect_well("changes_lists_in_threads", Program::Runs);
}

// The child has no such thread, and a lock that was nobody's when it was made.
JD_CHILD(forks_meanwhile) {
  GC_INIT();
  GC_set_full_freq(0);
  const Lists lists;
  ChangingLists changing(7);
  for (int i = 0; i < 20; ++i) {
    GC_start_incremental_collection();
    for (int k = 0; k < 200; ++k) changing.change();
    const pid_t pid = fork();
    if (pid == 0) {
      for (int k = 0; k < 20000; ++k) changing.change();
      GC_gcollect();
      _exit(lists.are_intact() && changing.are_intact() ? 0 : 1);
    }
    int status = 0;
    if (waitpid(pid, &status, 0) != pid || status != 0) return 1;
  }
  return lists.are_intact() && changing.are_intact() ? 0 : 2;
}
TEST(Beside, AForksChildGoesOn) {
  JD_NEEDS_MODE();
  JD_SKIP_UNDER_TSAN("can't start threads in the child of a program with threads");
  expect_well("forks_meanwhile", Program::Runs);
}

JD_CHILD(has_described_objects) {
  GC_INIT();
  GC_set_full_freq(0);
  const Lists lists;
  DescribedObjects objects(20000);
  for (int round = 0; round < 10; ++round) {
    GC_start_incremental_collection();
    usleep(2000);
    for (int k = 0; k < 1000; ++k) objects.prepend();
    for (int k = 0; k < 1000; ++k) objects.free_first();
    while (GC_collect_a_little() != 0) {
    }
    if (!objects.are_intact()) return 1;
  }
  return lists.are_intact() ? 0 : 2;
}
TEST(Beside, DescribedObjectsWaitForAStop) {
  JD_NEEDS_MODE();
  expect_well("has_described_objects", Program::Runs);
}

}  // namespace
}  // namespace jd::test::partial
