#include "evidence/interval.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "core/contracts.hpp"
#include "core/text_list.hpp"
#include "report/number_text.hpp"

namespace windtunnel {
namespace {

constexpr std::size_t most_reasons = 3;

Interval interval_of(Seconds predicted, std::pair<double, double> bounds) {
  Interval interval;
  interval.low = predicted * std::exp(bounds.first);
  interval.high = predicted * std::exp(bounds.second);
  return interval;
}

std::string joined(const std::vector<Difference>& reasons) {
  std::string text;
  for (std::size_t i = 0; i < std::min(reasons.size(), most_reasons); ++i)
    text += (i == 0 ? "" : "; ") + reasons[i]();
  return text + (reasons.size() > most_reasons ? "; …" : "");
}

/// "peak rate 1000 (measured 312)" of "peak rate 1000, measured 312": as part of a list.
std::string in_brackets(const std::string& difference) {
  for (const char* const said : {", measured ", ", never measured"})
    if (const std::size_t at = difference.find(said); at != std::string::npos)
      return difference.substr(0, at) + " (" + difference.substr(at + 2) + ")";
  return difference;
}

/// A regime, and what of the scenario it does not hold.
struct Neighbour {
  const EvidenceRegime* regime = nullptr;
  Extrapolation extrapolation;
};

/// The regimes nearest to a scenario, and the axes of it that none of them holds.
struct Neighbourhood {
  std::vector<Neighbour> nearest;
  std::vector<EvidenceAxis> beyond_axes;  ///< in the order of the enumeration

