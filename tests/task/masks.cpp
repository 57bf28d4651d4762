// A forker that keeps a mask in a register across its fork, as GCC 12 does at -O3 with AVX-512.
#if defined(__x86_64__)
#include <immintrin.h>

#include "jackdaw/task.hpp"

namespace {

[[gnu::noinline]] int child(const char* bytes) {
  const __m512i block = _mm512_loadu_si512(bytes);
  const __mmask64 zeros = _mm512_cmpeq_epi8_mask(block, _mm512_setzero_si512());
  return static_cast<int>(_cvtmask64_u64(zeros) & 1);
}

[[gnu::noinline]] void fork_with_masks(const char* bytes, __mmask64* masks) {
  __mmask64 m = _kxor_mask64(_load_mask64(masks), _load_mask64(masks + 1));
  const auto both = jd::par([bytes] { return child(bytes); }, [bytes] { return child(bytes); });
  m = _kadd_mask64(m, _load_mask64(masks + 2));
  m = _kxnor_mask64(m, _load_mask64(masks + 3));
  _store_mask64(masks + 4, m);
  masks[5] = static_cast<__mmask64>(both.first) + static_cast<__mmask64>(both.second);
}

}  // namespace

extern "C" int task_masks_survive() {
  static const char bytes[64] = {};
  __mmask64 masks[6] = {1, 2, 3, 4, 0, 0};
  fork_with_masks(bytes, masks);
  return masks[4] == ~(((1ULL ^ 2) + 3) ^ 4) && masks[5] == 2 ? 1 : 0;
}
#endif
