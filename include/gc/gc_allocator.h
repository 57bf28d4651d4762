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
 * Element types without pointers are not searched if they are arithmetic or named by
 * GC_DECLARE_PTRFREE(type), at namespace scope, before their first use here.
 */
#ifndef GC_ALLOCATOR_H
#define GC_ALLOCATOR_H

#if !defined(__cplusplus) || __cplusplus < 201103L
#error "gc_allocator.h needs C++11 or later"
#endif

#include "gc.h"

#include <new>
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

struct GC_true_type {};
struct GC_false_type {};

template <class GC_tp>
struct GC_type_traits {
  GC_false_type GC_is_ptr_free;
};

#define GC_DECLARE_PTRFREE(T)    \
  template <>                    \
  struct GC_type_traits<T> {     \
    GC_true_type GC_is_ptr_free; \
  }

GC_DECLARE_PTRFREE(char);
GC_DECLARE_PTRFREE(signed char);
GC_DECLARE_PTRFREE(unsigned char);
GC_DECLARE_PTRFREE(signed short);
GC_DECLARE_PTRFREE(unsigned short);
GC_DECLARE_PTRFREE(signed int);
GC_DECLARE_PTRFREE(unsigned int);
GC_DECLARE_PTRFREE(signed long);
GC_DECLARE_PTRFREE(unsigned long);
GC_DECLARE_PTRFREE(float);
GC_DECLARE_PTRFREE(double);
GC_DECLARE_PTRFREE(long double);

/* Collected memory of n bytes; the second argument's type says whether it is searched. */
template <class GC_Tp>
inline void* GC_selective_alloc(size_t n, GC_Tp, bool ignore_off_page) {
  void* obj = ignore_off_page ? GC_MALLOC_IGNORE_OFF_PAGE(n) : GC_MALLOC(n);
  if (obj == nullptr) GC_ALLOCATOR_THROW_OR_ABORT();
  return obj;
}
template <>
inline void* GC_selective_alloc<GC_true_type>(size_t n, GC_true_type, bool ignore_off_page) {
  void* obj = ignore_off_page ? GC_MALLOC_ATOMIC_IGNORE_OFF_PAGE(n) : GC_MALLOC_ATOMIC(n);
  if (obj == nullptr) GC_ALLOCATOR_THROW_OR_ABORT();
  return obj;
}

/* What the three allocators share: everything but their names and where memory comes from. */
template <class GC_Tp>
class GC_allocator_parts {
 public:
  typedef size_t size_type;
  typedef ptrdiff_t difference_type;
  typedef GC_Tp* pointer;
  typedef const GC_Tp* const_pointer;
  typedef GC_Tp& reference;
  typedef const GC_Tp& const_reference;
  typedef GC_Tp value_type;

  pointer address(reference x) const { return &x; }
  const_pointer address(const_reference x) const { return &x; }
  size_type max_size() const GC_NOEXCEPT { return size_t(-1) / sizeof(GC_Tp); }
  void deallocate(pointer p, size_type) GC_NOEXCEPT { GC_FREE(p); }
  template <class GC_U, class... GC_Args>
  void construct(GC_U* p, GC_Args&&... args) {
    ::new (static_cast<void*>(p)) GC_U(std::forward<GC_Args>(args)...);
  }
  template <class GC_U>
  void destroy(GC_U* p) {
    p->~GC_U();
  }

 protected:
  /* n elements in bytes; a product that overflows becomes a size that cannot be had. */
  static size_t bytes_of(size_type n) {
    return n > size_t(-1) / sizeof(GC_Tp) ? size_t(-1) : n * sizeof(GC_Tp);
  }
};
template <>
class GC_allocator_parts<void> {
 public:
  typedef size_t size_type;
  typedef ptrdiff_t difference_type;
  typedef void* pointer;
  typedef const void* const_pointer;
  typedef void value_type;
};

template <class GC_Tp>
class gc_allocator : public GC_allocator_parts<GC_Tp> {
 public:
  template <class GC_Tp1>
  struct rebind {
    typedef gc_allocator<GC_Tp1> other;
  };
  gc_allocator() GC_NOEXCEPT {}
  gc_allocator(const gc_allocator&) GC_NOEXCEPT : GC_allocator_parts<GC_Tp>() {}
  gc_allocator& operator=(const gc_allocator&) GC_NOEXCEPT { return *this; }
  template <class GC_Tp1>
  GC_ATTR_EXPLICIT gc_allocator(const gc_allocator<GC_Tp1>&) GC_NOEXCEPT {}

