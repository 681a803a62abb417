#include "evidence/score.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/contracts.hpp"
#include "core/quantile.hpp"

namespace windtunnel {
namespace {

std::vector<double> errors_of(const std::vector<ScoredRow>& comparisons) {
  std::vector<double> errors;
  for (const ScoredRow& comparison : comparisons) errors.push_back(comparison.error());
  return errors;
}

/// The value at which half of the weight is reached: minimises the sum of weight * |value - x|.
double weighted_median(std::vector<std::pair<double, double>> value_and_weight) {
  std::ranges::sort(value_and_weight);
  double total = 0;
  for (const auto& [value, weight] : value_and_weight) total += weight;
  double reached = 0;
  for (const auto& [value, weight] : value_and_weight)
    if ((reached += weight) >= total / 2) return value;
  return value_and_weight.back().first;
}

/// The rank of each value, from 0; equal values share the mean of theirs.
std::vector<double> ranks_of(const std::vector<ScoredRow>& comparisons, Seconds ScoredRow::*time) {
  std::vector<double> ranks;
  for (const ScoredRow& row : comparisons) {
    double below = 0, equal = 0;
    for (const ScoredRow& other : comparisons) {
      below += other.*time < row.*time;
      equal += other.*time == row.*time;
    }
    ranks.push_back(below + (equal - 1) / 2);
  }
  return ranks;
}

int sign(double number) { return (number > 0) - (number < 0); }

}  // namespace

Score score_errors(const std::vector<double>& errors) {
  WT_EXPECT(!errors.empty());
  constexpr double high_quantile = 0.9;
  std::vector<double> sizes;
  for (const double error : errors) sizes.push_back(std::abs(error));
  std::ranges::sort(sizes);
  return {sizes.size(), mean_of(sizes), quantile(sizes, 0.5), quantile(sizes, high_quantile),
          sizes.back(), mean_of(errors)};
}

Score score(const std::vector<ScoredRow>& comparisons) {
  return score_errors(errors_of(comparisons));
}

Score score_without_largest(std::vector<ScoredRow> comparisons, std::size_t count) {
  WT_EXPECT(count < comparisons.size());
  std::ranges::sort(comparisons, [](const ScoredRow& a, const ScoredRow& b) {
    return std::abs(a.error()) < std::abs(b.error());
  });
  comparisons.resize(comparisons.size() - count);
  return score(comparisons);
}

std::size_t num_largest(std::size_t scored) {
  constexpr double left_out_share = 0.05;
  return static_cast<std::size_t>(std::lround(left_out_share * static_cast<double>(scored)));
}

double naive_mape(const std::vector<ScoredRow>& comparisons) {
  WT_EXPECT(!comparisons.empty());
  const FlopsPerSecond unit{1};  // 1/e is fitted in seconds per FLOP
  std::vector<std::pair<double, double>> ratios;
  for (const ScoredRow& row : comparisons) {
    const double ratio = row.measured / (row.ideal_work / unit);
    ratios.emplace_back(ratio, 1 / ratio);
  }
  const double fitted = weighted_median(ratios);
  std::vector<double> errors;
  for (const auto& [ratio, weight] : ratios) errors.push_back(std::abs(fitted / ratio - 1));
  return mean_of(errors);
}

std::optional<double> interval_coverage(const std::vector<ScoredRow>& comparisons) {
  std::size_t rows = 0, inside = 0;
  for (const ScoredRow& row : comparisons) {
    if (!row.interval) continue;
    ++rows;
    if (row.interval->first <= row.measured && row.measured <= row.interval->second) ++inside;
  }
  if (rows == 0) return std::nullopt;
  return static_cast<double>(inside) / static_cast<double>(rows);
}

Flops ideal_work(Flops iteration, int gpus, int stages, int microbatches, int chunks) {
  WT_EXPECT(gpus > 0 && stages > 0 && microbatches > 0 && chunks > 0);
  const double bubble =
      static_cast<double>(stages - 1) / (static_cast<double>(microbatches) * chunks);
  return iteration / static_cast<double>(gpus) * (1 + bubble);
}

std::optional<double> kendall_tau(const std::vector<ScoredRow>& comparisons) {
  double agreement = 0, measured_pairs = 0, predicted_pairs = 0;
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const int measured = sign((comparisons[i].measured - comparisons[j].measured) / Seconds{1});
      const int predicted =
          sign((comparisons[i].predicted - comparisons[j].predicted) / Seconds{1});
      agreement += measured * predicted;
      measured_pairs += std::abs(measured);
      predicted_pairs += std::abs(predicted);
    }
  }
  if (measured_pairs == 0 || predicted_pairs == 0) return std::nullopt;
  return agreement / std::sqrt(measured_pairs * predicted_pairs);
}

std::optional<double> spearman_rho(const std::vector<ScoredRow>& comparisons) {
  const std::vector<double> measured = ranks_of(comparisons, &ScoredRow::measured);
  const std::vector<double> predicted = ranks_of(comparisons, &ScoredRow::predicted);
  const double middle = (static_cast<double>(comparisons.size()) - 1) / 2;
  double together = 0, measured_alone = 0, predicted_alone = 0;
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    together += (measured[i] - middle) * (predicted[i] - middle);
    measured_alone += (measured[i] - middle) * (measured[i] - middle);
    predicted_alone += (predicted[i] - middle) * (predicted[i] - middle);
  }
  if (measured_alone == 0 || predicted_alone == 0) return std::nullopt;
  return together / std::sqrt(measured_alone * predicted_alone);
}

double top1_regret(const std::vector<ScoredRow>& comparisons) {
  WT_EXPECT(!comparisons.empty());
  const auto first = [&](Seconds ScoredRow::*time) {
    return std::ranges::min_element(
        comparisons, [&](const ScoredRow& a, const ScoredRow& b) { return a.*time < b.*time; });
  };
  return first(&ScoredRow::predicted)->measured / first(&ScoredRow::measured)->measured - 1;
}

std::vector<ComparisonGroup> by_group(const std::vector<ScoredRow>& comparisons) {
  std::vector<ComparisonGroup> groups;
  for (const ScoredRow& comparison : comparisons) {
    const auto known = std::ranges::find(groups, comparison.group, &ComparisonGroup::name);
    ComparisonGroup& group = known != groups.end() ? *known : groups.emplace_back();
    group.name = comparison.group;
    group.comparisons.push_back(comparison);
  }
  return groups;
}

}  // namespace windtunnel
