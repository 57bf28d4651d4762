// Programs of libgc's functions, beside a shadow that knows which objects must be alive, where they
// lie and what they hold.
#include <gc.h>
#include <gc/gc_mark.h>
#include <gc/gc_typed.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "input.hpp"
#include "shadow.hpp"

namespace {

using fuzz::Id;
using fuzz::Input;
using fuzz::kNobody;
using fuzz::Shadow;

enum class Kind : std::uint8_t {
  Normal,
  Atomic,
  Uncollectable,
  AtomicUncollectable,
  IgnoreOffPage,
  Aligned,
  Debug,
  Typed,
  Many,
};
constexpr std::size_t kKinds = 9;
constexpr std::size_t kSlots = 24;
constexpr std::size_t kLinks = 16;
constexpr std::size_t kMostEdges = 4;
constexpr std::size_t kMostObjects = 600;

// The program's variables, which are roots. Only the collector reads them.
void* volatile slots[kSlots];

struct Object {
  GC_word hidden;  // its address
  std::size_t bytes;
  Kind kind;
  bool freed;
  bool has_finalizer;
};

struct Link {
  void** place;  // in memory that nobody looks at
  Id to;
  bool is_long;
};

class Program {
 public:
  explicit Program(Input input) : input_(input) {
    std::fill(std::begin(held_), std::end(held_), kNobody);
    for (Link& link : links_) {
      link = {static_cast<void**>(std::calloc(1, sizeof(void*))), kNobody, false};
    }
    current = this;
  }

  void run() {
    while (!input_.empty()) {
      step();
    }
    check_all();
    end();
  }

 private:
  static Program* current;

  static bool has_pointers(Kind kind) {
    return kind != Kind::Atomic && kind != Kind::AtomicUncollectable;
  }
  static bool is_uncollectable(Kind kind) {
    return kind == Kind::Uncollectable || kind == Kind::AtomicUncollectable;
  }
  // The first word is a number.
  static std::size_t edges_of(Kind kind, std::size_t bytes) {
    if (!has_pointers(kind)) return 0;
    return std::min(kMostEdges, bytes / sizeof(void*) - 1);
  }
  char* address(Id id) const { return static_cast<char*>(GC_REVEAL_POINTER(objects_[id].hidden)); }
  // Not so for the debugging allocators' objects, nor for all aligned ones.
  bool is_first_byte(Id id) const { return GC_base(address(id)) == address(id); }
  static void** word(char* object, std::size_t index) {
    return reinterpret_cast<void**>(object) + index;
  }

  std::size_t some_size() {
    switch (input_.below(8)) {
      case 0:
        return 8 + input_.number(2);  // up to 64 KiB
      case 1:
        return 8 + input_.number(3) % (512 * 1024);
      case 2:
        return 8 + input_.number(2) % 4096;
      default:
        return 8 + input_.below(200);
    }
  }

  static char* make(Kind kind, std::size_t bytes, std::size_t alignment) {
    switch (kind) {
      case Kind::Normal:
        return static_cast<char*>(GC_malloc(bytes));
      case Kind::Atomic:
        return static_cast<char*>(GC_malloc_atomic(bytes));
      case Kind::Uncollectable:
        return static_cast<char*>(GC_malloc_uncollectable(bytes));
      case Kind::AtomicUncollectable:
        return static_cast<char*>(GC_malloc_atomic_uncollectable(bytes));
      case Kind::IgnoreOffPage:
        return static_cast<char*>(GC_malloc_ignore_off_page(bytes));
      case Kind::Aligned:
        return static_cast<char*>(GC_memalign(alignment, bytes));
      case Kind::Debug:
        return static_cast<char*>(GC_debug_malloc(bytes, "fuzz", 1));
      case Kind::Typed: {
        GC_word bitmap[1] = {(GC_word{1} << (1 + edges_of(kind, bytes))) - 2};
        const GC_descr descriptor = GC_make_descriptor(bitmap, kMostEdges + 1);
        return static_cast<char*>(GC_malloc_explicitly_typed(bytes, descriptor));
      }
      case Kind::Many: {
        // The others of the list are dropped.
        void* list = GC_malloc_many(bytes);
        FUZZ_CHECK(list == nullptr || GC_NEXT(list) != list);
        if (list != nullptr) GC_NEXT(list) = nullptr;
        return static_cast<char*>(list);
      }
    }
    return nullptr;
  }

