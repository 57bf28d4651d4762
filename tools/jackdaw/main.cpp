// The `jackdaw` command: reads the command line and calls the subcommand.
#include <fmt/core.h>
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "commands.hpp"
#include "failure.hpp"
#include "program/process.hpp"
#include "program/signals.hpp"
#include "program/standard_files.hpp"
#include "reports/catalogue.hpp"

namespace jackdaw {
namespace {

constexpr const char* kDescription = "Jackdaw: a garbage collector that stands in for libgc.so.1";
constexpr const char* kCannotWrite = "cannot write to the standard output";

// Of an option that is given as "$UNSET": as if it were not there, a long run would write nothing.
const CLI::Validator not_empty(
    [](const std::string& value) {
      return value.empty() ? std::string("the name is empty") : std::string();
    },
    "");

// Without the value in braces that CLI11 puts behind the name of a flag that may have one.
struct HelpText : CLI::Formatter {
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    const std::string name = CLI::Formatter::make_option_name(option, positional);
    return name.substr(0, name.find('{'));
  }
};

struct CommandLine {
  CLI::App app{kDescription, "jackdaw"};
  RunSettings run;
  BenchSettings bench;
  bool markdown = false;
  bool man = false;
  CLI::Option* bench_runs = nullptr;
  CLI::Option* run_runs = nullptr;
  CLI::App* run_app = nullptr;
  CLI::App* bench_app = nullptr;
  CLI::App* options_app = nullptr;

  CommandLine() {
    app.set_version_flag("--version", "jackdaw " JD_VERSION);
    app.formatter(std::make_shared<HelpText>());
    app.require_subcommand(1);
    app.footer("jackdaw COMMAND --help says more.");
    declare_run();
    declare_bench();
    declare_options();
  }

  void declare_run() {
    run_app = app.add_subcommand(
        "run", "Run a program on Jackdaw's libgc: jackdaw run [OPTIONS] -- PROGRAM [ARGUMENTS]");
    CLI::Option* stats = run_app->add_flag(
        "--stats", run.stats,
        "At the end, print on stderr what the collector did, each figure measured");
    run_app->add_option("--stats-json", run.stats_json, "Write the figures to this file as JSON")
        ->check(not_empty)
        ->type_name("FILE");
    CLI::Option* malloc_mode =
        run_app
            ->add_flag("--malloc{free}", run.malloc_mode,
                       "Serve the malloc of a program that does not use libgc, and collect what it "
                       "never frees; free() frees (the default), or does nothing (=ignore); or "
                       "leaks are reported at its exit (=leak-check)")
            ->check(CLI::IsMember({"free", "ignore", "leak-check"}))
            ->option_text("[=free|ignore|leak-check] Excludes: --compare, --library, --force");
    CLI::Option* compare =
        run_app
            ->add_flag("--compare", run.compare,
                       "Run it on the system's libgc too, in turn, and print both side by side")
            ->excludes(malloc_mode)
            ->excludes(stats);
    run_runs = run_app->add_option("--runs", run.runs, "With --compare: pairs of runs (5)")
                   ->check(CLI::Range(1, 10000))
                   ->needs(compare)
                   ->type_name("N");
    run_app->add_option("--library", run.library, "Use this libgc.so.1 instead of Jackdaw's")
        ->excludes(malloc_mode)
        ->check(not_empty)
        ->type_name("PATH");
    run_app
        ->add_option("--system-library", run.system_library,
                     "With --compare: compare with this libgc.so.1 instead of the system's")
        ->needs(compare)
        ->check(not_empty)
        ->type_name("PATH");
    run_app
        ->add_flag("--force", run.force,
                   "Run it although it is not linked with libgc: it loads libgc with dlopen, or "
                   "starts a program that uses it")
        ->excludes(malloc_mode);
    // For the help alone: what stands there is no word of ours (take_command).
    run_app->add_option("command", run.command, "The program and its arguments")
        ->type_name("PROGRAM ARGUMENTS");
    run_app->footer(
        "Exit status: the program's; its signal, if one killed it; 125 if jackdaw refuses, 126 if\n"
        "PROGRAM cannot be executed, 127 if there is none. With --compare: 1 if the outputs or "
        "the\n"
        "ends differ, else the program's.");
  }

  void declare_bench() {
    bench_app = app.add_subcommand("bench", "Run the benchmarks on Jackdaw's libgc and on a peer");
    bench_app
        ->add_option("names", bench.names,
                     "Benchmarks, or patterns such as 'mark-*' (all); or a report, and parts of it")
        ->type_name("NAME");
    bench_app->add_flag("--list", bench.list,
                        "List the benchmarks, or a report's parts, and run none");
    bench_app->add_option("--peer", bench.peer, "The libgc.so.1 to compare with (the system's)")
        ->check(not_empty)
        ->type_name("PATH");
    bench_app->add_option("--library", bench.library, "Use this libgc.so.1 instead of Jackdaw's")
        ->check(not_empty)
        ->type_name("PATH");
    bench_app
        ->add_option(
            "--set", bench.variables,
            "Set a variable for our library's runs alone; with the same library as --peer, "
            "a setting is compared with none")
        ->type_name("NAME=VALUE")
        ->allow_extra_args(false);
    bench_runs = bench_app->add_option("--runs", bench.runs, "Pairs of runs (5; 1 with --quick)")
                     ->check(CLI::Range(1, 10000))
                     ->type_name("N");
    bench_app->add_option("--json", bench.json, "Write the results to this file as JSON")
        ->check(not_empty)
        ->type_name("FILE");
    bench_app->add_option("--markdown", bench.markdown, "Write the table to this file as Markdown")
        ->check(not_empty)
        ->type_name("FILE");
    bench_app->add_flag(
        "--quick", bench.quick,
        "Small sizes, no warm-up, one pair unless --runs says otherwise: shows that "
        "everything runs, not how fast");
    bench_app->add_flag("--add", bench.add,
                        "For the reports " + reports_with_parts() +
                            ": add the rounds to those in the file of --json");
    bench_app
        ->add_option("--limit", bench.limit_seconds, "Seconds after which a run is killed (300)")
        ->check(CLI::Range(1, 86400))
        ->type_name("SECONDS");
    bench_app->footer(
        "Reports, which write the page that --markdown names, or, run as a whole and in full "
        "size,\none of docs/results/:\n" +
        list_of_reports());
  }

