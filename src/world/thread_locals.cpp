#include "world/thread_locals.hpp"

#include "os/safe_reading.hpp"
#include "os/thread_locals.hpp"
#include "world/stacks.hpp"
#include "world/static_roots.hpp"

namespace jd::world {
namespace {

// Is the thread's static thread-local storage scanned with its stack? A thread that glibc made has
// it at the stack's end.
bool static_thread_locals_are_on_stack(const Thread& thread, const os::Extent& area) {
  return thread.stack.low != nullptr && area.low >= thread.stack.low &&
         area.high <= stack_high(thread);
}

// A thread's static thread-local storage, unless it is scanned with its stack anyway. Only what can
// be read: glibc counts the control block in the size that it tells, so one end may lie in the
// neighbouring page, mapped or not.
os::Extent static_thread_locals_beside_stack(const Thread& thread) {
  const os::Extent area = os::static_thread_locals(thread.control_block);
  if (static_thread_locals_are_on_stack(thread, area)) return {};
  os::Extent readable{area.low, area.high};
  os::clip_to_readable(&readable.low, &readable.high);
  return readable;
}

// What has no entry in the vector may lie there all the same.
void visit_static_thread_locals(RootVisitor* visitor, const Thread& thread) {
  if (ignoring_libraries()) return;
  const os::Extent area = static_thread_locals_beside_stack(thread);
  if (area.low < area.high) visitor->range(area.low, area.high);
}

std::size_t last_module() {
  std::size_t last = 0;
  for (const os::ThreadLocalModule& module : thread_local_modules()) {
    last = base::max_of(last, module.module);
  }
  return last;
}

// Each thread's vector of blocks has room for so many modules more than there were when it was made
// (glibc's DTV_SURPLUS). Where there are more, glibc makes a longer one, and a thread may be
// stopped when it has freed its old vector and does not have the new one yet.
constexpr std::size_t kModulesInAnyVector = 14;

// Is the module's memory where glibc puts that of libraries loaded at the start?
bool is_static(const Thread& thread, const char* block) {
  return os::static_thread_locals(thread.control_block).contains(block);
}

// Looks before it reads. True if all modules' blocks are static, and could be read.
bool visit_thread_locals_safely(RootVisitor* visitor, const Thread& thread) {
  const os::ThreadLocalBlocks blocks(thread.control_block, last_module());
  bool all_static = true;
  bool all_readable = true;
  constexpr std::size_t kTogether = 16;  // more modules than most programs have; a guess
  for (std::size_t next = 0; next < thread_local_modules().count();) {
    os::Extent extents[kTogether];
    std::size_t count = 0;
    os::PagesToRead pages;
    for (; next < thread_local_modules().count() && count < kTogether; ++next) {
      const os::ThreadLocalModule& module = thread_local_modules()[next];
      auto* block = static_cast<char*>(blocks.of_module(module.module));
      all_static &= block != nullptr && is_static(thread, block);
      if (block == nullptr) continue;
      extents[count++] = {block, block + module.size};
      pages.add(block, block + module.size);
    }
    const bool readable = pages.are_readable();
    all_readable &= readable;
    for (std::size_t i = 0; i < count; ++i) {
      const auto& [low, high] = extents[i];
      char* end = readable ? high : os::end_of_readable(low, high);
      if (low < end) visitor->range(low, end);
    }
  }
  if (!all_static) visit_static_thread_locals(visitor, thread);
  return all_static && all_readable;
}

}  // namespace

// A blocked thread runs on, and may be changing its vector of thread-local blocks: so each look
// goes by read_safely(), which costs system calls. One look is enough as long as the thread stays
// blocked and the same libraries are loaded, if it shows that all blocks lie in the static storage
// and that on the thread's stack: blocks that the thread makes from then on hold no pointers into
// the heap, which it has promised not to touch.
void visit_blocked_thread_locals(RootVisitor* visitor, Thread* thread) {
  const std::uint64_t now = loaded_generation();
  if (!loaded_is_doubtful() && thread->locals_on_stack_since == now) return;
  const bool all_static = visit_thread_locals_safely(visitor, *thread);
  const bool on_stack =
      static_thread_locals_are_on_stack(*thread, os::static_thread_locals(thread->control_block));
  thread->locals_on_stack_since = all_static && on_stack && !loaded_is_doubtful() ? now : 0;
}

// A block that is not static may be one that another library has left, which had the number before:
// glibc puts a thread's vector right only when that thread asks for the variables. Then it is of
// another size, and the library's own may be static.
void visit_thread_locals(RootVisitor* visitor, const Thread& thread) {
  if (thread.blocked || loaded_is_doubtful() || last_module() > kModulesInAnyVector) {
    visit_thread_locals_safely(visitor, thread);
    return;
  }
  bool all_static = true;
  for (const os::ThreadLocalModule& module : thread_local_modules()) {
    auto* block = static_cast<char*>(os::thread_local_block(thread.control_block, module.module));
    if (block == nullptr) {
      all_static = false;
      continue;
    }
    char* end = block + module.size;
    if (!is_static(thread, block)) {
      all_static = false;
      // The thread may have been stopped after it has freed the block, before its vector says so.
      end = os::end_of_readable(block, end);
    }
    visitor->range(block, end);
  }
  if (!all_static) visit_static_thread_locals(visitor, thread);
}

bool is_thread_local(const Thread& thread, const void* p) {
  const os::ThreadLocalBlocks blocks(thread.control_block, last_module());
  for (const os::ThreadLocalModule& module : thread_local_modules()) {
    auto* block = static_cast<char*>(blocks.of_module(module.module));
    if (block != nullptr && os::Extent{block, block + module.size}.contains(p)) return true;
  }
  return static_thread_locals_beside_stack(thread).contains(p);
}

}  // namespace jd::world
