// What may stand in the environment: each option takes it or complains, and keeps its range.
#include "base/options.hpp"

#include <cstdlib>
#include <iterator>
#include <string>

#include "input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const jd::base::OptionInfo& option =
      jd::base::kOptions[input.byte() % std::size(jd::base::kOptions)];
  // setenv() would keep each value for ever.
  static std::string variable;
  std::string value;
  while (!input.empty()) {
    const char c = static_cast<char>(input.byte());
    if (c == '\0') break;
    value += c;
  }
  variable = std::string(option.name) + "=" + value;
  FUZZ_CHECK(putenv(variable.data()) == 0);
  jd::base::Options options;
  static bool complained;
  complained = false;
  jd::base::read_options(&options, [](const jd::base::OptionInfo&, const char*,
                                      bool is_out_of_range) { complained = !is_out_of_range; });
  if (option.number != nullptr) {
    const std::uint64_t now = options.*option.number;
    const std::uint64_t otherwise = jd::base::Options{}.*option.number;
    const bool in_range =
        (now >= option.least && now <= option.most) || (option.zero_allowed && now == 0);
    FUZZ_CHECK(now == otherwise || in_range);
    // A switch that is neither on nor off is on.
    FUZZ_CHECK(!complained || now == otherwise || option.type == jd::base::OptionType::Flag);
  } else {
    FUZZ_CHECK(options.*option.text == nullptr || options.*option.text == value);
  }
  unsetenv(option.name);
  std::uint64_t bytes = 0;
  (void)jd::base::parse_size(value.c_str(), &bytes);
  return 0;
}
