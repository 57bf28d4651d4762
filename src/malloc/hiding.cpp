#include "malloc/hiding.hpp"

#include "cycle/settings.hpp"
#include "os/log.hpp"
#include "os/modules.hpp"

// Of fontconfig: a pattern holds the distance to its elements (FcPattern::elts_offset), and nothing
// else leads there.
extern "C" [[gnu::weak]] void create_pattern() asm("FcPatternCreate");

namespace jd::serve {
namespace {

// With one that comes later, by dlopen, there may be such objects already.
bool may_collect() {
  // Packagers of Python's call their copy libfontconfig-1a2b3c4d.so.1.
  if (!os::is_loaded("/libfontconfig")) return true;
  cycle::settings.may_collect = nullptr;
  GC_dont_gc = 1;
  os::warn(
      "libfontconfig, which hides pointers, was loaded after the start; not collecting any more. "
      "LD_PRELOAD=libfontconfig.so.1 loads it at the start");
  return false;
}

}  // namespace

base::Word hiding_code = 0;
base::Word hiding_code_bytes = 0;

void find_hiding_code() {
  if (&create_pattern != nullptr) {
    const os::Extent bounds = os::bounds_of_object(reinterpret_cast<void*>(create_pattern));
    hiding_code = base::as_word(bounds.low);
    hiding_code_bytes = base::as_word(bounds.high) - hiding_code;
  }
  if (hiding_code_bytes == 0) cycle::settings.may_collect = may_collect;
}

}  // namespace jd::serve
