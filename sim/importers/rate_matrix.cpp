#include "importers/rate_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/quantile.hpp"

namespace windtunnel {
namespace {

constexpr std::size_t least_nodes_judged = 6;  ///< below, chance makes a ring too often

std::optional<double> rate_between(const NodeRates& rates, std::size_t node, std::size_t partner,
                                   bool of_senders) {
  return of_senders ? rates.rate[node][partner] : rates.rate[partner][node];
}

/// All measured rates of `node` as sender (or receiver), but for partner `without`.
std::vector<double> rates_of(const NodeRates& rates, std::size_t node, bool of_senders,
                             std::size_t without) {
  std::vector<double> numbers;
  for (std::size_t partner = 0; partner < rates.nodes.size(); ++partner) {
    if (partner == node || partner == without) continue;
    if (const auto rate = rate_between(rates, node, partner, of_senders)) numbers.push_back(*rate);
  }
  return numbers;
}

/// The slowest partner of `node`; nothing without a single one.
std::optional<std::size_t> slowest_partner(const NodeRates& rates, std::size_t node,
                                           bool of_senders) {
  std::optional<std::size_t> slowest;
  double least = 0;
  bool tied = false;
  for (std::size_t partner = 0; partner < rates.nodes.size(); ++partner) {
    if (partner == node) continue;
    const auto rate = rate_between(rates, node, partner, of_senders);
    if (!rate || (slowest && *rate > least)) continue;
    tied = slowest && *rate == least;
    slowest = partner;
    least = *rate;
  }
  return tied ? std::nullopt : slowest;
}

/// The ring that the slowest partners make, from node 0; empty when they make none.
std::vector<std::size_t> ring_of(const NodeRates& rates, bool of_senders) {
  std::vector<std::size_t> ring;
  std::vector<bool> seen(rates.nodes.size());
  for (std::size_t node = 0; !seen[node];) {
    seen[node] = true;
    ring.push_back(node);
    const auto next = slowest_partner(rates, node, of_senders);
    if (!next) return {};
    node = *next;
    if (node == 0) return ring.size() == rates.nodes.size() ? ring : std::vector<std::size_t>();
  }
  return {};
}

}  // namespace

std::optional<PhaseArtefact> find_phase_artefact(const NodeRates& rates) {
  const std::size_t n = rates.nodes.size();
  if (n < least_nodes_judged) return std::nullopt;
  const auto count = static_cast<double>(n);
  const double chance =
      std::exp(std::lgamma(count) - count * std::log(count - 1));  // (n-1)! / (n-1)^n
  for (const bool of_senders : {true, false}) {
    PhaseArtefact found{ring_of(rates, of_senders), of_senders, 0, 0, chance};
    if (found.ring.empty()) continue;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t node = found.ring[i], partner = found.ring[(i + 1) % n];
      const std::vector<double> others = rates_of(rates, node, of_senders, partner);
      if (others.empty()) return std::nullopt;
      found.mean_rate += *rate_between(rates, node, partner, of_senders) / count;
      found.usual_rate += median_of(others) / count;
    }
    return found;
  }
  return std::nullopt;
}

void clean_phase_artefact(const PhaseArtefact& artefact, NodeRates& rates) {
  const NodeRates measured = rates;
  for (std::size_t i = 0; i < artefact.ring.size(); ++i) {
    const std::size_t node = artefact.ring[i];
    const std::size_t partner = artefact.ring[(i + 1) % artefact.ring.size()];
    const double usual = median_of(rates_of(measured, node, artefact.of_senders, partner));
    (artefact.of_senders ? rates.rate[node][partner] : rates.rate[partner][node]) = usual;
  }
}

std::vector<InferredPair> infer_missing(NodeRates& rates) {
  const NodeRates measured = rates;
  std::vector<InferredPair> inferred;
  for (std::size_t i = 0; i < rates.nodes.size(); ++i) {
    for (std::size_t j = 0; j < rates.nodes.size(); ++j) {
      if (i == j || measured.rate[i][j]) continue;
      InferredPair pair{i, j, InferredPair::Basis::reverse, 0};
      if (const auto reverse = measured.rate[j][i]) {
        pair.rate = *reverse;
      } else {
        pair.basis = InferredPair::Basis::median;
        std::vector<double> numbers = rates_of(measured, i, true, j);
        const std::vector<double> received = rates_of(measured, j, false, i);
        numbers.insert(numbers.end(), received.begin(), received.end());
        if (numbers.empty()) continue;
        pair.rate = median_of(std::move(numbers));
      }
      rates.rate[i][j] = pair.rate;
      inferred.push_back(pair);
    }
  }
  return inferred;
}

RateStatistics statistics_of(const NodeRates& rates) {
  std::vector<double> numbers, asymmetries;
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
  RateStatistics statistics;
  if (numbers.empty()) return statistics;
  const double mean = mean_of(numbers);
  double square = 0;
  for (const double number : numbers) square += (number - mean) * (number - mean);
  statistics.least = *std::ranges::min_element(numbers);
  statistics.most = *std::ranges::max_element(numbers);
  statistics.median = median_of(numbers);
  statistics.spread = std::sqrt(square / static_cast<double>(numbers.size())) / mean;
  if (asymmetries.empty()) return statistics;
  statistics.mean_asymmetry = mean_of(asymmetries);
  statistics.most_asymmetry = *std::ranges::max_element(asymmetries);
  return statistics;
}

}  // namespace windtunnel
