// `jackdaw run --compare`: a program on our libgc and on the system's, in turn.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "failure.hpp"
#include "figures/output.hpp"
#include "figures/statistics.hpp"
#include "figures/table.hpp"
#include "figures/units.hpp"
#include "measure/measure.hpp"
#include "program/places.hpp"
#include "program/process.hpp"
#include "program/program.hpp"

namespace jackdaw {
namespace {

// Every run must read the same input. A file is read again from where it stands; a pipe is copied
// first; a terminal would give each run something else, so the program gets an empty input.
class Input {
 public:
  Input() {
    struct stat st {};
    if (fstat(0, &st) == 0 && S_ISREG(st.st_mode)) {
      start_ = lseek(0, 0, SEEK_CUR);
      return;
    }
    if (isatty(0) != 0 || fstat(0, &st) != 0) {
      static_cast<void>(
          std::fputs("jackdaw: the input is a terminal; the program gets an empty one\n", stderr));
      file_ = File(open("/dev/null", O_RDONLY | O_CLOEXEC));
      return;
    }
    file_ = make_memory_file("jackdaw-input");
    std::array<char, 65536> buffer{};
    for (;;) {
      const ssize_t n = read(0, buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0)
        throw Failure(kExitRefused, fmt::format("reading the input: {}", std::strerror(errno)));
      if (n == 0) break;
      for (ssize_t done = 0; done < n;) {
        const ssize_t w =
            write(file_.fd(), buffer.data() + done, static_cast<std::size_t>(n - done));
        if (w < 0)
          throw Failure(kExitRefused, fmt::format("keeping the input: {}", std::strerror(errno)));
        done += w;
      }
    }
  }

  // At its beginning again.
  int rewound() {
    const int fd = file_.fd() >= 0 ? file_.fd() : 0;
    if (lseek(fd, start_, SEEK_SET) < 0 && errno != ESPIPE) {
      throw Failure(kExitRefused, fmt::format("rewinding the input: {}", std::strerror(errno)));
    }
    return fd;
  }

