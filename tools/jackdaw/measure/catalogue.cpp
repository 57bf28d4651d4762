#include "measure/catalogue.hpp"

#include <fmt/core.h>
#include <fnmatch.h>

#include "failure.hpp"

namespace jackdaw {
namespace {

// Marking is compared with one marker on both sides: bdwgc would use one for each CPU.
constexpr const char* kOneMarker = "GC_MARKERS=1";

Benchmark marking(const std::string& name, const std::string& program,
                  const std::vector<std::string>& arguments, const std::string& what) {
  return {"mark-" + name, program, arguments, {kOneMarker}, what + ", one marker", false};
}

std::vector<Benchmark> make_catalogue() {
  std::vector<Benchmark> list = {
      {"gcbench",
       "gcbench",
       {"18", "16"},
       {},
       "binary trees after Ellis, Kovac and Boehm: stretch 18, long-lived 16",
       false},
      {"gcbench-big",
       "gcbench",
       {"20", "20"},
       {},
       "the same with stretch 20, long-lived 20",
       false},
      {"gcbench-descriptors",
       "gcbench",
       {"18", "16", "descriptors"},
       {},
       "gcbench with a descriptor for each node's class, as gcj has them",
       false},
      {"gcbench-big-descriptors",
       "gcbench",
       {"20", "20", "descriptors"},
       {},
       "the same with stretch 20, long-lived 20",
       false},
      {"holes", "holes", {}, {}, "gcbench's trees with a dead node between retained ones", false},
      {"syntax", "syntax", {}, {}, "a translator that keeps 70 MB of syntax tree", false},
      marking("random-2m-32", "mark_random", {"2000000", "32"},
              "marking 2 million nodes of 32 bytes, linked at random"),
      marking("random-8m-32", "mark_random", {"8000000", "32"},
              "marking 8 million nodes of 32 bytes, linked at random"),
      marking("random-2m-48", "mark_random", {"2000000", "48"},
              "marking 2 million nodes of 48 bytes with three pointers each, linked at random"),
      marking("random-2m-64", "mark_random", {"2000000", "64"},
              "marking 2 million nodes of 64 bytes with four pointers each, linked at random"),
      marking("random-8m-64", "mark_random", {"8000000", "64"},
              "marking 8 million nodes of 64 bytes with four pointers each, linked at random"),
      marking("tree", "mark_tree", {"ordered"}, "marking a binary tree in allocation order"),
      marking("tree-shuffled", "mark_tree", {"shuffled"},
              "marking a binary tree whose nodes lie in random order"),
      marking("tree-typed", "mark_tree", {"typed"},
              "marking a binary tree in allocation order whose nodes have descriptors"),
      marking("list", "mark_list", {"ordered"},
              "marking a list of 10 million nodes in allocation order"),
      marking("list-shuffled", "mark_list", {"shuffled"},
              "marking a list of 10 million nodes that lie in random order"),
      marking("table", "mark_table", {}, "marking a hash table of 2 million pairs"),
      marking("array", "mark_array", {}, "marking an array of pointers to 4 million objects"),
      marking("numbers", "mark_numbers", {"65536"},
              "marking 100 MB of arrays of numbers that could be pointers, 64 KiB each"),
  };
  for (const std::string kind : {"plain", "atomic"}) {
    for (const std::string size : {"16", "32", "64", "256"}) {
      list.push_back({(kind == "plain" ? "alloc-" : "alloc-atomic-") + size,
                      "alloc",
                      {kind, size},
                      {},
                      fmt::format("allocating {}objects of {} bytes, little of it live",
                                  kind == "plain" ? "" : "pointer-free ", size),
                      false});
    }
  }
  for (const std::string size : {"16", "32", "64", "256"}) {
    Benchmark fill = {
        "fill-" + size,
        "fill",
        {"gc", size},
        {},
        fmt::format("filling 256 MiB of a new heap with objects of {} bytes, none dies", size),
        false};
    list.push_back(fill);
    fill.name = "fill-mimalloc-" + size;
    fill.what += "; the peer is mimalloc's malloc";
    fill.rival = Rival{"libmimalloc.so.2", "libmimalloc2.0", {"malloc", size}};
    list.push_back(std::move(fill));
  }
  const std::vector<std::pair<std::string, std::string>> replaced = {
      {"free", "replacing, in random order, objects that are freed by hand,"},
      {"free-uncollectable", "replacing, in random order, uncollectable objects, freed by hand,"},
      {"drop", "replacing, in random order, pointer-free objects that are dropped,"},
      {"resize", "resizing objects in random order, to lengths"},
      {"free-many", "replacing, in random order, a million objects that are freed by hand,"},
      {"resize-many", "resizing a million objects in random order, to lengths"}};
  for (const auto& [name, what] : replaced) {
    list.push_back({"replace-" + name, "replace", {name}, {}, what + " of 8 to 207 bytes", false});
  }
  list.push_back(
      {"large", "large", {}, {}, "churn of objects of 8 KiB to 1 MiB, each page touched", false});
  list.push_back({"large-reserved",
                  "large",
                  {"reserved"},
                  {},
                  "churn of objects of 8 KiB to 1 MiB, of which an eighth is touched",
                  false});
  for (const std::string size : {"9000", "20000", "36000", "65551", "82000"}) {
    list.push_back(
        {"large-" + size,
         "large_table",
         {size},
         {},
         fmt::format("a table of 100 MB of objects of {} bytes, replaced five times", size),
         false});
  }
  list.push_back({"large-varied",
                  "large_table",
                  {"varied"},
                  {},
                  "a table of 100 MB of objects of 8 to 40 KiB, replaced five times",
                  false});
  list.push_back({"finalizers", "finalizers", {}, {}, "registering and running finalizers", false});
  for (const std::string what : {"none", "finalizers", "links", "both"}) {
    list.push_back(
        {"pause-registered-" + what,
         "registered",
         {what},
         {kOneMarker},
         fmt::format("pauses with a million live objects; registered for them: {}, one marker",
                     what),
         false});
  }
  const std::vector<std::pair<std::string, std::string>> steps = {
      {"uncollectable", "a collection with 300,000 uncollectable objects beside 500 MB"},
      {"finalizable", "a collection that finds 300 finalizable trees beside 500 MB"},
      {"typed-array", "a collection with an array of 8 million typed elements"},
      {"unmap", "returning 4 GiB of untouched memory to the system"}};
  for (const auto& [name, what] : steps) {
    list.push_back({"steps-" + name, "steps", {name}, {}, what, false});
  }
  list.push_back({"pause-500m",
                  "pause",
                  {"500"},
                  {},
                  "longest pause of a busy program with 500 MB live",
                  false});
  const char* const incremental = "GC_ENABLE_INCREMENTAL=1";
  list.push_back({"gcbench-big-incremental",
                  "gcbench",
                  {"20", "20"},
                  {incremental},
                  "gcbench-big in the incremental mode: most collections are partial",
                  false});
  list.push_back(
      {"syntax-incremental", "syntax", {}, {incremental}, "syntax in the incremental mode", false});
  list.push_back({"pause-100m-incremental",
                  "pause",
                  {"100"},
                  {incremental},
                  "longest pause of a busy program with 100 MB live, in the incremental mode",
                  false});
  list.push_back({"pause-100m-limited",
                  "pause",
                  {"100"},
                  {incremental, "GC_PAUSE_TIME_TARGET=5"},
                  "the same with a wished longest pause of 5 ms",
                  false});
  list.push_back(
      {"stop-running-2", "stop", {"2", "0"}, {}, "time to stop two threads that compute", false});
  list.push_back({"stop-sleeping-200",
                  "stop",
                  {"0", "200"},
                  {},
                  "time to stop 200 threads that sleep",
                  false});
  list.push_back({"stop-blocked-1000",
                  "stop",
                  {"0", "0", "1000"},
                  {},
                  "a pause with 1000 threads that sleep in GC_do_blocking",
                  false});
  list.push_back({"threads-together",
                  "threads",
                  {"4000", "1"},
                  {},
                  "4000 threads that allocate a little, all there at the same time",
                  false});
  list.push_back({"threads-short",
                  "threads",
                  {"1", "10000"},
                  {},
                  "10,000 threads that allocate a little, one after the other",
                  false});
  list.push_back(
      {"startup", "startup", {}, {}, "a program that allocates 1000 objects and ends", true});
  list.push_back({"limit",
                  "limit",
                  {},
                  {},
                  "no library: what a cache miss, reading and clearing cost on this machine",
                  false});
  return list;
}

}  // namespace

std::span<const Benchmark> all_benchmarks() {
  static const std::vector<Benchmark> list = make_catalogue();
  return list;
}

std::vector<Benchmark> choose_benchmarks(const std::vector<std::string>& patterns) {
  std::vector<Benchmark> chosen;
  std::vector<bool> used(patterns.size(), false);
  for (const Benchmark& b : all_benchmarks()) {
    bool wanted = patterns.empty();
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      if (fnmatch(patterns[i].c_str(), b.name.c_str(), 0) == 0) wanted = used[i] = true;
    }
    if (wanted) chosen.push_back(b);
  }
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    if (!used[i]) {
      throw Failure(kExitUsage, fmt::format("no benchmark '{}' (jackdaw bench --list shows them)",
                                            patterns[i]));
    }
  }
  return chosen;
}

}  // namespace jackdaw
