// limit: what this machine's memory allows, whatever the library.
//
// Models: no program. It measures the machine in the same series of runs as the rows that are
//   compared with it: a marker can hardly take less time for an object than one cache miss that
//   overlaps with others, one that follows pointers with nothing else to do waits for a whole miss
//   each time, and an allocator cannot hand out clear memory faster than it can be cleared. Nothing
//   is allocated from the collector; a difference between two libraries is noise of the machine.
// Live: nothing; a table of 1 GiB outside of the collected heap, one at a time.
// Shows: nanoseconds for a miss that is independent of the one before it (addresses known early,
//   many in flight), and for one that is not (each line holds the number of the next); nanoseconds
//   for reading and for clearing a KiB, in order. One thread. All of it with huge pages asked for,
//   the misses also without: then a miss pays for the page tables, too. Where the system grants no
//   huge pages, both are the same. Each figure is the least of three: a limit is what the memory
//   does when nobody else uses it.
//   With a number of threads: independent misses and reading, of so many at a time, on huge pages.
//   Nanoseconds of all for one miss or KiB of any.
#include "support/clients.hpp"

namespace {

constexpr size_t kLineBytes = 64;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr double kKibibyte = 1024;
constexpr int kPasses = 3;

struct Line {
  uint64_t next;
  uint64_t unused[kLineBytes / sizeof(uint64_t) - 1];
};
static_assert(sizeof(Line) == kLineBytes);

// One cycle through all numbers below a power of two, in an order that no prefetcher guesses: the
// linear congruential generator has the full period since its step is odd and its factor is 1
// modulo 4 (Hull & Dobell, 1962).
constexpr uint64_t kFactor = UINT64_C(0x5851F42D4C957F2D);
constexpr uint64_t kStep = UINT64_C(0x14057B7EF767814F);
static_assert(kFactor % 4 == 1 && kStep % 2 == 1);

// The least of what it returns when it is called so often.
template <class Measure>
double least(Measure measure) {
  double best = measure();
  for (int pass = 1; pass < kPasses; ++pass) {
    const double another = measure();
    if (another < best) best = another;
  }
  return best;
}

class Table {
 public:
  // `lines` is a power of two.
  Table(size_t lines, int advice) : lines_(lines), room_(lines * kLineBytes + kHugePage) {
    const auto first = reinterpret_cast<uintptr_t>(&room_[0]);
    line_ = reinterpret_cast<Line*>((first + kHugePage - 1) & ~uintptr_t{kHugePage - 1});
    // A system without huge pages refuses; then there is nothing to advise.
    (void)madvise(line_, lines * kLineBytes, advice);
    for (size_t i = 0; i < lines; ++i) line_[i].next = successor(i);
  }

  double independent_miss(size_t loads) const {
    const double began = bench::now();
    const uint64_t sum = sum_of_random_lines(loads, {});
    const double took = bench::now() - began;
    check_sum_of_random_lines(sum, loads, {});
    return took * 1e9 / static_cast<double>(loads);
  }
  double independent_miss(size_t loads, unsigned threads) const {
    uint64_t sums[bench::kMostClients];
    const auto seeded = [](unsigned thread) { return bench::Random(thread + 1); };
    double cpu = 0;
    const double took = bench::run_clients<bench::Freed>(threads, &cpu, [&](unsigned thread) {
      sums[thread] = sum_of_random_lines(loads, seeded(thread));
    });
    for (unsigned thread = 0; thread < threads; ++thread) {
      check_sum_of_random_lines(sums[thread], loads, seeded(thread));
    }
    return took * 1e9 / static_cast<double>(loads) / threads;
  }

  // Each time on another part of the chain, which the last-level cache does not hold yet.
  double dependent_miss(size_t loads) {
    uint64_t at = chain_;
    const double began = bench::now();
    for (size_t i = 0; i < loads; ++i) at = line_[at].next;
    const double took = bench::now() - began;
    for (size_t i = 0; i < loads; ++i) chain_ = successor(chain_);
    if (at != chain_) bench::die("the chain was misread");
    return took * 1e9 / static_cast<double>(loads);
  }

  double reading_a_kibibyte() const {
    const double began = bench::now();
    const uint64_t sum = sum_of_words(0, bytes() / sizeof(uint64_t));
    const double took = bench::now() - began;
    check_sum_of_words(sum);
    return for_a_kibibyte(took);
  }
  // Each thread a part of its own.
  double reading_a_kibibyte(unsigned threads) const {
    uint64_t sums[bench::kMostClients];
    const size_t count = bytes() / sizeof(uint64_t);
    double cpu = 0;
    const double took = bench::run_clients<bench::Freed>(threads, &cpu, [&](unsigned thread) {
      const auto bound = [&](unsigned number) { return count / 4 * number / threads * 4; };
      sums[thread] = sum_of_words(bound(thread), bound(thread + 1));
    });
    uint64_t sum = 0;
    for (unsigned thread = 0; thread < threads; ++thread) sum += sums[thread];
    check_sum_of_words(sum);
    return for_a_kibibyte(took);
  }

