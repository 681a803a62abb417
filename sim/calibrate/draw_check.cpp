#include "calibrate/draw_check.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <utility>

#include "core/contracts.hpp"
#include "core/mapped.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/report_view.hpp"
#include "report/terminal_text.hpp"

namespace windtunnel {
namespace {

using Indices = std::vector<std::size_t>;

/// The first `count` of a random order, and the others; the same for the same seed on every machine.
std::pair<Indices, Indices> draw(std::size_t total, std::size_t count, std::mt19937_64& random) {
  Indices order(total);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = 0; i < count; ++i) std::swap(order[i], order[i + random() % (total - i)]);
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(count);
  return {Indices(order.begin(), middle), Indices(middle, order.end())};
}

/// Times of points at values of one constant, computed when first asked for.
class TimeTable {
 public:
  TimeTable(PointPredictor::Predict exact, std::vector<FitConstant> constants)
      : exact_(std::move(exact)), constants_(std::move(constants)) {}

  Seconds predict(const CalibrationPoint& point, const Overrides& overrides) {
    const double as_given = std::log(at(point, {}).value());
    double logarithm = as_given;
    for (std::size_t j = 0; j < overrides.size(); ++j)
      logarithm += interpolated(point, j, overrides[j]) - as_given;
    return Seconds{std::exp(logarithm)};
  }

 private:
  static constexpr double grid_step = 0.025;  ///< of ln(constant)

  double interpolated(const CalibrationPoint& point, std::size_t j,
                      const std::pair<std::string, std::string>& wanted) {
    const NumberWithUnit& given = point.given[j];
    const FitRange range = range_of(constants_[j], given.number);
    const double position = std::log(std::stod(wanted.second) / given.number) / grid_step;
    const double below = std::floor(position), share = position - below;
    const auto logarithm = [&](double step) {
      const double value = std::clamp(given.number * std::exp(step * grid_step), range.bounds.lower,
                                      range.bounds.upper);
      return std::log(at(point, {{wanted.first, text_of({value, given.unit})}}).value());
    };
    return share < 1e-6 ? logarithm(below)
                        : (1 - share) * logarithm(below) + share * logarithm(below + 1);
  }

  Seconds at(const CalibrationPoint& point, const Overrides& overrides) {
    const std::pair key(&point, overrides);
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = times_.find(key); known != times_.end()) return known->second;
    }
    const Seconds time = exact_(point, overrides);
    const std::lock_guard lock(mutex_);
    return times_.emplace(key, time).first->second;
  }

  PointPredictor::Predict exact_;
  std::vector<FitConstant> constants_;
  std::mutex mutex_;
  std::map<std::pair<const CalibrationPoint*, Overrides>, Seconds> times_;
};

double at_share(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

/// Errors after a calibration over those before.
JsonValue ratios_of(const std::vector<Draw>& draws, double (Draw::*ratio)() const) {
  const std::vector<double> ratios = mapped(draws, ratio);
  return object_of({{"median", at_share(ratios, 0.5)},
                    {"p95", at_share(ratios, 0.95)},
                    {"worst", at_share(ratios, 1)}});
}

}  // namespace

std::vector<Draw> draw_calibrations(const std::vector<CalibrationPoint>& points,
                                    const CalibrationPlan& plan, const DrawPlan& draws,
                                    PointPredictor& predictor) {
  WT_EXPECT(points.size() > draws.rows && !plan.constants.empty());
  ConstantFitter fitter(points, plan, predictor);
  std::mt19937_64 random(plan.seed);
  std::vector<Draw> done;
  for (int i = 0; i < draws.draws; ++i) {
    const auto [drawn, rest] = draw(points.size(), draws.rows, random);
    const ConstantFit fit = fitter.fit(drawn);
    Draw one;
    one.changes_something =
        std::ranges::any_of(fit.kept, [](const auto& kept) { return !kept.has_value(); });
    one.given_error = score(fitter.compare(rest, {})).mape;
    const std::vector<double> values =
        one.changes_something ? fit.fit.values : std::vector<double>{};
    const std::vector<ScoredRow> fitted = fitter.compare(rest, values);
    const AnchoredResiduals anchors = anchors_of(points, drawn, fitter.compare(drawn, values));
    one.fitted_error = score(fitted).mape;
    one.anchored_error = score(anchored(fitted, points, rest, anchors)).mape;
    done.push_back(one);
  }
  return done;
}

JsonValue draws_value(const std::vector<Draw>& draws, const DrawPlan& plan, std::size_t rows) {
  double given_error = 0;
  for (const Draw& one : draws) given_error += one.given_error / static_cast<double>(draws.size());
  return object_of(
      {{"schema", "windtunnel/calibration-draws-v1"},
       {"draws", draws.size()},
       {"rows_drawn", plan.rows},
       {"rows", rows},
       {"changed", std::ranges::count_if(draws, std::mem_fn(&Draw::changes_something))},
       {"given_mape", given_error},
       {"fitted_over_given", ratios_of(draws, &Draw::fitted_ratio)},
       {"anchored_over_given", ratios_of(draws, &Draw::anchored_ratio)}});
}

std::string draws_text(const JsonValue& draws) {
  const html::DataView view{&draws};
  const auto count = [&](const char* pointer) { return fixed_text(view.amount(pointer), 0); };
  const auto row = [&](const char* name, const std::string& pointer) {
    TextRow cells{name};
    for (const char* key : {"/median", "/p95", "/worst"})
      cells.push_back(fixed_text(view.amount(pointer + key), 2));
    return cells;
  };
  return count("/draws") + " draws of " + count("/rows_drawn") + " rows of " + count("/rows") +
         ": error of the rest with the given constants " +
         percent_text(view.amount("/given_mape")) + "\n  a constant is changed in " +
         count("/changed") + " draws\n\n" +
         text_table("lr", {{"error after / before", "median", "95th", "worst"},
                           row("fitted", "/fitted_over_given"),
                           row("fitted and anchored", "/anchored_over_given")});
}

PointPredictor::Predict tabulated(PointPredictor::Predict exact,
                                  const std::vector<FitConstant>& constants) {
  auto table = std::make_shared<TimeTable>(std::move(exact), constants);
  return [table](const CalibrationPoint& point, const Overrides& overrides) {
    return table->predict(point, overrides);
  };
}

}  // namespace windtunnel
