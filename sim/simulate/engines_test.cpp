#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "core/testing.hpp"
#include "simulate/forked_fixtures.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

TEST_CASE("SimGrid and the native engine give the same time for every shipped scenario") {
  const Library library{source_dir()};
  std::vector<Scenario> scenarios;
  for (const std::string& name : library.names("scenarios")) {
    ReadOptions options;
    if (name.starts_with("pipette")) options.overrides = {{"/parallel/placement", "megatron"}};
    scenarios.push_back(
        read_scenario(library.root / "scenarios" / (name + ".json"), library, options));
  }
  REQUIRE(scenarios.size() >= 20);
  const std::vector<ChildOutcome> outcomes =
      testing::run_forked(scenarios.size(), default_at_once(), [&](std::size_t i) {
        SimulateOptions options;
        options.make_engine = make_simgrid_engine;
        return std::to_string(simulate(scenarios[i], options).report.iteration_time / 1_us);
      });
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    CAPTURE(scenarios[i].name);
    REQUIRE(std::holds_alternative<std::string>(outcomes[i]));
    const double native = simulate(scenarios[i]).report.iteration_time / 1_us;
    CHECK(std::stod(std::get<std::string>(outcomes[i])) == doctest::Approx(native).epsilon(1e-9));
  }
}

}  // namespace
}  // namespace windtunnel
