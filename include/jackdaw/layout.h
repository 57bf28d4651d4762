/* Layouts: what the collector must know of an object to move it and what it points to.
 *
 *   struct pair {
 *     void *first, *rest;
 *   };
 *   static const uint64_t pair_pointers[] = {JD_POINTER(struct pair, first) |
 *                                            JD_POINTER(struct pair, rest)};
 *   jd_layout* pair = jd_layout_define(
 *       &(jd_layout_info){.name = "pair", .size = sizeof(struct pair), .pointers = pair_pointers});
 *
 * A layout is defined once, at a program's start, and lasts for ever. It says which words of an
 * object are pointers; heap.h allocates by it. Smith & Morrisett, "Comparing Mostly-Copying and
 * Mark-Sweep Conservative Collection" (1998), is where typed objects that move beside an ambiguous
 * stack come from; the three sources of layouts below differ from it (docs/design/copy.md).
 *
 * What a pointer word of an object may hold: null; the address of an object of this heap, or of any
 * byte in it (but for GC_malloc_ignore_off_page's, of its first page); the address of anything
 * outside of the heap. An address one past an object's end is that of its neighbour, which it would
 * keep alive and be rewritten with: a C program's end pointer belongs into a word that the layout
 * does not name, as an index, or the object is made a byte longer. It is read and rewritten while
 * the program stands still, so it must hold such a word at every moment. Tags in the low three bits
 * stay as they are, since they only make the address one of a byte further on.
 */
#ifndef JACKDAW_LAYOUT_H
#define JACKDAW_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define JD_HEAP_API __attribute__((visibility("default")))

/* The bit of a field in a bitmap of 64 words: bit i stands for the 8 bytes from 8 i on. */
#define JD_POINTER(type, field) (UINT64_C(1) << (offsetof(type, field) / 8))

/* How the collector finds the layout of an object.
 *
 * JD_HOMOGENEOUS: by its address. Objects of the layout share blocks that hold nothing else, and
 *   carry no word for the collector. They are aligned to 16 bytes (to 8 under JD_MCC, which gives
 *   them headers). A variable part fills the memory that its object got, with elements of zeros
 *   behind those that were asked for; blocks then hold objects of the layout of about one length.
 *   There are JD_MAX_HOMOGENEOUS such layouts at most (under JD_MCC as many as of the others): for
 *   the shapes that a program has most of.
 * JD_SELF: by its first word, which leads to it: jd_new stores the layout's address there. The
 *   program may store the address of any record of its own instead (a class, say) that begins with
 *   the layout's address, lasts as long as the program, and does not move: a word on a stack may
 *   mean an object that is dead, and its first word is read then. Objects of all sizes lie one
 *   behind another, in the order in which they were allocated, aligned to 8 bytes: those that have
 *   pointers, and apart from them those that have none and take no more than 128 bytes (together
 *   under JD_MCC). Longer ones lie with others of their size.
 * JD_HEADER: by a word before it, which the program does not see: the paper's way. libgc's
 *   functions take it for a part of the object: GC_base says its address, but finalizers are called
 *   with the object's. As JD_SELF otherwise.
 */
enum jd_source { JD_HOMOGENEOUS = 0, JD_SELF = 1, JD_HEADER = 2 };

#define JD_MAX_HOMOGENEOUS 128

/* What a trace procedure gets, to hand on to jd_trace_slot. */
typedef struct jd_tracer jd_tracer;
/* Calls jd_trace_slot for each pointer word of the object, which has `size` bytes (jd_size_of). It
 * runs while the program stands still, in any thread: it takes no lock, allocates nothing, calls no
 * other function of the library's, and finds the same words each time while the object does not
 * change. What it reads of other objects may have moved: only its own object is to be looked at. */
typedef void jd_trace_procedure(void* object, size_t size, jd_tracer* tracer);
/* Tells the collector of a pointer word. Words outside of the object end the program with a message
 * that names the layout. */
JD_HEAP_API void jd_trace_slot(jd_tracer* tracer, void* slot);

/* What jd_layout_define is told. All fields that are not named are zero. */
typedef struct jd_layout_info {
  const char* name; /* for messages; kept as it is, not copied */
  /* The fixed part, in bytes, rounded up to 8. For JD_SELF it includes the first word. */
  size_t size;
  /* Bit i of word i / 64: are the 8 bytes from 8 i on a pointer? As many bits as the fixed part has
   * words; copied. Null: none are. */
  const uint64_t* pointers;
  /* The variable part: any number of elements behind the fixed part, each of so many bytes (1, 2,
   * 4, or a multiple of 8). 0: there is none. */
  size_t element_size;
  const uint64_t* element_pointers; /* within an element; null: none are */
  /* JD_SELF with a variable part: where in the fixed part the number of elements stands, a
   * uint64_t, which jd_new_array stores there. The program must not change it. */
  size_t count_offset;
  /* Instead of both bitmaps, for what these cannot say. */
  jd_trace_procedure* trace;
  enum jd_source source;
} jd_layout_info;

/* A layout. Its fields are for the inline functions of heap.h, and for compilers that emit what
 * they do; nobody changes them. */
typedef struct jd_layout {
  const struct jd_layout* self; /* its own address, so that a JD_SELF word may lead here directly */
  const char* name;
  uint64_t header; /* the word to be stored at the beginning of an object's memory; 0: none */
  uint32_t hole;   /* index into jd_holes */
  uint32_t bytes; /* what an object without elements takes; more than any hole has if it is large */
  uint32_t offset; /* of the object in its memory: 8 behind a header, else 0 */
  uint32_t source;
  uint32_t array_hole; /* index into jd_holes, for objects with elements */
  uint32_t fixed;      /* bytes of an object without elements, its header included */
  uint32_t element;    /* bytes of one */
  uint32_t count_offset;
  uint32_t in_order;    /* 1: objects of all sizes lie one behind another, and have start bytes */
  uint32_t most_inline; /* objects with elements that take more bytes are allocated out of line */
} jd_layout;

/* Defines a layout. Null, with a line on standard error that names it, if the information does not
 * hold together (a size that is too large, an element of 3 bytes, a count beyond the fixed part, a
 * bit beyond the size in a bitmap's last word; words beyond that one are not looked at), if there
 * are too many layouts, or if memory has run out. Any thread. */
JD_HEAP_API jd_layout* jd_layout_define(const jd_layout_info* info);

/* The layout of the object that contains this address; null if that is not in an object with a
 * layout. (A free place that a thread has ready for its next objects counts as one.) */
JD_HEAP_API const jd_layout* jd_layout_of(const void* address);

#ifdef __cplusplus
}
#endif

#endif