 private:
  File file_;
  off_t start_ = 0;
};

// In what a run differs from the first one on ours.
struct Difference {
  bool ends;          // else the outputs
  std::size_t bytes;  // of its output
  std::size_t line;   // the first that is another
};

struct Run {
  Measurement measured;
  // The output of the first run on ours stays, and each side's first errors. Of the others, the
  // output goes when it was compared, and of the errors the end stays: this process grows no larger
  // with each run.
  std::string output;
  std::string errors;
  std::optional<Difference> difference;
};

struct Side {
  const char* name;
  Library library;
  std::vector<Run> runs;  // without the warm-up
};

Run run_once(const Program& program, const std::vector<std::string>& arguments,
             const Library& library, Input* input) {
  const File out = make_memory_file("jackdaw-output");
  const File err = make_memory_file("jackdaw-errors");
  Command command;
  command.file = program.file;
  command.arguments = arguments;
  command.in = input->rewound();
  command.out = out.fd();
  command.err = err.fd();
  command.interactive = false;
  Run run;
  run.measured = run_measured({command, library, {}});
  run.output = contents(out);
  run.errors = contents(err);
  return run;
}

// --- what the runs say -------------------------------------------------------------------------

using Figure = std::function<std::optional<double>(const Measurement&)>;

struct Row {
  const char* name;
  const char* key;
  std::string (*show)(double);
  Figure figure;
};

template <class T>
std::optional<double> number(const std::optional<T>& value) {
  return value ? std::optional<double>(static_cast<double>(*value)) : std::nullopt;
}

std::string show_count(double value) { return fmt::format("{:.0f}", value); }

std::string show_share(double value) { return fmt::format("{:.1f}%", 100 * value); }

const std::vector<Row>& rows() {
  static const std::vector<Row> list = {
      {"time", "wall_s", show_seconds, [](const auto& m) { return m.outcome.wall_seconds; }},
      {"CPU time", "cpu_s", show_seconds,
       [](const auto& m) { return m.outcome.user_seconds + m.outcome.system_seconds; }},
      {"resident, largest", "resident_peak_bytes", show_bytes,
       [](const auto& m) { return static_cast<double>(m.resident_peak_bytes); }},
      {"heap, largest", "heap_peak_bytes", show_bytes,
       [](const auto& m) { return number(m.heap_peak_bytes); }},
      {"allocated", "allocated_bytes", show_bytes,
       [](const auto& m) { return number(m.allocated_bytes); }},
      {"collections", "collections", show_count,
       [](const auto& m) { return number(m.collections); }},
      {"time in collections", "collections_s", show_seconds,
       [](const auto& m) { return m.collection_seconds; }},
      {"share of the time", "collector_share", show_share,
       [](const auto& m) { return m.collector_share(); }},
      {"pauses, total", "pauses_s", show_seconds, [](const auto& m) { return m.pause_seconds; }},
      {"longest pause", "pauses_longest_s", show_seconds,
       [](const auto& m) { return m.longest_pause_seconds; }},
  };
  return list;
}

// One value a run; empty if any run did not measure it.
std::vector<double> values(const Side& side, const Figure& figure) {
  std::vector<double> result;
  for (const Run& run : side.runs) {
    const std::optional<double> value = figure(run.measured);
    if (!value) return {};
    result.push_back(*value);
  }
  return result;
}

nlohmann::ordered_json report(const Side& ours, const Side& theirs) {
  Table table({"", "ours: median (min..max)", "system's: median (min..max)", "ratio (min..max)"});
  nlohmann::ordered_json json;
  for (const Row& row : rows()) {
    const std::vector<double> a = values(ours, row.figure);
    const std::vector<double> b = values(theirs, row.figure);
    std::vector<std::string> cells = {row.name, "not measured", "not measured", ""};
    nlohmann::ordered_json& entry = json[row.key];
    entry = {{"ours", nullptr}, {"system", nullptr}, {"ratio", nullptr}};
    if (!a.empty()) {
      cells[1] = show_spread(summarize(a), row.show);
      entry["ours"] = to_json(summarize(a));
    }
    if (!b.empty()) {
      cells[2] = show_spread(summarize(b), row.show);
      entry["system"] = to_json(summarize(b));
    }
    const std::optional<Summary> ratio = ratio_of(a, b);
    cells[3] = show_ratio(ratio);
    entry["ratio"] = to_json(ratio);
    table.add(cells);
  }
  fmt::print("{}", table.text());
  return json;
}

std::string last_lines(const std::string& text) {
  constexpr std::size_t kEnough = 800;
  return text.size() <= kEnough ? text : "..." + text.substr(text.size() - kEnough);
}

// The first byte in which two outputs differ, as a line number.
std::size_t first_difference(const std::string& a, const std::string& b) {
  std::size_t line = 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()) && a[i] == b[i]; ++i)
    line += a[i] == '\n';
  return line;
}

// The newest run of either side is compared with the first one on ours, and drops what it said.
void compare_newest(Side* ours, Side* theirs) {
  const Run& first = ours->runs.front();
  for (Side* side : {ours, theirs}) {
    Run& run = side->runs.back();
    const bool other_end = run.measured.outcome.status != first.measured.outcome.status;
    if (other_end || run.output != first.output) {
      run.difference = {other_end, run.output.size(), first_difference(first.output, run.output)};
    }
    if (&run == &first) continue;
    std::string().swap(run.output);
    if (side->runs.size() > 1) run.errors = std::string(last_lines(run.errors));
  }
}

// Shows in what a run differs from the first one on ours; false if in nothing.
bool differs(const Run& first, const Side& side, std::size_t number) {
  const Run& run = side.runs[number];
  if (!run.difference) return false;
  const std::string which = fmt::format("{} (run {})", side.name, number + 1);
  if (run.difference->ends) {
    fmt::print("\nDIFFERENT ENDS: {} on ours (run 1), {} on {}\n",
               first.measured.outcome.describe(), run.measured.outcome.describe(), which);
  } else {
    fmt::print("\nDIFFERENT OUTPUTS: {} bytes on ours (run 1), {} bytes on {}, first in line {}\n",
               first.output.size(), run.difference->bytes, which, run.difference->line);
  }
  // Those of the first runs are shown at the end.
  if (number > 0 && !run.errors.empty()) {
    fmt::print("its stderr on {}:\n{}\n", which, last_lines(run.errors));
  }
  return true;
}

