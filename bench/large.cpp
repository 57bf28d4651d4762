// large [reserved]: churn of large objects.
//
// Models: buffers, strings and images that come and go: sizes from 8 KiB to 1 MiB, small ones more
//   often (evenly on a logarithmic scale), every third without pointers. One word of each page is
//   written, as whoever asks for a buffer fills it. With `reserved`, stacks, tables and queues with
//   room in reserve: all may hold pointers, and of each only the first eighth is ever written.
// Live: 64 of them, about 12 MB.
// Shows: nanoseconds for each object; the part of the time in collections.
#include <math.h>
#include <string.h>

#include "support/bench.hpp"

namespace {

constexpr size_t kWindow = 64;
constexpr size_t kPage = 4096;
constexpr size_t kLeast = 8 << 10;
constexpr size_t kReservedPart = 8;

struct Buffer {
  unsigned char* data;
  size_t size;
  size_t written;
};
Buffer window[kWindow];

}  // namespace

int main(int argc, char** argv) {
  const bool quick = bench::take_quick(&argc, argv);
  const bool reserved = argc == 2 && strcmp(argv[1], "reserved") == 0;
  if (argc != (reserved ? 2 : 1)) bench::die("usage: large [reserved] [--quick]");
  const size_t objects = quick ? 500 : 20000;
  GC_INIT();
  bench::watch_collections();
  bench::Random random;
  const double began = bench::now();
  for (size_t i = 0; i < objects; ++i) {
    Buffer& b = window[random.below(kWindow)];
    // 2^13 to 2^20.
    const double exponent = 7.0 * static_cast<double>(random.below(1 << 20)) / (1 << 20);
    b.size = static_cast<size_t>(kLeast * exp2(exponent));
    b.data = nullptr;  // The old one is garbage before the new one is asked for.
    b.data = bench::must(static_cast<unsigned char*>(
        i % 3 == 0 && !reserved ? GC_MALLOC_ATOMIC(b.size) : GC_MALLOC(b.size)));
    b.written = reserved ? b.size / kReservedPart : b.size;
    for (size_t at = 0; at < b.written; at += kPage)
      b.data[at] = static_cast<unsigned char>(b.size);
  }
  const double took = bench::now() - began;
  size_t live = 0;
  for (const Buffer& b : window) {
    live += b.size;
    for (size_t at = 0; at < b.written; at += kPage) {
      if (b.data[at] != static_cast<unsigned char>(b.size)) bench::die("a live object is damaged");
    }
  }
  bench::report("large", live,
                {{"per object", "ns", took * 1e9 / static_cast<double>(objects)},
                 {"in collections", "s", bench::collection_times.total}});
}