  // Leaves the table clear.
  double clearing_a_kibibyte() {
    const double began = bench::now();
    memset(static_cast<void*>(line_), 0, bytes());
    // As if somebody looked at once: what is timed must have happened.
    asm volatile("" : : "r"(line_) : "memory");
    const double took = bench::now() - began;
    for (size_t i = 0; i < lines_; i += 1021) {
      if (line_[i].next != 0) bench::die("the table is not clear");
    }
    return for_a_kibibyte(took);
  }

 private:
  [[nodiscard]] size_t bytes() const { return lines_ * kLineBytes; }
  [[nodiscard]] uint64_t successor(uint64_t i) const {
    return (i * kFactor + kStep) & (lines_ - 1);
  }
  [[nodiscard]] uint64_t sum_of_random_lines(size_t loads, bench::Random random) const {
    const volatile Line* table = line_;
    uint64_t sum = 0;
    for (size_t i = 0; i < loads; ++i) sum += table[random.next() & (lines_ - 1)].next;
    return sum;
  }
  void check_sum_of_random_lines(uint64_t sum, size_t loads, bench::Random random) const {
    for (size_t i = 0; i < loads; ++i) sum -= successor(random.next() & (lines_ - 1));
    if (sum != 0) bench::die("the table was misread");
  }
  // Pre: both are multiples of 4.
  [[nodiscard]] uint64_t sum_of_words(size_t first, size_t end) const {
    const auto* words = reinterpret_cast<const uint64_t*>(line_);
    // Four sums, so that no addition waits for another.
    uint64_t part[4] = {};
    for (size_t i = first; i < end; i += 4) {
      for (size_t k = 0; k < 4; ++k) part[k] += words[i + k];
    }
    return part[0] + part[1] + part[2] + part[3];
  }
  void check_sum_of_words(uint64_t sum) const {
    // Every number once, and nothing else.
    if (sum != uint64_t{lines_} * (lines_ - 1) / 2) bench::die("the table was misread");
  }
  [[nodiscard]] double for_a_kibibyte(double seconds) const {
    return seconds * 1e9 * kKibibyte / static_cast<double>(bytes());
  }

  size_t lines_;
  bench::Scratch<char> room_;
  Line* line_;
  uint64_t chain_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const bool quick = bench::take_quick(&argc, argv);
  char* end = nullptr;
  const long threads = argc == 2 ? strtol(argv[1], &end, 10) : 0;
  const bool is_number = end != nullptr && *end == '\0';
  if (argc > 2 ||
      (argc == 2 && (!is_number || threads < 1 || threads > long{bench::kMostClients}))) {
    bench::die("usage: limit [THREADS] [--quick]");
  }
  const size_t bytes = quick ? size_t{8} << 20 : size_t{1} << 30;
  const size_t lines = bytes / kLineBytes;
  const size_t independent = quick ? 100000 : 8000000;
  const size_t dependent = quick ? 20000 : 1000000;
  GC_INIT();
  if (threads != 0) {
    const Table table(lines, MADV_HUGEPAGE);
    const auto count = static_cast<unsigned>(threads);
    bench::report(
        "limit", 0,
        {{"independent miss", "ns",
          least([&] { return table.independent_miss(independent, count); })},
         {"reading, per KiB", "ns", least([&] { return table.reading_a_kibibyte(count); })}});
    return 0;
  }

  // In the order of the report; the last two on small pages.
  double figures[6];
  {
    Table table(lines, MADV_HUGEPAGE);
    figures[0] = least([&] { return table.independent_miss(independent); });
    figures[1] = least([&] { return table.dependent_miss(dependent); });
    figures[2] = least([&] { return table.reading_a_kibibyte(); });
    figures[3] = least([&] { return table.clearing_a_kibibyte(); });
  }
  Table table(lines, MADV_NOHUGEPAGE);
  figures[4] = least([&] { return table.independent_miss(independent); });
  figures[5] = least([&] { return table.dependent_miss(dependent); });
  bench::report("limit", 0,
                {{"independent miss", "ns", figures[0]},
                 {"dependent miss", "ns", figures[1]},
                 {"reading, per KiB", "ns", figures[2]},
                 {"clearing, per KiB", "ns", figures[3]},
                 {"independent miss, small pages", "ns", figures[4]},
                 {"dependent miss, small pages", "ns", figures[5]}});
}
