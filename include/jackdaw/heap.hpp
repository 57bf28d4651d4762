// The typed heap in C++: heap.h with layouts made from lists of members, and handles.
//
//   struct Node {
//     jd::ref<Node> left;
//     jd::ref<Node> right;
//     long value;
//     using jd_members = jd::pointers<&Node::left, &Node::right>;
//   };
//
//   Node* tree(int depth) {
//     if (depth == 0) return nullptr;
//     Node* left = tree(depth - 1);  // held by its being a local variable
//     return jd::make<Node>(left, tree(depth - 1), 1L);
//   }
//
//   // In memory that the collector does not look at, such as a container's or that of an
//   // exception under way, a root holds its object, and follows it when it moves.
//   std::vector<jd::root<Node>> trees = {tree(3), tree(4)};
//
// What heap.h says of threads, moving and what must not be done goes for all of this; a handle
// itself may be used by one thread at a time, as any variable. What allocates throws std::bad_alloc
// when memory has run out, or ends the program where exceptions are off. Nothing here costs more
// than the functions of heap.h that it stands for: a ref or a weak is a word, and make() is jd_new
// inlined behind one load that is compared with null.
#pragma once

#if __cplusplus <= 201703L
#error "<jackdaw/heap.hpp> needs C++20 (-std=c++20); for C and older C++ there is <jackdaw/heap.h>"
#else

#include <jackdaw/heap.h>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>

namespace jd {

// ---- Pointers in objects ----

// A pointer word of an object: what a T* is, said so that a list of members can tell it from
// pointers to elsewhere. In a new object it is null; a local variable of this type is not, unless
// it is told. The object may be null, or lie outside of the heap.
template <class T>
class ref {
 public:
  ref() = default;
  // NOLINTNEXTLINE(google-explicit-constructor)
  ref(T* object) : object_(object) {}

  T* get() const { return object_; }
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator T*() const { return object_; }
  T* operator->() const { return object_; }
  std::add_lvalue_reference_t<T> operator*() const { return *object_; }

