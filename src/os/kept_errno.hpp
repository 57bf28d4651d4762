// What the program sees of errno is not changed by what we ask the system.
#pragma once

#include <errno.h>

namespace jd::os {

// Puts back what errno was, at the end of its lifetime.
class KeptErrno {
 public:
  KeptErrno() = default;
  ~KeptErrno() { errno = value_; }
  KeptErrno(const KeptErrno&) = delete;
  KeptErrno& operator=(const KeptErrno&) = delete;

 private:
  int value_ = errno;
};

}  // namespace jd::os
