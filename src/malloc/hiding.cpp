#include "malloc/hiding.hpp"

#include "os/log.hpp"
#include "os/modules.hpp"

// One function of each: so that one which is linked into the program itself is found.
extern "C" [[gnu::weak]] void create_pattern() asm("FcPatternCreate");
extern "C" [[gnu::weak]] void allocate_for_ruby() asm("ruby_xmalloc");
extern "C" [[gnu::weak]] void initialise_prolog() asm("PL_initialise");

namespace jd::serve {
namespace {

struct HidingLibrary {
  const char* name;    // what its file's name begins with
  void (*function)();  // null where the program has none
  os::Extent code;
};

constinit HidingLibrary libraries[] = {
    // A pattern holds the distance to its elements (FcPattern::elts_offset), and nothing else leads
    // there. Packagers of Python's call their copy libfontconfig-1a2b3c4d.so.1.
    {"libfontconfig", create_pattern, {}},
    // ruby/io.h declares the buffers of an rb_io_t packed: the pointer to one that is being parsed
    // lies at 4 modulo 8.
    {"libruby", allocate_for_ruby, {}},
    // The arrays of atoms and functors begin with their first index: the pointer to a block of
    // them lies before its first byte.
    {"libswipl", initialise_prolog, {}},
};

}  // namespace

base::Word hiding_code = 0;
base::Word hiding_code_bytes = 0;

bool is_in_hiding_code(const void* caller) {
  for (const HidingLibrary& library : libraries) {
    if (library.code.low <= caller && caller < library.code.high) return true;
  }
  return false;
}

bool hiding_code_came_late() {
  bool came = false;
  for (const HidingLibrary& library : libraries) {
    const os::LoadedFile file = os::find_loaded(library.name);
    if (library.code.low != nullptr || file.path == nullptr) continue;
    os::warn(library.name,
             ", which hides pointers, was loaded after the start; not collecting any more. "
             "LD_PRELOAD=",
             file.path, " loads it at the start");
    came = true;
  }
  return came;
}

void find_hiding_code() {
  base::Word low = ~base::Word{0};
  base::Word high = 0;
  for (HidingLibrary& library : libraries) {
    // By its file first: the address of a function is in the program where that was linked for
    // fixed ones and takes it.
    const void* inside = os::find_loaded(library.name).inside;
    if (inside == nullptr) inside = reinterpret_cast<void*>(library.function);
    if (inside != nullptr) library.code = os::bounds_of_object(inside);
    if (library.code.low == nullptr) continue;
    low = base::min_of(low, base::as_word(library.code.low));
    high = base::max_of(high, base::as_word(library.code.high));
  }
  if (low < high) {
    hiding_code = low;
    hiding_code_bytes = high - low;
  }
}

}  // namespace jd::serve
