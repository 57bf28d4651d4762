// The figures to reach of `jackdaw bench work-stealing`.
#include <fmt/core.h>

#include "figures/units.hpp"
#include "page/goals.hpp"
#include "reports/work_stealing/results.hpp"

namespace jackdaw {
namespace {

void add_overhead_goals(const TaskResults& results, std::vector<Goal>* goals) {
  const auto ratio = [&](const char* name, Runner to) {
    const TaskRow* row = results.find(name);
    return row != nullptr ? quotient(*row, row->find(Runner::Barrier, 1), row->find(to, 1))
                          : std::nullopt;
  };
  if (results.find("fib-42") != nullptr) {
    goals->push_back(at_most("fib(42), one worker, by the same with calls",
                             ratio("fib-42", Runner::Calls), 1.15));
  }
  if (results.find("fib") != nullptr) {
    goals->push_back(
        at_most("fib(34), one worker, by libfork's time", ratio("fib", Runner::Libfork), 0.10));
    goals->push_back(
        at_most("fib(34), one worker, by oneTBB's time", ratio("fib", Runner::Tbb), 0.03));
  }
  for (const char* name : {"queens", "jacobi", "lud", "heat"}) {
    if (results.find(name) == nullptr) continue;
    goals->push_back(at_most(fmt::format("{}, one worker, by sequential", name),
                             ratio(name, Runner::Sequential), 1.05));
  }
}

void add_speedup_goals(const TaskResults& results, std::vector<Goal>* goals) {
  for (const auto& [name, bound] : {std::pair{"fib-42", 1.93},
                                    {"queens", 1.85},
                                    {"lud", 1.85},
                                    {"jacobi", 1.6},
                                    {"heat", 1.6}}) {
    const TaskRow* row = results.find(name);
    if (row == nullptr) continue;
    goals->push_back(at_least(
        fmt::format("{}, speed of two workers by that of one (the machine gives {})", name,
                    show_ratio(machine_gives(*row, 2))),
        quotient(*row, row->find(Runner::Barrier, 1), row->find(Runner::Barrier, 2)), bound));
  }
  for (const char* name : {"jacobi", "heat"}) {
    const TaskRow* row = results.find(name);
    if (row == nullptr) continue;
    std::optional<Runner> best;
    double least = 0;
    for (const Runner runner : kAll) {
      const auto s = is_peer(runner) ? median_in(*row, row->find(runner, 2), whole) : std::nullopt;
      if (s && (!best || s->median < least)) {
        best = runner;
        least = s->median;
      }
    }
    if (!best) continue;
    goals->push_back(
        at_most(fmt::format("{}, two workers, by the best peer's time ({})", name, name_of(*best)),
                quotient(*row, row->find(Runner::Barrier, 2), row->find(*best, 2)), 1));
  }
}

void add_victim_goals(const TaskResults& results, std::vector<Goal>* goals) {
  const Figure lost = lost_with_signals(results);
  for (const TaskRow& row : results.rows) {
    if (!is_of_papers(row.name)) continue;
    const Cell barrier = row.find(Runner::Barrier, 2);
    goals->push_back(
        at_most(fmt::format("{}, two workers: what victims lose, by stop-the-victim's", row.name),
                quotient(row, barrier, row.find(Runner::Stop, 2), lost), 0.5));
    goals->push_back(
        at_most(fmt::format("{}, two workers: what victims lose of all cycles", row.name),
                scaled(median_in(row, barrier, lost), 100), 0.5, "%"));
  }
}

void add_latency_goals(const TaskResults& results, std::vector<Goal>* goals) {
  for (const TaskRow& row : results.latencies) {
    const Cell barrier = row.find(Runner::Barrier, 2);
    const Cell stop = row.find(Runner::Stop, 2);
    const auto us = [&](Cell cell, const char* name) {
      return scaled(median_in(row, cell, named(name)), 1e-3);
    };
    goals->push_back(at_most("a steal below a barrier, from the decision to the task, median",
                             us(barrier, "steal below a barrier"), 0.8, " us"));
    const auto by_signal = [&](Cell cell) {
      return cell ? share(row.row, *cell, named("steal with a stop"), *cell, named("signal"))
                  : std::nullopt;
    };
    goals->push_back(at_most("a steal with a stop (the same), by a bare signal's round trip",
                             by_signal(barrier), 1.3));
    const Figure loss = [](const RunFigures& f) -> std::optional<double> {
      const auto handler = named("victim in the handler")(f);
      const auto standstill = named("standstill")(f);
      if (!handler || !standstill) return std::nullopt;
      return *handler + *standstill;
    };
    goals->push_back(
        at_most("of which the victim loses: in the handler, and by any signal, medians",
                scaled(median_in(row, barrier, loss), 1e-3), 2, " us"));
    goals->push_back(at_most("a steal with a stop in stop mode, by a bare signal's round trip",
                             by_signal(stop), 1.3));
    goals->push_back(at_most("a steal where the victim's code polls, median",
                             us(barrier, "steal at a poll"), 3, " us"));
    goals->push_back(at_most("a worker without work, of a CPU",
                             scaled(median_in(row, barrier, named("idle")), 100), 1, "%"));
    goals->push_back(
        at_most(fmt::format("from a fork to its task, where the other worker slept (a bare "
                            "wake-up of a thread: {})",
                            show_figure(us(barrier, "futex"), " us")),
                us(barrier, "wake-up"), 50, " us"));
  }
}

void add_memory_goals(const TaskResults& results, std::vector<Goal>* goals) {
  for (const TaskRow& row : results.rows) {
    const Cell ours = row.find(Runner::Barrier, 2);
    if (const Cell tbb = row.find(Runner::Tbb, 2); ours && tbb) {
      goals->push_back(at_most(fmt::format("{}, two workers: peak memory by oneTBB's", row.name),
                               quotient(row, ours, tbb, peak), 1));
    }
  }
  const TaskRow* search = results.find("search");
  if (search == nullptr) return;
  const auto depth = median_in(*search, search->find(Runner::Counting, 1), named("depth"));
  if (!depth) return;
  for (const unsigned workers : workers_of(*search)) {
    if (workers == 1) continue;
    goals->push_back(
        at_most(fmt::format("search, {} workers: stacks in use at once (workers x depth of {:.0f})",
                            workers, depth->median),
                median_in(*search, search->find(Runner::Barrier, workers), named("stacks_peak")),
                workers * depth->median, " "));
  }
}

}  // namespace

std::vector<Goal> task_goals(const TaskResults& results) {
  std::vector<Goal> goals;
  add_overhead_goals(results, &goals);
  add_speedup_goals(results, &goals);
  add_victim_goals(results, &goals);
  add_latency_goals(results, &goals);
  add_memory_goals(results, &goals);
  return goals;
}

}  // namespace jackdaw
