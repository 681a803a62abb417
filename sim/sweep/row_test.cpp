#include "sweep/row.hpp"

#include <doctest/doctest.h>

#include <string>

#include "simulate/objective_value.hpp"
#include "simulate/simulate.hpp"
#include "sweep/sweep_fixtures.hpp"

namespace windtunnel {
namespace {

using testing::number_in;
using testing::SweepFixture;

TEST_CASE("days and cost of a point are those of the steps of its job") {
  const SweepFixture fixture;
  const Sweep sweep =
      fixture.sweep(R"({"matrix": {"/nodes": [1, 2]}, "objective": "cost_per_token"})",
                    {{"/job", R"({"steps": 20000, "price": {"gpu_hour": 2}})"}});
  const std::string row = RowMaker(sweep, {}).row(1);
  const double time = number_in(row, "iteration_time_s");
  CHECK(number_in(row, "days") == doctest::Approx(20'000 * time / 86'400));
  CHECK(number_in(row, "cost") == doctest::Approx(20'000 * time / 3600 * 16 * 2));
}

TEST_CASE("the energy of a point counts what its GPUs do") {
  const SweepFixture fixture;
  const std::string job =
      R"({"steps": 1000, "power": {"computing": 400, "communicating": 300, "idle": 100}})";
  const Sweep sweep = fixture.sweep(
      R"({"matrix": {"/nodes": [2]}, "objective": "energy_per_token"})", {{"/job", job}});
  const Scenario scenario = sweep.scenario(0);
  const Report report = simulate(scenario, {}).report;
  const ObjectiveValue value(scenario, Objective::energy_per_token, "/sweep/objective");
  const double expected = value.value(report.iteration_time, shares_of(report.breakdown));
  CHECK(expected < value.value(report.iteration_time, {}));
  CHECK(number_in(RowMaker(sweep, {}).row(0), "energy_per_token") == expected);
}

}  // namespace
}  // namespace windtunnel