  void step() {
    const std::size_t slot = input_.below(kSlots);
    const Id id = held_[slot];
    switch (input_.byte() % 20) {
      case 0:
      case 1:
      case 2:
      case 3:
        return allocate(slot);
      case 4:
      case 5:
      case 6:
        return id == kNobody ? allocate(slot) : connect(id, held_[input_.below(kSlots)]);
      case 7:
        return drop(slot);
      case 8:
        return id == kNobody ? allocate(slot) : free_by_hand(id);
      case 9:
        return id == kNobody ? allocate(slot) : resize(slot, id);
      case 10:
        return id == kNobody ? allocate(slot) : copy_slot(slot, input_.below(kSlots));
      case 11:
        return id == kNobody ? allocate(slot) : set_link(id);
      case 12:
        return move_link();
      case 13:
        return id == kNobody ? allocate(slot) : set_finalizer(id);
      case 14:
        return id == kNobody ? allocate(slot) : look_inside(id);
      case 15:
        return set_something();
      case 16:
        return check_all();
      case 17:
        GC_invoke_finalizers();
        return;
      default:
        break;
    }
    // Collections are what takes time.
    if (input_.below(4) == 0) collect();
  }

  void allocate(std::size_t slot) {
    if (objects_.size() >= kMostObjects) return check_all();
    const auto kind = static_cast<Kind>(input_.below(kKinds));
    const std::size_t bytes = some_size();
    const std::size_t alignment = std::size_t{8} << input_.below(10);
    char* object = make(kind, bytes, alignment);
    FUZZ_CHECK(object != nullptr);
    FUZZ_CHECK(reinterpret_cast<GC_word>(object) % 8 == 0);
    if (kind == Kind::Aligned) FUZZ_CHECK(reinterpret_cast<GC_word>(object) % alignment == 0);
    if (kind != Kind::Debug && kind != Kind::Aligned)
      FUZZ_CHECK(GC_base(object) == object && GC_size(object) >= bytes);
    if (has_pointers(kind)) {
      FUZZ_CHECK(std::all_of(object, object + bytes, [](char c) { return c == 0; }));
    }
    const Id id = shadow_.add(edges_of(kind, bytes));
    objects_.push_back({GC_HIDE_POINTER(object), bytes, kind, false, false});
    *reinterpret_cast<GC_word*>(object) = 2 * GC_word{id} + 1;
    fill(id, object, 0, bytes);
    if (is_uncollectable(kind)) shadow_.hold(id);
    put(slot, id, object);
  }

  static std::size_t data_begin(Kind kind, std::size_t bytes) {
    return (1 + edges_of(kind, bytes)) * sizeof(void*);
  }
  void fill(Id id, char* object, std::size_t from, std::size_t to) const {
    const Object& it = objects_[id];
    for (std::size_t i = std::max(from, data_begin(it.kind, it.bytes)); i < to; ++i) {
      object[i] = static_cast<char>(fuzz::pattern(id, i));
    }
  }

  void put(std::size_t slot, Id id, char* object) {
    if (held_[slot] != kNobody) shadow_.release(held_[slot]);
    held_[slot] = id;
    slots[slot] = object;
    if (id != kNobody) shadow_.hold(id);
  }
  void drop(std::size_t slot) { put(slot, kNobody, nullptr); }
  void copy_slot(std::size_t from, std::size_t to) { put(to, held_[from], address(held_[from])); }

  void connect(Id from, Id to) {
    const std::size_t edges = shadow_.edges(from).size();
    if (edges == 0) return;
    const std::size_t edge = input_.below(edges);
    shadow_.set_edge(from, edge, to);
    *word(address(from), 1 + edge) = to == kNobody ? nullptr : address(to);
  }

  // As a program must before it frees: nothing may come to the object any more.
  void disown(Id id) {
    for (Link& link : links_) {
      if (link.to == id) unset_link(&link);
    }
    if (objects_[id].has_finalizer) take_finalizer_back(id);
  }
  void take_finalizer_back(Id id) {
    GC_register_finalizer_no_order(address(id), nullptr, nullptr, nullptr, nullptr);
    objects_[id].has_finalizer = false;
  }
  // Nulls the references to it of all objects whose words are still looked at.
  void forget_references(Id id) {
    const std::vector<bool> alive = shadow_.reachable();
    for (Id other = 0; other < objects_.size(); ++other) {
      if (other == id || !(alive[other] || objects_[other].has_finalizer)) continue;
      const std::size_t edges = shadow_.edges(other).size();
      for (std::size_t i = 0; i < edges; ++i) {
        if (shadow_.edges(other)[i] == id) connect_to_nobody(other, i);
      }
    }
  }

  void free_by_hand(Id id) {
    if (objects_[id].kind == Kind::Aligned && !is_first_byte(id)) return;
    disown(id);
    char* object = address(id);
    for (std::size_t i = 0; i < kSlots; ++i) {
      if (held_[i] == id) drop(i);
    }
    forget_references(id);
    const Kind kind = objects_[id].kind;
    shadow_.forget(id);
    objects_[id].freed = true;
    if (kind == Kind::Debug) {
      GC_debug_free(object);
    } else {
      GC_free(object);
    }
  }

