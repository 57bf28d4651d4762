// Forks in a shared object that is loaded and unloaded.
#include "frames.hpp"

extern "C" [[gnu::visibility("default")]] const char* run_frames() {
  static std::string result;
  result = frames::run_cases(3);
  return result.c_str();
}
