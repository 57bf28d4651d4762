// schemec PRELUDE PROGRAM OUTPUT: a compiler from a subset of Scheme to C
// (docs/guide/emitting-c.md).
#include <cstdio>
#include <fstream>
#include <iterator>

#include "program.hpp"

namespace {

std::string contents(const char* path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: schemec PRELUDE PROGRAM OUTPUT\n");
    return 2;
  }
  const char* reading = argv[1];
  try {
    scheme::Program program;
    const auto prelude = scheme::read_all(contents(argv[1]), &program.data);
    reading = argv[2];
    const auto text = scheme::read_all(contents(argv[2]), &program.data);
    scheme::expand(prelude, text, &program);
    scheme::analyze(&program);
    std::ofstream output(argv[3]);
    output << scheme::emit(program);
    output.close();
    if (!output) throw std::runtime_error("cannot write " + std::string(argv[3]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "schemec: %s: %s\n", reading, error.what());
    return 1;
  }
  return 0;
}
