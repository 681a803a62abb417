#include "importers/rate_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/quantile.hpp"

namespace windtunnel {
namespace {

using Row = std::vector<std::optional<double>>;

/// Rates at which each node sends to each other one, or receives from it.
std::vector<Row> rows_of(const NodeRates& rates, bool of_senders) {
  std::vector<Row> rows = rates.rate;
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < rows.size(); ++j)
      rows[i][j] = i == j ? std::nullopt : of_senders ? rates.rate[i][j] : rates.rate[j][i];
  return rows;
}

/// All that was measured, but for partner `without`.
std::vector<double> others_in(const Row& row, std::size_t without) {
  std::vector<double> numbers;
  for (std::size_t partner = 0; partner < row.size(); ++partner)
    if (partner != without && row[partner]) numbers.push_back(*row[partner]);
  return numbers;
}

/// The ring that the slowest partners make, from node 0; empty when they make none, or a node has several.
std::vector<std::size_t> ring_of(const std::vector<Row>& rows) {
  std::vector<std::size_t> ring;
  std::size_t node = 0;
  do {
    ring.push_back(node);
    const Row& row = rows[node];
    const std::vector<double> measured = others_in(row, node);
    if (measured.empty()) return {};
    const double least = *std::ranges::min_element(measured);
    if (std::ranges::count(measured, least) > 1) return {};
    node = static_cast<std::size_t>(std::ranges::find(row, std::optional(least)) - row.begin());
  } while (node != 0 && ring.size() < rows.size());
  return node == 0 && ring.size() == rows.size() ? ring : std::vector<std::size_t>();
}

}  // namespace

std::optional<PhaseArtefact> find_phase_artefact(const NodeRates& rates) {
  constexpr std::size_t least_nodes_judged = 6;  // below, chance makes a ring too often
  const std::size_t n = rates.nodes.size();
  if (n < least_nodes_judged) return std::nullopt;
  const auto count = static_cast<double>(n);
  const double chance =
      std::exp(std::lgamma(count) - count * std::log(count - 1));  // (n-1)! / (n-1)^n
  for (const bool of_senders : {true, false}) {
    const std::vector<Row> rows = rows_of(rates, of_senders);
    PhaseArtefact found{ring_of(rows), of_senders, 0, 0, chance};
    if (found.ring.empty()) continue;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t partner = found.ring[(i + 1) % n];
      const Row& row = rows[found.ring[i]];
      const std::vector<double> others = others_in(row, partner);
      if (others.empty()) return std::nullopt;
      found.mean_rate += *row[partner] / count;
      found.usual_rate += median_of(others) / count;
    }
    return found;
  }
  return std::nullopt;
}

void clean_phase_artefact(const PhaseArtefact& artefact, NodeRates& rates) {
  const std::vector<Row> rows = rows_of(rates, artefact.of_senders);
  for (std::size_t i = 0; i < artefact.ring.size(); ++i) {
    const std::size_t node = artefact.ring[i];
    const std::size_t partner = artefact.ring[(i + 1) % artefact.ring.size()];
    (artefact.of_senders ? rates.rate[node][partner] : rates.rate[partner][node]) =
        median_of(others_in(rows[node], partner));
  }
}

std::vector<InferredPair> infer_missing(NodeRates& rates) {
  const std::vector<Row> sent = rows_of(rates, true), received = rows_of(rates, false);
  std::vector<InferredPair> inferred;
  for (std::size_t i = 0; i < rates.nodes.size(); ++i) {
    for (std::size_t j = 0; j < rates.nodes.size(); ++j) {
      if (i == j || sent[i][j]) continue;
      std::vector<double> numbers = others_in(sent[i], j);
      const std::vector<double> there = others_in(received[j], i);
      numbers.insert(numbers.end(), there.begin(), there.end());
      const std::optional<double> reverse = sent[j][i];
      if (!reverse && numbers.empty()) continue;
      inferred.push_back({i, j,
                          reverse ? InferredPair::Basis::reverse : InferredPair::Basis::median,
                          reverse ? *reverse : median_of(std::move(numbers))});
      rates.rate[i][j] = inferred.back().rate;
    }
  }
  return inferred;
}

RateStatistics statistics_of(const NodeRates& rates) {
  std::vector<double> numbers, asymmetries, squares;
  for (std::size_t i = 0; i < rates.nodes.size(); ++i)
    for (std::size_t j = 0; j < rates.nodes.size(); ++j) {
      if (i == j || !rates.rate[i][j]) continue;
      const double rate = *rates.rate[i][j];
      numbers.push_back(rate);
      if (i < j && rates.rate[j][i]) {
        const double back = *rates.rate[j][i];
        asymmetries.push_back(std::abs(rate - back) / ((rate + back) / 2));
      }
    }
  if (numbers.empty()) return {};
  const double mean = mean_of(numbers);
  for (const double number : numbers) squares.push_back((number - mean) * (number - mean));
  return {std::ranges::min(numbers), median_of(numbers),
          std::ranges::max(numbers), std::sqrt(mean_of(squares)) / mean,
          mean_of(asymmetries),      asymmetries.empty() ? 0 : std::ranges::max(asymmetries)};
}

}  // namespace windtunnel
