// A library that api_threads_test.cpp loads: it defines a layout and allocates by it.
#include <jackdaw/heap.h>

#include <cstddef>
#include <cstdint>

namespace {
struct Link {
  Link* next;
  std::uint64_t value;
};
}  // namespace

extern "C" {

__attribute__((visibility("default"))) const jd_layout* plugin_define() {
  static constexpr std::uint64_t kPointers[] = {JD_POINTER(Link, next)};
  jd_layout_info info = {};
  info.name = "plugin's link";
  info.size = sizeof(Link);
  info.pointers = kPointers;
  info.source = JD_HEADER;
  return jd_layout_define(&info);
}

// A list that counts down to 0 from length - 1.
__attribute__((visibility("default"))) void* plugin_make(const jd_layout* layout,
                                                         std::size_t length) {
  Link* list = nullptr;
  for (std::size_t i = 0; i < length; ++i) {
    auto* link = static_cast<Link*>(jd_new(layout));
    link->next = list;
    link->value = i;
    list = link;
    static_cast<void>(jd_new(layout));
  }
  return list;
}

__attribute__((visibility("default"))) std::size_t plugin_check(void* list) {
  std::size_t length = 0;
  for (auto* link = static_cast<Link*>(list); link != nullptr; link = link->next, ++length) {
    if (link->next != nullptr && link->next->value + 1 != link->value) return 0;
  }
  return length;
}

}  // extern "C"
