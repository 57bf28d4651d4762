#include "malloc/leaks.hpp"

#include <errno.h>

#include <algorithm>
#include <atomic>

#include "cycle/collect.hpp"
#include "cycle/measured.hpp"
#include "cycle/runtime.hpp"
#include "cycle/settings.hpp"
#include "heap/arena.hpp"
#include "heap/walk.hpp"
#include "malloc/backtraces.hpp"
#include "malloc/libraries.hpp"
#include "malloc/serve.hpp"
#include "os/context.hpp"
#include "os/files.hpp"
#include "os/log.hpp"
#include "os/modules.hpp"
#include "os/symbols.hpp"
#include "os/thread.hpp"
#include "world/fork.hpp"

namespace jd::serve::leaks {
namespace {

using base::Word;
using heap::heap_lock;
using os::LockGuard;

// Frames of a backtrace that are kept: enough to come out of the libraries that allocate for
// others.
constexpr int kMostFrames = 24;
// Of ours, above the caller's.
constexpr int kOwnFrames = 8;

// Set once, by begin(); threads that constructors of the program's libraries started before may
// allocate meanwhile (release, acquire). The unwinder's code asks for memory with a lock held that
// taking a backtrace would wait for.
std::atomic<bool> can_take_backtraces{false};
os::Extent unwinder{};
char program_name[256] = "";
// The unwinder may allocate.
constinit thread_local bool taking = false;

// Where allocations of unknown origin are counted: those before begin().
Backtrace unknown{};
// And those whose tag is none that was written: the program wrote beyond the object.
Backtrace overwritten{};

// An object's tag: the top bit, which no address has, the backtrace's number (0: unknown), and the
// bytes of the object that were not asked for: up to half of a large one, that realloc left in
// place.
constexpr unsigned kNumberShift = 39;
constexpr Word kTagBit = Word{1} << 63;
constexpr Word kMostSlack = (Word{1} << kNumberShift) - 1;
constexpr std::size_t kMostBacktraces = (kTagBit >> kNumberShift) - 1;

Word* tag_of(const heap::Place& place) {
  return reinterpret_cast<Word*>(base::as_pointer(place.address() + place.size() - kSpare));
}

Backtrace* take_backtrace(const void* caller) {
  if (!can_take_backtraces.load(std::memory_order_acquire) || taking) return &unknown;
  if (unwinder.contains(caller)) return &unknown;
  taking = true;
  void* addresses[kMostFrames + kOwnFrames];
  const int count = os::take_backtrace(addresses, kMostFrames + kOwnFrames);
  taking = false;
  int first = 0;
  while (first < count && addresses[first] != caller) ++first;
  if (first == count) return &unknown;
  Backtrace* backtrace = find_or_add_backtrace(
      addresses + first, static_cast<std::size_t>(base::min_of(count - first, kMostFrames)));
  return backtrace != nullptr && backtrace->number <= kMostBacktraces ? backtrace : &unknown;
}

template <class Visit>
void for_each_backtrace(Visit visit) {
  visit(&unknown);
  visit(&overwritten);
  for (std::size_t i = 1; i <= backtrace_count(); ++i) visit(numbered_backtrace(i));
}

// The program may have written anything there.
Backtrace* backtrace_of(Word tag) {
  const Word number = (tag & ~kTagBit) >> kNumberShift;
  if ((tag & kTagBit) == 0 || number > backtrace_count()) return &overwritten;
  return number == 0 ? &unknown : numbered_backtrace(number);
}

void count_lost(const heap::Place& place) {
  const Word tag = *tag_of(place);
  Backtrace* backtrace = backtrace_of(tag);
  std::size_t bytes = place.size() - kSpare;
  if (backtrace != &overwritten) bytes -= base::min_of(bytes, std::size_t{tag & kMostSlack});
  ++backtrace->objects;
  backtrace->bytes += bytes;
}

// In the stopped world, when everything reachable is marked: counts the rest, and keeps it.
void count_unreachable() {
  heap::for_each_block([](heap::BlockNumber, heap::Block& block) {
    if (block.state == heap::BlockState::Free) return;
    heap::for_each_unmarked(block, [&](unsigned slot) {
      const heap::Place place{&block, slot};
      count_lost(place);
      place.set_mark();
    });
  });
}

// A line about the whole. Several processes may write into one log.
template <class... Parts>
void say(Parts... parts) {
  os::log("leak check of process ", os::process_id(), " (", static_cast<const char*>(program_name),
          "): ", parts...);
}

// The place of a call, which ends just before the address that it returns to.
void describe_call(const Backtrace& backtrace, std::size_t frame, base::Text* line) {
  const char* call = static_cast<char*>(backtrace.addresses[frame]) - 1;
  const Library* gone = nullptr;
  {
    LockGuard guard(heap_lock);
    gone = unloaded_library(call, backtrace.added_at);
  }
  if (gone == nullptr) return os::describe_code(call, line);
  line->add(gone->path, "+", base::Hex{static_cast<std::uint64_t>(call - gone->base)},
            " (unloaded)");
}

// What one leak is told by, gathered: other processes write into the same log, and their lines are
// not to come between. For the thread that reports.
class Lines {
 public:
  void add(base::Text& line) {
    line.end_line();
    if (used_ + line.size() > sizeof text_) write();
    base::copy_bytes(text_ + used_, line.data(), line.size());
    used_ += line.size();
  }
  void write() {
    os::write_all(os::log_file(), text_, used_);
    used_ = 0;
  }

