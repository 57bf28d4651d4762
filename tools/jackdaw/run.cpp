// `jackdaw run`: a program on our libgc.
#include <fmt/core.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "failure.hpp"
#include "figures/output.hpp"
#include "figures/statistics.hpp"
#include "measure/measure.hpp"
#include "program/places.hpp"
#include "program/process.hpp"
#include "program/program.hpp"

namespace jackdaw {

namespace {

void print_statistics(const RunSettings& settings, const Measurement& m, const Library& library) {
  if (!settings.stats) return;
  fmt::print(stderr, "jackdaw: {} on {} {} ({}), {}\n{}", settings.command.front(),
             settings.malloc_mode.empty() ? "libgc" : "jackdaw's malloc, libgc",
             m.version.empty() ? library.version_text() : m.version,
             m.library.empty() ? library.path.string() : m.library, m.outcome.describe(),
             to_text(m));
}

void write_statistics(const RunSettings& settings, const Measurement& m) {
  if (settings.stats_json.empty()) return;
  nlohmann::ordered_json json = to_json(m);
  json["command"] = settings.command;
  write_file(settings.stats_json, to_text(json));
}

// The program has run, and its status is passed on even if nothing can be written of it.
template <class Write>
void attempt(Write write) {
  try {
    write();
  } catch (const std::exception& e) {
    static_cast<void>(
        std::fprintf(stderr, "jackdaw: the statistics could not be written: %s\n", e.what()));
  }
}

}  // namespace

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
  const Measurement m = run_measured({command, library, variables, serves_malloc});
  // A reader of the figures that has gone is no end of ours: the status is the program's.
  std::signal(SIGPIPE, SIG_IGN);
  attempt([&] { write_statistics(settings, m); });
  attempt([&] { print_statistics(settings, m, library); });
  end_like(m.outcome);
}

}  // namespace jackdaw