  GC_Tp* allocate(size_t n, const void* = nullptr) {
    GC_type_traits<GC_Tp> traits;
    return static_cast<GC_Tp*>(GC_selective_alloc(this->bytes_of(n), traits.GC_is_ptr_free, false));
  }
};
template <>
class gc_allocator<void> : public GC_allocator_parts<void> {
 public:
  template <class GC_Tp1>
  struct rebind {
    typedef gc_allocator<GC_Tp1> other;
  };
};
template <class GC_T1, class GC_T2>
inline bool operator==(const gc_allocator<GC_T1>&, const gc_allocator<GC_T2>&) GC_NOEXCEPT {
  return true;
}
template <class GC_T1, class GC_T2>
inline bool operator!=(const gc_allocator<GC_T1>&, const gc_allocator<GC_T2>&) GC_NOEXCEPT {
  return false;
}

template <class GC_Tp>
class gc_allocator_ignore_off_page : public GC_allocator_parts<GC_Tp> {
 public:
  template <class GC_Tp1>
  struct rebind {
    typedef gc_allocator_ignore_off_page<GC_Tp1> other;
  };
  gc_allocator_ignore_off_page() GC_NOEXCEPT {}
  gc_allocator_ignore_off_page(const gc_allocator_ignore_off_page&) GC_NOEXCEPT
      : GC_allocator_parts<GC_Tp>() {}
  gc_allocator_ignore_off_page& operator=(const gc_allocator_ignore_off_page&) GC_NOEXCEPT {
    return *this;
  }
  template <class GC_Tp1>
  GC_ATTR_EXPLICIT gc_allocator_ignore_off_page(const gc_allocator_ignore_off_page<GC_Tp1>&)
      GC_NOEXCEPT {}

  GC_Tp* allocate(size_t n, const void* = nullptr) {
    GC_type_traits<GC_Tp> traits;
    return static_cast<GC_Tp*>(GC_selective_alloc(this->bytes_of(n), traits.GC_is_ptr_free, true));
  }
};
template <>
class gc_allocator_ignore_off_page<void> : public GC_allocator_parts<void> {
 public:
  template <class GC_Tp1>
  struct rebind {
    typedef gc_allocator_ignore_off_page<GC_Tp1> other;
  };
};
template <class GC_T1, class GC_T2>
inline bool operator==(const gc_allocator_ignore_off_page<GC_T1>&,
                       const gc_allocator_ignore_off_page<GC_T2>&) GC_NOEXCEPT {
  return true;
}
template <class GC_T1, class GC_T2>
inline bool operator!=(const gc_allocator_ignore_off_page<GC_T1>&,
                       const gc_allocator_ignore_off_page<GC_T2>&) GC_NOEXCEPT {
  return false;
}

template <class GC_Tp>
class traceable_allocator : public GC_allocator_parts<GC_Tp> {
 public:
  template <class GC_Tp1>
  struct rebind {
    typedef traceable_allocator<GC_Tp1> other;
  };
  traceable_allocator() GC_NOEXCEPT {}
  traceable_allocator(const traceable_allocator&) GC_NOEXCEPT : GC_allocator_parts<GC_Tp>() {}
  traceable_allocator& operator=(const traceable_allocator&) GC_NOEXCEPT { return *this; }
  template <class GC_Tp1>
  GC_ATTR_EXPLICIT traceable_allocator(const traceable_allocator<GC_Tp1>&) GC_NOEXCEPT {}

  GC_Tp* allocate(size_t n, const void* = nullptr) {
    void* obj = GC_MALLOC_UNCOLLECTABLE(this->bytes_of(n));
    if (obj == nullptr) GC_ALLOCATOR_THROW_OR_ABORT();
    return static_cast<GC_Tp*>(obj);
  }
};
template <>
class traceable_allocator<void> : public GC_allocator_parts<void> {
 public:
  template <class GC_Tp1>
  struct rebind {
    typedef traceable_allocator<GC_Tp1> other;
  };
};
template <class GC_T1, class GC_T2>
inline bool operator==(const traceable_allocator<GC_T1>&,
                       const traceable_allocator<GC_T2>&) GC_NOEXCEPT {
  return true;
}
template <class GC_T1, class GC_T2>
inline bool operator!=(const traceable_allocator<GC_T1>&,
                       const traceable_allocator<GC_T2>&) GC_NOEXCEPT {
  return false;
}

/* NOLINTEND(readability-identifier-naming,bugprone-sizeof-expression) */

#endif /* GC_ALLOCATOR_H */