  bool holds(EvidenceAxis axis) const {
    return std::ranges::find(beyond_axes, axis) == beyond_axes.end();
  }
  /// Keeps the regimes that are as wanted, if there is one.
  template <class Wanted>
  bool keep(const Wanted& wanted) {
    if (std::ranges::none_of(nearest, wanted)) return false;
    std::erase_if(nearest, [&](const Neighbour& each) { return !wanted(each); });
    return true;
  }
  /// Keeps the regimes that hold the axis, if there is one.
  bool keep_those_that_hold(EvidenceAxis axis) {
    const bool one_does =
        keep([axis](const Neighbour& each) { return each.extrapolation.of(axis).empty(); });
    if (!one_does) beyond_axes.push_back(axis);
    return one_does;
  }
};

std::size_t num_reasons(const Extrapolation& extrapolation) {
  std::size_t number = 0;
  for (const auto& reasons : extrapolation.reasons) number += reasons.size();
  return number;
}

std::size_t num_of_stack(const Neighbour& each) {
  return each.extrapolation.of(EvidenceAxis::stack).size();
}

/// Stacks may be alike in all that this job uses: then the rest decides, and the name last.
void keep_likest_stack(Neighbourhood& near, const std::string& name) {
  std::size_t fewest = near.nearest.front().extrapolation.unused_of_stack;
  for (const Neighbour& each : near.nearest)
    fewest = std::min(fewest, each.extrapolation.unused_of_stack);
  near.keep([&](const Neighbour& each) { return each.extrapolation.unused_of_stack == fewest; });
  near.keep([&](const Neighbour& each) { return each.regime->software == name; });
}

/// `regimes` is not empty.
Neighbourhood neighbourhood_of(const std::vector<EvidenceRegime>& regimes,
                               const ScenarioTraits& traits) {
  Neighbourhood near;
  for (const EvidenceRegime& regime : regimes)
    near.nearest.push_back({&regime, regime.extrapolation(traits)});
  if (near.keep_those_that_hold(EvidenceAxis::stack)) keep_likest_stack(near, traits.software);
  if (!near.keep_those_that_hold(EvidenceAxis::gpu))
    near.keep(
        [&](const Neighbour& each) { return each.regime->device_family == traits.device_family; });
  near.keep_those_that_hold(EvidenceAxis::cluster);
  // The jobs that other stacks ran say nothing about this one.
  if (near.holds(EvidenceAxis::stack)) near.keep_those_that_hold(EvidenceAxis::job);
  std::ranges::stable_sort(near.nearest, [](const Neighbour& a, const Neighbour& b) {
    return std::pair(num_of_stack(a), num_reasons(a.extrapolation)) <
           std::pair(num_of_stack(b), num_reasons(b.extrapolation));
  });
  return near;
}

/// The shortest interval that holds 0.9 (n+1) of n residuals, or the extremes widened where there are fewer than that. `sorted` are
/// residuals and what each counts, n in all.
std::pair<double, double> shortest_bounds(const std::vector<std::pair<double, double>>& sorted,
                                          std::size_t count) {
  WT_EXPECT(!sorted.empty());
  // 1e-9: 0.9 * 20 is 18, whatever its last bit says.
  const double wanted = interval_share * static_cast<double>(count + 1) - 1e-9;
  double low = sorted.front().first * interval_widening,
         high = sorted.back().first * interval_widening;
  bool is_first = true;
  double held = 0;
  for (std::size_t first = 0, end = 0; first < sorted.size(); held -= sorted[first++].second) {
    while (end < sorted.size() && held < wanted) held += sorted[end++].second;
    if (held < wanted) break;
    const double from = sorted[first].first, to = sorted[end - 1].first;
    if (!is_first && to - from >= high - low) continue;
    is_first = false;
    low = from;
    high = to;
  }
  return {std::min(low, 0.0), std::max(high, 0.0)};
}

std::pair<double, double> bounds_of(const Neighbourhood& near, const UnseenErrors& unseen,
                                    const ScenarioTraits& traits, double outside_kernels) {
  // For a fitted stack, its regimes are better evidence than its own sets.
  const bool is_fitted = near.holds(EvidenceAxis::stack);
  const std::pair<double, double> of_unseen =
      unseen.bounds(is_fitted ? std::nullopt : std::optional(traits.software), outside_kernels,
                    traits.has_experts);
  // Other stacks on these GPUs say less than how far off such stacks were.
  if (!is_fitted && !unseen.sets.empty()) return of_unseen;
  std::pair<double, double> widest{0, 0};
  for (const Neighbour& each : near.nearest) {
    const auto [low, high] = conformal_bounds(each.regime->residuals);
    widest = {std::min(widest.first, low), std::max(widest.second, high)};
  }
  for (const EvidenceAxis axis : {EvidenceAxis::cluster, EvidenceAxis::job})
    if (!near.holds(axis))
      widest = {widest.first * interval_widening, widest.second * interval_widening};
  if (is_fitted && near.holds(EvidenceAxis::gpu)) return widest;
  return {std::min(widest.first, of_unseen.first), std::max(widest.second, of_unseen.second)};
}

/// Unmeasured traits of a scenario on one axis: items of a list, and in full.
struct UnmeasuredTraits {
  std::vector<std::string> items;
  std::string full;
};

/// Mean of the absolute errors.
double mean_error(const std::vector<double>& residuals) {
  double sum = 0;
  for (const double residual : residuals) sum += std::abs(std::exp(-residual) - 1);
  return sum / static_cast<double>(residuals.size());
}

/// "a100 GPUs with peak rate 156 TFLOP/s (measured 312 TFLOP/s)", of many values the first: "… and 27 other values".
std::string with_values(const std::string& part, const std::vector<Difference>& reasons) {
  if (reasons.size() > most_reasons)
    return part + " with " + in_brackets(reasons.front()()) + " and " +
           std::to_string(reasons.size() - 1) + " other values";
  return part + " with " + windtunnel::joined(reasons, " and ", [](const Difference& reason) {
           return in_brackets(reason());
         });
}

/// A stack that nothing was fitted on: what sets say that ran it, or that there are none, and how far the nearest fitted one is.
UnmeasuredTraits unmeasured_traits_of_stack(const Neighbourhood& near, const UnseenErrors& unseen,
                                            const std::string& software) {
  const auto sets = unseen.of_software(software);
  std::string details;
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const auto& [set, residuals] : sets) {
    const double off = mean_error(residuals);
    least = std::min(least, off);
    most = std::max(most, off);
    details +=
        std::to_string(residuals.size()) + " runs in " + set + " " + percent_text(off) + "; ";
  }
  const Neighbour& nearest = near.nearest.front();
  const std::size_t apart = num_of_stack(nearest);
  details += "the nearest stack, " + nearest.regime->software + ", differs in " +
             std::to_string(apart) + (apart == 1 ? " value: " : " values: ") +
             joined(nearest.extrapolation.of(EvidenceAxis::stack));
  const std::string name = "software " + software;
  std::string off;  // of each of two sets, or of the best and the worst
  if (sets.size() > 2)
    off = percent_text(least) + " to " + percent_text(most) + " off on average in " +
          std::to_string(sets.size()) + " sets";
  else
    for (const auto& [set, residuals] : sets)
      off += (off.empty() ? "" : " and ") + percent_text(mean_error(residuals)) +
             (off.empty() ? " off on average in " : " in ") + set;
  const bool is_changed = nearest.regime->software == software;
  return {
      {is_changed
           ? with_values(name, nearest.extrapolation.of(EvidenceAxis::stack))
           : name + (sets.empty() ? " (none of its runs was measured)"
                                  : " (without a fit, predictions of its runs were " + off + ")")},
      (is_changed     ? name + " was not measured with these values"
       : sets.empty() ? "no measured runs of " + name
                      : name + " has no fitted runs, and predictions without a fit were " + off) +
          " (" + details + ")"};
}

UnmeasuredTraits unmeasured_traits_of(const Neighbourhood& near, const UnseenErrors& unseen,
                                      EvidenceAxis axis, const ScenarioTraits& traits) {
  std::set<std::string> families, platforms;
  for (const Neighbour& each : near.nearest) {
    families.insert(each.regime->device_family);
    platforms.insert(each.regime->platforms.begin(), each.regime->platforms.end());
  }
  const std::vector<Difference>& reasons = near.nearest.front().extrapolation.of(axis);
  const std::string all = joined(reasons);
  switch (axis) {
    case EvidenceAxis::stack:
      return unmeasured_traits_of_stack(near, unseen, traits.software);
    case EvidenceAxis::gpu: {
      const std::string gpus = traits.device_family + " GPUs";
      if (families.contains(traits.device_family))
        return {{with_values(gpus, reasons)}, gpus + " unlike those measured (" + all + ")"};
      return {{gpus + " (measured " + listed(families) + ")"},
              gpus + ", measured " + listed(families) + " (" + all + ")"};
    }
    case EvidenceAxis::cluster: {
      const std::string platform = "platform " + traits.platform;
      if (platforms.contains(traits.platform))
        return {{with_values(platform, reasons)},
                platform + " unlike it was measured (" + all + ")"};
      const bool are_few = reasons.size() <= most_reasons;
      return {
          {platform + (are_few ? " (" + all + ")" : "")},
          platform + ", not among those fitted (measured " + listed(platforms) + ": " + all + ")"};
    }
    case EvidenceAxis::job: {
      UnmeasuredTraits unmeasured{{}, all};
      for (const Difference& reason : reasons) {
        if (unmeasured.items.size() == most_reasons) {
          const std::size_t left = reasons.size() - most_reasons;
          unmeasured.items.push_back(std::to_string(left) +
                                     (left == 1 ? " other setting" : " other settings"));
          break;
        }
        unmeasured.items.push_back(in_brackets(reason()));
      }
      return unmeasured;
    }
  }
  WT_UNREACHABLE();
}

/// Traits that none of the nearest regimes contains, axis by axis, in a few words and in full.
std::pair<std::string, std::string> reason_of(const Neighbourhood& near, const UnseenErrors& unseen,
                                              const ScenarioTraits& traits) {
  std::vector<std::string> items;
  std::string full;
  for (const EvidenceAxis axis : near.beyond_axes) {
    const UnmeasuredTraits unmeasured = unmeasured_traits_of(near, unseen, axis, traits);
    items.insert(items.end(), unmeasured.items.begin(), unmeasured.items.end());
    full += (full.empty() ? "" : "; ") + unmeasured.full;
  }
  return {alternatives(items), full};
}

}  // namespace

