// The tables of `jackdaw bench mostly-copying`.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "figures/table.hpp"
#include "figures/units.hpp"
#include "reports/mostly_copying/results.hpp"

namespace jackdaw {
namespace {

bool has(const CopyResults& results, std::string_view part) {
  return std::any_of(results.rows.begin(), results.rows.end(),
                     [&](const CopyRow& row) { return row.part == part; });
}

std::string bytes_of(const std::optional<Summary>& s) { return s ? show_bytes(s->median) : "-"; }
std::string seconds_of(const std::optional<Summary>& s) {
  return s ? show_seconds(s->median) : "-";
}
std::string count_of(const std::optional<Summary>& s) {
  return s ? fmt::format("{:.0f}", s->median) : "-";
}

std::optional<double> allocated(const RunFigures& f) { return named("allocated")(f); }
std::optional<double> heap(const RunFigures& f) { return f.heap_bytes; }
std::optional<double> collections(const RunFigures& f) { return f.collections; }
std::optional<double> one_collection(const RunFigures& f) {
  const auto all = collecting(f);
  if (!all || f.collections <= 0) return std::nullopt;
  return *all / f.collections;
}

// Why a cell has no figures, in a table.
std::string reason(const CopyCell& cell) {
  return cell.failed() ? "FAILED: " + cell.failure : cell.failure;
}

// Rows of a table, one for each program and collector; a cell without figures says why.
template <typename Cells>
void add_rows(const CopyResults& results, std::string_view part, const Cells& cells, Table* table) {
  for (const std::string& program : copy_programs()) {
    const CopyRow* row = results.find(part, program);
    if (row == nullptr) continue;
    bool first = true;
    for (const CopyCell& cell : row->cells) {
      std::vector<std::string> line = {first ? program : "", cell.collector};
      first = false;
      if (cell.failure.empty()) {
        for (std::string& text : cells(*row, cell.collector)) line.push_back(std::move(text));
      } else {
        line.push_back(reason(cell));
      }
      table->add(std::move(line));
    }
  }
}

// --- tables 2 to 5 -------------------------------------------------------------------------------

std::string heap_table(const CopyResults& results) {
  Table table({"program", "collector", "live, peak", "live, mean", "heap", "allocated",
               "collections", "a collection"});
  add_rows(
      results, kPrograms,
      [&](const CopyRow& row, const std::string& key) {
        const CopyRow* live = results.find(kLive, row.program);
        return std::vector<std::string>{bytes_of(median_in(live, key, named("live_peak"))),
                                        bytes_of(median_in(live, key, named("live_mean"))),
                                        bytes_of(median_in(&row, key, heap)),
                                        bytes_of(median_in(&row, key, allocated)),
                                        count_of(median_in(&row, key, collections)),
                                        seconds_of(median_in(&row, key, one_collection))};
      },
      &table);
  return table.markdown();
}

std::string cost_table(const CopyResults& results) {
  Table table({"program", "collector", "client", "collector's", "together", "by libgc's",
               "CPU time", "peak memory", "by libgc's"});
  add_rows(
      results, kPrograms,
      [&](const CopyRow& row, const std::string& key) {
        return std::vector<std::string>{seconds_of(median_in(&row, key, client)),
                                        seconds_of(median_in(&row, key, collecting)),
                                        show_figure(median_in(&row, key, whole), " s"),
                                        show_ratio(quotient(&row, key, kPeerHeap, whole)),
                                        seconds_of(median_in(&row, key, cpu)),
                                        bytes_of(median_in(&row, key, peak_resident)),
                                        show_ratio(quotient(&row, key, kPeerHeap, peak_resident))};
      },
      &table);
  return table.markdown();
}

// Of the blocks in use after a collection, what does not hold live data.
std::optional<double> fragmentation(const RunFigures& f) {
  const auto live = named("live_mean")(f);
  const auto used = named("used_mean")(f);
  if (!live || !used || *used <= 0) return std::nullopt;
  return 1 - *live / *used;
}

std::optional<double> moved_share(const RunFigures& f) {
  const auto moving = named("moving_collections")(f);
  if (!moving || f.collections <= 0) return std::nullopt;
  return *moving / f.collections;
}

std::string roots_table(const CopyResults& results) {
  Table table({"program", "collector", "stack, mean", "roots", "moving collections", "moved",
               "pinned objects", "promoted blocks", "dead on them", "fragmentation"});
  add_rows(
      results, kPrograms,
      [&](const CopyRow& row, const std::string& key) {
        const CopyRow* live = results.find(kLive, row.program);
        return std::vector<std::string>{bytes_of(median_in(&row, key, named("stack_mean"))),
                                        bytes_of(median_in(&row, key, named("root_bytes"))),
                                        show_percent(median_in(&row, key, moved_share)),
                                        bytes_of(median_in(&row, key, named("moved_bytes"))),
                                        count_of(median_in(&row, key, named("pinned_objects"))),
                                        count_of(median_in(&row, key, named("promoted_blocks"))),
                                        bytes_of(median_in(&row, key, named("dead_bytes"))),
                                        show_percent(median_in(live, key, fragmentation))};
      },
      &table);
  return table.markdown();
}

// A phase of the collector's time. The library's mark has the roots in it, its sweep all that comes
// after the mark; moving is in the one or the other.
Figure phase(const std::string& name) {
  return [name](const RunFigures& f) -> std::optional<double> {
    const auto pauses = collecting(f);
    const auto ns = [&f](const char* figure) { return named(figure)(f); };
    const auto mark = ns("mark_ns");
    const auto sweep = ns("sweep_ns");
    if (!pauses || *pauses <= 0) return std::nullopt;
    std::optional<double> value;
    const bool in_mark = ns("moves_in_mark").has_value();
    const double moving =
        ns("pin_ns").value_or(0) + ns("move_ns").value_or(0) + ns("fix_ns").value_or(0);
    if (!mark || !sweep) {
      // The peer says when it began and ended to mark.
      const auto marking = named("marking")(f);
      if (name == "mark" && marking) value = *marking * 1e9;
      if (name == "rest" && marking) value = (*pauses - *marking) * 1e9;
    } else if (name == "roots") {
      value = ns("root_ns");
    } else if (name == "mark") {
      value = *mark - ns("root_ns").value_or(0) - (in_mark ? moving : 0);
    } else if (name == "sweep") {
      value = *sweep - (in_mark ? 0 : moving);
    } else if (name == "rest") {
      value = *pauses * 1e9 - *mark - *sweep;
    } else {
      value = ns(name.c_str());
    }
    if (!value) return std::nullopt;
    return std::max(0.0, *value / 1e9 / *pauses);
  };
}

std::optional<double> collector_share(const RunFigures& f) {
  const auto pauses = collecting(f);
  if (!pauses || f.seconds <= 0) return std::nullopt;
  return *pauses / f.seconds;
}

std::string phases_table(const CopyResults& results) {
  Table table({"program", "collector", "collector, of the run", "roots", "stacks", "mark", "pin",
               "move", "fix", "sweep", "rest"});
  add_rows(
      results, kPrograms,
      [&](const CopyRow& row, const std::string& key) {
        const auto part = [&](const char* name) {
          const auto s = median_in(&row, key, phase(name));
          return s ? fmt::format("{:.1f}%", s->median * 100) : "-";
        };
        return std::vector<std::string>{show_percent(median_in(&row, key, collector_share)),
                                        part("roots"),
                                        part("stack_ns"),
                                        part("mark"),
                                        part("pin_ns"),
                                        part("move_ns"),
                                        part("fix_ns"),
                                        part("sweep"),
                                        part("rest")};
      },
      &table);
  return table.markdown();
}

// A column of the table, and the classes of the program's histogram that it sums up.
struct SizeClass {
  const char* heading;
  std::vector<const char*> words;
};

const std::array<SizeClass, 9>& size_classes() {
  static const std::array<SizeClass, 9> all = {
      {{"1", {"1"}},
       {"2", {"2"}},
       {"3", {"3"}},
       {"4", {"4"}},
       {"5-8", {"5", "6", "7", "8"}},
       {"9-16", {"9", "10", "11", "12", "13", "14", "15", "16"}},
       {"17-64", {"17-64"}},
       {"65-256", {"65-256"}},
       {"257-", {"257-"}}}};
  return all;
}

std::string sizes_table(const CopyResults& results) {
  std::vector<std::string> headings = {"program", "objects", "mean size", "pointer-free"};
  const auto& classes = size_classes();
  for (const SizeClass& c : classes) headings.emplace_back(c.heading);
  Table table(headings);
  for (const std::string& program : copy_programs()) {
    const CopyRow* row = results.find(kLive, program);
    const auto sum = [&](const char* kind, const char* words, const char* what) {
      const auto s =
          median_in(row, kPeerHeap, named(fmt::format("sizes/{}/{}/{}", kind, words, what)));
      return s ? s->median : 0;
    };
    double objects = 0;
    double bytes = 0;
    double leaves = 0;
    std::vector<double> counts(classes.size());
    for (std::size_t i = 0; i < classes.size(); ++i) {
      for (const char* words : classes[i].words) {
        const double free = sum("pointer_free", words, "objects");
        leaves += free;
        counts[i] += free + sum("with_pointers", words, "objects");
        bytes += sum("pointer_free", words, "bytes") + sum("with_pointers", words, "bytes");
      }
      objects += counts[i];
    }
    if (objects <= 0) continue;
    std::vector<std::string> cells = {program, fmt::format("{:.0f}", objects),
                                      show_bytes(bytes / objects),
                                      fmt::format("{:.1f}%", leaves / objects * 100)};
    for (const double count : counts) {
      cells.push_back(count > 0 ? fmt::format("{:.1f}%", count / objects * 100) : "");
    }
    table.add(cells);
  }
  return table.markdown();
}

// --- tables 6 and 7 ------------------------------------------------------------------------------

std::string header_table(const CopyResults& results) {
  struct Pair {
    const char* with;
    const char* without;
    const char* name;
  };
  constexpr std::array kPairs = {Pair{kPeerHeader, kPeerHeap, "libgc"},
                                 Pair{kOurHeader, kOurHeap, "untyped"},
                                 Pair{kStayHeader, kStayHomogeneous, "non-moving typed"}};
  Table table({"program", "heap", "without", "with", "together", "client", "collector's",
               "allocated", "peak memory"});
  for (const std::string& program : copy_programs()) {
    const CopyRow* row = results.find(kHeader, program);
    if (row == nullptr) continue;
    bool first = true;
    for (const Pair& pair : kPairs) {
      const auto ratio = [&](const Figure& figure) {
        return show_ratio(quotient(row, pair.with, pair.without, figure));
      };
      table.add({first ? program : "", pair.name, seconds_of(median_in(row, pair.without, whole)),
                 seconds_of(median_in(row, pair.with, whole)), ratio(whole), ratio(client),
                 ratio(collecting), ratio(allocated), ratio(peak_resident)});
      first = false;
    }
  }
  return table.markdown();
}

std::string both_times(const CopyRow* row, const std::string& key) {
  if (row == nullptr) return "-";
  const CopyCell* cell = row->cell(key);
  if (cell == nullptr) return "-";
  if (!cell->failure.empty()) return reason(*cell);
  const auto a = median_in(row, key, client);
  const auto b = median_in(row, key, collecting);
  return a && b ? fmt::format("{:.3g} + {:.3g} s", a->median, b->median) : "-";
}

double live_of(const CopyResults& results, const std::string& program) {
  const auto s = median_in(results.find(kLive, program), kPeerHeap, named("live_peak"));
  return s ? s->median : 0;
}

std::string least_text(const CopyResults& results, const std::string& program,
                       const std::string& key) {
  const CopyRow* row = results.find(kLeast, program);
  const auto least = median_in(row, key, named("least"));
  if (least) {
    const double live = live_of(results, program);
    return live > 0 ? fmt::format("{} ({:.1f}x)", show_bytes(least->median), least->median / live)
                    : show_bytes(least->median);
  }
  const CopyCell* cell = row == nullptr ? nullptr : row->cell(key);
  return cell == nullptr ? "-" : reason(*cell);
}

std::string heaps_table(const CopyResults& results) {
  std::vector<std::string> headings = {"program", "collector", "least heap", "time in it"};
  for (const double factor : heap_factors(results.quick)) {
    headings.push_back(fmt::format("{:g}x", factor));
  }
  Table table(headings);
  for (const std::string& program : copy_programs()) {
    bool first = true;
    for (const std::string& key : all_collectors()) {
      std::vector<std::string> cells = {first ? program : "", key,
                                        least_text(results, program, key),
                                        both_times(results.find(kLeast, program), key)};
      bool any = false;
      for (const double factor : heap_factors(results.quick)) {
        const CopyRow* row = results.find(kHeaps, program, factor);
        any |= row != nullptr;
        cells.push_back(both_times(row, key));
      }
      if (!any) continue;
      first = false;
      table.add(cells);
    }
  }
  return table.markdown();
}

// Each program's ratio to the peer in a heap of that size, and their geometric mean.
std::string ratio_table(const CopyResults& results, double factor) {
  std::vector<std::string> headings = {"program", "heap", "libgc"};
  for (const std::string& key : all_collectors()) {
    if (key != kPeerHeap) headings.push_back(key);
  }
  Table table(headings);
  const std::pair<const char*, Figure> kinds[] = {{"client and collector", whole},
                                                  {"collector", collecting},
                                                  {"peak heap", heap},
                                                  {"peak memory", peak_resident}};
  for (const auto& [what, figure] : kinds) {
    std::vector<std::vector<std::optional<Summary>>> columns(all_collectors().size());
    for (const std::string& program : copy_programs()) {
      const CopyRow* row = results.find(kHeaps, program, factor);
      if (row == nullptr) continue;
      const auto peer = median_in(row, kPeerHeap, figure);
      const bool is_memory = std::string_view(what).starts_with("peak");
      std::vector<std::string> cells = {fmt::format("{}: {}", program, what),
                                        show_bytes(row->heap_bytes),
                                        !peer       ? "-"
                                        : is_memory ? show_bytes(peer->median)
                                                    : show_seconds(peer->median)};
      for (std::size_t i = 0; i < all_collectors().size(); ++i) {
        const std::string& key = all_collectors()[i];
        if (key == kPeerHeap) continue;
        columns[i].push_back(quotient(row, key, kPeerHeap, figure));
        cells.push_back(show_ratio(columns[i].back()));
      }
      table.add(cells);
    }
    std::vector<std::string> means = {fmt::format("**geometric mean: {}**", what), "", ""};
    for (std::size_t i = 0; i < all_collectors().size(); ++i) {
      if (all_collectors()[i] == kPeerHeap) continue;
      const auto mean = geometric_mean(columns[i]);
      const auto count = std::count_if(columns[i].begin(), columns[i].end(),
                                       [](const auto& s) { return s.has_value(); });
      means.push_back(mean ? fmt::format("**{:.2f}** of {}", *mean, count) : "-");
    }
    table.add(means);
  }
  return table.markdown();
}

// --- the others ----------------------------------------------------------------------------------

std::string order_table(const CopyResults& results) {
  Table table({"program", "policy", "by size: client", "by allocation: client", "client",
               "collector's", "together", "peak memory"});
  for (const std::string& program : copy_programs()) {
    const CopyRow* row = results.find(kOrder, program);
    if (row == nullptr) continue;
    bool first = true;
    for (const auto& [mixed, segregated, policy] :
         {std::tuple{kStayHeader, kStaySegregated, "non-moving"},
          {kEvacuateHeader, kEvacuateSegregated, "evacuate"}}) {
      const auto ratio = [&, m = mixed, s = segregated](const Figure& figure) {
        return show_ratio(quotient(row, m, s, figure));
      };
      table.add({first ? program : "", policy, seconds_of(median_in(row, segregated, client)),
                 seconds_of(median_in(row, mixed, client)), ratio(client), ratio(collecting),
                 ratio(whole), ratio(peak_resident)});
      first = false;
    }
  }
  return table.markdown();
}

}  // namespace

std::string programs_section(const CopyResults& results) {
  if (!has(results, kPrograms)) return "";
  return "\n## Heaps and collections (table 2)\n\nAt the heap that each collector chooses. *live*: "
         "what collections found, in a run of its own: every fourth; libgc's are four times as "
         "many as "
         "by default, and all are looked at, since they say what the peak is.\n\n" +
         heap_table(results) +
         "\nTime and memory of the same runs; *collector's* is the time in collections, *client* "
         "all other.\n\n" +
         cost_table(results) +
         "\n## Roots, pins and fragmentation (table 3)\n\n*stack*: from its beginning to the "
         "allocation that began the collection. *roots*: all that the last collection looked at "
         "for ambiguous words. *pinned objects*, in blocks that were to be emptied, *promoted "
         "blocks* and what was *dead on them*: by the last such collection. *fragmentation*: the "
         "share of blocks in use, after a collection, that holds no live data; the mean of all "
         "collections of the run that showed what is live.\n\n" +
         roots_table(results) +
         "\n## Phases of a collection (table 4)\n\nShares of the collector's time. *roots* are "
         "those of the mark, and *stacks* the part of them that is threads' stacks; where objects "
         "move, all are looked at once more, in *pin*. *rest*: "
         "stopping, preparing, and what the peer does besides marking.\n\n" +
         phases_table(results) +
         "\n## Sizes of objects (table 5)\n\nShares of the objects, by words without a "
         "header.\n\n" +
         sizes_table(results);
}

std::string header_section(const CopyResults& results) {
  if (!has(results, kHeader)) return "";
  return "\n## A header word (table 6)\n\nA word more in every object, which nobody uses; on the "
         "typed heap, layouts from headers against layouts from blocks. Times, then ratios: with "
         "by "
         "without.\n\n" +
         header_table(results);
}

std::string heaps_section(const CopyResults& results) {
  if (!has(results, kHeaps)) return "";
  std::string text =
      "\n## Time by heap size (table 7, figure 1)\n\nClient + collector. The heap never grows "
      "beyond "
      "its limit; how fast it grows to it, and whether, is the collector's policy, so that times "
      "do not change where the limit is ample. Limits are multiples of the peak of what libgc's "
      "collections find live, or of 64 KiB if that is more, in steps of 16 KiB. *least heap*: the "
      "smallest of some multiples in which the program runs (beside it, by its live data). A run "
      "of more than half a minute does not fit.\n\n" +
      heaps_table(results);
  for (const double factor : {2.0, 4.0}) {
    const bool any = std::any_of(results.rows.begin(), results.rows.end(), [&](const CopyRow& row) {
      return row.part == kHeaps && row.factor == factor;
    });
    if (!any) continue;
    text += fmt::format(
        "\n### In heaps of {:g} times the live data\n\nlibgc's own figures, and all others by "
        "them.\n\n{}",
        factor, ratio_table(results, factor));
  }
  return text;
}

std::string order_section(const CopyResults& results) {
  if (!has(results, kOrder)) return "";
  return "\n## The order of allocation\n\nObjects with headers in mixed blocks, in the order in "
         "which they were made, against blocks by size. Times, then ratios: mixed by by-size.\n\n" +
         order_table(results);
}

std::string resolve_section(const CopyResults& results) {
  const CopyRow* row = results.find(kResolve, kResolve);
  if (row == nullptr) return "";
  Table table({"collector", "a null", "a first byte", "by untyped's", "a middle", "by untyped's",
               "to pin: a first byte", "to pin: a middle"});
  for (const CopyCell& cell : row->cells) {
    if (!cell.failure.empty()) {
      table.add({cell.collector, reason(cell)});
      continue;
    }
    const auto ns = [&](const char* figure) {
      return show_figure(median_in(row, cell.collector, named(figure)), " ns");
    };
    const auto ratio = [&](const char* figure) {
      return show_ratio(quotient(row, cell.collector, kOurHeap, named(figure)));
    };
    // Exactly 0: this collector pins nothing.
    const auto pinning_ns = [&](const char* figure) {
      const auto value = median_in(row, cell.collector, named(figure));
      return value && value->median == 0 ? std::string("-") : ns(figure);
    };
    table.add({cell.collector, ns("null_ns"), ns("beginning_ns"), ratio("beginning_ns"),
               ns("middle_ns"), ratio("middle_ns"), pinning_ns("pin_beginning_ns"),
               pinning_ns("pin_middle_ns")});
  }
  return "\n## An ambiguous word\n\nWhat a word of static data costs a collection: a null; and how "
         "much more an object's first byte or its middle, when the object was marked already; the "
         "least of many collections. *to "
         "pin*: once more, in a collection that moves objects.\n\n" +
         table.markdown();
}

std::string fragmentation_section(const CopyResults& results) {
  const CopyRow* row = results.find(kFragmentation, kFragmentation);
  if (row == nullptr) return "";
  Table table({"phase", "collector", "live data", "resident", "after a collection",
               "after compaction", "by live data", "time of all"});
  for (int phase = 1;; ++phase) {
    bool any = false;
    for (const CopyCell& cell : row->cells) {
      if (!cell.failure.empty()) {
        if (phase == 1) table.add({"", cell.collector, reason(cell)});
        continue;
      }
      const auto figure = [&](const char* name) {
        return named(fmt::format("phase{}_{}", phase, name));
      };
      const auto live = median_in(row, cell.collector, figure("live"));
      if (!live) continue;
      const Figure ratio = [&](const RunFigures& f) -> std::optional<double> {
        const auto left = figure("compacted")(f);
        const auto data = figure("live")(f);
        if (!left || !data || *data <= 0) return std::nullopt;
        return *left / *data;
      };
      table.add({any ? "" : std::to_string(phase), cell.collector, show_bytes(live->median),
                 bytes_of(median_in(row, cell.collector, figure("full"))),
                 bytes_of(median_in(row, cell.collector, figure("collected"))),
                 bytes_of(median_in(row, cell.collector, figure("compacted"))),
                 show_ratio(median_in(row, cell.collector, ratio)),
                 phase == 1 ? show_figure(median_in(row, cell.collector, whole), " s") : ""});
      any = true;
    }
    if (!any) break;
  }
  return "\n## Fragmentation\n\nObjects of random sizes live for random times; at the end of each "
         "phase most are dropped, at random. Resident memory is the whole process's; *compaction*: "
         "jd_collect(1), and GC_gcollect_and_unmap on libgc.\n\n" +
         table.markdown();
}

}  // namespace jackdaw
