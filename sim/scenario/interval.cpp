#include "scenario/interval.hpp"

#include <algorithm>
#include <cmath>
#include <system_error>

#include "core/contracts.hpp"
#include "scenario/measurement_set.hpp"

namespace windtunnel {
namespace {

constexpr double interval_share = 0.9;     ///< of new runs, inside
constexpr double widening = 1.5;           ///< beyond what was measured; assumed
constexpr double unprofiled_share = 0.15;  ///< of the predicted time, either way
constexpr std::size_t most_reasons = 3;

Interval interval_of(Seconds predicted, std::pair<double, double> bounds) {
  Interval interval;
  interval.low = predicted * std::exp(bounds.first);
  interval.high = predicted * std::exp(bounds.second);
  return interval;
}

std::string runs_text(const EvidenceRegime& regime) {
  std::string text = std::to_string(regime.residuals.size()) + " held-out runs of";
  for (const std::string& set : regime.sets)
    text += (set == *regime.sets.begin() ? " " : ", ") + set;
  return text;
}

std::string joined(const std::vector<std::string>& reasons) {
  std::string text;
  for (std::size_t i = 0; i < std::min(reasons.size(), most_reasons); ++i)
    text += (i == 0 ? "" : "; ") + reasons[i];
  return text + (reasons.size() > most_reasons ? "; …" : "");
}

/// Of the regimes of the scenario's stack, those on its GPU family, or all where there are none.
std::vector<const EvidenceRegime*> nearest_regimes(const std::vector<EvidenceRegime>& regimes,
                                                   const ScenarioTraits& traits) {
  std::vector<const EvidenceRegime*> of_stack, of_family;
  for (const EvidenceRegime& regime : regimes) {
    if (regime.software != traits.software) continue;
    of_stack.push_back(&regime);
    if (regime.device_family == traits.device_family) of_family.push_back(&regime);
  }
  return of_family.empty() ? of_stack : of_family;
}

Interval extrapolated(const std::vector<const EvidenceRegime*>& regimes,
                      const ScenarioTraits& traits, Seconds predicted) {
  std::pair<double, double> widest{0, 0};
  for (const EvidenceRegime* regime : regimes) {
    const auto [low, high] = conformal_bounds(regime->residuals);
    widest = {std::min(widest.first, low), std::max(widest.second, high)};
  }
  Interval interval = interval_of(predicted, {widest.first * widening, widest.second * widening});
  interval.basis = IntervalBasis::extrapolated;
  std::vector<std::string> reasons = regimes.front()->beyond(traits);
  if (regimes.front()->device_family != traits.device_family)
    reasons.insert(reasons.begin(),
                   traits.device_family + " GPUs, measured " + regimes.front()->device_family);
  interval.reason = joined(reasons);
  return interval;
}

}  // namespace

std::pair<double, double> conformal_bounds(const std::vector<double>& sorted_residuals) {
  WT_EXPECT(!sorted_residuals.empty());
  const std::size_t count = sorted_residuals.size();
  // 1e-9: 0.9 * 20 is 18, whatever its last bit says.
  const auto held =
      static_cast<std::size_t>(std::ceil(interval_share * static_cast<double>(count + 1) - 1e-9));
  double low = sorted_residuals.front() * widening, high = sorted_residuals.back() * widening;
  for (std::size_t first = 0; held <= count && first + held <= count; ++first) {
    const double from = sorted_residuals[first], to = sorted_residuals[first + held - 1];
    if (first > 0 && to - from >= high - low) continue;
    low = from;
    high = to;
  }
  return {std::min(low, 0.0), std::max(high, 0.0)};
}

Interval interval_from(const std::vector<EvidenceRegime>& regimes, const ScenarioTraits& traits,
                       Seconds predicted) {
  const std::vector<const EvidenceRegime*> nearest = nearest_regimes(regimes, traits);
  if (nearest.empty())
    return {predicted * (1 - unprofiled_share), predicted * (1 + unprofiled_share),
            IntervalBasis::unprofiled, "no measured runs of software " + traits.software};
  for (const EvidenceRegime* regime : nearest) {
    if (regime->device_family != traits.device_family || !regime->beyond(traits).empty()) continue;
    Interval interval = interval_of(predicted, conformal_bounds(regime->residuals));
    interval.basis = IntervalBasis::measured;
    interval.reason = runs_text(*regime);
    return interval;
  }
  return extrapolated(nearest, traits, predicted);
}

std::optional<Interval> iteration_time_interval(const Scenario& scenario, Seconds predicted,
                                                const Library& library) {
  const std::filesystem::path file = library.root / "validation" / residuals_file;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return std::nullopt;
  return interval_from(read_evidence(file), traits_of(scenario), predicted);
}

void add_interval(const Scenario& scenario, const Library& library, Report& report) {
  const auto interval = iteration_time_interval(scenario, report.iteration_time, library);
  if (!interval) return;
  report.iteration_time_interval = {interval->low, interval->high};
  const bool measured = interval->basis == IntervalBasis::measured;
  report.assumptions.push_back({"prediction interval", "90 %", interval->reason,
                                measured ? Evidence::measured : Evidence::assumed});
  if (interval->basis == IntervalBasis::extrapolated)
    report.warnings.push_back("the prediction interval is extrapolated: " + interval->reason);
  if (interval->basis == IntervalBasis::unprofiled && scenario.software.profiled)
    report.warnings.push_back("the prediction interval is a guess of ±15 %: " + interval->reason);
}

}  // namespace windtunnel
