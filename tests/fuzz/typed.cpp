// Programs of the typed heap's functions, beside a shadow that knows which objects must be alive
// and what they hold. Where an object lies is learnt from what refers to it: at any moment all must
// agree. JACKDAW_POLICY and JACKDAW_MOVE say how objects move.
#include <gc.h>
#include <jackdaw/heap.h>

#include <algorithm>
#include <array>
#include <vector>

#include "input.hpp"
#include "shadow.hpp"

namespace {

using fuzz::Id;
using fuzz::Input;
using fuzz::kNobody;
using fuzz::Shadow;

constexpr std::size_t kVariables = 12;  // of each sort
constexpr std::size_t kWeak = 8;
constexpr std::size_t kMostObjects = 500;
constexpr std::size_t kMostElements = 700;

// A layout, and what the program knows of it. Objects begin with a word for the collector, if there
// is one, and a number; the words of `pointers` follow, then other data.
struct Shape {
  const char* name;
  jd_source source;
  std::size_t words;     // of the fixed part
  std::size_t pointers;  // of the words behind the number
  std::size_t element_bytes = 0;
  bool element_is_pointer = false;  // its first word
  bool traced = false;

  const jd_layout* layout = nullptr;
  // Of an object's words.
  [[nodiscard]] std::size_t number() const { return source == JD_SELF ? 1 : 0; }
  [[nodiscard]] std::size_t count() const { return number() + 1; }
  [[nodiscard]] std::size_t first_pointer() const {
    return number() + 1 + (source == JD_SELF && element_bytes != 0 ? 1 : 0);
  }
};

void trace_pointers(void* object, std::size_t, jd_tracer* tracer) {
  // A header's and a homogeneous object's first word is the number.
  void** words = static_cast<void**>(object);
  for (std::size_t i = 1; i <= 3; ++i) jd_trace_slot(tracer, words + i);
}

std::vector<Shape>& shapes() {
  static std::vector<Shape> all = {
      {"cell", JD_HOMOGENEOUS, 3, 2},
      {"wide", JD_HOMOGENEOUS, 90, 40},
      {"array", JD_HOMOGENEOUS, 1, 0, 8, true},
      {"text", JD_HOMOGENEOUS, 1, 0, 1},
      {"traced", JD_HOMOGENEOUS, 5, 3, 0, false, true},
      {"self cell", JD_SELF, 4, 2},
      {"self wide", JD_SELF, 90, 70},
      {"self array", JD_SELF, 4, 1, 16, true},
      {"self text", JD_SELF, 3, 0, 2},
      {"header cell", JD_HEADER, 2, 1},
      {"header wide", JD_HEADER, 300, 66},
      {"header array", JD_HEADER, 2, 1, 24, true},
      {"header text", JD_HEADER, 1, 0, 4},
      {"header traced", JD_HEADER, 4, 3, 0, false, true},
  };
  return all;
}

void define_shapes() {
  for (Shape& shape : shapes()) {
    std::array<std::uint64_t, 8> bitmap{};
    for (std::size_t i = 0; i < shape.pointers; ++i) {
      const std::size_t word = shape.first_pointer() + i;
      bitmap[word / 64] |= std::uint64_t{1} << (word % 64);
    }
    const std::uint64_t first_of_element = 1;
    jd_layout_info info{};
    info.name = shape.name;
    info.size = shape.words * sizeof(void*);
    if (shape.traced) {
      info.trace = trace_pointers;
    } else {
      info.pointers = bitmap.data();
    }
    info.element_size = shape.element_bytes;
    if (shape.element_is_pointer) info.element_pointers = &first_of_element;
    if (shape.source == JD_SELF && shape.element_bytes != 0) {
      info.count_offset = shape.count() * sizeof(void*);
    }
    info.source = shape.source;
    shape.layout = jd_layout_define(&info);
    FUZZ_CHECK(shape.layout != nullptr);
  }
}

// Roots: of the first nobody but the collector knows, and what they mean is pinned.
void* volatile ambiguous[kVariables];
// Precise ones, in memory that the collector does not look at.
void** precise;
constexpr std::size_t kPrecise = kVariables + 2 * kWeak;

struct Object {
  const Shape* shape;  // null: libgc's, of a number and three references
  std::size_t elements;
  unsigned pins;
  GC_word pinned_at;   // hidden
  std::uint64_t hash;  // 0: nobody asked
  bool has_finalizer;
};

class Program {
 public:
  explicit Program(Input input) : input_(input) {
    std::fill(std::begin(held_), std::end(held_), kNobody);
    std::fill(std::begin(weak_), std::end(weak_), kNobody);
    shadow_.ephemerons().resize(kWeak, {false, kNobody, kNobody});
    current = this;
  }