// Every run, of either side, must be as the first one on ours. Says what is not.
bool all_alike(const Side& ours, const Side& theirs) {
  const Run& first = ours.runs.front();
  for (std::size_t i = 1; i < ours.runs.size(); ++i) {
    if (differs(first, ours, i)) {
      fmt::print(
          "It differs from run to run on one library, so this says nothing about the other.\n");
      return false;
    }
  }
  for (std::size_t i = 0; i < theirs.runs.size(); ++i) {
    if (differs(first, theirs, i)) return false;
  }
  return true;
}

// What a program says on stderr is its user's to see, but differs from run to run too often (times,
// process ids) to be compared.
void show_errors(const Side& ours, const Side& theirs) {
  const std::string& a = ours.runs.front().errors;
  const std::string& b = theirs.runs.front().errors;
  if (a == b) {
    if (!a.empty()) fmt::print("\nits stderr, on both:\n{}\n", last_lines(a));
    return;
  }
  for (const Side* side : {&ours, &theirs}) {
    const std::string& errors = side->runs.front().errors;
    fmt::print("\nits stderr on {} (not compared):{}\n", side->name,
               errors.empty() ? " nothing" : "\n" + last_lines(errors));
  }
}

}  // namespace

int compare_command(const RunSettings& settings) {
  Side ours{"ours", our_library(settings.library), {}};
  Side theirs{"the system's", system_library(settings.system_library), {}};
  const Program program = examine_program(settings.command.front(), settings.force);
  require_writable(settings.stats_json, kExitRefused);
  Input input;
  {
    Progress progress;
    for (int pair = 0; pair <= settings.runs; ++pair) {
      progress.say(pair == 0 ? std::string("warming up")
                             : fmt::format("pair {} of {}", pair, settings.runs));
      // A B, then B A: a drift of the machine's speed falls on both alike.
      std::array<Side*, 2> order = {&ours, &theirs};
      if (pair % 2 == 1) std::swap(order[0], order[1]);
      for (Side* side : order) {
        Run run = run_once(program, settings.command, side->library, &input);
        if (pair > 0) side->runs.push_back(std::move(run));
      }
      if (pair > 0) compare_newest(&ours, &theirs);
    }
  }
  fmt::print("{}: {} pair{} of runs after a warm-up\n", settings.command.front(), settings.runs,
             settings.runs == 1 ? "" : "s");
  for (const Side* side : {&ours, &theirs}) {
    fmt::print("  {:<13} libgc {}, {}\n", side->name, side->library.version_text(),
               side->library.path.string());
  }
  fmt::print("\n");
  nlohmann::ordered_json json;
  json["command"] = settings.command;
  json["pairs"] = settings.runs;
  json["ours"] = {{"path", ours.library.path.string()}, {"version", ours.library.version_text()}};
  json["system"] = {{"path", theirs.library.path.string()},
                    {"version", theirs.library.version_text()}};
  json["figures"] = report(ours, theirs);
  for (const Side* side : {&ours, &theirs}) {
    json[side == &ours ? "ours_runs" : "system_runs"] = nlohmann::ordered_json::array();
    for (const Run& run : side->runs) {
      json[side == &ours ? "ours_runs" : "system_runs"].push_back(to_json(run.measured));
    }
    for (const std::string& note : side->runs.front().measured.notes) {
      fmt::print("note ({}): {}\n", side->name, note);
    }
  }
  const bool alike = all_alike(ours, theirs);
  json["same_output_and_end"] = alike;
  if (alike) {
    fmt::print("\nThe outputs are the same ({} bytes), and so are the ends ({}).\n",
               ours.runs.front().output.size(), ours.runs.front().measured.outcome.describe());
  }
  show_errors(ours, theirs);
  if (!settings.stats_json.empty()) write_file(settings.stats_json, to_text(json));
  if (!alike) return kExitFailed;
  return ours.runs.front().measured.outcome.exit_status();
}

}  // namespace jackdaw
