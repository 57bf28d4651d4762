// The environment for who asks before libc has started.
#pragma once

namespace jd::os {

// A program's .preinit_array runs before libc has been initialised: `environ` is null then. For
// this object's lifetime it is what libc will find. Otherwise nothing changes: a program that has
// cleared its environment has none. Pre: no other thread reads the environment.
class EarlyEnvironment {
 public:
  EarlyEnvironment();
  ~EarlyEnvironment();
  EarlyEnvironment(const EarlyEnvironment&) = delete;
  EarlyEnvironment& operator=(const EarlyEnvironment&) = delete;

 private:
  bool is_lent_ = false;
};

}  // namespace jd::os
