// scale WORKLOAD gc|malloc CLIENTS: threads that allocate, each doing the same work.
//
// Models: a program that uses its processors. With perfect scaling CLIENTS threads take as long as
//   one while there are processors for them. The workloads, for each thread:
//     gcbench, gcbench-small, gcbench-big  the trees of gcbench (stretch 18, long-lived 16; 16 and
//                14; 20 and 20), all the thread's own
//     list       lists of 100,000 to 300,000 cells of 16 bytes, one after another; each is counted
//                and dropped (all of one length, they keep step with the collections: one client
//                then marks next to nothing, or all, for the whole run)
//     list-many  the same, the cells taken from GC_malloc_many (on the malloc side: one by one)
//     message    chains of 64 messages of 32 to 160 bytes, which the thread hands to the next one
//                of a ring; who receives a chain reads and drops it
//     large      buffers of 8 KiB to 1 MiB, each page touched, 16 of them alive
//   With `malloc` the same work asks the C library, or whatever malloc is preloaded, and frees at
//   once what the collected version drops.
// Live: gcbench's trees and 4 MB of doubles a thread (8 MB, 2 MB, 68 MB of trees); for list one
//   list (3.2 MB or 6.4 MB, mean) a thread; for message what lies in the mailboxes; for large 3 MB
//   a thread.
// Shows: the time from the moment when all threads are ready to the end of the last; the time of
//   the processors.
#include <math.h>
#include <sched.h>

#include "support/clients.hpp"
#include "support/trees.hpp"

namespace {

using bench::Collected;
using bench::Freed;
using bench::Random;

// Objects that a thread made.
struct alignas(64) Made {
  size_t objects;
};
Made made[bench::kMostClients];

// --- gcbench -------------------------------------------------------------------------------------

template <class Memory>
struct Node {
  Node* left;
  Node* right;
  int i, j;

  static constexpr bool kReleases = Memory::kReleases;
  static void* allocate() { return Memory::make(sizeof(Node)); }
  static void release(Node* node) { Memory::release(node); }
};

constexpr int kDoubles = 500000;

template <class Memory>
void run_gcbench(unsigned client, int stretch, int lasting) {
  using N = Node<Memory>;
  N* stretched = bench::make_tree<N>(stretch);
  if (bench::count(stretched) != bench::tree_size(stretch)) {
    bench::die("the stretch tree is damaged");
  }
  bench::drop_tree(stretched);
  N* long_lived = bench::make_leaf<N>();
  bench::populate(lasting, long_lived);
  auto* doubles = static_cast<double*>(Memory::make_atomic(kDoubles * sizeof(double)));
  for (int i = 0; i < kDoubles / 2; ++i) doubles[i] = 1.0 / (i + 1);
  bench::make_short_lived_trees<N>(stretch, lasting);
  if (bench::count(long_lived) != bench::tree_size(lasting) || doubles[1000] != 1.0 / 1001) {
    bench::die("the long-lived data are damaged");
  }
  bench::drop_tree(long_lived);
  Memory::release(doubles);
  made[client].objects = bench::gcbench_objects(stretch, lasting);
}

// --- lists ---------------------------------------------------------------------------------------

struct Cell {
  Cell* next;
  size_t value;
};

template <class Memory>
struct OneByOne {
  Cell* cell() { return static_cast<Cell*>(Memory::make(sizeof(Cell))); }
};

struct Many {
  void* rest = nullptr;

