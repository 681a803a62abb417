#include "calibrate/calibrate.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace windtunnel {
namespace {

/// Points of three model sizes, of which nothing but measured times and `given` is looked at. The
/// "model": time = 10 size / a + b, with a in ratio and b in ms; truth a = 0.8, b = "50 ms".
std::vector<CalibrationPoint> synthetic_points() {
  std::vector<CalibrationPoint> points;
  for (int i = 0; i < 12; ++i) {
    CalibrationPoint point;
    point.set = "synthetic";
    point.id = std::to_string(i);
    point.size = std::to_string(i % 3) + "B";
    point.scenario = JsonValue(JsonValue::Object{});
    point.scenario.set("work", JsonValue(0.01 * (i + 1)));
    point.measured = Seconds{0.01 * (i + 1) / 0.8 + 0.050};
    point.traits = {"s", "a100", "p", {{"gpus", i + 1}}, {}, {}};
    point.given = {{0.5, ""}, {20, " ms"}};
    points.push_back(point);
  }
  return points;
}

Seconds fake_predict(const CalibrationPoint& point, const Overrides& overrides) {
  double a = point.given[0].number, b = point.given[1].number;
  for (const auto& [pointer, text] : overrides) (pointer == "/a" ? a : b) = std::stod(text);
  const double work = std::get<double>(point.scenario.find("work")->content);
  return Seconds{work / a + b / 1000};
}

CalibrationPlan plan_of(std::vector<std::string> names) {
  CalibrationPlan plan;
  plan.prior = PriorKind::none;
  for (const std::string& name : names) plan.constants.push_back(parse_fit_constant(name));
  return plan;
}

Calibration calibrate_fake(const std::vector<CalibrationPoint>& points,
                           const CalibrationPlan& plan) {
  PointPredictor predictor(points, plan.constants, fake_predict);
  return calibrate(points, plan, predictor);
}

TEST_CASE("constants behind synthetic measurements are recovered within 1 %") {
  const Calibration calibration = calibrate_fake(synthetic_points(), plan_of({"/a", "/b"}));
  REQUIRE(calibration.constants.size() == 2);
  CHECK(calibration.constants[0].value == doctest::Approx(0.8).epsilon(0.01));
  CHECK(calibration.constants[1].value == doctest::Approx(50).epsilon(0.01));
  CHECK(calibration.constants[1].given.unit == " ms");
  CHECK(calibration.constants[0].identification == Identification::good);
  CHECK(score(calibration.in_sample).mape < 1e-3);
  CHECK(score(all_of(calibration.by_size)).mape < 1e-3);
}

TEST_CASE("every row is held out once by size and once by fold") {
  const Calibration calibration = calibrate_fake(synthetic_points(), plan_of({"/a", "/b"}));
  CHECK(calibration.by_size.size() == 3);
  CHECK(calibration.by_fold.size() == 5);
  CHECK(all_of(calibration.by_size).size() == 12);
  CHECK(all_of(calibration.by_fold).size() == 12);
}

TEST_CASE("a held-out size is not seen by its refit") {
  auto points = synthetic_points();
  for (CalibrationPoint& point : points)
    if (point.size == "1B") point.measured = point.measured * 2;
  const Calibration calibration = calibrate_fake(points, plan_of({"/a", "/b"}));
  // Without 1B all rows follow the truth, so that 1B is predicted at half of what was measured.
  CHECK(score(calibration.by_size[1].comparisons).mape == doctest::Approx(0.5).epsilon(0.01));
  CHECK(calibration.by_size[1].values[0] == doctest::Approx(0.8).epsilon(0.01));
}

TEST_CASE("a constant that stops at its bound, and one without effect, are called that") {
  const Calibration bound = calibrate_fake(synthetic_points(), plan_of({"/a=0.5..0.6", "/b"}));
  CHECK(bound.constants[0].identification == Identification::at_bound);
  CHECK(bound.constants[0].side() == BoundSide::upper);
  CHECK(bound.constants[1].side() == BoundSide::inside);
  auto points = synthetic_points();
  for (CalibrationPoint& point : points) point.given.push_back({3, ""});
  CalibrationPlan plan = plan_of({"/a", "/b", "/c"});
  PointPredictor predictor(points, plan.constants, [](const CalibrationPoint& point, Overrides o) {
    if (!o.empty()) o.pop_back();
    return fake_predict(point, o);
  });
  const Calibration calibration = calibrate(points, plan, predictor);
  CHECK(calibration.constants[2].identification == Identification::no_effect);
  CHECK(calibration.constants[0].value == doctest::Approx(0.8).epsilon(0.01));
}

TEST_CASE("a constant without effect is at a bound only where it was moved there") {
  const auto no_effect = [](const CalibrationPoint& point, const Overrides&) {
    return fake_predict(point, {});
  };
  const auto fitted = [&](const std::string& constant) {
    const auto points = synthetic_points();
    const CalibrationPlan plan = plan_of({constant});
    PointPredictor predictor(points, plan.constants, no_effect);
    return calibrate(points, plan, predictor).constants[0];
  };
  // The files have 0.5.
  CHECK(fitted("/a=0.5..2").identification == Identification::no_effect);
  const FittedConstant moved = fitted("/a=0.9..2");
  CHECK(moved.value == doctest::Approx(0.9));
  CHECK(moved.identification == Identification::at_bound);
  CHECK(moved.side() == BoundSide::lower);
}

TEST_CASE("a constant that a single row decides is called that") {
  auto points = synthetic_points();
  CalibrationPlan plan = plan_of({"/a"});
  PointPredictor predictor(points, plan.constants,
                           [](const CalibrationPoint& point, const Overrides& overrides) {
                             return fake_predict(point, point.id == "3" ? overrides : Overrides{});
                           });
  const Calibration calibration = calibrate(points, plan, predictor);
  CHECK(calibration.constants[0].largest_share == doctest::Approx(1));
  CHECK(calibration.constants[0].identification == Identification::one_row);
}

CalibrationPlan plan_with_prior(std::vector<std::string> names) {
  CalibrationPlan plan = plan_of(std::move(names));
  plan.prior = PriorKind::shipped;
  return plan;
}

/// Time = 0.95 / compute + 0.05 / link, in which the rows say much of `compute` and little of `link`.
Calibration calibrate_three_rows(double measured_of_first) {
  std::vector<CalibrationPoint> points = synthetic_points();
  points.resize(3);
  for (CalibrationPoint& point : points) {
    point.given = {{1, ""}, {0.85, ""}};
    point.measured = Seconds{1.25};
  }
  points[0].measured = Seconds{measured_of_first};
  const CalibrationPlan plan = plan_with_prior({"/software/compute_efficiency", "nic_efficiency"});
  PointPredictor predictor(
      points, plan.constants, [](const CalibrationPoint& point, Overrides set) {
        double compute = point.given[0].number, link = point.given[1].number;
        for (const auto& [pointer, text] : set)
          (pointer.starts_with("/software") ? compute : link) = std::stod(text);
        return Seconds{0.95 / compute + 0.05 * 0.85 / link};
      });
  return calibrate(points, plan, predictor);
}

TEST_CASE("a constant that three rows do not identify keeps its value, and the other is fitted") {
  const Calibration calibration = calibrate_three_rows(1.25);
  const FittedConstant& compute = calibration.constants[0];
  const FittedConstant& link = calibration.constants[1];
  // 0.95 / c + 0.05 = 1.25 at c = 0.792; the prior of 30 % pulls it back by less than 2 %.
  CHECK_FALSE(compute.is_kept());
  CHECK(compute.value == doctest::Approx(0.792).epsilon(0.02));
  // Rows of an unmeasured stack scatter by 0.12, less as these agree: sqrt(2 * 0.12^2 / (2 + 3 - 2)) = 0.098, over sqrt(3) * 0.95.
  CHECK(compute.posterior_width == doctest::Approx(0.0596).epsilon(0.02));
  CHECK(link.identification == Identification::prior_only);
  CHECK(link.value == doctest::Approx(0.85));
  CHECK(link.prior_width == doctest::Approx(0.25));
}

TEST_CASE(
    "a value that the rows agree with, and rows that contradict one another, change nothing") {
  std::vector<CalibrationPoint> points = synthetic_points();
  for (CalibrationPoint& point : points) point.measured = fake_predict(point, {}) * 1.01;
  const Calibration agrees = calibrate_fake(points, plan_with_prior({"/a"}));
  CHECK(agrees.constants[0].identification == Identification::agrees);
  CHECK(agrees.constants[0].value == 0.5);
  // It weighs what it weighs: work / 0.5 of a time of work / 0.5 + 20 ms, of 0.01 to 0.12 s of work: 0.50 to 0.92, 0.82 in the mean.
  CHECK(agrees.constants[0].sensitivity == doctest::Approx(0.82).epsilon(0.01));
  CHECK(agrees.constants[0].favoured == doctest::Approx(0.495).epsilon(0.02));
  CHECK(score(agrees.in_sample).mape == score(agrees.as_given).mape);
  // Two of three rows are 60 % slow and the third is exact: no constant of all three is at fault.
  points.resize(3);
  for (CalibrationPoint& point : points)
    point.measured = fake_predict(point, {}) * (point.id == "0" ? 1.0 : 1.6);
  const Calibration contradicted = calibrate_fake(points, plan_with_prior({"/a"}));
  CHECK(contradicted.constants[0].is_kept());
  CHECK(contradicted.constants[0].value == 0.5);
}

TEST_CASE("two rows 9 % off are too few to move a constant of a stack that nobody measured") {
  // Rows of such a stack miss by 11 %, two of them by 11 / sqrt(2) = 7.8 % in the mean: 9 % is less than twice that.
  std::vector<CalibrationPoint> points = synthetic_points();
  for (CalibrationPoint& point : points) point.measured = fake_predict(point, {}) * 1.09;
  points.erase(points.begin() + 2, points.end());
  const Calibration kept = calibrate_fake(points, plan_with_prior({"/a"}));
  CHECK(kept.constants[0].identification == Identification::agrees);
  CHECK(kept.constants[0].sensitivity > 0.4);
  CHECK(kept.constants[0].favoured < 0.47);
}

TEST_CASE("a jump of the time is no weight of a constant") {
  const auto points = synthetic_points();
  CalibrationPlan plan = plan_of({"/a"});
  // In proportion to 1 / a, and 0.5 % more below 0.8004, which the fit ends next to.
  PointPredictor predictor(
      points, plan.constants, [](const CalibrationPoint& point, const Overrides& overrides) {
        const double a = overrides.empty() ? 0.5 : std::stod(overrides.front().second);
        return point.measured * (0.8 / a * (a < 0.8004 ? 1 : 0.995));
      });
  // 1, and 0.5 % of time over 2 % of the constant; over the 0.1 % of a fit's differences it were 6.
  CHECK(calibrate(points, plan, predictor).constants[0].sensitivity ==
        doctest::Approx(1.25).epsilon(0.01));
}

TEST_CASE("a constant of a measured stack has a narrower prior than one of a stack of one's own") {
  const FitConstant compute = parse_fit_constant("compute_efficiency");
  CHECK(prior_spread(compute, StackKnowledge::known) == doctest::Approx(0.05));
  CHECK(prior_spread(compute, StackKnowledge::unmeasured) == doctest::Approx(0.30));
  // The stack's profile says nothing of the cluster.
  const FitConstant nic = parse_fit_constant("nic_efficiency");
  CHECK(prior_spread(nic, StackKnowledge::known) == doctest::Approx(0.25));
}

TEST_CASE("sets weigh the same however many rows they have") {
  auto points = synthetic_points();
  for (std::size_t i = 0; i < points.size(); ++i) {
    points[i].set = i < 10 ? "many" : "few";
    points[i].measured = fake_predict(points[i], {{"/a", "0.8"}}) * (i < 10 ? 1.0 : 1.02);
  }
  const Calibration calibration = calibrate_fake(points, plan_of({"/a"}));
  // By set, the 2 % between them is split in halves; by rows, the few would keep 10/12 of it.
  const Score few = score({calibration.in_sample[10], calibration.in_sample[11]});
  CHECK(few.mape < 0.013);
  CHECK(few.mape > 0.007);
}

TEST_CASE("nothing fitted is everything scored as given, and evidence for its regime") {
  const auto points = synthetic_points();
  const Calibration calibration = calibrate_fake(points, {});
  CHECK(calibration.constants.empty());
  CHECK(score(calibration.in_sample).mape == score(calibration.as_given).mape);
  const auto regimes = evidence_of(points, calibration);
  REQUIRE(regimes.size() == 1);
  CHECK(regimes[0].residuals.size() == 12);
  CHECK(regimes[0].ranges.at("gpus") == std::pair<double, double>{1, 12});
  CHECK(regimes[0].sets == std::set<std::string>{"synthetic"});
  // Row 0: measured 0.0125 + 0.05, as given 0.02 + 0.02.
  CHECK(regimes[0].residuals.back() == doctest::Approx(std::log(0.0625 / 0.04)));
}

TEST_CASE("model sizes are named by two digits of their parameters") {
  CHECK(size_name(1.7465e11) == "170B");
  CHECK(size_name(18.4e9) == "18B");
  CHECK(size_name(3.61e9) == "3.6B");
  CHECK(size_name(1.25e8) == "0.13B");
}

}  // namespace
}  // namespace windtunnel