  void run() {
    while (!input_.empty()) step();
    check_all();
    end();
  }

 private:
  static Program* current;
  static GC_word programs;
  static constexpr GC_word kDataOfProgram = 1024 * 2;
  static_assert(kMostObjects <= kDataOfProgram / 2);

  // --- Where objects lie ---

  static void* variable(std::size_t i) {
    return i < kVariables ? ambiguous[i] : precise[i - kVariables];
  }
  static void set_variable(std::size_t i, void* value) {
    if (i < kVariables) {
      ambiguous[i] = value;
    } else {
      precise[i - kVariables] = value;
    }
  }
  static jd_weak* weak(std::size_t i) { return static_cast<jd_weak*>(precise[kVariables + i]); }
  static jd_ephemeron* ephemeron(std::size_t i) {
    return static_cast<jd_ephemeron*>(precise[kVariables + kWeak + i]);
  }

  [[nodiscard]] std::size_t edges_of(const Object& it) const {
    if (it.shape == nullptr) return 3;
    return it.shape->pointers + (it.shape->element_is_pointer ? it.elements : 0);
  }
  static void** word(void* object, std::size_t index) {
    return static_cast<void**>(object) + index;
  }
  void** edge(Id id, void* object, std::size_t i) const {
    const Object& it = objects_[id];
    if (it.shape == nullptr) return word(object, 1 + i);
    if (i < it.shape->pointers) return word(object, it.shape->first_pointer() + i);
    return word(object, it.shape->words + (i - it.shape->pointers) * it.shape->element_bytes / 8);
  }
  std::uint64_t* number(Id id, void* object) const {
    const Object& it = objects_[id];
    return reinterpret_cast<std::uint64_t*>(
        word(object, it.shape == nullptr ? 0 : it.shape->number()));
  }

  // --- Operations ---

  void step() {
    const std::size_t i = input_.below(2 * kVariables);
    const Id id = held_[i];
    switch (input_.byte() % 20) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        return allocate(i);
      case 5:
      case 6:
      case 7:
        return id == kNobody ? allocate(i) : connect(i, input_.below(2 * kVariables));
      case 8:
        return put(i, kNobody, nullptr);
      case 9: {
        const std::size_t to = input_.below(2 * kVariables);
        return put(to, id, variable(i));
      }
      case 10:
        return id == kNobody ? allocate(i) : follow(i);
      case 11:
        return id == kNobody ? allocate(i) : pin(i);
      case 12:
        return id == kNobody ? allocate(i) : make_weak(i);
      case 13:
        return id == kNobody ? allocate(i) : make_ephemeron(i);
      case 14:
        return id == kNobody ? allocate(i) : set_finalizer(i);
      case 15:
        return id == kNobody ? allocate(i) : hash(i);
      case 16:
        return drop_weak();
      case 17:
        return check_all();
      case 18:
        // Garbage between what lives.
        for (std::size_t n = input_.byte(); n != 0; --n) (void)jd_new(some_shape().layout);
        return;
      default:
        break;
    }
    if (input_.below(4) != 0) return;
    jd_collect(input_.below(3) == 0 ? 1 : 0);
    check_all();
  }

  Shape& some_shape() { return shapes()[input_.below(shapes().size())]; }

  void allocate(std::size_t i) {
    if (objects_.size() >= kMostObjects) return check_all();
    Object it{};
    void* object = nullptr;
    if (input_.below(5) == 0) {
      object = GC_malloc(4 * sizeof(void*));
    } else {
      it.shape = &some_shape();
      if (it.shape->element_bytes != 0) {
        it.elements = input_.below(3) == 0 ? input_.number(2) % kMostElements : input_.below(6);
        object = jd_new_array(it.shape->layout, it.elements);
      } else {
        object = jd_new(it.shape->layout);
      }
    }
    FUZZ_CHECK(object != nullptr);
    objects_.push_back(it);
    const Id id = shadow_.add(edges_of(it));
    for (std::size_t e = 0; e < edges_of(it); ++e) FUZZ_CHECK(*edge(id, object, e) == nullptr);
    *number(id, object) = 2 * std::uint64_t{id} + 1;
    tags_.emplace_back(edges_of(it), 0);
    fill(id, object);
    put(i, id, object);
  }