bool UnseenErrors::is_stand_in(const Set& set) const {
  return !set.software.empty() && std::ranges::none_of(set.software, [&](const std::string& stack) {
    return has_profile(stack);
  });
}

void UnseenErrors::find_allowance() {
  allowance = {};
  std::vector<SizedError> errors;
  for (const auto& [name, set] : sets) {
    if (is_stand_in(set)) continue;
    if (set.outside_kernels.size() != set.residuals.size()) return;
    for (std::size_t i = 0; i < set.residuals.size(); ++i)
      errors.push_back({name, std::abs(set.residuals[i]), set.outside_kernels[i]});
  }
  if (!errors.empty()) allowance = fitted_allowance(errors);
}

std::pair<double, double> UnseenErrors::bounds(const std::optional<std::string>& software,
                                               double outside_kernels, bool experts) const {
  const auto is_near = [&](const Set& set) {
    if (!software) return false;
    return has_profile(*software) ? set.software.contains(*software)
                                  : is_stand_in(set) && set.experts == experts;
  };
  std::vector<const Set*> near, others;
  for (const auto& [name, set] : sets)
    if (is_near(set))
      near.push_back(&set);
    else if (!is_stand_in(set))
      others.push_back(&set);
  const auto all = static_cast<double>(near.size() + others.size());
  if (all == 0) return {0, 0};
  // Of a few stacks without a profile the sign of the next one's error is not known.
  constexpr std::size_t few_sets = 5;
  const bool knows_sign = !software || has_profile(*software) || near.size() >= few_sets;
  std::vector<std::pair<double, double>> weighted;  // a residual, and what it counts
  const auto add = [&](const Set& set, double weight, bool has_sign = true) {
    const double each = weight / static_cast<double>(set.residuals.size());
    for (std::size_t i = 0; i < set.residuals.size(); ++i) {
      const double residual =
          set.residuals[i] / allowance.of(set.outside_kernels.empty() ? 0 : set.outside_kernels[i]);
      weighted.emplace_back(residual, has_sign ? each : each / 2);
      if (!has_sign) weighted.emplace_back(-residual, each / 2);
    }
  };
  const bool are_alike = near.empty() || others.empty();
  const double of_near = are_alike ? 1 : all / static_cast<double>(near.size() + 1),
               of_other = are_alike ? 1 : of_near / static_cast<double>(others.size());
  for (const Set* set : near) add(*set, of_near, knows_sign);
  for (const Set* set : others) add(*set, of_other);
  std::ranges::sort(weighted);
  const auto [low, high] = shortest_bounds(weighted, near.size() + others.size());
  return {low * allowance.of(outside_kernels), high * allowance.of(outside_kernels)};
}

