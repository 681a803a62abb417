#include <doctest/doctest.h>

#include "validate/validate.hpp"

namespace windtunnel {
namespace {

TEST_CASE(
    "forward and backward timers meet the last stage's passes, and others are not predicted") {
  MeasurementPoint point;
  point.timers = {{"forward-compute", Seconds{2}},
                  {"backward-compute", Seconds{4}},
                  {"forward-recv", Seconds{9}}};
  PointPrediction predicted;
  predicted.last_stage_forward = Seconds{2.5};
  predicted.last_stage_backward = Seconds{3};
  const auto compared = compare_timers(point, predicted);
  REQUIRE(compared.size() == 2);
  const auto errors = timer_errors(compared);
  CHECK(errors.at("forward-compute").front() == doctest::Approx(0.25));    // 2.5 / 2 - 1
  CHECK(errors.at("backward-compute").front() == doctest::Approx(-0.25));  // 3 / 4 - 1
}

TEST_CASE("a point without timers has nothing to compare") {
  CHECK(compare_timers({}, {}).empty());
}

}  // namespace
}  // namespace windtunnel
