// A library that tests load and unload: it has static data and a thread-local variable in which
// pointers can be put, and nothing else. It knows nothing of the collector.
#include <cstddef>

namespace {
constexpr std::size_t kSlots = 4096;
}

extern "C" {

__attribute__((visibility("default"))) void* plugin_static[kSlots] = {nullptr};
// In .data, not .bss: the two are different parts of a segment.
__attribute__((visibility("default"))) void* plugin_data[kSlots] = {&plugin_static[0]};

__attribute__((visibility("default"))) void** plugin_static_slots() { return plugin_static; }
__attribute__((visibility("default"))) void** plugin_data_slots() { return plugin_data; }
__attribute__((visibility("default"))) std::size_t plugin_slot_count() { return kSlots; }

#if defined(JD_PLUGIN_EARLY)
// In static thread-local storage, which needs no entry in the thread's vector.
#define PLUGIN_MODEL __attribute__((tls_model("initial-exec")))
#else
#define PLUGIN_MODEL
#endif
#if defined(JD_PLUGIN_LARGE)
// Far longer than what malloc has beside another library's block.
static thread_local char plugin_much_tls[64 << 20];
__attribute__((visibility("default"))) void* plugin_much() { return plugin_much_tls; }
#endif
static thread_local PLUGIN_MODEL void* plugin_tls[64];
__attribute__((visibility("default"))) void** plugin_tls_slots() { return plugin_tls; }
__attribute__((visibility("default"))) std::size_t plugin_tls_count() { return 64; }

}  // extern "C"