std::map<std::string, std::vector<double>> UnseenErrors::of_software(
    const std::string& name) const {
  std::map<std::string, std::vector<double>> found;
  for (const auto& [set, runs] : sets)
    if (runs.software.contains(name)) found.emplace(set, runs.residuals);
  return found;
}

std::pair<double, double> conformal_bounds(const std::vector<double>& sorted_residuals) {
  std::vector<std::pair<double, double>> weighted;
  for (const double residual : sorted_residuals) weighted.emplace_back(residual, 1);
  return shortest_bounds(weighted, sorted_residuals.size());
}

Interval interval_from(const MeasuredErrors& errors, const ScenarioTraits& traits,
                       Seconds predicted, double outside_kernels) {
  WT_EXPECT(!errors.regimes.empty());
  const Neighbourhood near = neighbourhood_of(errors.regimes, traits);
  Interval interval =
      interval_of(predicted, bounds_of(near, errors.unseen, traits, outside_kernels));
  const bool stack_was_run =
      near.holds(EvidenceAxis::stack) || !errors.unseen.of_software(traits.software).empty();
  interval.basis = near.beyond_axes.empty() ? IntervalBasis::measured
                   : stack_was_run          ? IntervalBasis::extrapolated
                                            : IntervalBasis::unprofiled;
  const EvidenceRegime& nearest = *near.nearest.front().regime;
  if (near.beyond_axes.empty())
    interval.brief = interval.reason =
        std::to_string(nearest.residuals.size()) + " held-out runs of " + listed(nearest.sets);
  else
    std::tie(interval.brief, interval.reason) = reason_of(near, errors.unseen, traits);
  return interval;
}

std::string interval_warning(const Interval& interval) {
  if (interval.basis == IntervalBasis::measured) return {};
  return interval_warning_start +
         std::string(interval.basis == IntervalBasis::extrapolated ? "extrapolated" : "a guess") +
         ": no comparable run that Windtunnel was fitted to had " + interval.brief +
         "; runs of your own narrow it (windtunnel calibrate --advise FILE)";
}

void add_interval(const Scenario& scenario, const Library& library, Report& report) {
  const MeasuredErrors errors = read_evidence(library);
  if (!errors.regimes.empty()) add_interval(scenario, errors, report);
}

void add_interval(const Scenario& scenario, const MeasuredErrors& errors, Report& report) {
  const Interval interval = interval_from(errors, traits_of(scenario), report.iteration_time,
                                          share_outside_kernels(report.breakdown));
  report.iteration_time_interval = {interval.low, interval.high};
  const bool measured = interval.basis == IntervalBasis::measured;
  report.assumptions.push_back({"prediction interval", "90 %", interval.reason,
                                measured ? Evidence::measured : Evidence::assumed});
  if (!measured) report.warnings.push_back(interval_warning(interval));
}

}  // namespace windtunnel
