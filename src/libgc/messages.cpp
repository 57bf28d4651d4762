// Messages through the ABI, and dumps of what the collector knows.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "gc/gc_mark.h"
#include "heap/kinds.hpp"
#include "heap/resident.hpp"
#include "heap/walk.hpp"
#include "libgc/support.hpp"
#include "os/cpu.hpp"
#include "os/files.hpp"
#include "os/log.hpp"
#include "world/roots.hpp"
#include "world/thread.hpp"

using namespace jd;
using namespace jd::libgc;

namespace {

constexpr size_t kLine = 1024;

[[gnu::format(printf, 2, 0)]] void print_to(int file, const char* format, va_list arguments) {
  char line[kLine];
  // The analyzer loses sight of va_start on one of the ways here, where another call comes first.
  // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized)
  const int size = vsnprintf(line, sizeof line, format, arguments);
  if (size <= 0) return;
  os::write_all(file, line, base::min_of(static_cast<size_t>(size), sizeof line - 1));
}

[[gnu::format(printf, 1, 2)]] void print(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print_to(os::report_file(), format, arguments);
  va_end(arguments);
}

const char* kind_name(unsigned kind) {
  constexpr const char* kNames[] = {"atomic", "normal", "uncollectable", "atomic uncollectable"};
  return kind < heap::kBuiltInKinds ? kNames[kind] : "the program's";
}

class PrintRoots final : public world::RootVisitor {
  void visit_stack(const void* low, const void* high) override { visit_range(low, high); }
  void visit_range(const void* low, const void* high) override {
    print("  %p to %p (%td bytes)\n", low, high,
          static_cast<const char*>(high) - static_cast<const char*>(low));
  }
};

void print_free_runs() {
  heap::for_each_block([](heap::BlockNumber number, heap::Block& block) {
    if (block.state != heap::BlockState::Free) return;
    print("  %p: %u blocks\n", base::as_pointer(heap::block_address(number)), block.run);
  });
}

void print_used_blocks() {
  heap::for_each_block([](heap::BlockNumber number, heap::Block& block) {
    void* address = base::as_pointer(heap::block_address(number));
    if (heap::has_slots_of_one_size(block)) {
      print("  %p: %s, %u of %u slots of %u bytes\n", address, kind_name(block.kind),
            heap::count_bits(block.allocated, block.slots), block.slots, block.slot_size);
    } else if (block.state == heap::BlockState::Mixed) {
      print("  %p: %s, objects of several sizes\n", address, kind_name(block.kind));
    } else if (block.state == heap::BlockState::LargeHead) {
      print("  %p: %s, one object of %zu bytes\n", address, kind_name(block.kind),
            static_cast<size_t>(heap::space.extras[number].bytes));
    }
  });
}

void print_entry(void* object, void** link) {
  if (link != nullptr) {
    print("  link at %p to %p\n", static_cast<void*>(link), object);
  } else {
    print("  object %p\n", object);
  }
}

void dump(const char* name) {
  if (name != nullptr) {
    print("***GC Dump %s\n", name);
  } else {
    print("***GC Dump collection #%lu\n", GC_gc_no);
  }
  print("Heap: %zu KiB, free %zu KiB, returned %zu KiB; %u threads\n",
        heap::resident_bytes() / base::kKiB, heap::free_resident_bytes() / base::kKiB,
        heap::returned_bytes() / base::kKiB, world::thread_count());
  print("\n***Static roots:\n");
  PrintRoots roots;
  world::visit_static_roots(&roots);
  print("\n***Free blocks:\n");
  print_free_runs();
  print("\n***Blocks in use:\n");
  print_used_blocks();
}

}  // namespace

extern "C" {

GC_API void GC_printf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print_to(os::report_file(), format, arguments);
  va_end(arguments);
}
GC_API void GC_err_printf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print_to(os::standard_error(), format, arguments);
  va_end(arguments);
}
GC_API void GC_log_printf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print_to(os::log_file(), format, arguments);
  va_end(arguments);
}
void GC_set_log_fd(int file) { os::set_log_file(file); }

void GC_abort_on_oom() {
  GC_err_printf("Insufficient memory for the allocation\n");
  GC_on_abort(nullptr);
  exit(1);
}

void GC_dump() {
  cycle::start();
  LockGuard guard(heap_lock);
  static_cast<void>(world::update_static_roots());
  dump(nullptr);
}
void GC_dump_named(const char* name) { dump(name); }

GC_API void GC_dump_regions() {
  // Before the start there is none, not even the one that is never used.
  const heap::BlockNumber end = base::max_of(heap::space.committed, heap::BlockNumber{1});
  print("Heap: %p to %p, %u blocks of %zu bytes\n", base::as_pointer(heap::block_address(1)),
        base::as_pointer(heap::block_address(end)), end - 1, heap::kBlockSize);
  print_free_runs();
  print_used_blocks();
}

void GC_dump_finalization() {
  using cycle::FinalizationTable;
  print("Disappearing (short) links:\n");
  cycle::visit_table(FinalizationTable::ShortLinks, print_entry);
  print("Disappearing long links:\n");
  cycle::visit_table(FinalizationTable::LongLinks, print_entry);
  print("Finalizers:\n");
  cycle::visit_table(FinalizationTable::Finalizers, print_entry);
  print("Due:\n");
  cycle::visit_table(FinalizationTable::Due, print_entry);
}

// There are no free lists: what is free is said by the blocks' bits.
GC_API void GC_print_free_list(int kind, size_t granules) {
  const size_t bytes = granules * heap::kGranule;
  size_t n = 0;
  heap::for_each_block([&](heap::BlockNumber number, heap::Block& block) {
    if (!heap::has_slots_of_one_size(block) || block.kind != kind) return;
    if (block.slot_size != bytes) return;
    for (unsigned slot = 0; slot < block.slots; ++slot) {
      if (block.is_allocated(slot)) continue;
      print("Free object in block %p [%zu]: %p\n", base::as_pointer(heap::block_address(number)),
            n++, base::as_pointer(heap::Place{&block, slot}.address()));
    }
  });
  if (n == 0) print("Free list is empty\n");
}
}
