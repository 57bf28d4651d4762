// Registers unwind tables as a compiler of code in memory does: the first who unwinds then sorts
// them, in memory that it asks malloc for.
#include <dlfcn.h>
#include <execinfo.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" void __register_frame(void* begin);
extern "C" void __deregister_frame(void* begin);

namespace {

// A table of one function, and its end: a CIE, an FDE that refers to it, and a zero.
struct [[gnu::packed]] Table {
  std::uint32_t cie_length = 20;
  std::uint32_t cie_id = 0;
  std::uint8_t version = 1;
  char augmentation[1] = {0};
  std::uint8_t code_alignment = 1;
  std::uint8_t data_alignment = 0x78;  // -8
  std::uint8_t return_address = 16;
  std::uint8_t rules[11] = {0x0c, 7, 8, 0x90, 1};  // the frame is at rsp + 8; then nothing
  std::uint32_t fde_length = 24;
  std::uint32_t cie_distance = 28;
  std::uint64_t begin = 0;
  std::uint64_t bytes = 16;
  std::uint8_t no_rules[4] = {};
  std::uint32_t end = 0;
};

}  // namespace

int main() {
  static Table table;
  static char function[64];
  table.begin = reinterpret_cast<std::uint64_t>(function);
  void* addresses[20];
  backtrace(addresses, 4);
  alarm(20);
  __register_frame(&table);
  const int count = backtrace(addresses, 20);
  __deregister_frame(&table);
  return count > 0 ? 0 : 1;
}
