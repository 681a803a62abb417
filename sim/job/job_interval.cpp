#include "job/job_interval.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "job/job_player.hpp"
#include "simulate/tasks.hpp"

namespace windtunnel {
namespace {

constexpr double least_factor = 0.4, most_factor = 2.5;
constexpr int num_points = 25;
constexpr double wanted_failures = 20'000;
constexpr double fewest_draws = 20, most_draws = 4'000;

std::vector<std::int64_t> intervals_around(double steps, std::int64_t most) {
  std::vector<std::int64_t> list;
  for (int i = 0; i < num_points; ++i) {
    const double factor =
        least_factor * std::pow(most_factor / least_factor, double(i) / (num_points - 1));
    const auto each = std::llround(steps * factor);
    list.push_back(std::clamp<std::int64_t>(each, 1, most));
  }
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

/// None where a draw does not end.
std::optional<double> mean_seconds(JobModel model, std::int64_t every, std::uint64_t seed,
                                   std::size_t draws) {
  model.checkpoint_every = every;
  double sum = 0;
  for (std::size_t i = 0; i < draws; ++i) {
    const std::optional<JobDraw> draw = play_job_if_it_ends(model, seed, i);
    if (!draw) return {};
    sum += to_seconds(draw->total) / Seconds{1};
  }
  return sum / static_cast<double>(draws);
}

/// Determinant of a 3 × 3 matrix of columns.
using Column = std::array<double, 3>;
double determinant(const Column& a, const Column& b, const Column& c) {
  return a[0] * (b[1] * c[2] - b[2] * c[1]) - b[0] * (a[1] * c[2] - a[2] * c[1]) +
         c[0] * (a[1] * b[2] - a[2] * b[1]);
}

/// Of the curve c + a t + b / t, which is the time of a job to first order (half an interval is lost with each failure, and each
/// interval has a checkpoint), fitted to the points: t = sqrt(b / a).
double lowest_point(const std::vector<IntervalPoint>& points) {
  const auto least = std::ranges::min_element(
      points, [](const auto& a, const auto& b) { return a.mean_seconds < b.mean_seconds; });
  const auto first = points.begin();
  Column t{}, u{}, one{}, y{};
  const double scale = static_cast<double>(least->steps);
  for (auto p = first; p != points.end(); ++p) {
    const double x = static_cast<double>(p->steps) / scale, z = 1 / x;
    const double value = p->mean_seconds - least->mean_seconds;
    const Column row{x, z, 1};
    for (std::size_t i = 0; i < row.size(); ++i) {
      t[i] += row[i] * x;
      u[i] += row[i] * z;
      one[i] += row[i];
      y[i] += row[i] * value;
    }
  }
  const double whole = determinant(t, u, one);
  if (whole == 0) return scale;
  const double a = determinant(y, u, one) / whole, b = determinant(t, y, one) / whole;
  if (!(a > 0) || !(b > 0)) return scale;
  const double low = static_cast<double>(points.front().steps);
  const double high = static_cast<double>(points.back().steps);
  return std::clamp(scale * std::sqrt(b / a), low, high);
}

}  // namespace

std::optional<IntervalCurve> interval_curve(const JobModel& model, std::uint64_t seed,
                                            std::size_t at_once) {
  const double rate = model.failure_rate();
  if (rate <= 0 || model.stall <= 0) return std::nullopt;
  const Seconds mtbf = to_seconds(1) / rate;
  const double step = static_cast<double>(model.step.front());
  const double guess =
      static_cast<double>(to_ticks(daly_interval(to_seconds(model.stall), mtbf))) / step;
  const double failures = std::max(rate * step * static_cast<double>(model.steps), 1e-3);
  const auto draws =
      static_cast<std::size_t>(std::clamp(wanted_failures / failures, fewest_draws, most_draws));
  const std::vector<std::int64_t> intervals = intervals_around(std::max(guess, 1.0), model.steps);
  std::vector<std::optional<double>> means(intervals.size());
  run_on_threads(intervals.size(), at_once,
                 [&](std::size_t i) { means[i] = mean_seconds(model, intervals[i], seed, draws); },
                 {});
  IntervalCurve curve;
  for (std::size_t i = 0; i < intervals.size(); ++i)
    if (means[i]) curve.points.push_back({intervals[i], *means[i]});
  if (curve.points.empty()) return std::nullopt;
  curve.best_steps = lowest_point(curve.points);
  return curve;
}

}  // namespace windtunnel