 private:
  char text_[(kMostFrames + 1) * sizeof(base::Text)] = {};
  std::size_t used_ = 0;
};
constinit Lines lines;

void print(const Backtrace& backtrace) {
  base::Text heading;
  heading.add(
      "jackdaw: leak in process ", os::process_id(), ": ", backtrace.objects,
      backtrace.objects == 1 ? " object, " : " objects, ", backtrace.bytes, " bytes, allocated",
      &backtrace == &overwritten ? " nobody knows where: something was written beyond their ends"
      : backtrace.frames == 0    ? " where no stack could be taken"
                                 : " by this call:");
  lines.add(heading);
  for (std::size_t i = 0; i < backtrace.frames; ++i) {
    base::Text line;
    line.add("jackdaw:   ");
    describe_call(backtrace, i, &line);
    lines.add(line);
  }
  lines.write();
}

// Those with lost objects, the most bytes first, into a table of their own.
std::size_t sort_found(Backtrace** found) {
  std::size_t count = 0;
  {
    // Others may add some; those have lost nothing.
    LockGuard guard(heap_lock);
    for_each_backtrace([&](Backtrace* backtrace) {
      if (backtrace->objects != 0) found[count++] = backtrace;
    });
  }
  std::sort(found, found + count, [](const Backtrace* a, const Backtrace* b) {
    return a->bytes != b->bytes ? a->bytes > b->bytes : a->hash < b->hash;
  });
  return count;
}

const char* why_not_collected() {
  if (reason_not_to_collect != nullptr) return reason_not_to_collect;
  return world::is_borrowed_process() ? "it has its parent's memory, as a child of vfork() has"
                                      : "the roots are not known";
}

}  // namespace

void tag(void* object, std::size_t bytes, const void* caller) {
  heap::Place place;
  if (!heap::find_place(base::as_word(object), &place)) return;
  Backtrace* backtrace = take_backtrace(caller);
  const Word slack = base::min_of(Word{place.size() - kSpare - bytes}, kMostSlack);
  *tag_of(place) = kTagBit | Word{backtrace->number} << kNumberShift | slack;
}

void begin() {
  // Programs write their titles over it. What is longer is cut off.
  const std::size_t length = __builtin_strlen(program_invocation_short_name);
  base::copy_bytes(program_name, program_invocation_short_name,
                   base::min_of(length, sizeof program_name - 1));
  // Allocations of the unwinder's own have no backtrace.
  taking = true;
  unwinder = os::bounds_of_object(os::prepare_backtraces());
  taking = false;
  can_take_backtraces.store(true, std::memory_order_release);
  os::keep_log();
}

void report() {
  os::clear_stack_below();
  cycle::start();
  os::regain_log(cycle::options.log_file);
  // A handler of the program's has called exit(): there is nobody who would let the lock go.
  if (world::interrupts_lock_holder()) {
    return say("impossible, the program ended in the middle of an allocation");
  }
  cycle::Outcome outcome{};
  {
    // Collecting stays off for everybody else: this collection alone keeps what it finds.
    LockGuard guard(heap_lock);
    cycle::settings.before_sweep = count_unreachable;
    outcome = cycle::collect_locked();
    cycle::settings.before_sweep = nullptr;
  }
  if (outcome == cycle::Outcome::ThreadsDidNotStop) {
    return say("impossible, not all threads could be stopped (see ulimit -i)");
  }
  if (outcome != cycle::Outcome::Done) {
    return say("impossible, ", why_not_collected());
  }
  Backtrace** found = nullptr;
  std::size_t room = 0;
  {
    LockGuard guard(heap_lock);
    room = (backtrace_count() + 2) * sizeof(Backtrace*);
    found = static_cast<Backtrace**>(heap::table_take(room));
  }
  if (found == nullptr) return say("no memory for the report");
  const std::size_t count = sort_found(found);
  std::size_t objects = 0;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    objects += found[i]->objects;
    bytes += found[i]->bytes;
  }
  if (count == 0) {
    say("nothing is lost");
  } else {
    say(objects, objects == 1 ? " object, " : " objects, ", bytes,
        " bytes are unreachable and were not freed, from ", count,
        count == 1 ? " place" : " places");
  }
  for (std::size_t i = 0; i < count; ++i) print(*found[i]);
  LockGuard guard(heap_lock);
  heap::table_give(found, room);
}

}  // namespace jd::serve::leaks
