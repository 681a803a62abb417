#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace windtunnel {

/// Rates between nodes, one way: [from][to] in the table's unit.
struct NodeRates {
  std::vector<std::string> nodes;
  std::vector<std::vector<std::optional<double>>> rate;
  int processes_per_node = 1;
  std::size_t missing_process_pairs = 0;
};

/// Each node's slowest partner, where these make one ring through all nodes. mpiGraph goes through
/// its pairs in ring steps (step D: every process sends to the one D further on), so the pairs of
/// one step are measured together, before or after the others; a minimum that is exactly one
/// partner a node, in one ring, is an effect of that step and no property of links. By chance the
/// minima of n rows make one ring in (n-1)! of (n-1)^n cases: 0.8 % with 6 nodes, 10^-7 with 16.
/// Fewer than 6 nodes are not judged.
struct PhaseArtefact {
  std::vector<std::size_t> ring;  ///< nodes, in the ring's order
  bool of_senders = true;         ///< true: each one's slowest target; false: its slowest source
  double mean_rate = 0;           ///< over the ring
  double usual_rate = 0;          ///< mean over nodes of the median of their other partners
  double chance = 0;              ///< that random minima make one ring
};
std::optional<PhaseArtefact> find_phase_artefact(const NodeRates& rates);

/// Puts the median of the node's other partners in place of each entry of the ring.
void clean_phase_artefact(const PhaseArtefact& artefact, NodeRates& rates);

/// A pair that was not measured, and where its rate was taken from.
struct InferredPair {
  std::size_t from = 0, to = 0;
  enum class Basis {
    reverse,  ///< the other direction
    median,   ///< of all that `from` sends and `to` receives
  } basis = Basis::reverse;
  double rate = 0;
};
/// Fills what is missing, off the diagonal, from what was measured; a pair without any basis stays
/// empty.
std::vector<InferredPair> infer_missing(NodeRates& rates);

/// Statistics of the measured rates, off the diagonal.
struct RateStatistics {
  double least = 0, median = 0, most = 0;
  double spread = 0;                              ///< standard deviation over mean
  double mean_asymmetry = 0, most_asymmetry = 0;  ///< |a-b| over the mean of both directions
};
RateStatistics statistics_of(const NodeRates& rates);

}  // namespace windtunnel
