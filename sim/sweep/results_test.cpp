#include "sweep/results.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "sweep/row.hpp"
#include "sweep/sweep_fixtures.hpp"
#include "sweep/sweep_plot.hpp"
#include "sweep/sweep_text.hpp"

namespace windtunnel {
namespace {

using testing::number_in;
using testing::SweepFixture;

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

TEST_CASE("fields of a table stand in quotes where they must") {
  CHECK(csv_line({"a", "b,c", "say \"x\"", "", "two\nlines"}) ==
        "a,\"b,c\",\"say \"\"x\"\"\",,\"two\nlines\"\n");
}

TEST_CASE(
    "the table has a column for each swept pointer and figure, empty where there is nothing") {
  PartRows rows;
  rows.by_point[0] = *parse_row(R"({"point": 0, "id": "aa", "/nodes": 8, "ok": true, "gpus": 64,
                          "iteration_time_s": 1.5, "iteration_time_interval_s": [1, 2.5],
                          "fits": true})");
  rows.by_point[1] = *parse_row(R"({"point": 1, "id": "bb", "/nodes": null, "ok": false,
                                 "failure": "bad_input", "error": "no, \"no\""})");
  CHECK(results_csv(rows, {"/nodes", "/parallel/tensor"}) ==
        "point,id,/nodes,/parallel/tensor,ok,gpus,iteration_time_s,iteration_time_low_s,"
        "iteration_time_high_s,samples_per_s,tokens_per_s,model_tflops_per_gpu,mfu,"
        "memory_max_bytes,fits,memory_verdict,failure,error\n"
        "0,aa,8,,true,64,1.5,1,2.5,,,,,,true,,,\n"
        "1,bb,,,false,,,,,,,,,,,,bad_input,\"no, \"\"no\"\"\"\n");
}

TEST_CASE("no text in the table is a formula, and numbers stay numbers") {
  PartRows rows;
  rows.by_point[0] = *parse_row(R"({"point": 0, "id": "aa", "/a": "=1+1", "/b": "@x", "/c": "+1.5",
                                 "/d": "-cmd|' /C calc'!A0", "/e": -5, "/f": "\t=1", "ok": false,
                                 "failure": "bad_input", "error": "-"})");
  const std::string table = results_csv(rows, {"/a", "/b", "/c", "/d", "/e", "/f"});
  CHECK(table.find("0,aa,'=1+1,'@x,'+1.5,'-cmd|' /C calc'!A0,-5,'\t=1,false") != std::string::npos);
  CHECK(table.ends_with(",bad_input,'-\n"));
}

TEST_CASE("what would act on a terminal is spelt out in the table, and is then no formula either") {
  PartRows rows;
  rows.by_point[0] = *parse_row(
      R"({"point": 0, "id": "aa", "/a": "\u001b[31mred", "/b": "a\u009bb", "/c": "\u202ex",
                                 "/d": ["\u202e"], "/e": "\r=1", "ok": false, "failure": "crash"})");
  const std::string table = results_csv(rows, {"/a", "/b", "/c", "/d", "/e", "/\u202e"});
  CHECK(table.starts_with("point,id,/a,/b,/c,/d,/e,/\\u202e,ok"));
  CHECK(table.find("0,aa,\\u001b[31mred,a\\u009bb,\\u202ex,\"[\"\"\\u202e\"\"]\",\\u000d=1,") !=
        std::string::npos);
}

}  // namespace
}  // namespace windtunnel
