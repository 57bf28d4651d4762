// Where libFuzzer is not: inputs by chance, or from files.
//
//   fuzz_NAME [INPUTS [SEED]]    so many inputs by chance (default 200, seed 1)
//   fuzz_NAME FILE ...           these, once each: what ./dev fuzz found
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "input.hpp"

namespace {

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

void run_file(const char* name) {
  std::ifstream file(name, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "%s: cannot be read\n", name);
    std::exit(2);
  }
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

void run_by_chance(unsigned long inputs, unsigned long seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint8_t> bytes;
  for (unsigned long i = 0; i < inputs; ++i) {
    bytes.resize(random() % 2048);
    // Few operations in some inputs, so that they come often there.
    const std::uint64_t mask = i % 4 == 0 ? 0x1f : 0xff;
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random() & mask);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && !is_number(arguments[0])) {
    for (const std::string& name : arguments) run_file(name.c_str());
  } else {
    run_by_chance(arguments.empty() ? 200 : std::stoul(arguments[0]),
                  arguments.size() < 2 ? 1 : std::stoul(arguments[1]));
  }
}
