#include "calibrate/anchoring.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "core/json_value.hpp"
#include "evidence/evidence.hpp"

namespace windtunnel {
namespace {

/// Of ln(time): held-out rows of measured stacks miss by 5 % (row_noise). Half of that variance, taken as shared among neighbours
/// and as a row's own alike, is what leave-one-row-out errors on the A100 sets allow: a larger shared part makes BigScience's rows worse.
constexpr double shared_spread = row_noise;
/// Of the twelve sets on GPUs up to the A100, their constants left out (`unseen` in validation/residuals.json): rms of their medians.
constexpr double stack_spread = 0.08;
/// How often an end of the interval behind agreed_shift() may lie on the wrong side of the median.
constexpr double most_wrong = 0.125;
/// Of the logarithms of sizes: at a factor e in one of them, 61 % of the shift is left; at 4 in each of two, 15 %. Leave-one-row-out
/// errors on the A100 sets are flat between 0.7 and 1.5.
constexpr double length_scale = 1;

double covariance(const AnchorPlace& a, const AnchorPlace& b) {
  double squared = 0;
  for (std::size_t i = 0; i < a.shares.size(); ++i)
    squared += (a.shares[i] - b.shares[i]) * (a.shares[i] - b.shares[i]);
  return shared_spread * shared_spread * std::exp(-squared / (2 * length_scale * length_scale));
}

bool share_stack(const AnchorPlace& a, const AnchorPlace& b) {
  return !a.stack.empty() && a.stack == b.stack;
}

double own_variance(const AnchorPlace& place) {
  return place.stack.empty() ? row_noise * row_noise : unmeasured_row_noise * unmeasured_row_noise;
}

/// What is believed of an agreed shift: a stack that is further off than most stacks needs more rows to show it. Each row bears witness
/// to one spread of stacks, n spreads in all:  s / sqrt(1 + (s / (n spread))^2). Own; three rows that happen to be the slowest of
/// their set no longer make the others worse than they were (draw_check_test).
double believed_shift(double agreed, std::size_t rows) {
  if (rows == 0) return 0;
  return agreed / std::hypot(1, agreed / (static_cast<double>(rows) * stack_spread));
}

/// Share of the variance of an unmeasured stack's row that so many rows leave; 1 with too few to agree.
double left_by_stack(std::size_t rows) {
  constexpr std::size_t least_rows = 3;
  if (rows < least_rows) return 1;
  const double of_stack = stack_spread * stack_spread,
               of_row = unmeasured_row_noise * unmeasured_row_noise;
  const double left = of_stack * of_row / (static_cast<double>(rows) * of_stack + of_row);
  return (left + of_row) / (of_stack + of_row);
}

/// The process among kin, after what the stack's rows agree on.
AnchoredShift shift_among(const std::vector<const Anchor*>& kin, double agreed,
                          const AnchorPlace& place) {
  if (kin.empty()) return {};
  const auto count = static_cast<Eigen::Index>(kin.size());
  Eigen::MatrixXd among(count, count);
  Eigen::VectorXd towards(count), missed(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    const Anchor& anchor = *kin[static_cast<std::size_t>(i)];
    for (Eigen::Index j = 0; j < count; ++j)
      among(i, j) = covariance(anchor.place, kin[static_cast<std::size_t>(j)]->place) +
                    (i == j ? own_variance(anchor.place) : 0);
    towards(i) = covariance(anchor.place, place);
    missed(i) = anchor.residual - agreed;
  }
  const Eigen::VectorXd weights = among.ldlt().solve(towards);
  const double variance = shared_spread * shared_spread + own_variance(place);
  return {weights.dot(missed), 1 - weights.dot(towards) / variance};
}

}  // namespace

AnchorPlace anchor_place(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  const ScenarioTraits traits = traits_of(scenario);
  const JsonValue* const model = find_at(scenario.resolved, "/model");
  AnchorPlace place;
  place.kin = traits.software + "|" + traits.device_family;
  if (!scenario.software.profiled) place.stack = place.kin;
  place.kin += "|" + std::to_string(plan.parallel.tensor) + "|" +
               (model == nullptr ? "" : canonical_text(*model));
  for (const int size : {plan.parallel.pipeline, plan.parallel.replicas(),
                         plan.training.micro_batch, plan.microbatches})
    place.shares.push_back(std::log(size));
  return place;
}

double agreed_shift(std::vector<double> residuals) {
  std::ranges::sort(residuals);
  const std::size_t count = residuals.size();
  // Of `count` rows, `below` or fewer lie below their median with this probability.
  double term = std::exp2(-static_cast<double>(count)), probability = 0;
  std::size_t below = 0;
  while (below < count && probability + term <= most_wrong) {
    probability += term;
    term *= static_cast<double>(count - below) / static_cast<double>(below + 1);
    ++below;
  }
  if (below == 0) return 0;
  const double low = residuals[below - 1], high = residuals[count - below];
  return low > 0 ? low : std::min(high, 0.0);
}

AnchoredShift AnchoredResiduals::at(const AnchorPlace& place) const {
  std::vector<double> on_stack;
  std::vector<const Anchor*> kin;
  for (const Anchor& anchor : anchors_) {
    if (share_stack(anchor.place, place)) on_stack.push_back(anchor.residual);
    if (anchor.place.kin == place.kin) kin.push_back(&anchor);
  }
  const double agreed = agreed_shift(on_stack);
  const AnchoredShift near = shift_among(kin, agreed, place);
  return {believed_shift(agreed, on_stack.size()) + near.mean,
          left_by_stack(on_stack.size()) * near.left_open};
}

std::size_t AnchoredResiduals::num_near(const AnchorPlace& place) const {
  return static_cast<std::size_t>(std::ranges::count_if(anchors_, [&](const Anchor& anchor) {
    return anchor.place.kin == place.kin || share_stack(anchor.place, place);
  }));
}

}  // namespace windtunnel
