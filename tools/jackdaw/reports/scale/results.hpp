// What `jackdaw bench scale` measured, between its runs (scale.cpp) and its page (page.cpp).
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "figures/table.hpp"
#include "measure/origin.hpp"
#include "measure/rounds.hpp"
#include "page/goals.hpp"
#include "page/report.hpp"

namespace jackdaw {

// Who serves the program's memory.
enum class Server { Ours, Peer, Glibc, Mimalloc };
const char* name_of(Server server);

// One way to run a row: how many clients, on whose library, with how many markers (0: the library
// has none).
struct ScaleCell {
  Server server;
  unsigned clients;
  unsigned markers;
  Setting setting;
  std::string failure = {};  // always empty: what fails here fails with its row

  [[nodiscard]] bool same_as(const ScaleCell& other) const {
    return server == other.server && clients == other.clients && markers == other.markers;
  }
};

// A program that runs in each of its cells, round by round.
struct ScaleRow {
  std::string part;
  Row row;
  std::vector<ScaleCell> cells;

  [[nodiscard]] std::optional<std::size_t> find(Server server, unsigned clients,
                                                unsigned markers) const;
};

struct ScaleResults : Origin {
  std::vector<ScaleRow> rows;

  [[nodiscard]] const ScaleRow* find(const std::string& part, const std::string& name) const;
};

nlohmann::ordered_json to_json(const ScaleResults& results);
// Adds the rounds of a file that to_json made, in front of those of the same rows and cells; rows
// that the results lack, or that failed now and not then, are added whole, as are cells (those of
// mimalloc, which comes and goes). Throws Failure if they are of another machine, library or size.
void add_rounds(const nlohmann::ordered_json& json, ScaleResults* results);

// What notes call what may not be there.
inline constexpr const char* kTheModel = "the model";

// The parts, in the page's order.
inline constexpr const char* kMarkingPart = "marking";
inline constexpr const char* kMemoryPart = "memory";
inline constexpr const char* kStoppingPart = "stopping";
inline constexpr const char* kModelPart = "model";

// The figures to reach.
std::vector<Goal> goals_of(const ScaleResults& results);

std::string scale_page(const ScaleResults& results, const std::vector<std::string>& plots);
std::vector<Plot> scale_plots(const ScaleResults& results);

}  // namespace jackdaw
