#include "cycle/statistics.hpp"

#include <errno.h>

#include "alloc/settings.hpp"
#include "alloc/totals.hpp"
#include "base/sharing.hpp"
#include "base/text.hpp"
#include "copy/policy.hpp"
#include "cycle/measured.hpp"
#include "heap/resident.hpp"
#include "mark/team.hpp"
#include "os/cpu.hpp"
#include "os/files.hpp"
#include "os/log.hpp"
#include "os/thread.hpp"

namespace jd::cycle {
namespace {

// Written at the start, under the heap's lock; read when the program exits. A plain array: it may
// be written before constructors run.
constexpr std::size_t kLongestName = 1000;
char file_name[kLongestName + 1];
bool wanted = false;
bool for_each_process = false;
int process = 0;
std::uint64_t began_ns = 0;
std::uint64_t began_ticks = 0;

// The name with the number of this process for each "%p".
void expand_name(const char* name, base::Text* expanded) {
  for (; *name != '\0'; ++name) {
    if (name[0] == '%' && name[1] == 'p') {
      expanded->add(os::process_id());
      ++name;
    } else {
      expanded->add(*name);
    }
  }
}

std::uint64_t in_nanoseconds(std::uint64_t ticks, std::uint64_t now, std::uint64_t now_ticks) {
  const double rate =
      static_cast<double>(now - began_ns) / static_cast<double>(now_ticks - began_ticks);
  return static_cast<std::uint64_t>(static_cast<double>(ticks) * rate);
}

// Without the lock, which a thread may hold that runs on while this one exits: a number may be one
// collection old.
void add_numbers(base::Text* line) {
  const std::uint64_t now = os::now_ns();
  const std::uint64_t now_ticks = os::ticks();
  const alloc::Totals totals = alloc::totals_unsynchronised();
  const auto add = [line](const char* name, std::uint64_t value) {
    line->add(", \"", name, "\": ", value);
  };
  line->add("{\"collections\": ", measured.collections);
  add("partial_collections", measured.partial_collections);
  add("run_ns", now - began_ns);
  add("pause_ns", measured.pause_total);
  add("longest_pause_ns", measured.pause_longest);
  add("stop_ns", measured.stop_total);
  add("longest_stop_ns", measured.stop_longest);
  add("mark_ns", measured.mark_total);
  add("root_ns", measured.root_total);
  add("stack_ns", measured.stack_total);
  add("root_bytes", measured.root_bytes);
  add("sweep_ns", measured.sweep_total);
  if (alloc::time_refills) {
    add("finding_ns", in_nanoseconds(alloc::refill_ticks.finding, now, now_ticks));
    add("clearing_ns", in_nanoseconds(alloc::refill_ticks.clearing, now, now_ticks));
  }
  if (copy::in_use) {
    add("moving_collections", copy::counts.collections);
    add("moved_objects", copy::counts.objects);
    add("moved_bytes", copy::counts.bytes);
    add("pinned_objects", copy::counts.pinned_last);
    add("pin_ns", copy::counts.pin_ns);
    add("move_ns", copy::counts.move_ns);
    add("fix_ns", copy::counts.fix_ns);
  }
  add("marked_objects", measured.marked_objects);
  add("live_objects", measured.live_objects);
  add("live_bytes", measured.live_bytes);
  add("allocated_bytes", totals.allocated_before_gc + totals.allocated_since_gc);
  add("heap_bytes", heap::resident_bytes());
  add("peak_heap_bytes", heap::peak_resident_bytes());
  if constexpr (base::kCountsSharing) {
    const base::SharingCounts counts = base::sharing_counts();
    add("counted_threads", counts.threads);
    add("lock_acquisitions", counts.lock_acquisitions);
    add("lock_waits", counts.lock_waits);
    add("shared_atomics", counts.shared_atomics);
    add("block_atomics", counts.block_atomics);
    add("most_sharing", counts.most_sharing);
    add("marking_locks", counts.marking_locks);
    add("marking_atomics", counts.marking_atomics);
    add("packets", mark::team.counts().packets);
  }
  line->add("}\n");
}

// After the program's own exit handlers. A forked child does not write over its parent's file.
[[gnu::destructor]] void write_statistics() {
  if (!wanted || (!for_each_process && os::process_id() != process)) return;
  base::Text path;
  expand_name(file_name, &path);
  const int file = os::create_file(path.c_str());
  int error = file < 0 ? errno : 0;
  if (file >= 0) {
    base::Text line;
    add_numbers(&line);
    error = os::write_all(file, line.data(), line.size());
    os::close_file(file);
  }
  if (error == 0) return;
  os::warn("can't write JACKDAW_STATISTICS ", path.c_str(), ": ", os::describe_error(error));
}

}  // namespace

void prepare_statistics(const char* path) {
  if (path == nullptr) return;
  std::size_t length = 0;
  while (path[length] != '\0') ++length;
  if (length > kLongestName) {
    os::warn("the name in JACKDAW_STATISTICS is too long; nothing will be written");
    return;
  }
  base::copy_bytes(file_name, path, length);
  wanted = true;
  process = os::process_id();
  began_ns = os::now_ns();
  began_ticks = os::ticks();
  for (const char* c = path; *c != '\0'; ++c) {
    if (c[0] == '%' && c[1] == 'p') for_each_process = true;
  }
}

}  // namespace jd::cycle