  void declare_options() {
    options_app =
        app.add_subcommand("options", "List the environment variables that the library reads");
    CLI::Option* flag = options_app->add_flag("--markdown", markdown, "As a page of Markdown");
    options_app->add_flag("--man", man, "As a section of a man page")->excludes(flag);
  }

  // `jackdaw run`: takes the program and its arguments off the end of our own, to be passed on as
  // they are; CLI11 would read [a,b] as two words and [] as none. They follow the first --, or
  // begin with the first word that is neither an option nor one's value. Returns how many are left.
  int take_command(int argc, char** argv) {
    int end = 2;
    while (end < argc && argv[end][0] == '-' && std::string(argv[end]) != "--") {
      // CLI11 takes it for the option without a value.
      if (std::string(argv[end]) == "--malloc=") {
        throw CLI::ValidationError("--malloc", "=free, =ignore or =leak-check?");
      }
      const CLI::Option* option = run_app->get_option_no_throw(argv[end]);
      const bool wants_value = option != nullptr && option->get_items_expected_min() > 0;
      const bool has_value = end + 1 < argc && std::string(argv[end + 1]) != "--";
      end += wants_value && has_value ? 2 : 1;
    }
    if (end >= argc) return argc;
    const bool has_dashes = std::string(argv[end]) == "--";
    run.command.assign(argv + end + (has_dashes ? 1 : 0), argv + argc);
    return end;
  }

  int call() {
    if (run_app->parsed()) {
      if (run.command.empty()) {
        throw Failure(kExitRefused, "run what? jackdaw run [OPTIONS] -- PROGRAM [ARGUMENTS]");
      }
      return run.compare ? compare_command(run) : run_command(run);
    }
    if (bench_app->parsed()) {
      if (bench.quick && bench_runs->count() == 0) bench.runs = 1;
      return bench_command(bench);
    }
    return options_command(markdown ? OptionsFormat::Markdown
                           : man    ? OptionsFormat::Man
                                    : OptionsFormat::Text);
  }
};

// A message of ours, whether or not anybody can read it: the status tells, too.
void say(const std::string& text) {
  static_cast<void>(std::fputs(("jackdaw: " + text + "\n").c_str(), stderr));
}

bool is_command(const std::string& word) {
  return word == "run" || word == "bench" || word == "options";
}

// CLI11 calls an unknown first word a missing subcommand.
std::string explain(const CLI::ParseError& error, const std::string& first) {
  if (first.starts_with('-')) return fmt::format("unknown option {}", first);
  if (first.empty()) return "which command? run, bench or options";
  if (!is_command(first)) {
    return fmt::format("there is no command '{}'; there are run, bench and options", first);
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::string text = error.what();
    const std::string word = text.substr(text.rfind(": ") + 2);
    return fmt::format("unknown {} {}", word.starts_with('-') ? "option" : "argument", word);
  }
  return error.what();
}

int run_main(int argc, char** argv) {
  occupy_standard_files();
  prepare_signals();
  CommandLine line;
  const std::string first = argc > 1 ? argv[1] : "";
  const bool is_run = first == "run";
  try {
    line.app.parse(is_run ? line.take_command(argc, argv) : argc, argv);
  } catch (const CLI::ParseError& e) {
    // --help, --version; of a command that there is.
    if (e.get_exit_code() == 0 && (first.starts_with('-') || is_command(first))) {
      line.app.exit(e);
      if (std::fflush(stdout) == 0 && std::cout.flush()) return 0;
      say(kCannotWrite);
      return kExitRefused;
    }
    say(fmt::format("{}\nTry: jackdaw {}--help", explain(e, first),
                    is_command(first) ? first + " " : ""));
    return is_run ? kExitRefused : kExitUsage;
  }
  try {
    const int status = line.call();
    // What nobody could read was not shown.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      throw Failure(kExitRefused, kCannotWrite);
    }
    return status;
  } catch (const Interrupted& e) {
    std::fflush(nullptr);
    end_by(e.signal);
  } catch (const Failure& e) {
    say(e.what());
    return e.exit_status();
  } catch (const std::exception& e) {
    if (std::ferror(stdout) != 0) {  // fmt throws what it cannot print
      say(kCannotWrite);
    } else {
      say(fmt::format("unexpected: {}", e.what()));
    }
    return kExitRefused;
  }
}

}  // namespace
}  // namespace jackdaw

int main(int argc, char** argv) {
  try {
    return jackdaw::run_main(argc, argv);
  } catch (...) {
    // Printing a message failed, or there is no memory for one.
    return jackdaw::kExitRefused;
  }
}
