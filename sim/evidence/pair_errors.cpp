#include "evidence/pair_errors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "core/contracts.hpp"
#include "core/normal.hpp"
#include "evidence/evidence.hpp"
#include "report/number_text.hpp"
#include "report/report_view.hpp"

namespace windtunnel {
namespace {

constexpr double sure_from = 0.9;  ///< of orders, right
constexpr double about = 0.03;     ///< of a time: what nobody chooses by
constexpr std::size_t most_scores = 20;

/// "gpt-39b, 39.1 B": names may be shared by sizes, and sizes by models.
std::string model_text(const std::string& name, double parameters) {
  return name + ", " + parameter_text(parameters);
}

bool is_pair(const JudgedRun& a, const JudgedRun& b) {
  const bool all_known = !a.software.empty() && !a.gpu.empty() && !a.model.empty();
  return all_known && a.software == b.software && a.gpu == b.gpu && a.model == b.model;
}

std::vector<SizedError> pairs_of(const std::vector<MeasuredRun>& runs) {
  std::vector<SizedError> pairs;
  const auto residual = [](const MeasuredRun& run) {
    return std::log(run.measured / run.predicted.time);
  };
  for (std::size_t i = 0; i < runs.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const JudgedRun &a = runs[i].predicted, &b = runs[j].predicted;
      if (runs[i].set == runs[j].set && is_pair(a, b))
        pairs.push_back({runs[i].set, std::abs(residual(runs[i]) - residual(runs[j])),
                         share_moved(a.breakdown, b.breakdown)});
    }
  return pairs;
}

/// Sorted, and thinned to the middles of `most_scores` parts alike.
std::vector<double> thinned(std::vector<double> scores) {
  std::ranges::sort(scores);
  if (scores.size() <= most_scores) return scores;
  std::vector<double> kept;
  for (std::size_t i = 0; i < most_scores; ++i)
    kept.push_back(scores[(2 * i + 1) * scores.size() / (2 * most_scores)]);
  return kept;
}

/// The verdict on a second run that is predicted to be faster by `gain`, ln of the ratio; `beyond(x)`: how often the error of a gain is
/// larger than x on one given side.
template <class Beyond>
void judge(double gain, const Beyond& beyond, Ordering& ordering) {
  ordering.sure = 1 - beyond(std::abs(gain));
  const double close = std::log1p(about), apart = std::abs(gain);
  const double inside = 1 - beyond(close + apart) -
                        (apart < close ? beyond(close - apart) : 1 - beyond(apart - close));
  if (ordering.sure >= sure_from)
    ordering.verdict = gain > 0 ? OrderVerdict::faster : OrderVerdict::slower;
  else
    ordering.verdict = inside >= 0.5 ? OrderVerdict::about_the_same : OrderVerdict::not_known;
}

/// Errors may be larger than a number can say.
std::optional<Ordering> if_finite(Ordering ordering) {
  if (!(ordering.interval.first > 0) || !std::isfinite(ordering.interval.second))
    return std::nullopt;
  return ordering;
}

std::string pairs_text(const PairErrors& errors) {
  return "pairs of plans in " + std::to_string(errors.sets.size()) + " measurement sets";
}

}  // namespace

JudgedRun judged_run(const Scenario& scenario, Seconds time, const Breakdown& breakdown,
                     std::optional<std::pair<Seconds, Seconds>> interval) {
  return {scenario.software.name,
          device_family(scenario.nodes),
          model_text(scenario.model.name, total_parameters(scenario.model)),
          time,
          breakdown,
          interval};
}

JudgedRun JudgedRun::scaled(double work) const {
  JudgedRun run = *this;
  run.time = time * work;
  if (interval) run.interval = {interval->first * work, interval->second * work};
  return run;
}

JudgedRun judged_run(const JsonValue& report) {
  const html::DataView view{&report};
  JudgedRun run{view.text("/job/software"),
                view.text("/job/gpu_family"),
                model_text(view.text("/job/model"), view.amount("/job/parameters")),
                Seconds{view.amount("/iteration_time_s")},
                {},
                {}};
  for (const Line line : all_lines)
    run.breakdown.add(line, Seconds{view.amount(std::string("/breakdown_s/") + name_of(line))});
  const Seconds low{view.amount("/iteration_time_interval_s/0")},
      high{view.amount("/iteration_time_interval_s/1")};
  if (low > Seconds{} && low <= run.time && run.time <= high) run.interval = {low, high};
  return run;
}

double share_moved(const Breakdown& a, const Breakdown& b) {
  if (!(a.total() > Seconds{}) || !(b.total() > Seconds{})) return 1;  // nothing is known
  double sum = 0;
  for (const Line line : all_lines)
    sum += std::abs(a.of(line) / a.total() - b.of(line) / b.total());
  return sum / 2;
}

double PairErrors::share_beyond(double score) const {
  double sum = 0;
  for (const auto& [name, scores] : sets) {
    const auto beyond = scores.end() - std::lower_bound(scores.begin(), scores.end(), score);
    sum += static_cast<double>(beyond) / static_cast<double>(scores.size());
  }
  return (sum + 1) / (static_cast<double>(sets.size()) + 1);
}

void PairErrors::find_bounds() {
  constexpr int halvings = 60;
  double most = 0;
  for (const auto& [name, scores] : sets) most = std::max(most, scores.back());
  const auto found = [&](double outside) {
    double below = 0, beyond = most * interval_widening;
    if (share_beyond(beyond) > outside) return beyond;
    for (int i = 0; i < halvings; ++i) {
      const double middle = (below + beyond) / 2;
      (share_beyond(middle) <= outside ? beyond : below) = middle;
    }
    return beyond;
  };
  constexpr double rounding = 1e-9;  // 2 of 20 are a tenth, whatever their last bits say
  bound = found(1 - interval_share + rounding);
  order_bound = found(2 * (1 - sure_from) + rounding);
}

PairErrors pair_errors(const std::vector<MeasuredRun>& runs) {
  const std::vector<SizedError> pairs = pairs_of(runs);
  PairErrors errors;
  if (pairs.empty()) return errors;
  errors.allowance = fitted_allowance(pairs);
  for (const SizedError& pair : pairs)
    errors.sets[pair.set].push_back(pair.error / errors.allowance.of(pair.share));
  for (auto& [name, scores] : errors.sets) scores = thinned(std::move(scores));
  errors.find_bounds();
  return errors;
}

std::optional<double> least_known_gain(const JudgedRun& a, const JudgedRun& b,
                                       const PairErrors& errors) {
  if (!is_pair(a, b) || errors.sets.empty()) return std::nullopt;
  return errors.order_bound * errors.allowance.of(share_moved(a.breakdown, b.breakdown));
}

OrderScore score_orders(const std::vector<MeasuredRun>& runs, const PairErrors& errors) {
  OrderScore score;
  for (std::size_t i = 0; i < runs.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const MeasuredRun &a = runs[i], &b = runs[j];
      if (!is_pair(a.predicted, b.predicted)) continue;
      const std::optional<Ordering> said = order(a.predicted, b.predicted, errors);
      if (!said) continue;
      ++score.pairs;
      const double measured = a.measured / b.measured;
      if (measured >= said->interval.first && measured <= said->interval.second) ++score.covered;
      if (std::abs(std::log(measured)) <= std::log(1 + about)) continue;
      ++score.apart;
      constexpr double rounding = 1e-9;
      const bool is_right = (measured > 1) == (said->ratio > 1);
      score.right += std::abs(std::log(said->ratio)) < rounding ? 0.5 : is_right;
      if (!said->is_known()) continue;
      ++score.said;
      score.said_right += is_right;
    }
  return score;
}

std::optional<Ordering> order(const JudgedRun& first, const JudgedRun& second,
                              const PairErrors& errors) {
  Ordering ordering;
  ordering.ratio = first.time / second.time;
  const double gain = std::log(ordering.ratio);
  if (!std::isfinite(gain)) return std::nullopt;
  if (is_pair(first, second) && !errors.sets.empty()) {
    const double allowance = errors.allowance.of(share_moved(first.breakdown, second.breakdown));
    const double bound = errors.bound * allowance;
    ordering.interval = {std::exp(gain - bound), std::exp(gain + bound)};
    judge(
        gain, [&](double x) { return errors.share_beyond(x / allowance) / 2; }, ordering);
    ordering.reason = pairs_text(errors);
    return if_finite(std::move(ordering));
  }
  if (!first.interval || !second.interval) return std::nullopt;
  const auto ends = [](const JudgedRun& run) {
    return std::pair(std::log(run.interval->first / run.time),
                     std::log(run.interval->second / run.time));
  };
  const auto [first_low, first_high] = ends(first);
  const auto [second_low, second_high] = ends(second);
  const double below = std::hypot(first_low, second_high),
               above = std::hypot(first_high, second_low);
  ordering.interval = {std::exp(gain - below), std::exp(gain + above)};
  // Residuals of one sign leave a side of an interval without width: the mean of both sides stands for both.
  const double spread = (below + above) / 2 / normal_95th;
  if (!(spread > 0)) return std::nullopt;
  judge(
      gain, [spread](double x) { return normal_below(-x / spread); }, ordering);
  ordering.reason = "the intervals of both, as if their errors were independent";
  return if_finite(std::move(ordering));
}

namespace {

/// A number and what it counts.
using Weighted = std::pair<double, double>;

/// The first of the sorted numbers at which `share` of the weight is reached.
double weighted_quantile(std::vector<Weighted> numbers, double share) {
  WT_EXPECT(!numbers.empty());
  std::ranges::sort(numbers);
  const double weight =
      std::accumulate(numbers.begin(), numbers.end(), 0.0,
                      [](double sum, const Weighted& each) { return sum + each.second; });
  const double wanted = share * weight - 1e-9;
  double held = 0;
  for (const auto& [number, counts] : numbers)
    if ((held += counts) >= wanted) return number;
  return numbers.back().first;
}

}  // namespace

Allowance fitted_allowance(const std::vector<SizedError>& errors) {
  std::map<std::string, double> count;
  for (const SizedError& each : errors) ++count[each.set];
  std::vector<Weighted> shares;
  for (const SizedError& each : errors) shares.emplace_back(each.share, 1 / count[each.set]);
  const double few = weighted_quantile(shares, 1.0 / 3), much = weighted_quantile(shares, 2.0 / 3);
  std::array<std::vector<Weighted>, 2> error_of, share_of;  // of the outer thirds
  for (const SizedError& each : errors) {
    if (each.share > few && each.share < much) continue;
    const std::size_t third = each.share <= few ? 0 : 1;
    error_of[third].emplace_back(each.error, 1 / count[each.set]);
    share_of[third].emplace_back(each.share, 1 / count[each.set]);
  }
  constexpr double half = 0.5, least = 1e-4;
  Allowance fitted{std::max(weighted_quantile(error_of[0], half), least), 0};
  if (error_of[1].empty()) return fitted;  // all alike
  const double near = weighted_quantile(share_of[0], half),
               far = weighted_quantile(share_of[1], half);
  fitted.growth =
      std::max((weighted_quantile(error_of[1], half) - fitted.base) / (far - near), 0.0);
  fitted.base = std::max(fitted.base - fitted.growth * near, least);
  return fitted;
}

double share_outside_kernels(const Breakdown& breakdown) {
  const Seconds total = breakdown.total();
  return total > Seconds{} ? 1 - breakdown.of(Line::compute) / total : 0;
}

}  // namespace windtunnel
