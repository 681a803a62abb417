#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "importers/bandwidth_table.hpp"
#include "importers/rate_matrix.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// Findings about a cluster from a table of rates.
struct MpigraphFindings {
  std::string file;  ///< without its folder, as sources name it
  std::string tool;  ///< "mpiGraph v1.5, Send table"
  TableKind kind = TableKind::send;
  std::string unit_name;  ///< of the rates
  BytesPerSecond unit{};
  int rails = 1;
  NodeRates rates;
  RateStatistics statistics;  ///< of what was measured
  std::optional<PhaseArtefact> artefact;
  bool is_cleaned = false;                     ///< of the artefact
  std::optional<double> difference_of_tables;  ///< median of |send/recv - 1|
  std::vector<InferredPair> inferred;

  BytesPerSecond in_bytes(double rate) const { return unit * rate; }
  /// "node1 to node2"
  std::string pair_text(std::size_t from, std::size_t to) const {
    return rates.nodes[from] + " to " + rates.nodes[to];
  }
  /// What each node's slowest partners are: "targets" or "sources".
  const char* partner() const { return artefact->of_senders ? "targets" : "sources"; }
};

/// How many pairs or nodes a text names before it says "...".
inline constexpr std::size_t most_listed = 8;

/// "1 pair", "2 pairs"
std::string count_text(std::size_t count, const char* one, const char* many);
/// Where the rate of a pair that was not measured is from.
std::string basis_text(const InferredPair& pair);

/// The findings as `import` prints them, and as member "found" of --json.
std::string findings_text(const MpigraphFindings& found);
JsonValue findings_json(const MpigraphFindings& found);

}  // namespace windtunnel
