// `jackdaw run`: a program on our libgc.
#include <fmt/core.h>

#include <cstdio>

#include "commands.hpp"
#include "failure.hpp"
#include "measure.hpp"
#include "output.hpp"
#include "places.hpp"
#include "process.hpp"
#include "program.hpp"
#include "statistics.hpp"

namespace jackdaw {

int run_command(const RunSettings& settings) {
  require_writable(settings.stats_json, kExitRefused);
  const bool serves_malloc = !settings.malloc_mode.empty();
  const Program program = serves_malloc ? examine_malloc_program(settings.command.front())
                                        : examine_program(settings.command.front(), settings.force);
  const Library library = serves_malloc ? our_malloc_library() : our_library(settings.library);
  std::vector<std::string> variables;
  if (serves_malloc) variables.push_back("JACKDAW_MALLOC=" + settings.malloc_mode);
  Command command;
  command.file = program.file;
  command.arguments = settings.command;
  if (!settings.stats && settings.stats_json.empty()) {
    // Nothing to wait for: become the program, and signals and statuses need no passing on.
    command.environment = environment_with({library.path}, variables);
    execute(command);
  }
  const Measurement m = run_measured({command, library, variables});
  if (settings.stats) {
    fmt::print(stderr, "jackdaw: {} on {} {} ({}), {}\n{}", settings.command.front(),
               serves_malloc ? "jackdaw's malloc, libgc" : "libgc",
               m.version.empty() ? library.version_text() : m.version,
               m.library.empty() ? library.path.string() : m.library, m.outcome.describe(),
               to_text(m));
  }
  if (!settings.stats_json.empty()) {
    nlohmann::ordered_json json = to_json(m);
    json["command"] = settings.command;
    write_file(settings.stats_json, to_text(json));
  }
  end_like(m.outcome);
}

}  // namespace jackdaw
