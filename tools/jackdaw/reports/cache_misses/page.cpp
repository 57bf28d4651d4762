// The page of `jackdaw bench cache-misses`: its tables and plots.
#include <fmt/core.h>

#include "figures/units.hpp"
#include "reports/cache_misses/results.hpp"

namespace jackdaw {
namespace {

// --- cells ---------------------------------------------------------------------------------------

// How much longer than `of`; negative: shorter.
std::optional<Summary> longer(const Row& row, std::size_t setting, std::size_t of) {
  std::optional<Summary> s = share(row, setting, whole, of, whole);
  if (s) *s = {s->median - 1, s->least - 1, s->most - 1, s->count};
  return s;
}

std::optional<Summary> shorter(const Row& row, std::size_t setting, std::size_t of) {
  std::optional<Summary> s = longer(row, setting, of);
  if (s) *s = {-s->median, -s->most, -s->least, s->count};
  return s;
}

std::optional<double> mark(const RunFigures& f) { return f.mark_seconds; }
std::optional<double> finding(const RunFigures& f) {
  if (!f.finding_seconds) return std::nullopt;
  return *f.finding_seconds + f.sweep_seconds.value_or(0);
}
std::optional<double> clearing(const RunFigures& f) { return f.clearing_seconds; }
std::optional<double> heap_mib(const RunFigures& f) { return f.heap_bytes / (1 << 20); }
std::optional<double> peak_mib(const RunFigures& f) { return f.peak_bytes / (1 << 20); }
std::optional<double> collections(const RunFigures& f) { return f.collections; }

// --- the tables ----------------------------------------------------------------------------------

Table paper_table(const std::vector<Row>& rows) {
  Table table({"program", "normal", "mark", "sweep: finding", "sweep: clearing", "eager sweep",
               "on-grey", "ring"});
  for (const Row& row : rows) {
    if (!row.failure.empty()) {
      table.add({row.name, row.failure});
      continue;
    }
    table.add({row.name, show_figure(median_of(row, kNormal, whole), " s"),
               show_percent(share(row, kNormal, mark, kNormal, whole)),
               show_percent(share(row, kTimed, finding, kNormal, whole)),
               show_percent(share(row, kTimed, clearing, kNormal, whole)),
               show_percent(longer(row, kEager, kNormal)),
               show_percent(shorter(row, kGrey, kNormal)),
               show_percent(shorter(row, kRinged, kNormal))});
  }
  return table;
}

Table likeness_table(const std::vector<Row>& rows, const std::vector<Setting>& settings) {
  std::vector<std::string> headings = {"program"};
  for (const Setting& setting : settings) headings.push_back(setting.key);
  Table table(headings);
  for (const Row& row : rows) {
    if (!row.failure.empty()) continue;
    std::vector<std::string> cells = {row.name};
    for (std::size_t s = 0; s < row.runs.size(); ++s) {
      cells.push_back(fmt::format("{}, {}", show_figure(median_of(row, s, heap_mib), " MiB"),
                                  show_figure(median_of(row, s, collections), "")));
    }
    table.add(cells);
  }
  return table;
}

Table peer_table(const std::vector<Row>& rows) {
  Table table({"program", "peer", "mark", "collections", "peak memory", "normal / peer",
               "ring / peer", "peak: ring / peer"});
  for (const Row& row : rows) {
    if (!row.failure.empty() || row.runs.size() <= kPeer) continue;
    table.add({row.name, show_figure(median_of(row, kPeer, whole), " s"),
               show_percent(share(row, kPeer, mark, kPeer, whole)),
               show_figure(median_of(row, kPeer, collections), ""),
               show_figure(median_of(row, kPeer, peak_mib), " MiB"),
               show_ratio(share(row, kNormal, whole, kPeer, whole)),
               show_ratio(share(row, kRinged, whole, kPeer, whole)),
               show_ratio(share(row, kRinged, peak_mib, kPeer, peak_mib))});
  }
  return table;
}

Table marking_table(const std::vector<Row>& rows, double miss_ns) {
  Table table({"heap", "none", "on-grey", "ring", "peer", "ring / none", "ring / peer",
               "ring, in independent misses"});
  for (const Row& row : rows) {
    if (!row.failure.empty()) {
      table.add({row.name, row.failure});
      continue;
    }
    const std::optional<Summary> ring = median_of(row, kMarkRing, whole);
    table.add({row.name, show_figure(median_of(row, kMarkNone, whole), " ns"),
               show_figure(median_of(row, kMarkGrey, whole), " ns"), show_figure(ring, " ns"),
               show_figure(median_of(row, kMarkPeer, whole), " ns"),
               show_ratio(share(row, kMarkRing, whole, kMarkNone, whole)),
               show_ratio(share(row, kMarkRing, whole, kMarkPeer, whole)),
               ring && miss_ns > 0 ? fmt::format("{:.2f}", ring->median / miss_ns) : "-"});
  }
  return table;
}

}  // namespace

std::string cache_conditions(const CacheResults& results) {
  return fmt::format(
      "{}runs     {} of each setting in turn, each in its own process; medians "
      "(smallest..largest);\n         fractions and ratios are taken round by round\n",
      to_text(results), results.rounds);
}

std::string cache_tables(const CacheResults& results) {
  return fmt::format(
      "fractions of the normal run\n{}\npeak heap, collections\n{}\nthe peer\n{}\nmarking\n{}\n"
      "the limit\n{}\nin a simulated cache\n{}{}\n",
      paper_table(results.programs).text(),
      likeness_table(results.programs, results.settings).text(),
      peer_table(results.programs).text(),
      marking_table(results.marking, results.limit.independent_ns).text(),
      results.limit.table.text(), results.simulation.markdown, results.simulation.failure);
}

std::string cache_page(const CacheResults& results, const std::vector<std::string>& plots) {
  std::string text =
      fmt::format("# Cache misses\n\nWritten by `jackdaw bench cache-misses{}`.\n\n```\n{}```\n\n",
                  results.quick ? " --quick" : "", cache_conditions(results));
  text +=
      "After Boehm, \"Reducing Garbage Collector Cache Misses\" (ISMM 2000). *normal* is the "
      "paper's: lazy sweep, no prefetch. Every setting runs with one marker.\n\n## Fractions of "
      "the whole run\n\n*mark*, *sweep*: of the normal run's time; *finding* is what looking at "
      "the records in a collection and for free slots at allocation takes, *clearing* the zeroing "
      "of free slots. *eager sweep*: how much longer the run takes when both are done in the "
      "collection. *on-grey*, *ring*: how much shorter with that marking strategy. *ring* is the "
      "default, which takes turns without the ring and keeps to what was quicker "
      "(JACKDAW_MARK_TURN); only in the simulated cache it always has the ring. Ghostscript draws "
      "this repository's bench/ghostscript/drawing.ps, since no package has its examples.\n\n";
  text += paper_table(results.programs).markdown();
  text +=
      "\nThe paper's own figures are not beside them: its tables were not to be had where this "
      "was written, and none are quoted from memory. *incremental*: most collections are partial, "
      "on "
      "the peer as well (GC_ENABLE_INCREMENTAL); its own count of them and their time include the "
      "steps of a collection.\n";
  for (const std::string& plot : plots) text += fmt::format("\n![]({})\n", plot);
  text +=
      "\n## Like with like\n\nPeak heap (the peer's is its size at the end, which is all that it "
      "tells) and number of collections under each setting.\n\n";
  text += likeness_table(results.programs, results.settings).markdown();
  text +=
      "\n## The peer\n\nIts only like settings are the heap's first size and one marker; its "
      "marker prefetches on grey.\n\n";
  text += peer_table(results.programs).markdown();
  text += "\n## Marking\n\nNanoseconds an object, one marker.\n\n";
  text += marking_table(results.marking, results.limit.independent_ns).markdown();
  text += "\n## The limit\n\nMeasured in the same run.\n\n";
  text += results.limit.failure.empty() ? results.limit.table.markdown()
                                        : "FAILED: " + results.limit.failure + "\n";
  text += "\n## In a simulated cache\n\n";
  text += results.simulation.failure.empty() ? results.simulation.markdown
                                             : results.simulation.failure + "\n";
  return text;
}

std::vector<Plot> cache_plots(const CacheResults& results) {
  Bars speed{"Share of the normal run that is saved", "%", {"on-grey", "ring"}, {}};
  for (const Row& row : results.programs) {
    const auto grey = shorter(row, kGrey, kNormal);
    const auto ring = shorter(row, kRinged, kNormal);
    if (grey && ring) speed.groups.push_back({row.name, {grey->median * 100, ring->median * 100}});
  }
  Bars marking{"Marking, nanoseconds an object", "ns", {"none", "on-grey", "ring", "peer"}, {}};
  for (const Row& row : results.marking) {
    std::vector<double> values;
    for (std::size_t s = 0; s < row.runs.size(); ++s) {
      if (const auto value = median_of(row, s, whole)) values.push_back(value->median);
    }
    if (values.size() == marking.series.size()) marking.groups.push_back({row.name, values});
  }
  return {{"-saved", speed}, {"-marking", marking}};
}

}  // namespace jackdaw
