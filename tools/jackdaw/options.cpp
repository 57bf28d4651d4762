// `jackdaw options`: the environment variables, from the library's own table.
#include <fmt/core.h>

#include <string>

#include "base/options.hpp"
#include "commands.hpp"

namespace jackdaw {
namespace {

using jd::base::kOptions;
using jd::base::OptionInfo;
using jd::base::OptionType;

const char* type_name(OptionType type) {
  switch (type) {
    case OptionType::Flag:
      return "switch";
    case OptionType::Count:
      return "count";
    case OptionType::Size:
      return "size";
    case OptionType::Choice:
      return "choice";
    case OptionType::Path:
      return "file";
  }
  return "?";
}

std::string range_of(const OptionInfo& o) {
  if (*o.range != '\0') return o.range;
  return o.type == OptionType::Flag ? "set: on; 0, no, off or false: off" : "any";
}

// Of all of them, for each form; no line of it begins with what means something to roff.
constexpr const char* kRules =
    "The library reads them when it starts. Sizes take the suffixes k, M and G (powers\n"
    "of 1024). Of a value out of range the nearest counts that is in it, and a switch\n"
    "that says neither yes nor no is on; any other bad value is ignored, as is a\n"
    "variable JACKDAW_... that is none of these. Each is reported on stderr.\n";

void print_text() {
  fmt::print("Environment variables.\n{}", kRules);
  for (const OptionInfo& o : kOptions) {
    fmt::print("\n{}  ({}; {}; default: {})\n    {}\n", o.name, type_name(o.type), range_of(o),
               o.default_text, o.help);
  }
}

void print_markdown() {
  fmt::print(
      "# Environment variables\n\n"
      "Made by `jackdaw options --markdown` from the library's own table.\n\n"
      "{}\n"
      "| name | type | values | default | meaning |\n"
      "|---|---|---|---|---|\n",
      kRules);
  for (const OptionInfo& o : kOptions) {
    fmt::print("| `{}` | {} | {} | {} | {} |\n", o.name, type_name(o.type), range_of(o),
               o.default_text, o.help);
  }
}

// Text in a man page: a backslash and a leading dot or quote mean something to roff.
std::string roff(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      if (result.empty() && (c == '.' || c == '\'')) result += "\\&";
      result += c;
    }
  }
  return result;
}

void print_man() {
  fmt::print(".SH ENVIRONMENT\n{}", kRules);
  for (const OptionInfo& o : kOptions) {
    fmt::print(".TP\n.B {}\n{}\nType: {}.\nValues: {}.\nDefault: {}.\n", roff(o.name), roff(o.help),
               type_name(o.type), roff(range_of(o)), roff(o.default_text));
  }
}

}  // namespace

int options_command(OptionsFormat format) {
  switch (format) {
    case OptionsFormat::Text:
      print_text();
      break;
    case OptionsFormat::Markdown:
      print_markdown();
      break;
    case OptionsFormat::Man:
      print_man();
      break;
  }
  return 0;
}

}  // namespace jackdaw
