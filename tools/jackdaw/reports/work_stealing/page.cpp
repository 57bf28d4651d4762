// The page of `jackdaw bench work-stealing`: its tables, its plots, and the goals.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "figures/table.hpp"
#include "figures/units.hpp"
#include "reports/work_stealing/results.hpp"

namespace jackdaw {
namespace {

constexpr Runner kOurs[] = {Runner::Barrier, Runner::Stop, Runner::Deque};

// A sum over all runs of a process, for each of them.
Figure per_run(const std::string& name) {
  return [name](const RunFigures& f) -> std::optional<double> {
    const auto sum = named(name)(f);
    const auto runs = named("runs")(f);
    if (!sum || !runs || *runs <= 0) return std::nullopt;
    return *sum / *runs;
  };
}
Figure of_elapsed(const std::string& name, double factor) {
  return [name, factor](const RunFigures& f) -> std::optional<double> {
    const auto sum = named(name)(f);
    const auto elapsed = named("elapsed")(f);
    if (!sum || !elapsed || *elapsed <= 0) return std::nullopt;
    return *sum / *elapsed * factor;
  };
}

std::optional<double> forks_of(const TaskRow& row) {
  const auto s = median_in(row, row.find(Runner::Counting, 1), named("forks"));
  return s ? std::optional(s->median) : std::nullopt;
}

bool oversubscribes(const TaskResults& results, unsigned workers) {
  return workers > static_cast<unsigned>(std::max(results.machine.cpus, 1L));
}

std::string workers_text(const TaskResults& results, unsigned workers) {
  return oversubscribes(results, workers)
             ? fmt::format("{} on {} CPUs", workers, results.machine.cpus)
             : std::to_string(workers);
}

// What a fork's overhead is measured against. fib is nothing but forks: inlined, its calls are no
// calls any more.
Runner baseline(const TaskRow& row) {
  return row.name.starts_with("fib") ? Runner::Calls : Runner::Sequential;
}

std::vector<std::string> headings(std::initializer_list<const char*> first) {
  std::vector<std::string> all(first.begin(), first.end());
  for (const Runner runner : kAll) all.emplace_back(name_of(runner));
  return all;
}

// --- tables --------------------------------------------------------------------------------------

// With one worker there is nothing to wait for, so that CPU time tells the same as elapsed time,
// and tells it on a machine with other work, too.
std::string processor_overhead_table(const TaskResults& results) {
  Table table(headings({"problem", "sequential", "calls"}));
  const Figure processors = per_run("processors");
  for (const TaskRow& row : results.rows) {
    const Cell sequential = row.find(Runner::Sequential, 1);
    std::vector<std::string> cells = {
        row.name, show_figure(median_in(row, sequential, processors), " s"),
        show_ratio(quotient(row, row.find(Runner::Calls, 1), sequential, processors))};
    for (const Runner runner : kAll) {
      cells.push_back(
          show_ratio(quotient(row, row.find(runner, 1), row.find(baseline(row), 1), processors)));
    }
    table.add(cells);
  }
  return table.markdown();
}

std::string overhead_table(const TaskResults& results) {
  Table table(headings({"problem", "forks", "sequential", "calls"}));
  for (const TaskRow& row : results.rows) {
    const Cell sequential = row.find(Runner::Sequential, 1);
    const auto forks = forks_of(row);
    std::vector<std::string> cells = {
        row.name, forks ? fmt::format("{:.0f}", *forks) : "-",
        show_figure(median_in(row, sequential, whole), " s"),
        show_ratio(quotient(row, row.find(Runner::Calls, 1), sequential))};
    for (const Runner runner : kAll) {
      cells.push_back(show_ratio(quotient(row, row.find(runner, 1), row.find(baseline(row), 1))));
    }
    table.add(cells);
  }
  return table.markdown();
}

std::string speedup_table(const TaskResults& results) {
  Table table(headings({"problem", "workers", "copies"}));
  for (const TaskRow& row : results.rows) {
    bool first = true;
    for (const unsigned workers : workers_of(row)) {
      std::vector<std::string> cells = {first ? row.name : "", workers_text(results, workers),
                                        show_ratio(machine_gives(row, workers))};
      for (const Runner runner : kAll) {
        cells.push_back(
            show_ratio(quotient(row, row.find(baseline(row), 1), row.find(runner, workers))));
      }
      table.add(cells);
      first = false;
    }
  }
  return table.markdown();
}

std::string cost_table(const TaskResults& results) {
  Table table(
      {"problem", "who", "workers", "elapsed", "by return barrier's", "CPU time", "peak memory"});
  for (const TaskRow& row : results.rows) {
    bool first = true;
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const TaskCell& cell = row.cells[i];
      if (cell.runner == Runner::Counting) continue;
      const std::string name = first ? row.name : "";
      first = false;
      if (!cell.failure.empty()) {
        table.add({name, name_of(cell.runner), workers_text(results, cell.workers),
                   "FAILED: " + cell.failure});
        continue;
      }
      const auto memory = median_of(row.row, i, peak);
      table.add({name, name_of(cell.runner), workers_text(results, cell.workers),
                 show_figure(median_of(row.row, i, whole), " s"),
                 show_ratio(quotient(row, i, row.find(Runner::Barrier, cell.workers))),
                 show_figure(median_of(row.row, i, per_run("processors")), " s"),
                 memory ? show_bytes(memory->median) : "-"});
    }
  }
  return table.markdown();
}

std::string lost_table(const TaskResults& results) {
  Table table({"problem", "workers", "stop", "barrier", "barrier / stop", "stop: in the handler",
               "stop: at forks", "barrier: in the handler", "barrier: at forks",
               "barrier: waiting at barriers"});
  const auto part = [](const char* name) -> Figure {
    return [name](const RunFigures& f) -> std::optional<double> {
      RunFigures only = f;
      for (const char* const other : kVictimParts) {
        if (std::string(other) != name && only.named.contains(other)) only.named[other] = 0;
      }
      return lost_share(only);
    };
  };
  const Figure lost = lost_with_signals(results);
  const auto percent = [](const std::optional<Summary>& s) {
    return s ? fmt::format("{:.3f}%", s->median * 100) : "-";
  };
  for (const TaskRow& row : results.rows) {
    for (const unsigned workers : workers_of(row)) {
      const Cell stop = row.find(Runner::Stop, workers);
      const Cell barrier = row.find(Runner::Barrier, workers);
      if (workers == 1 || (!stop && !barrier)) continue;
      table.add({row.name, workers_text(results, workers), percent(median_in(row, stop, lost)),
                 percent(median_in(row, barrier, lost)),
                 show_ratio(quotient(row, barrier, stop, lost)),
                 percent(median_in(row, stop, part("victim_stop_ticks"))),
                 percent(median_in(row, stop, part("victim_poll_ticks"))),
                 percent(median_in(row, barrier, part("victim_stop_ticks"))),
                 percent(median_in(row, barrier, part("victim_poll_ticks"))),
                 percent(median_in(row, barrier, part("victim_barrier_ticks")))});
    }
  }
  return table.markdown();
}

// Steals for each fork of a run.
std::optional<Summary> steal_ratio(const TaskRow& row, Cell cell) {
  const auto forks = forks_of(row);
  if (!forks || *forks <= 0) return std::nullopt;
  return scaled(median_in(row, cell, per_run("steals")), 1 / *forks);
}
std::optional<Summary> steals_a_millisecond(const TaskRow& row, Cell cell) {
  return median_in(row, cell, of_elapsed("steals", 1e-3));
}

std::string steal_table(const TaskResults& results) {
  Table table({"problem", "workers", "steals a fork: stop", "barrier", "deque", "steals a ms: stop",
               "barrier", "deque", "steals a signal: stop", "barrier"});
  const auto steals_a_request = [](const RunFigures& f) -> std::optional<double> {
    const auto steals = named("stack_steals")(f);
    const auto requests = named("requests")(f);
    if (!steals || !requests || *requests <= 0) return std::nullopt;
    return *steals / *requests;
  };
  const auto tiny = [](const std::optional<Summary>& s) {
    return s ? fmt::format("{:.3g}", s->median) : "-";
  };
  for (const TaskRow& row : results.rows) {
    for (const unsigned workers : workers_of(row)) {
      if (workers == 1) continue;
      std::vector<std::string> cells = {row.name, workers_text(results, workers)};
      for (const Runner runner : {Runner::Stop, Runner::Barrier, Runner::Deque}) {
        cells.push_back(tiny(steal_ratio(row, row.find(runner, workers))));
      }
      for (const Runner runner : {Runner::Stop, Runner::Barrier, Runner::Deque}) {
        cells.push_back(tiny(steals_a_millisecond(row, row.find(runner, workers))));
      }
      for (const Runner runner : {Runner::Stop, Runner::Barrier}) {
        cells.push_back(tiny(median_in(row, row.find(runner, workers), steals_a_request)));
      }
      table.add(cells);
    }
  }
  return table.markdown();
}

std::string latency_table(const TaskRow& row) {
  struct Line {
    const char* what;
    const char* figure;
    double factor;
    const char* unit;
  };
  constexpr Line kLines[] = {
      {"from one stolen task's start to the next one's, median", "steal", 1e-3, " us"},
      {"from a thief's decision to the task, of all, mean", "decision to task, mean", 1e-3, " us"},
      {"the same, from a deque, median", "steal from a deque", 1e-3, " us"},
      {"the same, below a barrier, median", "steal below a barrier", 1e-3, " us"},
      {"the same, with a signal to the victim, median", "steal with a stop", 1e-3, " us"},
      {"the same, where the victim's code polls, median", "steal at a poll", 1e-3, " us"},
      {"a victim in the handler, for each signal, median", "victim in the handler", 1e-3, " us"},
      {"a victim in a poll that a thief waits for, median", "victim at a poll", 1e-3, " us"},
      {"steals", "steals", 1, ""},
      {"signals for them", "requests", 1, ""},
      {"a bare signal's round trip, median", "signal", 1e-3, " us"},
      {"a bare signal's receiver stands still, median", "standstill", 1e-3, " us"},
      {"from a fork to its task, where the other worker slept, median", "wake-up", 1e-3, " us"},
      {"a bare wake-up of a thread that slept, median", "futex", 1e-3, " us"},
      {"a worker without work, of a CPU", "idle", 100, "%"},
      {"reading one array and writing another, 1 thread", "stream, 1 thread", 1e-9, " GB/s"},
      {"the same, 2 threads", "stream, 2 threads", 1e-9, " GB/s"},
  };
  Table table({"what", "barrier", "stop", "deque"});
  for (const Line& line : kLines) {
    std::vector<std::string> cells = {line.what};
    for (const Runner runner : kOurs) {
      cells.push_back(show_figure(
          scaled(median_in(row, row.find(runner, 2), named(line.figure)), line.factor), line.unit));
    }
    table.add(cells);
  }
  return table.markdown();
}

std::string bandwidth_table(const TaskResults& results) {
  Table table({"problem", "sequential", "barrier, 1 worker", "barrier, 2 workers"});
  const Figure rate = [](const RunFigures& f) -> std::optional<double> {
    const auto traffic = named("traffic")(f);
    if (!traffic || f.seconds <= 0) return std::nullopt;
    return *traffic / f.seconds * 1e-9;
  };
  bool any = false;
  for (const TaskRow& row : results.rows) {
    if (!median_in(row, row.find(Runner::Sequential, 1), rate)) continue;
    any = true;
    table.add({row.name,
               show_figure(median_in(row, row.find(Runner::Sequential, 1), rate), " GB/s"),
               show_figure(median_in(row, row.find(Runner::Barrier, 1), rate), " GB/s"),
               show_figure(median_in(row, row.find(Runner::Barrier, 2), rate), " GB/s")});
  }
  return any ? table.markdown() : "";
}

// --- the page ------------------------------------------------------------------------------------

std::size_t most_rounds(const TaskResults& results) {
  std::size_t most = 0;
  for (const auto* rows : {&results.rows, &results.latencies}) {
    for (const TaskRow& row : *rows) {
      for (const auto& runs : row.row.runs) most = std::max(most, runs.size());
    }
  }
  return most;
}

std::string problems_section(const TaskResults& results) {
  Table problems({"problem", "what"});
  for (const TaskRow& row : results.rows) problems.add({row.name, row.what});
  std::string text = "\n## The problems\n\n" + problems.markdown();
  text +=
      "\n*barrier*, *stop* and *deque* are our scheduler's modes: return barriers, a stop of the "
      "victim at each steal, and a conventional deque. *sequential* is the same source with each "
      "fork a call that the compiler may inline, *calls* the same with functions that are not "
      "inlined. Each process runs its problem once to warm up, then until half a second or five "
      "runs are over, and checks every result; its figure is the median. In a round, all that run "
      "with one worker do so on the same processor; those with more use all.\n";
  text +=
      "\n## Overhead with one worker\n\n*forks* were counted by a build of its own. *calls*: by "
      "sequential; all to the right of it: the time with one worker by that of the sequential "
      "program, and of *calls* in fib, which is nothing but forks.\n\n" +
      overhead_table(results) +
      "\nThe same by CPU time, on which other work of the machine tells less:\n\n" +
      processor_overhead_table(results);
  text +=
      "\n## Speedup (figure 5)\n\nThe time of the sequential program (of *calls* in fib) by that "
      "with so many workers.\n\n" +
      speedup_table(results);
  text +=
      "\n## What victims lose (figures 2 and 4)\n\nThe share of the workers' time, elapsed time by "
      "workers, in which a victim stood in the handler of a thief's signal, answered one at a "
      "fork, or waited at a barrier for one; and, in the sums, what a bare signal costs its "
      "receiver, for each (a single step below). Time in which a victim had no CPU meanwhile "
      "counts, too, which tells where there are more workers than CPUs.\n\n" +
      lost_table(results);
  text +=
      "\n## Steals (figures 6 and 7)\n\nSteals for each fork (the steal ratio), and for each "
      "millisecond of elapsed time (the steal rate); and steals from stacks for each signal "
      "sent.\n\n" +
      steal_table(results);
  if (const std::string table = bandwidth_table(results); !table.empty()) {
    text +=
        "\n## Memory bandwidth\n\nWhat the problem must move at least between memory and "
        "processor, by its time: each array that it "
        "reads, and each that it writes twice, since a line is fetched before it is written. What "
        "the machine gives to a bare loop is among the single steps below.\n\n" +
        table;
  }
  text +=
      "\n## Time and memory\n\nElapsed and CPU time of a run, and the process's peak memory.\n\n" +
      cost_table(results);
  return text;
}

}  // namespace

