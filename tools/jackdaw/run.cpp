// `jackdaw run`: a program on our libgc.
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "commands.hpp"
#include "failure.hpp"
#include "measure.hpp"
#include "places.hpp"
#include "process.hpp"
#include "program.hpp"
#include "statistics.hpp"

namespace jackdaw {

void write_file(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".new";
  {
    std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
    out << text;
    out.flush();
    if (!out) {
      const int error = errno;
      unlink(temporary.c_str());
      throw Failure(kExitRefused, fmt::format("cannot write {}: {}", path, std::strerror(error)));
    }
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    unlink(temporary.c_str());
    throw Failure(kExitRefused, fmt::format("cannot write {}: {}", path, std::strerror(error)));
  }
}

int run_command(const RunSettings& settings) {
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
