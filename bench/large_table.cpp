// large_table: a table of large objects of one size, or of 8 to 40 KiB, replaced by chance.
//
// Models: a cache of pages, rows or images, of one format or compressed, filled once and then
// renewed.
// Live: 100 MB of pointer-free objects; five times as many replace those.
// Shows: nanoseconds for each object, which is written whole; the part of the time in collections.
//   Peak memory tells what the ends of the objects' last pages or blocks cost
//   (docs/design/heap.md, "Huge pages" and "Spans").
#include <string.h>

#include "support/bench.hpp"

namespace {

constexpr size_t kLive = 100 << 20;
constexpr size_t kRenewals = 5;

constexpr size_t kLeastVaried = 8 << 10;
constexpr size_t kMostVaried = 40 << 10;

struct Row {
  unsigned char* object;
  size_t bytes;
};

}  // namespace

int main(int argc, char** argv) {
  const bool quick = bench::take_quick(&argc, argv);
  if (argc != 2) bench::die("usage: large_table BYTES|varied [--quick]");
  const bool varied = strcmp(argv[1], "varied") == 0;
  const size_t least = varied ? kLeastVaried : static_cast<size_t>(bench::number(argv[1]));
  const size_t most = varied ? kMostVaried : least;
  if (most > kLive) bench::die("BYTES is 104857600 at most");
  const size_t count = (quick ? kLive / 20 : kLive) / ((least + most) / 2) + 1;
  GC_INIT();
  bench::watch_collections();
  bench::Random random;
  Row* table = bench::must(static_cast<Row*>(GC_MALLOC(count * sizeof(Row))));
  const double began = bench::now();
  for (size_t i = 0; i < count * (1 + kRenewals); ++i) {
    const size_t place = i < count ? i : random.below(count);
    const size_t bytes = least + random.below(most - least + 1);
    auto* object = bench::must(static_cast<unsigned char*>(GC_MALLOC_ATOMIC(bytes)));
    memset(object, static_cast<unsigned char>(place), bytes);
    table[place] = {object, bytes};
  }
  const double took = bench::now() - began;
  size_t live = 0;
  for (size_t place = 0; place < count; ++place) {
    const auto expected = static_cast<unsigned char>(place);
    const auto [object, bytes] = table[place];
    live += bytes;
    if (object[0] != expected || object[bytes - 1] != expected) {
      bench::die("a live object is damaged");
    }
  }
  bench::report("large_table", live,
                {{"per object", "ns", took * 1e9 / static_cast<double>(count * (1 + kRenewals))},
                 {"in collections", "s", bench::collection_times.total}});
}
