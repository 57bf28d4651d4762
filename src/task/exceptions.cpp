#include "task/switch.hpp"

// The C++ run-time's, where the program has one (Itanium C++ ABI, 2.2.2).
struct CxaGlobals {
  void* caught;
  unsigned uncaught;
};
extern "C" [[gnu::weak]] CxaGlobals* __cxa_get_globals() noexcept;

namespace jd::task {

void ExceptionState::save() {
  if (&__cxa_get_globals == nullptr) return;
  CxaGlobals* globals = __cxa_get_globals();
  caught_ = globals->caught;
  uncaught_ = globals->uncaught;
  *globals = {nullptr, 0};
}

void ExceptionState::restore() const {
  if (&__cxa_get_globals == nullptr) return;
  *__cxa_get_globals() = {caught_, uncaught_};
}

}  // namespace jd::task