std::string task_page(const TaskResults& results, const std::vector<std::string>& plots) {
  std::string text = fmt::format(
      "# Work stealing\n\nWritten by `jackdaw bench work-stealing`.{}\n\n```\n{}runs     up to {} "
      "rounds, in each of them every cell once, each in its own process; medians\n         "
      "(smallest..largest); ratios are taken round by round\n```\n\n**This machine has {} CPUs.** "
      "More workers than that share them; such rows say so.\n",
      results.quick ? " **Small sizes (`--quick`): the figures mean nothing.**" : "",
      to_text(results), most_rounds(results), results.machine.cpus);
  if (!results.notes.empty()) text += "\n";
  for (const std::string& note : results.notes) text += fmt::format("- {}\n", note);
  if (const std::vector<Goal> goals = task_goals(results); !goals.empty()) {
    text += "\n## Goals\n\n" + goal_table(goals, results.quick);
  }
  for (const std::string& plot : plots) text += fmt::format("\n![]({})\n", plot);
  if (!results.rows.empty()) text += problems_section(results);
  for (const TaskRow& row : results.latencies) {
    text +=
        "\n## Single steps\n\nTwo workers. Stolen tasks do nothing but read the clock, so that "
        "from "
        "the start of one to that of the next is a whole steal, the end of the task before it "
        "included; the scheduler's own counts of times begin with the thief's decision.\n\n" +
        latency_table(row);
    for (const TaskCell& cell : row.cells) {
      if (!cell.failure.empty())
        text += fmt::format("\nFAILED: {}: {}\n", cell.key(), cell.failure);
    }
  }
  return text;
}

