// large_table: a table of large objects of one size, replaced by chance.
//
// Models: a cache of pages, rows or images of one format, filled once and then renewed.
// Live: 100 MB of pointer-free objects; five times as many replace those.
// Shows: nanoseconds for each object, which is written whole; the part of the time in collections.
//   Peak memory tells what the ends of the objects' last pages or blocks cost
//   (docs/design/heap.md, "Huge pages").
#include <string.h>

#include "support/bench.hpp"

namespace {

constexpr size_t kLive = 100 << 20;
constexpr size_t kRenewals = 5;

}  // namespace

int main(int argc, char** argv) {
  const bool quick = bench::take_quick(&argc, argv);
  if (argc != 2) bench::die("usage: large_table BYTES [--quick]");
  const auto bytes = static_cast<size_t>(bench::number(argv[1]));
  if (bytes > kLive) bench::die("BYTES is 104857600 at most");
  const size_t count = (quick ? kLive / 20 : kLive) / bytes + 1;
  GC_INIT();
  bench::watch_collections();
  bench::Random random;
  auto** table =
      bench::must(static_cast<unsigned char**>(GC_MALLOC(count * sizeof(unsigned char*))));
  const double began = bench::now();
  for (size_t i = 0; i < count * (1 + kRenewals); ++i) {
    const size_t place = i < count ? i : random.below(count);
    auto* object = bench::must(static_cast<unsigned char*>(GC_MALLOC_ATOMIC(bytes)));
    memset(object, static_cast<unsigned char>(place), bytes);
    table[place] = object;
  }
  const double took = bench::now() - began;
  for (size_t place = 0; place < count; ++place) {
    const auto expected = static_cast<unsigned char>(place);
    if (table[place][0] != expected || table[place][bytes - 1] != expected) {
      bench::die("a live object is damaged");
    }
  }
  bench::report("large_table", count * bytes,
                {{"per object", "ns", took * 1e9 / static_cast<double>(count * (1 + kRenewals))},
                 {"in collections", "s", bench::collection_times.total}});
}
