#include "simulate/isolated.hpp"

#include <doctest/doctest.h>

#include <memory>

#include "core/testing.hpp"
#include "report/report_json.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

/// Two pipeline stages on the two nodes of a small cut of a shipped platform.
Scenario small_scenario() {
  const Library library{source_dir()};
  Problems problems;
  const auto source = std::make_shared<const SourceText>(SourceText{"small.json", R"({
    "model": "gpt-1.7b", "platform": "selene-a100", "nodes": 2,
    "training": {"global_batch": 8, "micro_batch": 1, "precision": "fp16"},
    "parallel": {"tensor": 8, "pipeline": 2, "data": 1}})"});
  return read_scenario(parse_json(source, problems), library.root, library);
}

TEST_CASE("one process simulates as often as it likes, and gets the same bytes each time") {
  const Scenario scenario = small_scenario();
  const IsolatedOutcome first = simulate_isolated(scenario);
  const IsolatedOutcome second = simulate_isolated(scenario);
  REQUIRE(std::holds_alternative<IsolatedResult>(first));
  const auto& one = std::get<IsolatedResult>(first);
  const auto& two = std::get<IsolatedResult>(second);
  CHECK(one.figures.iteration_time > Seconds{0});
  CHECK(one.figures.iteration_time == two.figures.iteration_time);
  CHECK(without_wall_time(one.report_json) == without_wall_time(two.report_json));
  // Nor does it matter what was simulated before in this process: here, nothing was.
  const Report here = simulate(scenario).report;
  CHECK(here.iteration_time == one.figures.iteration_time);
  CHECK(here.memory.max_total == one.figures.memory_max);
  CHECK(without_wall_time(to_json(here)) == without_wall_time(one.report_json));
}

}  // namespace
}  // namespace windtunnel
