// What `jackdaw bench mostly-copying` measured, between its runs (mostly_copying.cpp and
// runs.cpp) and its page (page.cpp, tables.cpp and goals.cpp).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "measure/origin.hpp"
#include "measure/rounds.hpp"
#include "page/goals.hpp"
#include "page/report.hpp"

namespace jackdaw {

// --- collectors ----------------------------------------------------------------------------------

// Whose code collects: the peer's libgc, ours, or the typed heap of libjackdaw.so.
enum class Provider { Peer, Ours, Typed };

// A collector, with the place where it finds layouts.
struct Collector {
  const char* key;
  const char* build;  // of the program: copy-NAME-BUILD
  Provider provider;
  const char* policy;  // JACKDAW_POLICY; empty: it has none
  const char* mixed;   // JACKDAW_MIXED_BLOCKS; empty: as the library has it
};

// Keys that tables and goals name.
inline constexpr const char* kPeerHeap = "libgc";
inline constexpr const char* kPeerHeader = "libgc, header word";
inline constexpr const char* kOurHeap = "untyped";
inline constexpr const char* kOurHeader = "untyped, header word";
inline constexpr const char* kStayHomogeneous = "non-moving, homogeneous";
inline constexpr const char* kStaySelf = "non-moving, self";
inline constexpr const char* kStayHeader = "non-moving, header";
inline constexpr const char* kEvacuateHomogeneous = "evacuate, homogeneous";
inline constexpr const char* kEvacuateSelf = "evacuate, self";
inline constexpr const char* kEvacuateHeader = "evacuate, header";
inline constexpr const char* kMccSelf = "mcc, self";
inline constexpr const char* kMccHeader = "mcc, header";
inline constexpr const char* kStaySegregated = "non-moving, header, segregated";
inline constexpr const char* kEvacuateSegregated = "evacuate, header, segregated";

// Throws std::out_of_range for a key that is none.
const Collector& collector_named(std::string_view key);
// Those of the tables of programs and of heap sizes.
const std::vector<std::string>& all_collectors();

// The eight programs.
const std::vector<std::string>& copy_programs();

// --- results -------------------------------------------------------------------------------------

// What notes call what may not be there.
inline constexpr const char* kTheTypedHeap = "the typed heap";
inline constexpr const char* kMcc = "mcc";  // a policy, too

// A failure that is an answer, as kNotRun (reports/cells.hpp) is: it does not fit into its heap.
inline constexpr const char* kDoesNotFit = "does not fit";

struct CopyCell {
  std::string collector;
  std::string failure;  // why it has no figures; empty: it has

  [[nodiscard]] bool failed() const;  // and that is no answer
  [[nodiscard]] bool same_as(const CopyCell& other) const { return collector == other.collector; }
};

// A program in a heap of some size, or at its default; each cell is a collector.
struct CopyRow {
  std::string part;
  std::string program;
  double factor = 0;      // the heap by the live data; 0: the collector's own choice
  double heap_bytes = 0;  // 0: the same
  std::vector<CopyCell> cells;
  Row row;

  // Where that collector's runs are, if it has some.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view collector) const;
  [[nodiscard]] const CopyCell* cell(std::string_view collector) const;
};

struct CopyResults : Origin {
  std::vector<CopyRow> rows;

  [[nodiscard]] const CopyRow* find(std::string_view part, std::string_view program,
                                    double factor = 0) const;
  CopyRow* find(std::string_view part, std::string_view program, double factor = 0);
};

// The rows that each part makes. kLive: what is live, which programs and heaps need, once for each
// program; kLeast: the smallest heap in which it runs.
inline constexpr const char* kPrograms = "programs";
inline constexpr const char* kHeader = "header";
inline constexpr const char* kHeaps = "heaps";
inline constexpr const char* kOrder = "order";
inline constexpr const char* kResolve = "resolve";
inline constexpr const char* kFragmentation = "fragmentation";
inline constexpr const char* kLive = "live";
inline constexpr const char* kLeast = "least";

// The heap sizes that are measured, by the live data.
const std::vector<double>& heap_factors(bool quick);

nlohmann::ordered_json to_json(const CopyResults& results);
// Adds the rounds of a file that to_json made, in front of those of the same cells; rows and cells
// that the results lack are added whole, as are its notes. Throws Failure if they are of another
// machine or size.
void add_copy_rounds(const nlohmann::ordered_json& json, CopyResults* results);

// --- figures -------------------------------------------------------------------------------------

// Of one run, in seconds or bytes.
std::optional<double> collecting(const RunFigures& f);
std::optional<double> client(const RunFigures& f);  // all that is not collecting
std::optional<double> cpu(const RunFigures& f);
std::optional<double> peak_resident(const RunFigures& f);
// Looking at stacks, in the mark, and at all roots again to pin, of the collector's time.
std::optional<double> stack_share(const RunFigures& f);

std::optional<Summary> median_in(const CopyRow* row, std::string_view collector,
                                 const Figure& figure);
// A figure of one collector by the same of another, round by round.
std::optional<Summary> quotient(const CopyRow* row, std::string_view a, std::string_view b,
                                const Figure& figure);
// The geometric mean of the medians of some; nothing without any.
std::optional<double> geometric_mean(const std::vector<std::optional<Summary>>& ratios);

// --- the page ------------------------------------------------------------------------------------

// The figures to reach.
std::vector<Goal> copy_goals(const CopyResults& results);

// The sections of the page, each empty without its rows.
std::string programs_section(const CopyResults& results);
std::string header_section(const CopyResults& results);
std::string heaps_section(const CopyResults& results);
std::string order_section(const CopyResults& results);
std::string resolve_section(const CopyResults& results);
std::string fragmentation_section(const CopyResults& results);

std::string copy_page(const CopyResults& results, const std::vector<std::string>& plots);
std::vector<Plot> copy_plots(const CopyResults& results);

}  // namespace jackdaw