 private:
  T* object_;
};

// ---- Layouts ----

// A list of members that are pointer words: refs, weaks, ephemerons, plain pointers (to objects, to
// parts of them, or to elsewhere), arrays of these, and structures with lists of their own. Either
// as `using jd_members = jd::pointers<...>` in the type, or for a type that cannot be changed
//
//   template <>
//   struct jd::members<Node> : jd::pointers<&Node::left, &Node::right> {};
//
// A list may be derived from, to say more of the type: each of these may stand in it.
//
//   static constexpr jd_source source = JD_HEADER;    // how the layout is found; see layout.h
//   static constexpr const char* name = "node";       // for messages; else the type's
//   using element = jd::ref<Node>;                    // of a variable part behind the object
//   static void trace(T* object, jd_tracer* tracer);  // instead of members: jd_trace_procedure
//
// A class that is derived from one with jd_members and has pointers of its own lists all of them
// anew.
template <auto... kMembers>
struct pointers {};

template <class T>
struct members;
template <class T>
  requires requires { typename T::jd_members; }
struct members<T> : T::jd_members {};

template <class T>
class weak;
template <class Key, class Value>
class ephemeron;

namespace detail {

[[noreturn]] inline void no_memory() {
#if defined(__cpp_exceptions)
  throw std::bad_alloc();
#else
  std::fputs("jackdaw: no memory\n", stderr);
  std::abort();
#endif
}
template <class T>
T* checked(T* made) {
  if (__builtin_expect(made == nullptr, 0)) no_memory();
  return made;
}
// As heap.h's functions take objects: none of them writes to what the program holds as const.
template <class T>
void* untyped(T* object) {
  return const_cast<std::remove_cv_t<T>*>(object);
}

template <class M>
struct IsWord : std::is_pointer<M> {};
template <class T>
struct IsWord<ref<T>> : std::true_type {};
template <class T>
struct IsWord<weak<T>> : std::true_type {};
template <class Key, class Value>
struct IsWord<ephemeron<Key, Value>> : std::true_type {};

// The bits of a layout's bitmap, for what lies in so many bytes.
template <std::size_t kBytes>
struct Bitmap {
  static constexpr std::size_t kWords = (kBytes + 7) / 8;
  std::uint64_t bits[(kWords + 63) / 64] = {};
  void set(std::size_t offset) { bits[offset / 8 / 64] |= std::uint64_t{1} << (offset / 8 % 64); }
};

template <class T>
inline constexpr bool kIsListed = requires { sizeof(members<T>); };

// Where in a T a member of it, or of a base class, begins: what a pointer to a member is, by the
// ABI.
template <class T, class Class, class M>
std::size_t offset_in(M Class::*member) {
  M T::*own = member;
  static_assert(sizeof own == sizeof(std::ptrdiff_t));
  return static_cast<std::size_t>(std::bit_cast<std::ptrdiff_t>(own));
}
template <class>
struct MemberOf;
template <class Class, class M>
struct MemberOf<M Class::*> {
  using Type = M;
};

template <class T, auto... kMembers, class Bits>
void add_members(const pointers<kMembers...>& list, std::size_t offset, Bits* bits);

// What is of the type M and stands there, in a T.
template <class T, class M, class Bits>
void add_member(std::size_t offset, Bits* bits) {
  using Single = std::remove_cv_t<std::remove_all_extents_t<M>>;
  static_assert(IsWord<Single>::value || kIsListed<Single>,
                "a member of the list is neither a pointer nor a structure with a list of its own");
  static_assert(alignof(T) >= alignof(Single) || !(IsWord<Single>::value || kIsListed<Single>),
                "what has pointers is aligned as these are: it must not be packed");
  for (std::size_t i = 0; i < sizeof(M) / sizeof(Single); ++i) {
    if constexpr (IsWord<Single>::value) {
      static_assert(sizeof(Single) == 8);
      bits->set(offset + i * sizeof(Single));
    } else {
      add_members<Single>(members<Single>(), offset + i * sizeof(Single), bits);
    }
  }
}

template <class T, auto... kMembers, class Bits>
void add_members(const pointers<kMembers...>&, [[maybe_unused]] std::size_t offset,
                 [[maybe_unused]] Bits* bits) {
  (add_member<T, typename MemberOf<std::remove_cv_t<decltype(kMembers)>>::Type>(
       offset + offset_in<T>(kMembers), bits),
   ...);
}

template <class T>
constexpr jd_source source_of() {
  if constexpr (requires { members<T>::source; }) {
    return members<T>::source;
  } else {
    return JD_HOMOGENEOUS;
  }
}
template <class T>
inline constexpr bool kHasElements = requires { typename members<T>::element; };

// The type in what the compiler calls a function with a parameter T: "... [with T = Node]".
template <std::size_t kLength>
struct Text {
  char text[kLength] = {};
};
template <std::size_t kLength>
constexpr Text<kLength> name_in(const char (&function)[kLength]) {
  Text<kLength> name;
  const char* from = function;
  while (*from != 0 && *from != '[') ++from;
  while (*from != 0 && *from != '=') ++from;
  from += *from == 0 ? 0 : 2;
  for (char* to = name.text; *from != 0 && *from != ']' && *from != ';'; ++from) *to++ = *from;
  return name;
}
template <class T>
const char* name_of() {
  if constexpr (requires { members<T>::name; }) {
    return members<T>::name;
  } else {
    static constexpr auto kName = name_in(__PRETTY_FUNCTION__);
    return kName.text;
  }
}

template <class T>
constexpr void check_type() {
  static_assert(std::is_object_v<T> && !std::is_array_v<T> && !std::is_const_v<T>);
  static_assert(kIsListed<T>,
                "which members point to objects? Say `using jd_members = jd::pointers<...>` in the "
                "type, or specialise jd::members for it");
  static_assert(std::is_trivially_destructible_v<T>,
                "nobody destroys an object of the heap: it must be trivially destructible (memory "
                "outside of the heap is a finalizer's to free, and a root's place is not in it)");
  static_assert(alignof(T) <= (source_of<T>() == JD_HOMOGENEOUS ? 16 : 8),
                "the heap aligns objects to 8 bytes, those of JD_HOMOGENEOUS layouts to 16");
}

template <class T>
struct Element {
  static constexpr std::size_t kSize = 0;
  static void add(Bitmap<8>*) {}
  using Bits = Bitmap<8>;
};
template <class T>
  requires kHasElements<T>
struct Element<T> {
  using Type = typename members<T>::element;
  static_assert(std::is_trivially_destructible_v<Type> && std::is_trivially_copyable_v<Type>,
                "elements begin as zeros, move byte by byte, and are not destroyed");
  static_assert(sizeof(T) % alignof(Type) == 0 && alignof(Type) <= 8,
                "elements begin where the type before them ends: its size must be a multiple of "
                "their alignment, at most 8 (give it a member more, or alignas)");
  static constexpr std::size_t kSize = sizeof(Type);
  using Single = std::remove_cv_t<std::remove_all_extents_t<Type>>;
  static constexpr bool kHasPointers = IsWord<Single>::value || kIsListed<Single>;
  static_assert(
      kHasPointers || !(std::is_class_v<Single> || std::is_union_v<Single>),
      "an element is a pointer, a number, an array of these, or a structure with a list of "
      "its own (which is jd::pointers<> where none of its members points to objects)");
  using Bits = Bitmap<(kSize < 8 ? 8 : kSize)>;
  static void add(Bits* bits) {
    if constexpr (kHasPointers) add_member<Type, Type>(0, bits);
  }
};

template <class T>
[[gnu::noinline]] const jd_layout* define_layout(std::atomic<const jd_layout*>* cache);

template <class T>
inline constinit std::atomic<const jd_layout*> layout_cache{nullptr};

}  // namespace detail

// The layout of a type, which is defined when it is first asked for (by jd_layout_define, whose
// policy and limits go for it). Ends the program if that says no, behind its message. Any thread.
template <class T>
inline const jd_layout* layout_of() {
  const jd_layout* layout = detail::layout_cache<T>.load(std::memory_order_acquire);
  if (__builtin_expect(layout == nullptr, 0)) {
    layout = detail::define_layout<T>(&detail::layout_cache<T>);
  }
  return layout;
}

// The first base class of a type with a JD_SELF layout: the word that leads to the layout.
template <class T>
class described {
 public:
  described() : layout_(layout_of<T>()) {
    // Before any other word is written: the collector may look at the object from now on.
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  // The word of the object that is assigned to stays.
  described(const described&) : described() {}
  // NOLINTNEXTLINE(bugprone-unhandled-self-assignment): it copies nothing
  described& operator=(const described&) { return *this; }

 private:
  const jd_layout* layout_;
};

namespace detail {

template <class T>
const jd_layout* define_layout(std::atomic<const jd_layout*>* cache) {
  check_type<T>();
  // Threads that come here at once wait for the first.
  static const jd_layout* const layout = [] {
    using List = members<T>;
    jd_layout_info info = {};
    Bitmap<sizeof(T)> bits;
    typename Element<T>::Bits element_bits;
    info.name = name_of<T>();
    info.size = sizeof(T);
    info.source = source_of<T>();
    info.element_size = Element<T>::kSize;
    if constexpr (requires(T* object, jd_tracer* tracer) { List::trace(object, tracer); }) {
      info.trace = [](void* object, std::size_t, jd_tracer* tracer) {
        List::trace(static_cast<T*>(object), tracer);
      };
    } else {
      static_assert(
          !requires { &List::trace; },
          "jd::members<T>::trace is called with a T* and a jd_tracer*");
      add_members<T>(List(), 0, &bits);
      Element<T>::add(&element_bits);
      info.pointers = bits.bits;
      if constexpr (Element<T>::kSize >= 8) info.element_pointers = element_bits.bits;
    }
    if constexpr (source_of<T>() == JD_SELF) {
      static_assert(std::is_base_of_v<described<T>, T> && !std::is_polymorphic_v<T>,
                    "a JD_SELF type has the base class jd::described<T>, and it comes first");
      static_assert(!kHasElements<T>, "a JD_SELF type with elements is C's (jd_new_array)");
      // No constant expression tells where a base class lies.
      alignas(T) static unsigned char place[sizeof(T)];
      auto* const object = reinterpret_cast<T*>(place);
      if (static_cast<void*>(static_cast<described<T>*>(object)) != static_cast<void*>(place)) {
        std::fprintf(stderr, "jackdaw: %s: its base class jd::described is to come first\n",
                     info.name);
        std::abort();
      }
    }
    const jd_layout* made = jd_layout_define(&info);
    if (made == nullptr) std::abort();
    if (alignof(T) > 8 && made->source != JD_HOMOGENEOUS) {
      std::fprintf(stderr, "jackdaw: %s is to be aligned to %zu bytes, and under JD_MCC is not\n",
                   info.name, alignof(T));
      std::abort();
    }
    return made;
  }();
  cache->store(layout, std::memory_order_release);
  return layout;
}

// An aggregate may be given fewer arguments than it has members: the others are zero.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

// Constructs in zeros that the collector has seen before. The compiler may take what memory held
// before a construction for nothing; so it must not know that the two are next to each other, or it
// leaves out jd_new's store of a header, and takes members that no constructor sets for unset.
template <class T, class... Arguments>
T* construct(void* memory, Arguments&&... arguments) {
  T* object = nullptr;
  asm volatile("" : "+r"(memory) : : "memory");
  if constexpr (sizeof...(Arguments) == 0) {
    // Without parentheses: members that no constructor sets stay zero, and are not written.
    object = ::new (memory) T;
  } else if constexpr (std::is_constructible_v<T, Arguments...>) {
    object = ::new (memory) T(std::forward<Arguments>(arguments)...);
  } else {
    // An aggregate, where the compiler has no parentheses for it (clang before 16).
    object = ::new (memory) T{std::forward<Arguments>(arguments)...};
  }
  asm volatile("" : "+r"(object) : : "memory");
  return object;
}

#pragma GCC diagnostic pop

}  // namespace detail

// ---- Allocation ----

// A new object, constructed of the arguments (in parentheses; an aggregate's members are named in
// their order). Members that are not set read as zero. The type must be trivially destructible; it
// moves byte by byte, without its constructors.
template <class T, class... Arguments>
inline T* make(Arguments&&... arguments) {
  detail::check_type<T>();
  void* memory = detail::checked(jd_new(layout_of<T>()));
  return detail::construct<T>(memory, std::forward<Arguments>(arguments)...);
}

// The same with `count` elements, which are zero, behind the object.
template <class T, class... Arguments>
inline T* make_array(std::size_t count, Arguments&&... arguments) {
  static_assert(detail::kHasElements<T>, "the type's list of members says what an element is");
  detail::check_type<T>();
  void* memory = detail::checked(jd_new_array(layout_of<T>(), count));
  return detail::construct<T>(memory, std::forward<Arguments>(arguments)...);
}

// The first of an object's elements.
template <class T>
inline auto elements(T* object) {
  using Element = typename members<std::remove_const_t<T>>::element;
  using Seen = std::conditional_t<std::is_const_v<T>, const Element, Element>;
  return reinterpret_cast<Seen*>(object + 1);
}

// ---- Holding objects ----

// A precise root (jd_root_add): holds its object, and follows it when it moves. For memory that the
// collector does not look at, such as the standard library's containers; a local variable needs
// none. A copy is a root of its own, and so is what was moved to. Making, copying and destroying
// one takes the heap's lock; reading and assigning are those of a pointer.
template <class T>
class root {
 public:
  root() : root(nullptr) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  root(T* object) : object_(nullptr) {
    if (jd_root_add(&object_) == 0) detail::no_memory();
    // Not before: nobody would see it there, if a collection came meanwhile.
    object_ = object;
  }
  root(const root& other) : root(other.object_) {}
  // Not noexcept: the new place is to be registered.
  root(root&& other) : root(other.object_) {  // NOLINT(performance-noexcept-move-constructor)
    other.object_ = nullptr;
  }
  ~root() { jd_root_remove(&object_); }
  // NOLINTNEXTLINE(bugprone-unhandled-self-assignment): to itself it does nothing
  root& operator=(const root& other) {
    object_ = other.object_;
    return *this;
  }
  root& operator=(root&& other) noexcept {
    T* object = other.object_;
    other.object_ = nullptr;
    object_ = object;
    return *this;
  }
  root& operator=(T* object) {
    object_ = object;
    return *this;
  }

