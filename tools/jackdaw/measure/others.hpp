// Who else ran while something was measured.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace jackdaw {

// What other programs, and other machines on the same processors, took of the CPUs since the
// object was made.
class Others {
 public:
  Others() : busy_(busy()), own_(own()), began_(std::chrono::steady_clock::now()) {}

  // A share; nothing where the kernel does not say.
  [[nodiscard]] std::optional<double> share() const;
  // A remark for a page about what was measured meanwhile, if the share was worth one.
  [[nodiscard]] std::optional<std::string> note(const std::string& measured) const;

  // Processor time of this process and of those it waited for, in seconds.
  static double own();
  // What others had of so many processor seconds, where so many were used, and so many of these by
  // this process.
  static double share_of(double all, double used, double own);

 private:
  // The whole machine's, in seconds.
  static std::optional<double> busy();

  std::optional<double> busy_;
  double own_;
  std::chrono::steady_clock::time_point began_;
};

}  // namespace jackdaw