std::vector<Plot> task_plots(const TaskResults& results) {
  std::vector<Plot> plots;
  const auto bars_of = [&](const char* title, const char* unit, const std::vector<Runner>& runners,
                           const std::set<unsigned>& workers, bool papers, auto value) {
    Bars bars{title, unit, {}, {}};
    for (const Runner runner : runners) bars.series.emplace_back(name_of(runner));
    for (const TaskRow& row : results.rows) {
      if (papers && !is_of_papers(row.name)) continue;
      for (const unsigned w : workers) {
        std::vector<double> values;
        for (const Runner runner : runners) {
          const std::optional<Summary> s = value(row, runner, w);
          if (s) values.push_back(s->median);
        }
        // A group lacks no bar, or it would be taken for zero.
        if (values.size() != runners.size()) continue;
        bars.groups.push_back(
            {workers.size() > 1 ? fmt::format("{}, {}", row.name, w) : row.name, values});
      }
    }
    return bars;
  };
  const auto time = [](Runner to, bool speedup) {
    return [to, speedup](const TaskRow& row, Runner runner, unsigned workers) {
      const Cell base = row.find(to == Runner::Calls ? baseline(row) : to, 1);
      const Cell cell = row.find(runner, workers);
      return speedup ? quotient(row, base, cell) : quotient(row, cell, base);
    };
  };
  // Those peers that ran what most of them ran.
  std::vector<Runner> everyone(std::begin(kOurs), std::end(kOurs));
  for (const Runner runner : kAll) {
    if (is_peer(runner) &&
        std::any_of(results.rows.begin(), results.rows.end(),
                    [&](const TaskRow& row) { return row.find(runner, 1).has_value(); })) {
      everyone.push_back(runner);
    }
  }
  const std::set<unsigned> stolen = {2, 4, 8};
  plots.push_back(
      {"-lost", bars_of("What victims lose, by workers (figures 2 and 4)", "% of the workers' time",
                        {Runner::Stop, Runner::Barrier}, stolen, true,
                        [lost = lost_with_signals(results)](const TaskRow& row, Runner runner,
                                                            unsigned workers) {
                          return scaled(median_in(row, row.find(runner, workers), lost), 100);
                        })});
  plots.push_back(
      {"-speedup", bars_of("Speedup against the sequential program, 2 workers (figure 5)", "",
                           everyone, {2}, false, time(Runner::Calls, true))});
  plots.push_back(
      {"-papers", bars_of("Speedup by workers (figure 5)", "", {Runner::Stop, Runner::Barrier},
                          {1, 2, 4, 8}, true, time(Runner::Calls, true))});
  plots.push_back(
      {"-ratio", bars_of("Steals for each fork (figure 6)", "", {Runner::Stop, Runner::Barrier},
                         stolen, true, [](const TaskRow& row, Runner runner, unsigned workers) {
                           return steal_ratio(row, row.find(runner, workers));
                         })});
  plots.push_back(
      {"-rate", bars_of("Steals a millisecond (figure 7)", "1/ms", {Runner::Stop, Runner::Barrier},
                        stolen, true, [](const TaskRow& row, Runner runner, unsigned workers) {
                          return steals_a_millisecond(row, row.find(runner, workers));
                        })});
  return plots;
}

}  // namespace jackdaw