  Cell* cell() {
    if (rest == nullptr) rest = bench::must(GC_malloc_many(sizeof(Cell)));
    auto* cell = static_cast<Cell*>(rest);
    rest = GC_NEXT(rest);
    return cell;
  }
};

template <class Memory, class Source>
void run_list(unsigned client, size_t lists, size_t mean) {
  Source source;
  Random random;
  for (unsigned c = 0; c < client; ++c) random.next();
  made[client].objects = lists * mean;
  size_t cells = 0;
  for (size_t left = lists * mean; left != 0; left -= cells) {
    cells = mean / 2 + random.below(mean);
    if (cells > left) cells = left;
    Cell* head = nullptr;
    for (size_t i = 0; i < cells; ++i) {
      Cell* cell = source.cell();
      cell->next = head;
      cell->value = i;
      head = cell;
    }
    size_t seen = 0;
    size_t sum = 0;
    for (const Cell* cell = head; cell != nullptr; cell = cell->next) {
      ++seen;
      sum += cell->value;
    }
    if (seen != cells || sum != cells * (cells - 1) / 2) bench::die("a list is damaged");
    while (Memory::kReleases && head != nullptr) {
      Cell* next = head->next;
      Memory::release(head);
      head = next;
    }
  }
}

// --- messages ------------------------------------------------------------------------------------

struct Message {
  Message* next;
  size_t words;  // of data
  size_t data[];
};

constexpr size_t kChain = 64;
constexpr size_t kMostWords = 18;
constexpr unsigned kRoom = 16;

// Chains on their way to a thread. Written by two threads, under the lock.
struct alignas(64) Mailbox {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  unsigned count = 0;
  Message* chains[kRoom] = {};

