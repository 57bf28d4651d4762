/* headers_all.cpp: all headers at once, in C++; headers_test.sh only compiles it. */
#include <gc/gc_allocator.h>
#include <gc/gc_cpp.h>

#include <list>
#include <map>
#include <vector>

#define main c_main
#include "headers_all.c"
#undef main

#ifdef GC_NAMESPACE
using namespace boehmgc;
#endif

GC_DECLARE_PTRFREE(long long);

namespace {

struct Node : public gc {
  Node* next = nullptr;
};
struct Other {
  virtual ~Other() = default;
  int value = 0;
};
struct File : public Other, public gc_cleanup {
  ~File() override {}
};

void cleanup(void*, void*) {}

// Like std::unique_ptr and std::less, whose headers take most of the time in C++20.
struct Moved {
  Moved() = default;
  Moved(Moved&&) noexcept {}
  Moved& operator=(Moved&&) noexcept { return *this; }
};
struct Less {
  bool operator()(int a, int b) const { return a < b; }
};

}  // namespace

int main() {
  Node* node = new Node;
  delete new (NoGC) Node;
  File* file = new File;
  int* number = new (PointerFreeGC) int;
  *number = 1;
  Other* plain = new (UseGC, cleanup, nullptr) Other;
#ifndef GC_NAME_CONFLICT
  plain = new (GC) Other;
#endif
#ifdef GC_ATOMIC_UNCOLLECTABLE
  node = new (PointerFreeNoGC) Node;
#endif
#ifdef GC_OPERATOR_NEW_ARRAY
  char* text = new (PointerFreeGC) char[100];
  text[0] = 0;
  delete[] new Node[3];
#endif

  std::vector<Node*, gc_allocator<Node*>> nodes(3, node);
  nodes.emplace_back(node);
  std::vector<long long, gc_allocator_ignore_off_page<long long>> numbers(100);
  std::list<int, gc_allocator<int>> list{1, 2, 3};
  std::vector<Moved, gc_allocator<Moved>> owners;
  owners.push_back(Moved());
  std::map<int, Node*, Less, traceable_allocator<std::pair<const int, Node*>>> map;
  map[1] = node;
  gc_allocator<void>::rebind<int>::other rebound;
  gc_allocator<int> of_int(rebound);
  of_int.deallocate(of_int.allocate(2), 2);
  return plain->value + (file == nullptr) + (of_int == rebound ? 0 : 1);
}