  // Data that are no pointers: the fixed part's rest, and elements.
  template <class Visit>
  void visit_data(Id id, void* object, Visit visit) const {
    const Object& it = objects_[id];
    char* bytes = static_cast<char*>(object);
    if (it.shape == nullptr) return;
    const std::size_t fixed = it.shape->words * sizeof(void*);
    for (std::size_t b = (it.shape->first_pointer() + it.shape->pointers) * sizeof(void*);
         b < fixed; ++b) {
      visit(bytes[b], fuzz::pattern(id, b));
    }
    for (std::size_t e = 0; e < it.elements; ++e) {
      const std::size_t begin = fixed + e * it.shape->element_bytes;
      for (std::size_t b = it.shape->element_is_pointer ? 8 : 0; b < it.shape->element_bytes; ++b) {
        visit(bytes[begin + b], fuzz::pattern(id, begin + b));
      }
    }
  }
  void fill(Id id, void* object) const {
    visit_data(id, object, [](char& byte, std::uint8_t it) { byte = static_cast<char>(it); });
  }

  void put(std::size_t i, Id id, void* object) {
    if (held_[i] != kNobody) shadow_.release(held_[i]);
    held_[i] = id;
    set_variable(i, object);
    if (id != kNobody) shadow_.hold(id);
  }

  void connect(std::size_t from, std::size_t to) {
    const Id id = held_[from];
    const std::size_t edges = edges_of(objects_[id]);
    if (edges == 0) return;
    const std::size_t e = input_.number(2) % edges;
    shadow_.set_edge(id, e, held_[to]);
    // Pointers may have tags; those of libgc's objects are interior pointers then.
    const std::size_t tag = held_[to] == kNobody ? 0 : input_.below(8);
    tags_[id][e] = static_cast<std::uint8_t>(tag);
    *edge(id, variable(from), e) = static_cast<char*>(variable(to)) + tag;
  }

  // A variable goes where one of its object's references leads.
  void follow(std::size_t i) {
    const Id id = held_[i];
    const std::size_t edges = edges_of(objects_[id]);
    if (edges == 0) return;
    const std::size_t e = input_.number(2) % edges;
    const Id to = shadow_.edges(id)[e];
    if (to == kNobody) return;
    put(i, to, static_cast<char*>(*edge(id, variable(i), e)) - tags_[id][e]);
  }

  void pin(std::size_t i) {
    const Id id = held_[i];
    Object& it = objects_[id];
    if (it.shape == nullptr) return;
    if (it.pins != 0 && input_.below(2) == 0) {
      jd_unpin(variable(i));
      it.pins--;
      shadow_.release(id);
    } else {
      FUZZ_CHECK(jd_pin(variable(i)) != 0);
      it.pins++;
      it.pinned_at = GC_HIDE_POINTER(variable(i));
      shadow_.hold(id);
    }
  }

  void make_weak(std::size_t i) {
    const std::size_t w = input_.below(kWeak);
    jd_weak* made = jd_weak_new(variable(i));
    FUZZ_CHECK(made != nullptr && jd_weak_get(made) == variable(i));
    precise[kVariables + w] = made;
    weak_[w] = held_[i];
  }
  void make_ephemeron(std::size_t i) {
    const std::size_t e = input_.below(kWeak);
    const std::size_t j = input_.below(2 * kVariables);
    jd_ephemeron* made = jd_ephemeron_new(variable(i), variable(j));
    FUZZ_CHECK(made != nullptr && jd_ephemeron_key(made) == variable(i));
    precise[kVariables + kWeak + e] = made;
    shadow_.ephemerons()[e] = {true, held_[i], held_[j]};
  }
  void drop_weak() {
    const std::size_t i = input_.below(2 * kWeak);
    precise[kVariables + i] = nullptr;
    if (i < kWeak) {
      weak_[i] = kNobody;
    } else {
      shadow_.ephemerons()[i - kWeak] = {false, kNobody, kNobody};
    }
  }

  static void finalize(void* object, void* data) {
    Program& program = *current;
    const GC_word which = reinterpret_cast<GC_word>(data);
    if (which / kDataOfProgram != program.serial_) return;
    const Id id = static_cast<Id>(which % kDataOfProgram / 2);
    FUZZ_CHECK(program.objects_[id].has_finalizer);
    program.objects_[id].has_finalizer = false;
    FUZZ_CHECK(!program.shadow_.reachable()[id]);
    program.check_data(id, object);
  }
  void set_finalizer(std::size_t i) {
    const Id id = held_[i];
    if (objects_[id].shape == nullptr) return;
    const bool take_back = input_.below(4) == 0;
    // Which object of which program, and nobody's address.
    void* data = reinterpret_cast<void*>(serial_ * kDataOfProgram + 2 * GC_word{id} + 1);
    FUZZ_CHECK(jd_finalizer(variable(i), take_back ? nullptr : finalize, data) != 0);
    objects_[id].has_finalizer = !take_back;
  }
  void hash(std::size_t i) {
    Object& it = objects_[held_[i]];
    const std::uint64_t now = jd_address_hash(variable(i));
    FUZZ_CHECK(it.hash == 0 || now == it.hash);
    it.hash = now;
  }

