// Finalizers, disappearing links, toggle references: tables are in cycle/finalization.
#include "libgc/support.hpp"

using namespace jd;
using namespace jd::libgc;
using cycle::FinalizerOrder;
using cycle::LinkLength;
using cycle::TableResult;

namespace {

int code_of(TableResult result) {
  switch (result) {
    case TableResult::Ok:
      return GC_SUCCESS;
    case TableResult::Duplicate:
      return GC_DUPLICATE;
    case TableResult::NoMemory:
      return GC_NO_MEMORY;
    case TableResult::NotFound:
      return GC_NOT_FOUND;
  }
  return GC_UNIMPLEMENTED;
}

// When the tables can't grow, the out-of-memory function gets one chance to help.
template <class Attempt>
TableResult with_memory(Attempt attempt) {
  TableResult result = TableResult::NoMemory;
  {
    LockGuard guard(heap_lock);
    result = attempt();
  }
  if (result != TableResult::NoMemory) return result;
  const GC_oom_func help = GC_get_oom_fn();
  if (help == nullptr || help(64) == nullptr) return result;
  LockGuard guard(heap_lock);
  return attempt();
}

// Of an address in the object that occupies the memory from `base` on. (From 1 GiB on: 0.)
std::uint32_t offset_in(char* base, const void* address) {
  const heap::Block& block = heap::space.blocks[heap::block_number(base::as_word(base))];
  const base::Word object = heap::object_in(base::as_word(base), heap::kinds[block.kind]);
  const base::Word offset = base::as_word(address) - object;  // wraps for what lies before it
  return static_cast<std::uint32_t>(offset <= cycle::kMostOffset ? offset : 0);
}

void register_finalizer(void* object, GC_finalization_proc function, void* data,
                        GC_finalization_proc* old_function, void** old_data, FinalizerOrder order) {
  cycle::start();
  if (GC_find_leak != 0) return;
  // Inside an object the object counts, and its finalizer gets the address that was registered.
  char* base = base_of(object);
  const std::uint32_t offset = base != nullptr ? offset_in(base, object) : 0;
  // With the lock held, as the headers promise: both variables change at once.
  const TableResult result = with_memory([&] {
    cycle::Finalizer old;
    // What is no object of the heap is never finalized.
    const TableResult done =
        base == nullptr ? TableResult::Ok
                        : cycle::set_finalizer(base, offset, {function, data}, order, &old);
    if (done == TableResult::NoMemory) return done;
    if (old_function != nullptr) *old_function = old.function;
    if (old_data != nullptr) *old_data = old.client_data;
    return done;
  });
  if (result == TableResult::NoMemory) {
    cycle::warn("GC Warning: No memory to register a finalizer for %p\n", base::as_word(object));
  }
}

bool aligned(const void* link) { return link != nullptr && base::as_word(link) % 8 == 0; }

int add_link(void** link, const void* object, LinkLength length, const char* complaint) {
  if (!aligned(link)) abort_with(complaint);
  cycle::start();
  if (GC_find_leak != 0) return GC_UNIMPLEMENTED;
  return code_of(with_memory([&] { return cycle::add_link(link, object, length); }));
}

int drop_link(void** link, LinkLength length) {
  if (!aligned(link)) return 0;
  LockGuard guard(heap_lock);
  return cycle::remove_link(link, length) ? 1 : 0;
}

int move_link(void** from, void** to, LinkLength length, const char* complaint) {
  if (!aligned(to)) abort_with(complaint);
  if (!aligned(from)) return GC_NOT_FOUND;
  return code_of(with_memory([&] { return cycle::move_link(from, to, length); }));
}

}  // namespace

extern "C" {

void GC_register_finalizer(void* object, GC_finalization_proc function, void* data,
                           GC_finalization_proc* old_function, void** old_data) {
  register_finalizer(object, function, data, old_function, old_data, FinalizerOrder::Ordered);
}
void GC_register_finalizer_ignore_self(void* object, GC_finalization_proc function, void* data,
                                       GC_finalization_proc* old_function, void** old_data) {
  register_finalizer(object, function, data, old_function, old_data, FinalizerOrder::IgnoreSelf);
}
void GC_register_finalizer_no_order(void* object, GC_finalization_proc function, void* data,
                                    GC_finalization_proc* old_function, void** old_data) {
  register_finalizer(object, function, data, old_function, old_data, FinalizerOrder::NoOrder);
}
void GC_register_finalizer_unreachable(void* object, GC_finalization_proc function, void* data,
                                       GC_finalization_proc* old_function, void** old_data) {
  register_finalizer(object, function, data, old_function, old_data, FinalizerOrder::Unreachable);
}

int GC_register_disappearing_link(void** link) {
  const char* object = base_of(link);
  if (object == nullptr) abort_with("Bad arg to GC_register_disappearing_link");
  return GC_general_register_disappearing_link(link, object);
}
int GC_general_register_disappearing_link(void** link, const void* object) {
  return add_link(link, object, LinkLength::Short,
                  "Bad arg to GC_general_register_disappearing_link");
}
int GC_unregister_disappearing_link(void** link) { return drop_link(link, LinkLength::Short); }
int GC_move_disappearing_link(void** from, void** to) {
  return move_link(from, to, LinkLength::Short, "Bad new_link arg to GC_move_disappearing_link");
}
int GC_register_long_link(void** link, const void* object) {
  return add_link(link, object, LinkLength::Long, "Bad arg to GC_register_long_link");
}
int GC_unregister_long_link(void** link) { return drop_link(link, LinkLength::Long); }
int GC_move_long_link(void** from, void** to) {
  return move_link(from, to, LinkLength::Long, "Bad new_link arg to GC_move_long_link");
}

int GC_should_invoke_finalizers() { return cycle::finalizers_due(); }
int GC_invoke_finalizers() { return cycle::run_due(); }
GC_API void GC_finalize_all() { cycle::finalize_everything(); }
// The tables are apart from the heap and the collector looks at them itself.
GC_API void GC_push_finalizer_structures() {}

void GC_set_finalize_on_demand(int on_demand) { GC_finalize_on_demand = on_demand; }
int GC_get_finalize_on_demand() { return GC_finalize_on_demand; }
void GC_set_java_finalization(int value) { GC_java_finalization = value; }
int GC_get_java_finalization() { return GC_java_finalization; }

void GC_set_finalizer_notifier(GC_finalizer_notifier_proc notifier) {
  set_locked(&GC_finalizer_notifier, notifier);
}
GC_finalizer_notifier_proc GC_get_finalizer_notifier() {
  return get_locked(&GC_finalizer_notifier);
}
void GC_set_await_finalize_proc(GC_await_finalize_proc function) {
  set_locked(&cycle::settings.await_finalize, function);
}
GC_await_finalize_proc GC_get_await_finalize_proc() {
  return get_locked(&cycle::settings.await_finalize);
}

void GC_set_toggleref_func(GC_toggleref_func function) {
  set_locked(&cycle::settings.toggle_reference, function);
}
GC_toggleref_func GC_get_toggleref_func() { return get_locked(&cycle::settings.toggle_reference); }
int GC_toggleref_add(void* object, int strong) {
  if (GC_get_toggleref_func() == nullptr) return GC_SUCCESS;
  return code_of(with_memory([&] { return cycle::add_toggle_reference(object, strong != 0); }));
}
}