  // The new object takes the old one's place in this slot alone: any other reference would be to
  // memory that was freed.
  void resize(std::size_t slot, Id id) {
    if (objects_.size() >= kMostObjects) return check_all();
    // A descriptor does not go with the words; and libgc aligns inside of larger objects.
    if (objects_[id].kind == Kind::Typed) return;
    if (objects_[id].kind == Kind::Aligned && !is_first_byte(id)) return;
    const std::vector<Id> edges = shadow_.edges(id);
    const Object old = objects_[id];
    const std::size_t bytes = some_size();
    char* object = address(id);
    disown(id);
    // Self-references would be copied, and mean the old one.
    for (std::size_t i = 0; i < edges.size(); ++i) {
      if (edges[i] == id) connect_to_nobody(id, i);
    }
    for (std::size_t i = 0; i < kSlots; ++i) {
      if (held_[i] != id) continue;
      held_[i] = kNobody;
      slots[i] = nullptr;
    }
    forget_references(id);
    char* resized =
        static_cast<char*>(old.kind == Kind::Debug ? GC_debug_realloc(object, bytes, "fuzz", 2)
                                                   : GC_realloc(object, bytes));
    FUZZ_CHECK(resized != nullptr);
    const Kind kind = old.kind;
    FUZZ_CHECK(*reinterpret_cast<GC_word*>(resized) == 2 * GC_word{id} + 1);
    const std::size_t common = std::min(bytes, old.bytes);
    for (std::size_t i = data_begin(old.kind, old.bytes); i < common; ++i) {
      FUZZ_CHECK(resized[i] == static_cast<char>(fuzz::pattern(id, i)));
    }
    shadow_.forget(id);
    objects_[id].freed = true;
    const Id next = shadow_.add(edges_of(kind, bytes));
    objects_.push_back({GC_HIDE_POINTER(resized), bytes, kind, false, false});
    *reinterpret_cast<GC_word*>(resized) = 2 * GC_word{next} + 1;
    for (std::size_t i = 0; i < edges_of(kind, bytes); ++i) {
      *word(resized, 1 + i) = nullptr;
    }
    fill(next, resized, 0, bytes);
    if (is_uncollectable(kind)) shadow_.hold(next);
    held_[slot] = kNobody;
    put(slot, next, resized);
  }
  void connect_to_nobody(Id id, std::size_t edge) {
    shadow_.set_edge(id, edge, kNobody);
    *word(address(id), 1 + edge) = nullptr;
  }

  void set_link(Id id) {
    if (!is_first_byte(id)) return;
    Link& link = links_[input_.below(kLinks)];
    if (link.to != kNobody) unset_link(&link);
    link.is_long = input_.below(2) == 0;
    *link.place = reinterpret_cast<void*>(objects_[id].hidden);
    const int result = link.is_long
                           ? GC_register_long_link(link.place, address(id))
                           : GC_general_register_disappearing_link(link.place, address(id));
    FUZZ_CHECK(result == GC_SUCCESS);
    link.to = id;
  }
  void unset_link(Link* link) {
    const bool cleared = *link->place == nullptr;
    const int found = link->is_long ? GC_unregister_long_link(link->place)
                                    : GC_unregister_disappearing_link(link->place);
    FUZZ_CHECK((found != 0) == !cleared);
    *link->place = nullptr;
    link->to = kNobody;
  }
  void move_link() {
    Link& from = links_[input_.below(kLinks)];
    Link& to = links_[input_.below(kLinks)];
    check_links();
    if (&from == &to || from.to == kNobody || to.to != kNobody) return;
    const int result = from.is_long ? GC_move_long_link(from.place, to.place)
                                    : GC_move_disappearing_link(from.place, to.place);
    FUZZ_CHECK(result == GC_SUCCESS);
    *to.place = *from.place;
    *from.place = nullptr;
    to.to = from.to;
    to.is_long = from.is_long;
    from.to = kNobody;
  }
  // A link is cleared only when nothing refers to its object.
  void check_links() {
    const std::vector<bool> alive = shadow_.reachable();
    for (Link& link : links_) {
      if (link.to == kNobody) continue;
      if (*link.place == nullptr) {
        FUZZ_CHECK(!alive[link.to]);
        link.to = kNobody;
      } else {
        FUZZ_CHECK(*link.place == reinterpret_cast<void*>(objects_[link.to].hidden));
      }
    }
  }

