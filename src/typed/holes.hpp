// The threads' tables of holes, which the inline jd_new goes by.
#pragma once

#include "heap/layout.hpp"
#include "heap/mixed.hpp"
#include "heap/size_class.hpp"
#include "jackdaw/layout.h"

namespace jd::typed {

// Indices: a hole that is always empty; one for each layout with a kind of its own; those in mixed
// blocks; and, where there are none, one for each size of the kinds that others share.
inline constexpr unsigned kNoHole = 0;
inline constexpr unsigned kFirstMixed = 1 + JD_MAX_HOMOGENEOUS;
inline constexpr unsigned kFirstShared = kFirstMixed + heap::kMixedKinds;
// The kinds that layouts share: of objects with headers or without, with pointers or without.
inline constexpr unsigned kSharedKinds = 4;
constexpr unsigned shared_kind_number(bool header, bool scanned) {
  return 2u * (header ? 1 : 0) + (scanned ? 1 : 0);
}
static_assert(kSharedKinds == heap::kMixedKinds);
inline constexpr unsigned kHoles = kFirstShared + kSharedKinds * heap::kSizeClasses;
// Beside homogeneous layouts' there are our own kinds, twelve, and room for programs'.
static_assert(heap::kMaxKinds >= JD_MAX_HOMOGENEOUS + 64);

constexpr unsigned homogeneous_hole(unsigned layout) { return 1 + layout; }
constexpr unsigned mixed_hole(unsigned number) { return kFirstMixed + number; }
constexpr unsigned shared_hole(bool header, bool scanned, unsigned size_class) {
  return kFirstShared + shared_kind_number(header, scanned) * heap::kSizeClasses + size_class;
}

// Before the first layout is made. Pre: the heap's lock is held.
void prepare_holes();

}  // namespace jd::typed
