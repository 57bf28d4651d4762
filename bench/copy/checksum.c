/*
 * checksum: the Internet checksum of packets, over lazy streams of 16-bit values.
 *
 * Models: network code in a functional language, after the Checksum of the ISMM 1998 paper. A
 *   packet is read as a stream: a cell of a boxed value and a closure for the rest. A second stream
 *   maps a byte swap over the first, and a fold adds its values in ones' complement. Of every
 *   stream, nothing but the cell in hand is alive.
 * Live: tiny; one packet of 4 KB and two cells of each stream.
 * Sizes: values of one word without pointers, cells of two, closures of three; one packet of 513
 *   words for every 12,288 of those.
 * Checked: by the example of RFC 1071; every packet against a loop over its bytes, and by the sum
 * of the packet with its checksum in place, which is all ones.
 */
#include "run.h"

typedef struct Packet {
  OBJECT;
  size_t size; /* in bytes, even */
  uint8_t bytes[];
} Packet;
ARRAY_TYPE(Packet, size, bytes, NONE, NONE);

typedef struct Word16 {
  OBJECT;
  uint64_t value;
} Word16;
LEAF_TYPE(Word16);

typedef struct Stream Stream;

/* What is left of a stream: code that makes the next cell of it, or returns null at its end, and
 * the two variables that the code needs. */
typedef struct Closure {
  OBJECT;
  Stream* (*code)(const struct Closure*);
  void* over; /* a packet, or a stream's closure */
  long position;
} Closure;
TYPE(Closure, over);

struct Stream {
  OBJECT;
  Word16* head;
  Closure* tail;
};
TYPE(Stream, head, tail);

TYPES(Packet, Word16, Closure, Stream);

static Closure* make_closure(Stream* (*code)(const Closure*), void* over, long position) {
  Closure* closure = NEW(Closure);
  closure->code = code;
  closure->over = over;
  closure->position = position;
  return closure;
}

static Word16* box(uint64_t value) {
  Word16* word = NEW(Word16);
  word->value = value;
  return word;
}

static Stream* make_cell(Word16* head, Closure* tail) {
  Stream* cell = NEW(Stream);
  cell->head = head;
  cell->tail = tail;
  return cell;
}

static Stream* force(const Closure* closure) { return closure->code(closure); }

/* The packet's 16-bit words from `position` on, as this machine reads them. */
static Stream* words_of_packet(const Closure* self) {
  Packet* packet = self->over;
  const long at = self->position;
  if ((size_t)at >= packet->size) return NULL;
  const uint64_t value = packet->bytes[at] | (uint64_t)packet->bytes[at + 1] << 8;
  return make_cell(box(value), make_closure(words_of_packet, packet, at + 2));
}

/* The words of a stream in the network's order. */
static Stream* swapped(const Closure* self) {
  const Stream* cell = force(self->over);
  if (cell == NULL) return NULL;
  const uint64_t value = cell->head->value;
  return make_cell(box((value >> 8 | value << 8) & 0xFFFF), make_closure(swapped, cell->tail, 0));
}

static uint64_t add_ones_complement(uint64_t a, uint64_t b) {
  const uint64_t sum = a + b;
  return (sum & 0xFFFF) + (sum >> 16);
}

static uint64_t sum_of_stream(Closure* stream) {
  uint64_t sum = 0;
  for (const Stream* cell = force(stream); cell != NULL; cell = force(cell->tail)) {
    sum = add_ones_complement(sum, cell->head->value);
  }
  return sum;
}

static uint64_t sum_of_packet(Packet* packet) {
  Closure* words = make_closure(words_of_packet, packet, 0);
  return sum_of_stream(make_closure(swapped, words, 0));
}

/* The same without an object: the carries are folded in at the end. */
static uint64_t direct_sum(const Packet* packet) {
  uint64_t sum = 0;
  for (size_t i = 0; i < packet->size; i += 2) {
    sum += (uint64_t)packet->bytes[i] << 8 | packet->bytes[i + 1];
  }
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  return sum;
}

static void check_example(void) {
  static const uint8_t example[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
  Packet* packet = NEW_ARRAY(Packet, sizeof(example));
  memcpy(packet->bytes, example, sizeof(example));
  const uint64_t sum = sum_of_packet(packet);
  CHECK(sum == 0xddf2, "RFC 1071's example sums to %llx", (unsigned long long)sum);
}

static Packet* make_packet(size_t size, uint64_t* random) {
  Packet* packet = NEW_ARRAY(Packet, size);
  for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
    const uint64_t bytes = random_next(random);
    memcpy(packet->bytes + i, &bytes, sizeof(bytes));
  }
  return packet;
}

enum { PacketSize = 4096 };

static void run(long scale) {
  const long packets = scale == 0 ? 200 : 3000 * scale;
  uint64_t random = 1;
  uint64_t all = 0;
  check_example();
  for (long i = 0; i < packets; i++) {
    Packet* packet = make_packet(PacketSize, &random);
    packet->bytes[0] = packet->bytes[1] = 0; /* where the checksum will stand */
    const uint64_t sum = sum_of_packet(packet);
    CHECK(sum == direct_sum(packet), "the sum of packet %ld is %llx, not %llx", i,
          (unsigned long long)sum, (unsigned long long)direct_sum(packet));
    const uint64_t checksum = ~sum & 0xFFFF;
    packet->bytes[0] = (uint8_t)(checksum >> 8);
    packet->bytes[1] = (uint8_t)checksum;
    CHECK(sum_of_packet(packet) == 0xFFFF, "packet %ld and its checksum do not sum to ffff", i);
    all = all * 31 + checksum;
  }
  printf("checksum: %ld packets of %d bytes, %016llx\n", packets, PacketSize,
         (unsigned long long)all);
}

PROGRAM("checksum", run);