  // --- Checks ---

  void check_data(Id id, void* object) const {
    FUZZ_CHECK(*number(id, object) == 2 * std::uint64_t{id} + 1);
    visit_data(id, object, [](char& byte, std::uint8_t it) {
      FUZZ_CHECK(static_cast<std::uint8_t>(byte) == it);
    });
  }
  void check_all() {
    const std::vector<bool> alive = shadow_.reachable();
    std::vector<void*> places(objects_.size());
    std::vector<Id> pending;
    const auto visit = [&](Id id, void* object) {
      FUZZ_CHECK(alive[id] && object != nullptr);
      FUZZ_CHECK(places[id] == nullptr || places[id] == object);
      if (places[id] != nullptr) return;
      places[id] = object;
      pending.push_back(id);
    };
    for (std::size_t i = 0; i < 2 * kVariables; ++i) {
      if (held_[i] != kNobody) visit(held_[i], variable(i));
    }
    for (Id id = 0; id < objects_.size(); ++id) {
      if (objects_[id].pins != 0) visit(id, GC_REVEAL_POINTER(objects_[id].pinned_at));
    }
    check_weak(alive, visit);
    while (!pending.empty()) {
      const Id id = pending.back();
      pending.pop_back();
      check_object(id, places[id], visit);
      // The ephemerons whose keys have come up.
      check_weak(alive, visit);
    }
    for (std::size_t w = 0; w < kWeak; ++w) {
      if (weak_[w] == kNobody) continue;
      void* there = jd_weak_get(weak(w));
      if (there == nullptr) {
        FUZZ_CHECK(!alive[weak_[w]]);
        weak_[w] = kNobody;
      } else if (places[weak_[w]] != nullptr) {
        FUZZ_CHECK(there == places[weak_[w]]);
      }
    }
  }
  template <class Visit>
  void check_weak(const std::vector<bool>& alive, Visit visit) {
    for (std::size_t e = 0; e < kWeak; ++e) {
      fuzz::Ephemeron& pair = shadow_.ephemerons()[e];
      if (!pair.held || pair.key == kNobody) continue;
      void* key = jd_ephemeron_key(ephemeron(e));
      if (key == nullptr) {
        FUZZ_CHECK(!alive[pair.key]);
        pair = {true, kNobody, kNobody};
      } else if (alive[pair.key] && pair.value != kNobody) {
        visit(pair.value, jd_ephemeron_value(ephemeron(e)));
      }
    }
  }
  template <class Visit>
  void check_object(Id id, void* object, Visit visit) const {
    const Object& it = objects_[id];
    check_data(id, object);
    if (it.shape != nullptr) {
      FUZZ_CHECK(jd_layout_of(object) == it.shape->layout);
      FUZZ_CHECK(jd_size_of(object) >= it.shape->words * 8 + it.elements * it.shape->element_bytes);
    }
    if (it.hash != 0) FUZZ_CHECK(jd_address_hash(object) == it.hash);
    const std::vector<Id>& edges = shadow_.edges(id);
    for (std::size_t e = 0; e < edges.size(); ++e) {
      void* there = *edge(id, object, e);
      if (edges[e] == kNobody) {
        FUZZ_CHECK(there == nullptr);
      } else {
        visit(edges[e], static_cast<char*>(there) - tags_[id][e]);
      }
    }
  }

  // The next program begins with an empty heap, but for what was taken for pointers.
  void end() {
    for (Object& it : objects_) {
      for (; it.pins != 0; --it.pins) jd_unpin(GC_REVEAL_POINTER(it.pinned_at));
    }
    for (std::size_t i = 0; i < 2 * kVariables; ++i) put(i, kNobody, nullptr);
    for (std::size_t i = 0; i < 2 * kWeak; ++i) precise[kVariables + i] = nullptr;
  }

  const GC_word serial_ = ++programs;
  Input input_;
  Shadow shadow_;
  std::vector<Object> objects_;
  std::vector<std::vector<std::uint8_t>> tags_;
  Id held_[2 * kVariables];
  Id weak_[kWeak];
};

Program* Program::current = nullptr;
GC_word Program::programs = 0;

void start() {
  GC_INIT();
  GC_set_warn_proc(GC_ignore_warn_proc);
  define_shapes();
  precise = static_cast<void**>(std::calloc(kPrecise, sizeof(void*)));
  for (std::size_t i = 0; i < kPrecise; ++i) FUZZ_CHECK(jd_root_add(precise + i) != 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool started = (start(), true);
  (void)started;
  Program(Input(data, size)).run();
  return 0;
}