  static void finalize(void* object, void* data) {
    Program& program = *current;
    const auto id = static_cast<Id>(reinterpret_cast<GC_word>(data));
    Object& it = program.objects_[id];
    FUZZ_CHECK(it.has_finalizer && !it.freed);
    it.has_finalizer = false;
    FUZZ_CHECK(object == program.address(id));
    FUZZ_CHECK(!program.shadow_.reachable()[id]);
    program.check_object(id);
  }
  void set_finalizer(Id id) {
    if (!is_first_byte(id)) return;
    void* data = reinterpret_cast<void*>(GC_word{id});
    GC_finalization_proc before = nullptr;
    void* data_before = nullptr;
    switch (input_.below(5)) {
      case 0:
        GC_register_finalizer(address(id), finalize, data, &before, &data_before);
        break;
      case 1:
        GC_register_finalizer_ignore_self(address(id), finalize, data, &before, &data_before);
        break;
      case 2:
        GC_register_finalizer_no_order(address(id), finalize, data, &before, &data_before);
        break;
      case 3:
        GC_register_finalizer_unreachable(address(id), finalize, data, &before, &data_before);
        break;
      default:
        GC_register_finalizer(address(id), nullptr, nullptr, &before, &data_before);
        FUZZ_CHECK((before == finalize) == objects_[id].has_finalizer);
        objects_[id].has_finalizer = false;
        return;
    }
    FUZZ_CHECK((before == finalize) == objects_[id].has_finalizer);
    FUZZ_CHECK(before == nullptr || data_before == data);
    objects_[id].has_finalizer = true;
  }

  void look_inside(Id id) {
    const Object& it = objects_[id];
    char* object = address(id);
    char* inside = object + input_.number(3) % it.bytes;
    FUZZ_CHECK(GC_is_heap_ptr(inside) != 0);
    if (!is_first_byte(id)) return;
    FUZZ_CHECK(GC_base(inside) == object);
    FUZZ_CHECK(GC_size(object) >= it.bytes);
  }

  void set_something() {
    switch (input_.below(6)) {
      case 0:
        return GC_set_free_space_divisor(1 + input_.below(6));
      case 1:
        GC_disable();
        (void)make(Kind::Normal, some_size(), 8);
        return GC_enable();
      case 2:
        FUZZ_CHECK(GC_expand_hp(input_.number(2)) != 0);
        return;
      case 3:
        (void)GC_collect_a_little();
        return;
      case 4:
        // Garbage, for collections that nobody asked for.
        for (std::size_t i = input_.byte(); i != 0; --i) (void)make(Kind::Normal, 4096, 8);
        return;
      default:
        return GC_gcollect_and_unmap();
    }
  }

  void collect() {
    GC_gcollect();
    check_links();
  }

  void check_object(Id id) const {
    const Object& it = objects_[id];
    const char* object = address(id);
    FUZZ_CHECK(*reinterpret_cast<const GC_word*>(object) == 2 * GC_word{id} + 1);
    const std::vector<Id>& edges = shadow_.edges(id);
    for (std::size_t i = 0; i < edges.size(); ++i) {
      const void* there = edges[i] == kNobody ? nullptr : address(edges[i]);
      FUZZ_CHECK(*word(address(id), 1 + i) == there);
    }
    for (std::size_t i = data_begin(it.kind, it.bytes); i < it.bytes; ++i) {
      FUZZ_CHECK(object[i] == static_cast<char>(fuzz::pattern(id, i)));
    }
  }
  void check_all() {
    const std::vector<bool> alive = shadow_.reachable();
    for (Id id = 0; id < objects_.size(); ++id) {
      if (alive[id]) check_object(id);
    }
    check_links();
  }

  // The next program begins with an empty heap, but for what was taken for pointers.
  void end() {
    for (std::size_t i = 0; i < kSlots; ++i) drop(i);
    // Its finalizers are not for the next program's objects.
    GC_invoke_finalizers();
    for (Id id = 0; id < objects_.size(); ++id) {
      if (objects_[id].has_finalizer) take_finalizer_back(id);
    }
    for (Id id = 0; id < objects_.size(); ++id) {
      const Object& it = objects_[id];
      if (!is_uncollectable(it.kind) || it.freed) continue;
      disown(id);
      GC_free(address(id));
    }
    for (Link& link : links_) {
      if (link.to != kNobody) unset_link(&link);
      std::free(link.place);
    }
  }

  Input input_;
  Shadow shadow_;
  std::vector<Object> objects_;
  Id held_[kSlots];
  Link links_[kLinks];
};

Program* Program::current = nullptr;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool started = [] {
    GC_INIT();
    GC_set_warn_proc(GC_ignore_warn_proc);
    return true;
  }();
  (void)started;
  Program(Input(data, size)).run();
  return 0;
}
