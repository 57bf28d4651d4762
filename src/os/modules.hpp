// The loaded objects of the process: their writable data and their thread-local storage.
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/extent.hpp"

namespace jd::os {

// One writable segment of a loaded object, less what becomes read-only after relocation.
struct DataSegment {
  const char* object;  // path; empty for the program itself. Valid while the object is loaded.
  char* low;
  char* high;
  bool in_program;  // the program itself, not a shared library
};

// One loaded object's thread-local storage.
struct ThreadLocalModule {
  std::size_t module;  // the loader's number, for thread_local_block()
  std::size_t size;    // bytes in each thread's block
  bool in_program;
};

class ModuleVisitor {
 public:
  virtual void data(const DataSegment& segment) = 0;
  virtual void thread_locals(const ThreadLocalModule& module) = 0;

 protected:
  ~ModuleVisitor() = default;
};

// Visits every loaded object, under the loader's lock: never call it while threads are stopped.
// *fingerprint receives what module_fingerprint says of the same list.
void visit_modules(ModuleVisitor* visitor, std::uint64_t* fingerprint);

// A shared library as a whole, from its first byte to its last; not the program itself.
struct LoadedLibrary {
  const char* path;  // valid while the library is loaded
  char* base;        // what places in the file are counted from
  char* low;
  char* high;
};

class LibraryVisitor {
 public:
  virtual void library(const LoadedLibrary& library) = 0;

 protected:
  ~LibraryVisitor() = default;
};

// Visits every shared library that is loaded, under the loader's lock, as above.
void visit_libraries(LibraryVisitor* visitor);

// A number that changes whenever an object is loaded or unloaded; under the loader's lock, as
// above.
std::uint64_t module_generation();

// A digest of the list of loaded objects that takes no lock, for use in a stopped world. *changing
// tells that a thread was stopped in the middle of loading or unloading.
std::uint64_t module_fingerprint(bool* changing);

struct LoadedFile {
  const char* path;    // null if there is none; valid while it is loaded
  const void* inside;  // an address within it
};

// The first loaded object whose file's name begins so. Takes no lock, for use in a stopped world,
// where the list may be followed even if a thread was stopped in the midst of a change.
LoadedFile find_loaded(const char* file_name_begins);
inline bool is_loaded(const char* file_name_begins) {
  return find_loaded(file_name_begins).path != nullptr;
}

// The memory of the loaded object that contains the address; both null if there is none, or the C
// library (before glibc 2.35) can't tell.
Extent bounds_of_object(const void* address);

// Is the address one of the program itself, the C library, or the library that this is linked into?
// They are never unloaded, or not while this can be called. Async-signal-safe.
bool stays_loaded(const void* address);

// The .eh_frame_hdr of the loaded object whose code contains the address; null if there is none, or
// the C library (before glibc 2.35) can't tell. Async-signal-safe.
const void* find_unwind_table(const void* code);

}  // namespace jd::os
