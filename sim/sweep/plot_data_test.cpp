#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "simulate/objective_value.hpp"
#include "simulate/simulate.hpp"
#include "sweep/results.hpp"
#include "sweep/sweep_fixtures.hpp"
#include "sweep/sweep_plot.hpp"
#include "sweep/sweep_text.hpp"

namespace windtunnel {
namespace {

using testing::SweepFixture;

double number_in(const std::string& row, const char* key) {
  return *number_of(parse_row(row)->content.find(key));
}

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

TEST_CASE("the front has the points that no other beats in days and money") {
  const auto row = [](int point, double days, double cost, const char* fits) {
    return "{\"point\": " + std::to_string(point) + ", \"/nodes\": " + std::to_string(point) +
           ", \"ok\": true, \"fits\": " + fits + ", \"days\": " + std::to_string(days) +
           ", \"cost\": " + std::to_string(cost) + "}";
  };
  PartRows rows;
  rows.by_point[0] = *parse_row(row(0, 40, 100, "true"));
  rows.by_point[1] = *parse_row(row(1, 20, 120, "true"));
  rows.by_point[2] = *parse_row(row(2, 25, 130, "true"));  // slower and dearer than 1
  rows.by_point[3] = *parse_row(row(3, 10, 50, "false"));  // does not fit
  rows.by_point[4] = *parse_row(R"({"point": 4, "ok": false})");
  const std::vector<FrontPoint> points = front_of(rows, {"/nodes"});
  REQUIRE(points.size() == 3);
  CHECK(points[1].priced.label == "nodes 1");
  CHECK(points[0].priced.on_front);
  CHECK(points[1].priced.on_front);
  CHECK_FALSE(points[2].priced.on_front);
  const std::string table = results_csv(rows, {"/nodes"}, {"days", "cost"});
  CHECK(table.find("days,cost,on_front\n") != std::string::npos);
  CHECK(table.find(",120,true\n") != std::string::npos);
  CHECK(table.find(",130,false\n") != std::string::npos);
  CHECK(table.find(",50,\n") != std::string::npos);
}

TEST_CASE("speed-ups over the baseline stand in rows, table and text, with labels and intervals") {
  const SweepFixture fixture;
  const Sweep sweep = fixture.sweep(R"({"points": [
    {"label": "one, alone", "/nodes": 1}, {"label": "two", "/nodes": 2}], "baseline": "two"})");
  const RowMaker maker(sweep, {});
  PartRows rows;
  for (std::size_t point = 0; point < 2; ++point)
    rows.by_point[point] = *parse_row(maker.row(point));
  const double ratio = number_in(rows.by_point[0].line, "tokens_per_s") /
                       number_in(rows.by_point[1].line, "tokens_per_s");
  rows = with_speedups(rows, sweep);
  CHECK(number_in(rows.by_point[0].line, "speedup") == doctest::Approx(ratio).epsilon(1e-12));
  CHECK(number_in(rows.by_point[1].line, "speedup") == 1);
  // Still rows of the sweep that nobody changed.
  CHECK(std::holds_alternative<Row>(read_row(rows.by_point[0].line, sweep)));
  const std::string table = results_csv(rows, sweep.points().columns(), sweep.asked_figures());
  CHECK(table.find("point,id,label,/nodes,ok") == 0);
  CHECK(table.find(",\"one, alone\",1,true,") != std::string::npos);
  const std::string text = sweep_text(sweep, rows, "out");
  CHECK(text.find("speedup: tokens/s over those of point 1, two\n") != std::string::npos);
  CHECK(text.find("1.000x\n") != std::string::npos);
  CHECK(text.find("/nodes") == std::string::npos);
  CHECK(sweep_json(sweep, rows, "out").find("\"baseline\": 1") != std::string::npos);
  CHECK(points_text(sweep).find("2 points: all listed; 0 cannot") != std::string::npos);
  rows.by_point[1].ok = false;
  CHECK(sweep_text(sweep, rows, "out").find("no speed-ups: the baseline") != std::string::npos);
}

TEST_CASE("speed-ups have an interval and a verdict where pairs of runs were measured") {
  const TemporaryFolder folder;
  const Sweep sweep(
      folder.write("s.json", R"({"extends": ")" +
                                 (source_dir() / "scenarios/gpt-8.3b-128xa100.json").string() +
                                 R"(", "sweep": {"points": [{"label": "a"},
      {"label": "b", "/training/micro_batch": 2}], "baseline": "a"}})"),
      Library{source_dir()}, {{}, 0}, {});
  const RowMaker maker(sweep, {});
  PartRows rows;
  for (std::size_t point = 0; point < 2; ++point)
    rows.by_point[point] = *parse_row(maker.row(point));
  rows = with_speedups(rows, sweep);
  const JsonValue row = parse_row(rows.by_point[1].line)->content;
  const auto interval = interval_of(row, speedup_interval_key);
  REQUIRE(interval);
  CHECK(interval->first < figure(row, speedup_key));
  CHECK(interval->second > figure(row, speedup_key));
  CHECK(text_at(row, speedup_verdict_key) == "slower");
  CHECK_FALSE(interval_of(parse_row(rows.by_point[0].line)->content, speedup_interval_key));
  const std::string text = sweep_text(sweep, rows, "out");
  CHECK(text.find("its 90 % interval, ~ where") != std::string::npos);
  CHECK(text.find("x (0.") != std::string::npos);
}

TEST_CASE("another baseline asks for no new rows") {
  const SweepFixture fixture;
  const Sweep none = fixture.sweep(R"({"matrix": {"/nodes": [1, 2]}})");
  const Sweep other =
      fixture.sweep(R"({"matrix": {"/nodes": [1, 2]}})", {{"/sweep/baseline", "1"}});
  CHECK(other.points().baseline() == 1);
  CHECK(none.hash() == other.hash());
}

}  // namespace
}  // namespace windtunnel