  bool put(Message* chain) {
    pthread_mutex_lock(&lock);
    const bool room = count < kRoom;
    if (room) chains[count++] = chain;
    pthread_mutex_unlock(&lock);
    return room;
  }
  Message* take() {
    pthread_mutex_lock(&lock);
    Message* chain = nullptr;
    if (count != 0) {
      chain = chains[--count];
      chains[count] = nullptr;
    }
    pthread_mutex_unlock(&lock);
    return chain;
  }
};
Mailbox mailboxes[bench::kMostClients];

template <class Memory>
Message* make_chain(Random& random) {
  Message* chain = nullptr;
  for (size_t i = 0; i < kChain; ++i) {
    const size_t words = 2 + random.below(kMostWords - 1);
    auto* message = static_cast<Message*>(Memory::make(sizeof(Message) + words * sizeof(size_t)));
    message->next = chain;
    message->words = words;
    for (size_t w = 0; w < words; ++w) message->data[w] = words;
    chain = message;
  }
  return chain;
}

template <class Memory>
void read_and_drop(Message* chain) {
  size_t seen = 0;
  while (chain != nullptr) {
    if (chain->data[0] != chain->words || chain->data[chain->words - 1] != chain->words) {
      bench::die("a message is damaged");
    }
    Message* next = chain->next;
    Memory::release(chain);
    chain = next;
    ++seen;
  }
  if (seen != kChain) bench::die("a chain is damaged");
}

template <class Memory>
void run_messages(unsigned client, unsigned clients, size_t chains) {
  Random random;
  Mailbox& own = mailboxes[client];
  Mailbox& others = mailboxes[(client + 1) % clients];
  Message* waiting = nullptr;  // made, and not yet put where there was no room
  size_t sent = 0;
  size_t received = 0;
  while (sent < chains || received < chains) {
    if (sent < chains) {
      if (waiting == nullptr) waiting = make_chain<Memory>(random);
      if (others.put(waiting)) {
        waiting = nullptr;
        ++sent;
        continue;
      }
    }
    if (Message* chain = own.take()) {
      read_and_drop<Memory>(chain);
      ++received;
    } else {
      sched_yield();
    }
  }
  made[client].objects = chains * kChain;
}

// --- large objects -------------------------------------------------------------------------------

struct Buffer {
  unsigned char* data;
  size_t size;
};

template <class Memory>
void run_large(unsigned client, size_t objects) {
  constexpr size_t kWindow = 16;
  constexpr size_t kPage = 4096;
  constexpr size_t kLeast = 8 << 10;
  Buffer window[kWindow] = {};
  Random random;
  const auto check = [](const Buffer& b) {
    for (size_t at = 0; at < b.size; at += kPage) {
      if (b.data[at] != static_cast<unsigned char>(b.size)) {
        bench::die("a live buffer is damaged");
      }
    }
  };
  for (size_t i = 0; i < objects; ++i) {
    Buffer& b = window[random.below(kWindow)];
    if (b.data != nullptr) {
      check(b);
      Memory::release(b.data);
    }
    // 2^13 to 2^20.
    const double exponent = 7.0 * static_cast<double>(random.below(1 << 20)) / (1 << 20);
    b.size = static_cast<size_t>(kLeast * exp2(exponent));
    b.data = nullptr;  // The old one is garbage before the new one is asked for.
    b.data = static_cast<unsigned char*>(i % 3 == 0 ? Memory::make_atomic(b.size)
                                                    : Memory::make(b.size));
    for (size_t at = 0; at < b.size; at += kPage) b.data[at] = static_cast<unsigned char>(b.size);
  }
  for (const Buffer& b : window) {
    if (b.data == nullptr) continue;
    check(b);
    Memory::release(b.data);
  }
  made[client].objects = objects;
}

// -------------------------------------------------------------------------------------------------

template <class Memory>
void run(const char* workload, unsigned clients, bool quick) {
  const auto is = [workload](const char* name) { return strcmp(workload, name) == 0; };
  double cpu = 0;
  const auto time = [clients, &cpu](auto work) {
    return bench::run_clients<Memory>(clients, &cpu, work);
  };
  const auto trees = [&time, quick](int stretch, int lasting) {
    if (quick) stretch = lasting = 10;
    return time([=](unsigned client) { run_gcbench<Memory>(client, stretch, lasting); });
  };
  // A tenth of a second: with a quarter of that, two clients' time was mostly that of the threads'
  // start and of the helper's.
  const size_t lists = quick ? 4 : 100;
  const size_t cells = quick ? 5000 : 200000;
  double took = 0;
  if (is("gcbench")) {
    took = trees(18, 16);
  } else if (is("gcbench-small")) {
    took = trees(16, 14);
  } else if (is("gcbench-big")) {
    took = trees(20, 20);
  } else if (is("list")) {
    took = time([=](unsigned client) { run_list<Memory, OneByOne<Memory>>(client, lists, cells); });
  } else if (is("list-many")) {
    took = time([=](unsigned client) {
      if constexpr (Memory::kReleases) {
        run_list<Memory, OneByOne<Memory>>(client, lists, cells);
      } else {
        run_list<Memory, Many>(client, lists, cells);
      }
    });
  } else if (is("message")) {
    const size_t chains = quick ? 500 : 40000;
    took = time([=](unsigned client) { run_messages<Memory>(client, clients, chains); });
  } else if (is("large")) {
    const size_t objects = quick ? 100 : 3000;
    took = time([=](unsigned client) { run_large<Memory>(client, objects); });
  } else {
    bench::die("no such workload");
  }
  for (const Made& m : made) bench::made_objects += m.objects;
  if (Memory::kReleases) {
    bench::report("scale", 0, {{"time", "s", took}, {"processors", "s", cpu}});
  } else {
    bench::report("scale", 0,
                  {{"time", "s", took},
                   {"processors", "s", cpu},
                   {"in collections", "s", bench::collection_times.total},
                   {"in marking", "s", bench::collection_times.marking}});
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = bench::take_quick(&argc, argv);
  const bool collected = argc == 4 && strcmp(argv[2], "gc") == 0;
  if (argc != 4 || (!collected && strcmp(argv[2], "malloc") != 0)) {
    bench::die("usage: scale WORKLOAD gc|malloc CLIENTS [--quick]");
  }
  const auto clients = static_cast<unsigned>(bench::number(argv[3]));
  if (collected) {
    GC_INIT();
    bench::watch_collections();
    run<Collected>(argv[1], clients, quick);
  } else {
    bench::measured_function = "malloc";
    run<Freed>(argv[1], clients, quick);
  }
}
