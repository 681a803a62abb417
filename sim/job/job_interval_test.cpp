#include <doctest/doctest.h>

#include "job/job_result.hpp"

namespace windtunnel {
namespace {

/// Steps of a second, restarts without a cost, one failure in `mtbf`: what Young's formula assumes, as long as a stall is short beside it.
JobModel job_with(Seconds stall, Seconds mtbf) {
  JobModel model;
  model.steps = 60 * 86'400;
  model.step = {to_ticks(Seconds{1})};
  model.stall = to_ticks(stall);
  model.failures_per_tick[static_cast<std::size_t>(FailingPart::software)] =
      1 / static_cast<double>(to_ticks(mtbf));
  return model;
}

TEST_CASE("the best interval that is played is within 5 % of Young's and Daly's formulas") {
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

}  // namespace
}  // namespace windtunnel
