#include "job/job_result.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace windtunnel {
namespace {

/// Steps of a second, restarts without a cost, one failure in `mtbf`: what Young's formula assumes, as long as a stall is short compared with it.
JobModel job_with(Seconds stall, Seconds mtbf) {
  JobModel model;
  model.steps = 60 * 86'400;
  model.step = {to_ticks(Seconds{1})};
  model.stall = to_ticks(stall);
  model.failures_per_tick[static_cast<std::size_t>(FailingPart::software)] =
      1 / static_cast<double>(to_ticks(mtbf));
  return model;
}

TEST_CASE("the best simulated interval is within 5 % of Young's and Daly's formulas") {
  struct Case {
    Seconds stall, mtbf;
  };
  // Young's formula is of first order in sqrt(stall / mtbf), here 0.01 to 0.04.
  for (const Case& each : {Case{Seconds{10}, Seconds{100'000}}, Case{Seconds{5}, Seconds{20'000}},
                           Case{Seconds{40}, Seconds{40'000}}}) {
    const auto curve = interval_curve(job_with(each.stall, each.mtbf), 11, 1);
    REQUIRE(curve);
    const double young = young_interval(each.stall, each.mtbf) / Seconds{1};
    const double daly = daly_interval(each.stall, each.mtbf) / Seconds{1};
    CHECK(curve->best_steps == doctest::Approx(young).epsilon(0.05));
    CHECK(curve->best_steps == doctest::Approx(daly).epsilon(0.05));
  }
}

TEST_CASE("the best interval in time is the same for longer steps") {
  const JobModel model = job_with(Seconds{10}, Seconds{50'000});
  const auto curve = interval_curve(model, 11, 1);
  const auto longer = interval_curve(*with_longer_steps(model, 1.25), 11, 1);
  REQUIRE(curve);
  REQUIRE(longer);
  CHECK(1.25 * longer->best_steps == doctest::Approx(curve->best_steps).epsilon(0.05));
}

TEST_CASE("where nothing fails there is no best interval") {
  JobModel model = job_with(Seconds{10}, Seconds{100'000});
  model.failures_per_tick = {};
  CHECK(!interval_curve(model, 0, 1));
}

TEST_CASE("Young's and Daly's formulas") {
  // sqrt(2 · 50 · 10,000) = 1000 s
  CHECK(young_interval(Seconds{50}, Seconds{10'000}) / Seconds{1} == doctest::Approx(1000));
  // stall / 2 mtbf = 0.0025: 1000 (1 + 0.05 / 3 + 0.0025 / 9) - 50 = 966.94 s
  CHECK(daly_interval(Seconds{50}, Seconds{10'000}) / Seconds{1} ==
        doctest::Approx(966.944).epsilon(1e-5));
  CHECK(daly_interval(Seconds{50}, Seconds{20}) / Seconds{1} == 20);
}

TEST_CASE("runs that are all alike are as uncertain as the step") {
  const JobFigure figure = figure_of({100, 100}, 0.8, 1.5);
  CHECK(figure.median == 100);
  CHECK(figure.low == doctest::Approx(80));
  CHECK(figure.high == doctest::Approx(150));
  CHECK(figure.of_step.low == doctest::Approx(80));
  CHECK(figure.of_step.high == doctest::Approx(150));
  CHECK(figure.of_run.low == 100);
  CHECK(figure.of_run.high == 100);
}

TEST_CASE("a step that is sure leaves the draws' own percentiles") {
  // 5 % and 95 % of the way from 100 to 200
  const JobFigure figure = figure_of({200, 100}, 1, 1);
  CHECK(figure.median == 150);
  CHECK(figure.low == doctest::Approx(105));
  CHECK(figure.high == doctest::Approx(195));
}

TEST_CASE("two draws and a step between half and twice as long meet in one interval") {
  // With z = ln(t / 100) / ln 2 · 1.6449, P(t) = [Φ(z) + Φ(z - 1.6449)] / 2, which is 0.05 at z = -1.2912:
  // Φ(-1.2912) = 0.09832, Φ(-2.9361) = 0.00166. t = 100 · 2^(-1.2912 / 1.6449) = 58.04. Above, the same mirrored at sqrt(100 · 200).
  const JobFigure figure = figure_of({100, 200}, 0.5, 2);
  CHECK(figure.low == doctest::Approx(58.04).epsilon(1e-3));
  CHECK(figure.high == doctest::Approx(20'000 / 58.04).epsilon(1e-3));
  CHECK(figure.median == 150);
}

TEST_CASE("errors that are alike add up as squares do") {
  // 1,999 draws at the quantiles of a normal distribution in logarithms, as wide as the step's: both end at ln 1.1 · sqrt(2).
  std::vector<double> draws;
  const double sigma = std::log(1.1) / 1.6448536;
  for (int i = 1; i < 2000; ++i) {
    double low = -6, high = 6;  // bisection for z
    while (high - low > 1e-9) {
      const double z = (low + high) / 2;
      (std::erfc(-z / std::sqrt(2.0)) / 2 < i / 2000.0 ? low : high) = z;
    }
    draws.push_back(50 * std::exp(sigma * low));
  }
  const JobFigure figure = figure_of(draws, 1 / 1.1, 1.1);
  CHECK(std::log(figure.high / 50) ==
        doctest::Approx(std::log(1.1) * std::sqrt(2.0)).epsilon(0.005));
  CHECK(std::log(figure.low / 50) ==
        doctest::Approx(-std::log(1.1) * std::sqrt(2.0)).epsilon(0.005));
}

TEST_CASE("a step that is never faster than predicted leaves the lower end to the run") {
  // Half of the runs are as predicted: P(t < 100) = 0, P(100) = 1/2.
  const JobFigure figure = figure_of({100}, 1, 1.2);
  CHECK(figure.low == doctest::Approx(100));
  CHECK(figure.high == doctest::Approx(120));
}

TEST_CASE("what costs nothing costs nothing for sure") {
  const JobFigure figure = figure_of({0, 0}, 0.5, 2);
  CHECK(figure.low == 0);
  CHECK(figure.high == 0);
}

TEST_CASE("lengths are in days, below a day in hours, and below an hour in minutes") {
  CHECK(length_unit(1).text(1) == "1.00");
  CHECK(length_unit(0.5).name == std::string("hours"));
  CHECK(length_unit(0.5).text(0.5) == "12.0");
  CHECK(length_unit(0.022).name == std::string("minutes"));
  CHECK(length_unit(0.022).text(0.022) == "31.7");  // 0.022 · 1,440
}

}  // namespace
}  // namespace windtunnel
