/*
 * gc_allocator.h - allocators for the containers of the standard library.
 *
 *     std::vector<node *, gc_allocator<node *>> nodes;      // the vector's array is collected
 *     static std::map<int, node *, std::less<int>,          // the map is malloc-like, but what it
 *         traceable_allocator<std::pair<const int, node *>>> cache;       // points to is held
 *
 * gc_allocator: collected memory; a container in it, or on a stack, is reclaimed with all its
 * parts. gc_allocator_ignore_off_page: the same for big arrays of which the program keeps the
 * start. traceable_allocator: memory that is searched for pointers and reclaimed by the container.
 *
 * gc_allocator and gc_allocator_ignore_off_page do not search elements of the types char, short,
 * int, long (signed or not), float, double and long double, nor those of a type that is named by
 * GC_DECLARE_PTRFREE(type), at namespace scope, before its first use here.
 */
#ifndef GC_ALLOCATOR_H
#define GC_ALLOCATOR_H

#if !defined(__cplusplus) || __cplusplus < 201103L
#error "gc_allocator.h needs C++11 or later"
#endif

#include "gc.h"

#include <new>
#include <type_traits>
#include <utility>

/* What an allocator does when memory is out. */
#if defined(GC_NEW_ABORTS_ON_OOM) || defined(_LIBCPP_NO_EXCEPTIONS) || \
    (defined(__GNUC__) && !defined(__EXCEPTIONS))
#define GC_ALLOCATOR_THROW_OR_ABORT() GC_abort_on_oom()
#else
#define GC_ALLOCATOR_THROW_OR_ABORT() throw std::bad_alloc()
#endif

/* The names are the interface's; the elements may well be pointers. */
/* NOLINTBEGIN(readability-identifier-naming,bugprone-sizeof-expression) */

/* Which element types have no pointers: their traits' GC_is_ptr_free is a GC_true_type. */
struct GC_false_type {};
struct GC_true_type {};

template <class Element>
struct GC_type_traits {
  GC_false_type GC_is_ptr_free;
};

#define GC_DECLARE_PTRFREE(type) \
  template <>                    \
  struct GC_type_traits<type> {  \
    GC_true_type GC_is_ptr_free; \
  }

/* No others: a program may declare those that are missing, and only once. */
GC_DECLARE_PTRFREE(float);
GC_DECLARE_PTRFREE(double);
GC_DECLARE_PTRFREE(long double);
GC_DECLARE_PTRFREE(char);
GC_DECLARE_PTRFREE(signed char);
GC_DECLARE_PTRFREE(short);
GC_DECLARE_PTRFREE(int);
GC_DECLARE_PTRFREE(long);
GC_DECLARE_PTRFREE(unsigned char);
GC_DECLARE_PTRFREE(unsigned short);
GC_DECLARE_PTRFREE(unsigned int);
GC_DECLARE_PTRFREE(unsigned long);

/* Where an allocator's memory comes from: null when there is none. */
struct GC_collected_memory {
  static void* take(size_t bytes, bool has_pointers) {
    return has_pointers ? GC_MALLOC(bytes) : GC_MALLOC_ATOMIC(bytes);
  }
};
struct GC_memory_held_by_its_start {
  static void* take(size_t bytes, bool has_pointers) {
    return has_pointers ? GC_MALLOC_IGNORE_OFF_PAGE(bytes)
                        : GC_MALLOC_ATOMIC_IGNORE_OFF_PAGE(bytes);
  }
};
struct GC_memory_held_until_freed {
  static void* take(size_t bytes, bool) { return GC_MALLOC_UNCOLLECTABLE(bytes); }
};

/* What every allocator has, whatever its elements. None has a state, so all of a kind are equal. */
template <template <class> class Allocator, class Element>
struct GC_allocator_identity {
  typedef Element value_type;
  typedef Element* pointer;
  typedef const Element* const_pointer;
  typedef size_t size_type;
  typedef ptrdiff_t difference_type;
  template <class Other>
  struct rebind {
    typedef Allocator<Other> other;
  };

  template <class Other>
  friend bool operator==(const Allocator<Element>&, const Allocator<Other>&) GC_NOEXCEPT {
    return true;
  }
  template <class Other>
  friend bool operator!=(const Allocator<Element>&, const Allocator<Other>&) GC_NOEXCEPT {
    return false;
  }
};

template <template <class> class Allocator, class Element, class Memory>
struct GC_allocator_of : GC_allocator_identity<Allocator, Element> {
  typedef Element& reference;
  typedef const Element& const_reference;

  Element* allocate(size_t count, const void* /*near*/ = nullptr) {
    constexpr size_t kMost = size_t(-1) / sizeof(Element);
    constexpr bool kHasPointers =
        std::is_same<decltype(GC_type_traits<Element>::GC_is_ptr_free), GC_false_type>::value;
    /* More than fits into a size is a size that cannot be had. */
    void* memory = Memory::take(count > kMost ? size_t(-1) : count * sizeof(Element), kHasPointers);
    if (memory == nullptr) GC_ALLOCATOR_THROW_OR_ABORT();
    return static_cast<Element*>(memory);
  }
  void deallocate(Element* memory, size_t /*count*/) GC_NOEXCEPT { GC_FREE(memory); }
  size_t max_size() const GC_NOEXCEPT { return size_t(-1) / sizeof(Element); }

  Element* address(reference element) const { return &element; }
  const Element* address(const_reference element) const { return &element; }
  template <class Made, class... Arguments>
  void construct(Made* memory, Arguments&&... arguments) {
    ::new (static_cast<void*>(memory)) Made(std::forward<Arguments>(arguments)...);
  }
  template <class Made>
  void destroy(Made* object) {
    object->~Made();
  }
};
template <template <class> class Allocator, class Memory>
struct GC_allocator_of<Allocator, void, Memory> : GC_allocator_identity<Allocator, void> {};

template <class Element>
class gc_allocator : public GC_allocator_of<gc_allocator, Element, GC_collected_memory> {
 public:
  gc_allocator() GC_NOEXCEPT = default;
  template <class Other>
  GC_ATTR_EXPLICIT gc_allocator(const gc_allocator<Other>& /*equal*/) GC_NOEXCEPT {}
};

template <class Element>
class gc_allocator_ignore_off_page
    : public GC_allocator_of<gc_allocator_ignore_off_page, Element, GC_memory_held_by_its_start> {
 public:
  gc_allocator_ignore_off_page() GC_NOEXCEPT = default;
  template <class Other>
  GC_ATTR_EXPLICIT gc_allocator_ignore_off_page(
      const gc_allocator_ignore_off_page<Other>& /*equal*/) GC_NOEXCEPT {}
};

template <class Element>
class traceable_allocator
    : public GC_allocator_of<traceable_allocator, Element, GC_memory_held_until_freed> {
 public:
  traceable_allocator() GC_NOEXCEPT = default;
  template <class Other>
  GC_ATTR_EXPLICIT traceable_allocator(const traceable_allocator<Other>& /*equal*/) GC_NOEXCEPT {}
};

/* NOLINTEND(readability-identifier-naming,bugprone-sizeof-expression) */

#endif /* GC_ALLOCATOR_H */
