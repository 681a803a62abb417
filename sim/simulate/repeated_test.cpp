#include <doctest/doctest.h>

#include <memory>

#include "core/testing.hpp"
#include "report/report_json.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

TEST_CASE("one process simulates as often as it likes, and gets the same bytes each time") {
  // Two pipeline stages on the two nodes of a small cut of a shipped platform.
  const Library library{source_dir()};
  Problems problems;
  const auto source = std::make_shared<const SourceText>(SourceText{"small.json", R"({
    "model": "gpt-1.7b", "platform": "selene-a100", "nodes": 2,
    "training": {"global_batch": 8, "micro_batch": 1, "precision": "fp16"},
    "parallel": {"tensor": 8, "pipeline": 2, "data": 1}})"});
  const Scenario scenario = read_scenario(parse_json(source, problems), library.root, library);
  const std::string first = to_json(simulate(scenario).report);
  CHECK(without_wall_time(first) == without_wall_time(to_json(simulate(scenario).report)));
}

}  // namespace
}  // namespace windtunnel
