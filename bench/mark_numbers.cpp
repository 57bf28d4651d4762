// mark_numbers: marking arrays in which there are no pointers, though there could be.
//
// Models: matrices, samples and images of a program that asks for all memory in the same way.
// Live: 100 MB in arrays of the given length, of numbers that are no addresses.
// Shows: nanoseconds for each array, of a forced collection and of its marking.
#include "support/bench.hpp"

namespace {

double** table;

}  // namespace

int main(int argc, char** argv) {
  const bool quick = bench::take_quick(&argc, argv);
  if (argc != 2) bench::die("usage: mark_numbers BYTES [--quick]");
  const auto bytes = static_cast<size_t>(bench::number(argv[1]));
  if (bytes < sizeof(double)) bench::die("BYTES is 8 at least");
  const size_t length = bytes / sizeof(double);
  const size_t arrays = (quick ? 1000000 : 100000000) / bytes + 1;
  GC_INIT();
  GC_disable();
  table = bench::must(static_cast<double**>(GC_MALLOC(arrays * sizeof(double*))));
  for (size_t i = 0; i < arrays; ++i) {
    table[i] = bench::must(static_cast<double*>(GC_MALLOC(bytes)));
    for (size_t k = 0; k < length; ++k) table[i][k] = static_cast<double>(i + k) * 1.5;
  }
  GC_enable();
  bench::measure_marking("mark_numbers", arrays, arrays * bytes);
  for (size_t i = 0; i < arrays; ++i) {
    for (size_t k = 0; k < length; ++k) {
      if (table[i][k] != static_cast<double>(i + k) * 1.5) bench::die("an array is damaged");
    }
  }
}
