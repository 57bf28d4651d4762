/*
 * gc_cpp.h - collected objects in C++.
 *
 *     class node : public gc { node *next; };        // new node: collected
 *     class file : public gc_cleanup { ~file(); };   // destroyed when it is found dead
 *     auto *text = new (PointerFreeGC) char[1000];   // never searched for pointers
 *     auto *plain = new (GC) other_type;             // collected, of any type
 *     auto *kept = new (NoGC) node;                  // searched, reclaimed by delete only
 *
 * Destructors of collected objects do not run, but for gc_cleanup's heirs and for objects created
 * with a cleanup function. delete of a collected object frees it at once; it is never needed. (Of
 * one of another type, made by new (GC), only where the global delete is replaced, as told below.)
 * Arrays of gc_cleanup's heirs: only the first element's destructor runs by itself.
 *
 * Nothing of this needs a library beside libgc: the functions that bdwgc keeps in libgccpp are
 * here. The replacement of the global operator new and delete is the exception, because it must
 * not be inline: the program defines JACKDAW_REPLACE_GLOBAL_NEW in one source file, before it
 * includes this one there. Its C++ memory is then searched for pointers, and reclaimed by delete;
 * but for what is aligned to more than 16 bytes, whose forms of new are not replaced (as in
 * libgccpp).
 *
 * Macros to define before: GC_NAMESPACE puts the names into namespace boehmgc; GC_NAME_CONFLICT
 * leaves out the name "GC" (say UseGC); GC_ATOMIC_UNCOLLECTABLE adds PointerFreeNoGC;
 * GC_NEW_ABORTS_ON_OOM ends the program when memory is out, instead of throwing std::bad_alloc;
 * GC_NO_OPERATOR_NEW_ARRAY leaves out the array forms.
 */
#ifndef GC_CPP_H
#define GC_CPP_H

#if !defined(__cplusplus) || __cplusplus < 201103L
#error "gc_cpp.h needs C++11 or later"
#endif

#include "gc.h"

#include <new>

#ifdef GC_NAMESPACE
#define GC_NS_QUALIFY(T) boehmgc::T
#else
#define GC_NS_QUALIFY(T) T
#endif

#define GC_cdecl GC_CALLBACK

#if !defined(GC_NO_OPERATOR_NEW_ARRAY) && !defined(GC_OPERATOR_NEW_ARRAY)
#define GC_OPERATOR_NEW_ARRAY
#endif
#define GC_PLACEMENT_DELETE

/* What operator new does about null. */
#if defined(GC_NEW_ABORTS_ON_OOM) || defined(_LIBCPP_NO_EXCEPTIONS) || \
    (defined(__GNUC__) && !defined(__EXCEPTIONS))
inline void GC_throw_bad_alloc() { GC_abort_on_oom(); }
#else
inline void GC_throw_bad_alloc() { throw std::bad_alloc(); }
#endif
#define GC_OP_NEW_OOM_CHECK(obj)      \
  do {                                \
    if (!(obj)) GC_throw_bad_alloc(); \
  } while (0)

