// A C++ program compiled against our gc_cpp.h and gc_allocator.h, which need no libgccpp.
#define GC_ATOMIC_UNCOLLECTABLE
#include <gc/gc_allocator.h>
#include <gc/gc_cpp.h>

#include <cstring>
#include <list>
#include <map>
#include <new>
#include <vector>

#include "check.h"

int check_failures;

namespace {

constexpr int kMany = 1000;
constexpr int kMost = 900;

struct Node : public gc {
  Node* next = nullptr;
  long value = 0;
};

int destroyed;
struct Other {
  virtual ~Other() = default;
  long padding = 7;
};
// The gc_cleanup part is not at the object's start.
struct File : public Other, public gc_cleanup {
  explicit File(long the_number) : number(the_number) {}
  ~File() override {
    CHECK_EQ(number, 5);
    destroyed++;
  }
  long number;
};

[[gnu::noinline]] void overwrite_stack() {
  volatile char junk[16384];
  for (volatile char& byte : junk) byte = 0;
}
void collect_thoroughly_here() {
  for (int i = 0; i < 4; i++) {
    overwrite_stack();
    GC_gcollect();
    while (GC_invoke_finalizers() != 0) {
    }
  }
}

void objects() {
  Node* list = nullptr;
  for (long i = 0; i < 200000; i++) {
    Node* node = new Node;
    CHECK_EQ(node->value, 0);
    node->value = i;
    node->next = i % 1000 == 0 ? nullptr : list;
    list = node;
  }
  long n = 0;
  for (; list != nullptr; list = list->next) n++;
  CHECK_EQ(n, 1000);

  delete new Node;
  delete new (NoGC) Node;
  delete new (PointerFreeNoGC) Node;
  char* text = new (PointerFreeGC) char[100];
  std::memcpy(text, "text", sizeof "text");
  alignas(Node) char place[sizeof(Node)];
  CHECK(new (place) Node == reinterpret_cast<Node*>(place));
  delete[] new Node[10];
}

[[gnu::noinline]] void make_files() {
  for (int i = 0; i < kMany; i++) new File(5);
}
void cleanup() {
  make_files();
  collect_thoroughly_here();
  CHECK(destroyed >= kMost);
  CHECK(destroyed <= kMany);
  // Explicitly deleted: destroyed once, not again by the collector.
  const int before = destroyed;
  delete new File(5);
  CHECK_EQ(destroyed, before + 1);
  { File on_stack(5); }
  CHECK_EQ(destroyed, before + 2);
}

int cleaned;
void clean(void* object, void* data) {
  CHECK(object != nullptr);
  CHECK(data == &cleaned);
  cleaned++;
}
[[gnu::noinline]] void make_cleaned() {
  for (int i = 0; i < kMany; i++) new (UseGC, clean, &cleaned) Other;
}
void cleanup_functions() {
  make_cleaned();
  collect_thoroughly_here();
  CHECK(cleaned >= kMost);
  CHECK(cleaned <= kMany);
}

void allocators() {
  std::vector<Node*, gc_allocator<Node*>> nodes;
  for (long i = 0; i < 10000; i++) {
    nodes.push_back(new Node);
    nodes.back()->value = i;
  }
  // Searched for pointers though it lies in malloc-like memory that the map itself frees.
  using Map =
      std::map<int, Node*, std::less<int>, traceable_allocator<std::pair<const int, Node*>>>;
  Map* map = new Map;
  for (int i = 0; i < 1000; i++) {
    (*map)[i] = new Node;
    (*map)[i]->value = i;
  }
  std::list<long, gc_allocator_ignore_off_page<long>> numbers;
  for (long i = 0; i < 1000; i++) numbers.push_back(i);
  for (int i = 0; i < 200000; i++) new Node;
  GC_gcollect();
  for (long i = 0; i < 10000; i++) CHECK_EQ(nodes[static_cast<size_t>(i)]->value, i);
  for (int i = 0; i < 1000; i++) CHECK_EQ((*map)[i]->value, i);
  long expected = 0;
  for (long number : numbers) CHECK_EQ(number, expected++);
  delete map;

  GC_set_warn_proc(GC_ignore_warn_proc);
  volatile size_t too_many = static_cast<size_t>(-1) / 4;
  bool thrown = false;
  try {
    gc_allocator<long>().allocate(too_many);
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  CHECK(thrown);
}

}  // namespace

int main() {
  GC_INIT();
  objects();
  cleanup();
  cleanup_functions();
  allocators();
  printf("%d failures\n", check_failures);
  return check_failures != 0;
}
