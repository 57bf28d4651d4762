// Kinds: what the objects of a block are to the marker.
//
// Descriptors keep the ABI's encoding (gc_mark.h), because programs make them: the two low bits of
// the word say how to read the rest.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heap/block.hpp"

namespace jd::heap {

inline constexpr Word kDescriptorTag = 3;
inline constexpr Word kTagLength = 0;  // scan that many bytes, from the object's beginning
inline constexpr Word kTagBitmap = 1;  // bit 63 is word 0, bit 62 word 1, ...
inline constexpr std::size_t kBitmapWords = 62;  // that a bitmap descriptor has room for
inline constexpr Word kTagProcedure = 2;         // call a mark procedure
inline constexpr Word kTagPerObject = 3;         // the real descriptor is in, or behind, the object

// Per-object descriptors with a negative offset mean "through the first word": the descriptor is
// at first word - (offset + bias). The ABI's constant.
inline constexpr Word kIndirectBias = 0x10;
inline constexpr unsigned kProcedureBits = 6;
inline constexpr unsigned kMaxProcedures = 1u << kProcedureBits;
// As bdwgc does, the first numbers are kept for programs that choose one: 0 for the procedure of
// gcj-style objects.
inline constexpr unsigned kReservedProcedures = 8;
// The last one is the marker's own (mark/descriptor.hpp), and in no table.
inline constexpr unsigned kOwnProcedure = kMaxProcedures - 1;

using KindNumber = std::uint8_t;
// 128 of homogeneous layouts (JD_MAX_HOMOGENEOUS); four built in, and some eight that layouts, weak
// references and described objects share; the others are programs'.
inline constexpr unsigned kMaxKinds = 192;

// The built-in kinds; the first four have the ABI's numbers.
inline constexpr KindNumber kAtomic = 0;
inline constexpr KindNumber kNormal = 1;
inline constexpr KindNumber kUncollectable = 2;
inline constexpr KindNumber kAtomicUncollectable = 3;
inline constexpr KindNumber kBuiltInKinds = 4;

// Are its objects roots, never reclaimed but by an explicit free?
constexpr bool is_uncollectable(KindNumber kind) {
  return kind == kUncollectable || kind == kAtomicUncollectable;
}

// Called in or after a collection for an object that nothing reaches; not 0 keeps it.
using DisclaimFunction = int (*)(void* object);

struct Layout;

// Where the layout of a kind's objects is found, if they have one: it is that of the whole block's
// objects, or the object's first word or its header leads to it. (To programs, a layout's source:
// JD_HOMOGENEOUS, JD_SELF, JD_HEADER.)
enum class LayoutFrom : std::uint8_t { Nothing, Block, FirstWord, Header };

struct Kind {
  Word descriptor = 0;
  // The slot's size is to be added to the descriptor (a length of 0 then means the whole object).
  bool add_size = false;
  // Objects read as zero when they are handed out.
  bool clear = false;
  // What a collection has reclaimed is cleared before it is handed out again, and so are the free
  // slots beside it of a small block; not what the program has freed, and takes again before a
  // collection (malloc.req.old-words).
  bool clear_reclaimed = false;
  // With a disclaim function: what an unreachable object points at stays until it is disclaimed.
  bool mark_from_unreachable = false;
  Scan scan = Scan::None;
  LayoutFrom layout_from = LayoutFrom::Nothing;
  DisclaimFunction disclaim = nullptr;
  const Layout* layout = nullptr;  // LayoutFrom::Block
  // LayoutFrom::Block: which of the first words are pointers, bit 63 for word 0; 0 if the
  // descriptor says it in another way.
  Word pointer_bits = 0;
  // LayoutFrom::Block: as in the records of its small blocks, but the end may lie behind the
  // slot's.
  PointerStretch pointers = {0, 0};

  // Are its objects typed?
  [[nodiscard]] bool has_layout() const { return layout_from != LayoutFrom::Nothing; }
};

// For an object of so many bytes.
inline Word descriptor_of(const Kind& kind, std::size_t size) {
  return kind.descriptor + (kind.add_size ? size : 0);
}

// Does a procedure of the program's, or of the marker's own, say what each object of it points to?
// (Where the objects themselves name procedures: no.)
inline bool has_procedure(const Kind& kind) {
  return kind.scan == Scan::Descriptor && (kind.descriptor & kDescriptorTag) == kTagProcedure;
}

// Whether the program, by a mark or disclaim function, or the marker, by a descriptor within it,
// may meet an object of the kind that is not initialised yet. A first word of zero tells them.
inline bool begins_with_zero(const Kind& kind) {
  return kind.scan == Scan::Descriptor || kind.disclaim != nullptr;
}

// A mark procedure, as the ABI has it: it pushes what the object points to and returns the stack
// pointer that it was given or got from pushing. The pointers are opaque.
using MarkProcedure = void* (*)(Word* object, void* mark_stack_pointer, void* mark_stack_limit,
                                Word environment);

// Both tables grow under the heap's lock and are read by the marker in a stopped world. A thread
// that was told a kind's number has it from somebody who held the lock.
extern Kind kinds[kMaxKinds];
extern unsigned kind_count;
extern MarkProcedure mark_procedures[kMaxProcedures];
extern unsigned mark_procedure_count;

// Adds a kind, or a procedure; kMaxKinds or kMaxProcedures when the table is full. Pre: the heap's
// lock is held; objects of the kind are made after it was let go.
unsigned add_kind(Word descriptor, bool add_size, bool clear);
unsigned add_mark_procedure(MarkProcedure procedure);

// Gives a kind its disclaim function (null: none any more), and says whether what its unreachable
// objects point at stays. Pre: the heap's lock is held.
void set_disclaim(unsigned kind, DisclaimFunction disclaim, bool mark_from_unreachable);
// Has any kind ever had one? Written under the lock, read by every thread that claims slots.
extern bool some_disclaim;

}  // namespace jd::heap