#ifdef GC_NAMESPACE
namespace boehmgc {
#endif

/* Where an object goes: the argument of the placement new. */
enum GCPlacement {
  UseGC, /* collected, searched for pointers */
#ifndef GC_NAME_CONFLICT
  GC = UseGC,
#endif
  NoGC,         /* reclaimed by delete only, searched for pointers */
  PointerFreeGC /* collected, not searched */
#ifdef GC_ATOMIC_UNCOLLECTABLE
  ,
  PointerFreeNoGC /* reclaimed by delete only, not searched */
#endif
};

extern "C" {
/* Called with the dead object and the data given to new. */
typedef void(GC_CALLBACK* GCCleanUpFunc)(void* obj, void* clientData);
}

/* The memory that a placement asks for; null if there is none. Used by the operators below. */
inline void* GC_placement_alloc(size_t size, GCPlacement gcp) {
  switch (gcp) {
    case UseGC:
      return GC_MALLOC(size);
    case PointerFreeGC:
      return GC_MALLOC_ATOMIC(size);
#ifdef GC_ATOMIC_UNCOLLECTABLE
    case PointerFreeNoGC:
      return GC_MALLOC_ATOMIC_UNCOLLECTABLE(size);
#endif
    case NoGC:
    default:
      return GC_MALLOC_UNCOLLECTABLE(size);
  }
}

/* Base of classes whose objects are collected. */
class gc {  // NOLINT(readability-identifier-naming): the interface's name
 public:
  void* operator new(size_t size) {
    void* obj = GC_MALLOC(size);
    GC_OP_NEW_OOM_CHECK(obj);
    return obj;
  }
  void* operator new(size_t size, GCPlacement gcp) {
    void* obj = GC_placement_alloc(size, gcp);
    GC_OP_NEW_OOM_CHECK(obj);
    return obj;
  }
  void* operator new(size_t, void* p) GC_NOEXCEPT { return p; }
  void operator delete(void* obj) GC_NOEXCEPT { GC_FREE(obj); }
  void operator delete(void* obj, GCPlacement) GC_NOEXCEPT { GC_FREE(obj); }
  void operator delete(void*, void*) GC_NOEXCEPT {}

#ifdef GC_OPERATOR_NEW_ARRAY
  void* operator new[](size_t size) { return gc::operator new(size); }
  void* operator new[](size_t size, GCPlacement gcp) { return gc::operator new(size, gcp); }
  void* operator new[](size_t, void* p) GC_NOEXCEPT { return p; }
  void operator delete[](void* obj) GC_NOEXCEPT { gc::operator delete(obj); }
  void operator delete[](void* obj, GCPlacement) GC_NOEXCEPT { gc::operator delete(obj); }
  void operator delete[](void*, void*) GC_NOEXCEPT {}
#endif
};

/*
 * Base of classes whose destructor is to run when the object is found dead. Cycles of such
 * objects are never found dead. Objects outside the heap are destroyed as in plain C++.
 */
class gc_cleanup : virtual public gc {
 public:
  gc_cleanup() {
    void* self = static_cast<void*>(this);
    void* base = GC_base(self);
    if (base == nullptr) return;
    /* The object of a class with several such bases is cleaned up by the first one. */
    GC_finalization_proc old_proc = nullptr;
    void* old_data = nullptr;
    const ptrdiff_t displacement = static_cast<char*>(self) - static_cast<char*>(base);
    GC_register_finalizer_ignore_self(base, cleanup, reinterpret_cast<void*>(displacement),
                                      &old_proc, &old_data);
    if (old_proc != nullptr)
      GC_register_finalizer_ignore_self(base, old_proc, old_data, nullptr, nullptr);
  }
  virtual ~gc_cleanup() {
    void* base = GC_base(static_cast<void*>(this));
    if (base != nullptr)
      GC_register_finalizer_ignore_self(base, nullptr, nullptr, nullptr, nullptr);
  }

 private:
  static void GC_cdecl cleanup(void* obj, void* displacement) {
    char* self = static_cast<char*>(obj) + reinterpret_cast<ptrdiff_t>(displacement);
    reinterpret_cast<gc_cleanup*>(self)->~gc_cleanup();
  }
};

#ifdef GC_NAMESPACE
} /* namespace boehmgc */
#endif

/* Objects of any type; the cleanup function is for collected ones (UseGC) only. */
inline void* operator new(size_t size, GC_NS_QUALIFY(GCPlacement) gcp,
                          GC_NS_QUALIFY(GCCleanUpFunc) cleanup = nullptr,
                          void* clientData = nullptr) {
  void* obj = GC_NS_QUALIFY(GC_placement_alloc)(size, gcp);
  GC_OP_NEW_OOM_CHECK(obj);
  if (cleanup != nullptr && gcp == GC_NS_QUALIFY(UseGC) && obj != nullptr)
    GC_REGISTER_FINALIZER_IGNORE_SELF(obj, cleanup, clientData, nullptr, nullptr);
  return obj;
}
/* Called when a constructor throws. */
inline void operator delete(void* p, GC_NS_QUALIFY(GCPlacement), GC_NS_QUALIFY(GCCleanUpFunc),
                            void*) GC_NOEXCEPT {
  GC_FREE(p);
}
#ifdef GC_OPERATOR_NEW_ARRAY
inline void* operator new[](size_t size, GC_NS_QUALIFY(GCPlacement) gcp,
                            GC_NS_QUALIFY(GCCleanUpFunc) cleanup = nullptr,
                            void* clientData = nullptr) {
  return ::operator new(size, gcp, cleanup, clientData);
}
inline void operator delete[](void* p, GC_NS_QUALIFY(GCPlacement), GC_NS_QUALIFY(GCCleanUpFunc),
                              void*) GC_NOEXCEPT {
  GC_FREE(p);
}
#endif

#ifdef JACKDAW_REPLACE_GLOBAL_NEW
void* operator new(size_t size) {
  void* obj = GC_MALLOC_UNCOLLECTABLE(size);
  GC_OP_NEW_OOM_CHECK(obj);
  return obj;
}
void* operator new[](size_t size) { return ::operator new(size); }
void operator delete(void* obj) GC_NOEXCEPT { GC_FREE(obj); }
void operator delete[](void* obj) GC_NOEXCEPT { GC_FREE(obj); }
#if __cplusplus >= 201402L
void operator delete(void* obj, size_t) GC_NOEXCEPT { GC_FREE(obj); }
void operator delete[](void* obj, size_t) GC_NOEXCEPT { GC_FREE(obj); }
#endif
#endif /* JACKDAW_REPLACE_GLOBAL_NEW */

#endif /* GC_CPP_H */
