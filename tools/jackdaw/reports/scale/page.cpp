// The page of `jackdaw bench scale`: its tables, its plots, and the goals.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "figures/units.hpp"
#include "reports/scale/results.hpp"

namespace jackdaw {
namespace {

using Cell = std::optional<std::size_t>;

constexpr Server kServers[] = {Server::Ours, Server::Peer, Server::Glibc, Server::Mimalloc};

std::optional<double> peak_mib(const RunFigures& f) { return f.peak_bytes / (1 << 20); }

std::optional<Summary> median_in(const ScaleRow& row, Cell cell, const Figure& figure) {
  return cell ? median_of(row.row, *cell, figure) : std::nullopt;
}

// A figure of one cell by the same of another, round by round.
std::optional<Summary> quotient(const ScaleRow& row, Cell a, Cell b, const Figure& figure = whole) {
  return a && b ? share(row.row, *a, figure, *b, figure) : std::nullopt;
}

bool is_workload(const ScaleRow& row) {
  return row.part != kMarkingPart && row.part != kMemoryPart && row.part != kStoppingPart &&
         row.part != kModelPart;
}

std::vector<const ScaleRow*> rows_of(const ScaleResults& results, const std::string& part) {
  std::vector<const ScaleRow*> rows;
  for (const ScaleRow& row : results.rows) {
    if (row.part == part) rows.push_back(&row);
  }
  return rows;
}

std::set<unsigned> clients_of(const ScaleRow& row) {
  std::set<unsigned> all;
  for (const ScaleCell& cell : row.cells) all.insert(cell.clients);
  return all;
}

std::set<unsigned> markers_of(const ScaleRow& row) {
  std::set<unsigned> all;
  for (const ScaleCell& cell : row.cells) {
    if (cell.markers != 0) all.insert(cell.markers);
  }
  return all;
}

// As many as there are processors: what libraries choose by themselves.
unsigned usual_markers(const ScaleResults& results) {
  return static_cast<unsigned>(std::max(results.machine.cpus, 1L));
}

std::string clients_text(unsigned clients, long cpus) {
  if (clients <= static_cast<unsigned>(cpus)) return std::to_string(clients);
  return fmt::format("{} ({:g} a CPU)", clients,
                     static_cast<double>(clients) / static_cast<double>(std::max(cpus, 1L)));
}

// --- clients by markers --------------------------------------------------------------------------

std::string elapsed_table(const ScaleRow& row, long cpus) {
  Table table({"clients", "markers", "ours", "peer", "ours / peer", "glibc", "mimalloc",
               "ours / mimalloc"});
  for (const unsigned clients : clients_of(row)) {
    bool first = true;
    const Cell glibc = row.find(Server::Glibc, clients, 0);
    const Cell mimalloc = row.find(Server::Mimalloc, clients, 0);
    for (const unsigned markers : markers_of(row)) {
      const Cell ours = row.find(Server::Ours, clients, markers);
      const Cell peer = row.find(Server::Peer, clients, markers);
      table.add({first ? clients_text(clients, cpus) : "", std::to_string(markers),
                 show_figure(median_in(row, ours, whole), " s"),
                 show_figure(median_in(row, peer, whole), " s"),
                 show_ratio(quotient(row, ours, peer)),
                 first ? show_figure(median_in(row, glibc, whole), " s") : "",
                 first ? show_figure(median_in(row, mimalloc, whole), " s") : "",
                 show_ratio(quotient(row, ours, mimalloc))});
      first = false;
    }
  }
  return table.markdown();
}

std::string cost_table(const ScaleRow& row, long cpus) {
  Table table({"clients", "markers", "CPU: ours", "peer", "glibc", "mimalloc", "memory: ours",
               "peer", "glibc", "mimalloc"});
  for (const unsigned clients : clients_of(row)) {
    bool first = true;
    for (const unsigned markers : markers_of(row)) {
      std::vector<std::string> cells = {first ? clients_text(clients, cpus) : "",
                                        std::to_string(markers)};
      for (const auto& [figure, unit] :
           {std::pair<Figure, const char*>{named("processors"), " s"}, {peak_mib, " MiB"}}) {
        for (const Server server : kServers) {
          const bool collector = server == Server::Ours || server == Server::Peer;
          const Cell cell = row.find(server, clients, collector ? markers : 0);
          const std::optional<Summary> s = median_in(row, cell, figure);
          cells.push_back(!s                   ? "-"
                          : collector || first ? fmt::format("{:.3g}{}", s->median, unit)
                                               : "");
        }
      }
      table.add(cells);
      first = false;
    }
  }
  return table.markdown();
}

// --- marking and stopping ------------------------------------------------------------------------

constexpr const char* kMarkingFigure = "marking, per object";

std::string marking_table(const std::vector<const ScaleRow*>& rows) {
  const Figure figure = named(kMarkingFigure);
  Table table({"heap", "ours, 1 marker", "ours, 2", "speedup", "peer, 1", "peer, 2", "speedup",
               "ours / peer, 1 marker", "ours / peer, 2"});
  for (const ScaleRow* row : rows) {
    if (!row->row.failure.empty()) {
      table.add({row->row.name, row->row.failure});
      continue;
    }
    const Cell a1 = row->find(Server::Ours, 1, 1);
    const Cell a2 = row->find(Server::Ours, 1, 2);
    const Cell b1 = row->find(Server::Peer, 1, 1);
    const Cell b2 = row->find(Server::Peer, 1, 2);
    table.add({fmt::format("{}: {}", row->row.name, row->row.what),
               show_figure(median_in(*row, a1, figure), " ns"),
               show_figure(median_in(*row, a2, figure), " ns"),
               show_ratio(quotient(*row, a1, a2, figure)),
               show_figure(median_in(*row, b1, figure), " ns"),
               show_figure(median_in(*row, b2, figure), " ns"),
               show_ratio(quotient(*row, b1, b2, figure)),
               show_ratio(quotient(*row, a1, b1, figure)),
               show_ratio(quotient(*row, a2, b2, figure))});
  }
  return table.markdown();
}

std::string memory_table(const ScaleRow& row) {
  Table table({"memory", "1 thread", "2", "speedup"});
  if (!row.row.failure.empty()) {
    table.add({row.row.name, row.row.failure});
    return table.markdown();
  }
  const Cell one = row.find(Server::Ours, 1, 1);
  const Cell two = row.find(Server::Ours, 2, 1);
  for (const auto& [name, what] : {std::pair{"independent miss", "a miss that waits for no other"},
                                   {"reading, per KiB", "reading a KiB in order"}}) {
    const Figure figure = named(name);
    table.add({what, show_figure(median_in(row, one, figure), " ns"),
               show_figure(median_in(row, two, figure), " ns"),
               show_ratio(quotient(row, one, two, figure))});
  }
  return table.markdown();
}

constexpr const char* kStop = "stop, median";

std::string stopping_table(const std::vector<const ScaleRow*>& rows) {
  Table table({"other threads", "ours", "longest", "then until they run", "peer", "longest",
               "then until they run", "ours / peer"});
  const auto in_us = [](const ScaleRow& row, Cell cell, const char* name) {
    return show_figure(scaled(median_in(row, cell, named(name)), 1e6), " us");
  };
  for (const ScaleRow* row : rows) {
    if (!row->row.failure.empty()) {
      table.add({row->row.name, row->row.failure});
      continue;
    }
    const Cell a = row->find(Server::Ours, 1, 1);
    const Cell b = row->find(Server::Peer, 1, 1);
    std::vector<std::string> cells = {row->row.name};
    for (const Cell cell : {a, b}) {
      for (const char* name : {kStop, "stop, longest", "then until it runs, median"}) {
        cells.push_back(in_us(*row, cell, name));
      }
    }
    cells.push_back(show_ratio(quotient(*row, a, b, named(kStop))));
    table.add(cells);
  }
  return table.markdown();
}

// --- the model -----------------------------------------------------------------------------------

// A count for each million of something else that was counted in the same run.
Figure per_million(const std::string& count, const std::string& of) {
  return [=](const RunFigures& f) -> std::optional<double> {
    const auto a = named(count)(f);
    const auto b = named(of)(f);
    if (!a || !b || *b <= 0) return std::nullopt;
    return *a / (*b / 1e6);
  };
}

// What a thread does to shared memory for each million of its own allocations: lock acquisitions
// and atomic instructions on shared lines.
std::optional<double> sharing(const RunFigures& f) {
  const auto locks = per_million("lock_acquisitions", "made_objects")(f);
  const auto atomics = per_million("shared_atomics", "made_objects")(f);
  if (!locks || !atomics) return std::nullopt;
  return *locks + *atomics;
}

// The same for the thread that did most.
Figure most_sharing(unsigned clients) {
  return [clients](const RunFigures& f) -> std::optional<double> {
    const auto most = per_million("most_sharing", "made_objects")(f);
    if (!most) return std::nullopt;
    return *most * clients;
  };
}

std::string count_text(const std::optional<Summary>& s) {
  return s ? fmt::format("{:.{}f}", s->median, s->median < 9.95 ? 1 : 0) : "-";
}

std::string model_table(const ScaleRow& row) {
  Table table({"clients", "allocations", "collections", "lock acquisitions", "of these, waited",
               "shared atomics", "together", "the busiest thread", "atomics on its own blocks",
               "objects marked", "packets", "marking: locks", "marking: atomics"});
  const auto millions = [&](std::size_t cell, const char* name) {
    const auto s = scaled(median_of(row.row, cell, named(name)), 1e-6);
    return s ? fmt::format("{:.3g} M", s->median) : "-";
  };
  for (std::size_t i = 0; i < row.cells.size(); ++i) {
    const auto per_made = [&](const char* name) {
      return count_text(median_of(row.row, i, per_million(name, "made_objects")));
    };
    const auto per_marked = [&](const char* name) {
      return count_text(median_of(row.row, i, per_million(name, "marked_objects")));
    };
    table.add({std::to_string(row.cells[i].clients), millions(i, "made_objects"),
               count_text(median_of(row.row, i, named("collections"))),
               per_made("lock_acquisitions"), per_made("lock_waits"), per_made("shared_atomics"),
               count_text(median_of(row.row, i, sharing)),
               count_text(median_of(row.row, i, most_sharing(row.cells[i].clients))),
               per_made("block_atomics"), millions(i, "marked_objects"), per_marked("packets"),
               per_marked("marking_locks"), per_marked("marking_atomics")});
  }
  return table.markdown();
}

// --- the goals -----------------------------------------------------------------------------------

void add_client_goals(const ScaleResults& results, std::vector<Goal>* goals) {
  const unsigned markers = usual_markers(results);
  for (const char* name : {"list", "list-many", "gcbench", "gcbench-big"}) {
    const ScaleRow* row = results.find(name, name);
    if (row == nullptr) continue;
    const auto twice = [&](Server server, unsigned m1, unsigned m2) {
      return quotient(*row, row->find(server, 2, m2), row->find(server, 1, m1));
    };
    const auto what = [&](const std::string& text) { return fmt::format("{}: {}", name, text); };
    goals->push_back(at_most(
        what(fmt::format("two clients take so many times as long as one, {} markers", markers)),
        twice(Server::Ours, markers, markers), 1.05, "",
        fmt::format("{}; glibc {}, mimalloc {}", show_ratio(twice(Server::Peer, markers, markers)),
                    show_ratio(twice(Server::Glibc, 0, 0)),
                    show_ratio(twice(Server::Mimalloc, 0, 0)))));
    if (markers > 1) {
      goals->push_back(at_most(what("two clients and two markers, by one and one"),
                               twice(Server::Ours, 1, 2), 1.05, "",
                               show_ratio(twice(Server::Peer, 1, 2))));
    }
  }
  for (const char* name : {"gcbench", "gcbench-big"}) {
    const ScaleRow* row = results.find(name, name);
    if (row == nullptr) continue;
    goals->push_back(at_most(
        fmt::format("{}: two clients, ours by the peer, {} markers", name, markers),
        quotient(*row, row->find(Server::Ours, 2, markers), row->find(Server::Peer, 2, markers)),
        0.3));
  }
}

void add_marking_goals(const ScaleResults& results, std::vector<Goal>* goals) {
  const Figure figure = named(kMarkingFigure);
  for (const ScaleRow* row : rows_of(results, kMarkingPart)) {
    const auto speedup = [&](Server server) {
      return quotient(*row, row->find(server, 1, 1), row->find(server, 1, 2), figure);
    };
    goals->push_back(at_least(fmt::format("{}: speed of two markers by that of one", row->row.name),
                              speedup(Server::Ours), row->row.name == "list" ? 1.0 : 1.8, "",
                              show_ratio(speedup(Server::Peer))));
    if (row->row.name != "random graph") continue;
    for (const unsigned markers : {1U, 2U}) {
      goals->push_back(at_most(fmt::format("{}: ours by the peer, {} marker{}", row->row.name,
                                           markers, markers == 1 ? "" : "s"),
                               quotient(*row, row->find(Server::Ours, 1, markers),
                                        row->find(Server::Peer, 1, markers), figure),
                               0.15));
    }
  }
}

void add_stopping_goals(const ScaleResults& results, std::vector<Goal>* goals) {
  for (const auto& [name, bound] : {std::pair{"2 running", 60.0}, {"200 sleeping", 4000.0}}) {
    const ScaleRow* row = results.find(kStoppingPart, name);
    if (row == nullptr) continue;
    const auto us = [&](Server server) {
      return scaled(median_in(*row, row->find(server, 1, 1), named(kStop)), 1e6);
    };
    goals->push_back(at_most(fmt::format("stopping {} threads, median", name), us(Server::Ours),
                             bound, " us", show_figure(us(Server::Peer), " us")));
  }
}

void add_model_goals(const ScaleResults& results, std::vector<Goal>* goals) {
  for (const ScaleRow* row : rows_of(results, kModelPart)) {
    std::vector<double> values;
    for (std::size_t i = 0; i < row->cells.size(); ++i) {
      if (const auto s = median_of(row->row, i, sharing)) values.push_back(s->median);
    }
    if (values.empty()) continue;
    const Summary over_all = summarize(values);
    const Summary most{over_all.most, over_all.least, over_all.most, values.size()};
    goals->push_back(
        at_most(fmt::format("{}: lock acquisitions and shared atomics a million "
                            "allocations, the most of {} to {} clients",
                            row->row.name, row->cells.front().clients, row->cells.back().clients),
                most, 50, " "));
  }
}

// -------------------------------------------------------------------------------------------------

std::size_t most_rounds(const ScaleResults& results) {
  std::size_t most = 0;
  for (const ScaleRow& row : results.rows) {
    for (const auto& runs : row.row.runs) most = std::max(most, runs.size());
  }
  return most;
}

std::string workload_section(const ScaleRow& row, long cpus) {
  std::string text = fmt::format("### {}\n\n{}.\n\n", row.row.name, row.row.what);
  if (!row.row.failure.empty()) return text + "FAILED: " + row.row.failure + "\n\n";
  text += elapsed_table(row, cpus) + "\n" + cost_table(row, cpus) + "\n";
  return text;
}

}  // namespace

std::vector<Goal> goals_of(const ScaleResults& results) {
  std::vector<Goal> goals;
  add_client_goals(results, &goals);
  add_marking_goals(results, &goals);
  add_stopping_goals(results, &goals);
  add_model_goals(results, &goals);
  return goals;
}

std::string scale_page(const ScaleResults& results, const std::vector<std::string>& plots) {
  const long cpus = results.machine.cpus;
  std::string text = fmt::format(
      "# Scale\n\nWritten by `jackdaw bench scale`.{}\n\n```\n{}"
      "runs     up to {} rounds, in each of them every cell of a table once, each in its own "
      "process; medians\n         (smallest..largest); ratios are taken round by round\n```\n\n",
      results.quick ? " **Small sizes (`--quick`): the figures mean nothing.**" : "",
      to_text(results), most_rounds(results));
  text += fmt::format("**This machine has {} CPUs.** More clients than that share them.\n", cpus);
  for (const std::string& note : results.notes) text += fmt::format("\n- {}\n", note);
  if (const std::vector<Goal> goals = goals_of(results); !goals.empty()) {
    text += "\n## Goals\n\n" + goal_table(goals, results.quick);
  }
  for (const std::string& plot : plots) text += fmt::format("\n![]({})\n", plot);
  if (std::any_of(results.rows.begin(), results.rows.end(), is_workload)) {
    text +=
        "\n## Clients by markers\n\nEach client is a thread that does the same work, so with "
        "perfect scaling the time is that of one client as long as there are CPUs. `glibc` and "
        "`mimalloc` do the same work with `malloc` and `free`; they have no markers. *CPU* is the "
        "time of all processors while the clients ran, *memory* the process's peak.\n\n";
    for (const ScaleRow& row : results.rows) {
      if (is_workload(row)) text += workload_section(row, cpus);
    }
  }
  if (const auto rows = rows_of(results, kMarkingPart); !rows.empty()) {
    text +=
        "\n## Markers\n\nNanoseconds an object of marking a heap at rest, from the library's event "
        "at its beginning to that at its end.\n\n" +
        marking_table(rows);
  }
  for (const ScaleRow* row : rows_of(results, kMemoryPart)) {
    text +=
        "\n## What the memory allows\n\nWithout a collector: nanoseconds of one thread, or of two "
        "at a time, for each cache miss or KiB of either, in a table of 1 GiB. For "
        "markers this bounds the gain only as far as one of them keeps the memory busy.\n\n" +
        memory_table(*row);
  }
  if (const auto rows = rows_of(results, kStoppingPart); !rows.empty()) {
    text +=
        "\n## Time to stop\n\nFrom the library's event before it stops the world to the one after: "
        "the median of some hundreds of forced collections in a process, by a thread that is none "
        "of "
        "those counted here. *Running* threads compute, *sleeping* ones wait for a condition.\n\n" +
        stopping_table(rows);
  }
  if (const auto rows = rows_of(results, kModelPart); !rows.empty()) {
    text +=
        "\n## What threads share\n\nA model for more CPUs than there are here: counts do not "
        "depend "
        "on how many run at a time. Counted by a build of the library that counts "
        "(`lib/jackdaw/counting/libgc.so.1`, the same sources), two markers. For each "
        "million allocations of a thread, on average over the threads: acquisitions of locks that "
        "threads share, and how many of them had to wait; other atomic read-modify-write "
        "instructions on lines that threads share. *The busiest thread* is the one with the most "
        "of "
        "both together, collections that it made included. A block belongs to one thread at a "
        "time, "
        "and its record is written by others only when they free an object in it; atomic "
        "instructions on one's own blocks' records stand apart for that reason. For each million "
        "objects marked: packets that markers exchanged, locks that they took, atomic instructions "
        "on lines that they share.\n";
    for (const ScaleRow* row : rows) {
      text += fmt::format("\n### {}\n\n", row->row.name);
      text += row->row.failure.empty() ? model_table(*row) : "FAILED: " + row->row.failure + "\n";
    }
  }
  return text;
}

std::vector<Plot> scale_plots(const ScaleResults& results) {
  const unsigned usual = usual_markers(results);
  std::vector<Plot> plots;
  for (const ScaleRow& row : results.rows) {
    if (!is_workload(row)) continue;
    Bars bars{fmt::format("{}: seconds by clients, {} markers", row.row.name, usual), "s", {}, {}};
    std::vector<Server> servers;
    for (const Server server : kServers) {
      const bool collector = server == Server::Ours || server == Server::Peer;
      if (!row.find(server, 1, collector ? usual : 0)) continue;
      servers.push_back(server);
      bars.series.emplace_back(name_of(server));
    }
    for (const unsigned clients : clients_of(row)) {
      std::vector<double> values;
      for (const Server server : servers) {
        const bool collector = server == Server::Ours || server == Server::Peer;
        const auto s = median_in(row, row.find(server, clients, collector ? usual : 0), whole);
        if (s) values.push_back(s->median);
      }
      if (values.size() == bars.series.size()) {
        bars.groups.push_back({fmt::format("{} clients", clients), values});
      }
    }
    plots.push_back({"-" + row.row.name, bars});
  }
  Bars marking{"Marking, nanoseconds an object",
               "ns",
               {"ours, 1 marker", "ours, 2", "peer, 1", "peer, 2"},
               {}};
  for (const ScaleRow* row : rows_of(results, kMarkingPart)) {
    std::vector<double> values;
    for (const Server server : {Server::Ours, Server::Peer}) {
      for (const unsigned markers : {1U, 2U}) {
        const auto s = median_in(*row, row->find(server, 1, markers), named(kMarkingFigure));
        if (s) values.push_back(s->median);
      }
    }
    if (values.size() == marking.series.size()) marking.groups.push_back({row->row.name, values});
  }
  plots.push_back({"-marking", marking});
  Bars model{"Locks and shared atomics a million allocations of a thread", "", {}, {}};
  const std::vector<const ScaleRow*> rows = rows_of(results, kModelPart);
  for (const ScaleRow* row : rows) model.series.push_back(row->row.name);
  for (std::size_t i = 0; !rows.empty() && i < rows.front()->cells.size(); ++i) {
    std::vector<double> values;
    for (const ScaleRow* row : rows) {
      if (const auto s = median_of(row->row, i, sharing)) values.push_back(s->median);
    }
    if (values.size() == rows.size()) {
      model.groups.push_back({fmt::format("{} clients", rows.front()->cells[i].clients), values});
    }
  }
  plots.push_back({"-model", model});
  return plots;
}

}  // namespace jackdaw