  T* get() const { return object_; }
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator T*() const { return object_; }
  T* operator->() const { return object_; }
  std::add_lvalue_reference_t<T> operator*() const { return *object_; }

 private:
  T* object_;
};

// Keeps an object where it is, and alive, for as long as this lives (jd_pin). The object is given
// by its first byte, or null. A copy pins it once more.
template <class T>
class pinned {
 public:
  pinned() = default;
  explicit pinned(T* object) : object_(object) {
    if (object != nullptr && jd_pin(detail::untyped(object)) == 0) detail::no_memory();
  }
  pinned(const pinned& other) : pinned(other.object_) {}
  pinned(pinned&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  ~pinned() {
    if (object_ != nullptr) jd_unpin(detail::untyped(object_));
  }
  pinned& operator=(pinned other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  std::add_lvalue_reference_t<T> operator*() const { return *object_; }

 private:
  T* object_ = nullptr;
};

// ---- Weak references ----

// A weak reference (jd_weak_new): a pointer word that leads to an object of the heap's, which holds
// the address of the other. As a ref, it may stand in objects and in lists of members, and may be
// null; copies lead to the same.
template <class T>
class weak {
 public:
  weak() = default;
  explicit weak(T* object) : reference_(detail::checked(jd_weak_new(detail::untyped(object)))) {}

  // Null once nothing but weak references led to it.
  T* get() const {
    return reference_ == nullptr ? nullptr : static_cast<T*>(jd_weak_get(reference_));
  }
  // What is to be held for get() to be asked again.
  jd_weak* reference() const { return reference_; }

 private:
  jd_weak* reference_;
};

// An ephemeron (jd_ephemeron_new), as weak otherwise.
template <class Key, class Value>
class ephemeron {
 public:
  ephemeron() = default;
  ephemeron(Key* key, Value* value)
      : pair_(detail::checked(jd_ephemeron_new(detail::untyped(key), detail::untyped(value)))) {}

  // Both null once nothing but ephemerons' values led to the key.
  Key* key() const {
    return pair_ == nullptr ? nullptr : static_cast<Key*>(jd_ephemeron_key(pair_));
  }
  Value* value() const {
    return pair_ == nullptr ? nullptr : static_cast<Value*>(jd_ephemeron_value(pair_));
  }
  // Pre: it is not null.
  void set_value(Value* value) { jd_ephemeron_set_value(pair_, detail::untyped(value)); }
  jd_ephemeron* pair() const { return pair_; }

 private:
  jd_ephemeron* pair_;
};

// Has kFunction(object) called once nothing refers to the object any more (jd_finalizer):
//   jd::finalize<&close_file>(file);
template <auto kFunction, class T>
inline void finalize(T* object) {
  const auto call = [](void* dead, void*) { kFunction(static_cast<T*>(dead)); };
  if (jd_finalizer(detail::untyped(object), call, nullptr) == 0) detail::no_memory();
}

// ---- Containers ----

namespace detail {
extern "C" {
JD_HEAP_API void* GC_malloc(std::size_t bytes);
JD_HEAP_API void* GC_malloc_atomic(std::size_t bytes);
JD_HEAP_API void GC_free(void* memory);
}
}  // namespace detail

// An allocator of memory without a layout, for containers of the standard library: it is collected,
// never moves, and every word of it may be a pointer, which holds and pins. Of numbers, which are
// not searched, it is that as well. A container's own variable must be where the collector looks:
// on a stack, in static data, or in such memory.
template <class T>
class allocator {
 public:
  using value_type = T;
  allocator() = default;
  template <class U>
  // NOLINTNEXTLINE(google-explicit-constructor)
  allocator(const allocator<U>&) noexcept {}

  T* allocate(std::size_t count) {
    static_assert(alignof(T) <= 16);
    if (count > static_cast<std::size_t>(PTRDIFF_MAX) / sizeof(T)) detail::no_memory();
    constexpr bool kNumbers = std::is_arithmetic_v<T> || std::is_enum_v<T>;
    return static_cast<T*>(detail::checked(kNumbers ? detail::GC_malloc_atomic(count * sizeof(T))
                                                    : detail::GC_malloc(count * sizeof(T))));
  }
  void deallocate(T* memory, std::size_t) noexcept { detail::GC_free(memory); }

  template <class U>
  bool operator==(const allocator<U>&) const noexcept {
    return true;
  }
};

}  // namespace jd

#endif  // C++20
