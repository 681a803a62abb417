#include "sweep/sweep_plot.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>
#include <vector>

namespace windtunnel {
namespace {

/// Rows of so many GPUs and tokens a second; they stay, since points of a plot hold them.
struct Drawn {
  int gpus;
  double tokens;
  std::string values;
};
const PartRows& rows_of(const std::vector<Drawn>& all) {
  static std::deque<PartRows> kept;
  PartRows& rows = kept.emplace_back();
  for (const Drawn& each : all) {
    const std::size_t point = rows.by_point.size();
    rows.by_point[point] =
        *parse_row("{\"point\": " + std::to_string(point) + ", " + each.values +
                   ", \"ok\": true, \"gpus\": " + std::to_string(each.gpus) +
                   ", \"tokens_per_s\": " + std::to_string(each.tokens) +
                   ", \"mfu\": 0.4, \"memory_max_bytes\": 1e10, \"fits\": true}");
  }
  return rows;
}

TEST_CASE(
    "the axis is the cluster size where that varies, with efficiencies against the smallest") {
  const auto data =
      plot_data(rows_of({{8, 800, "\"/nodes\": 1"}, {32, 2400, "\"/nodes\": 4"}}), {"/nodes"});
  REQUIRE(data);
  CHECK(data->x_counts_gpus);
  REQUIRE(data->series.size() == 1);
  // 100 tokens/s a GPU on 8, 75 on 32
  CHECK(data->series[0].points[1].efficiency == doctest::Approx(0.75).epsilon(1e-12));
  CHECK(data->series[0].name.empty());
}

TEST_CASE("values that differ distinguish series, and a batch that grows with the size does not") {
  const auto data = plot_data(
      rows_of(
          {{8, 1, R"("/nodes": 1, "/training/global_batch": 8, "/training/micro_batch": 1)"},
           {8, 2, R"("/nodes": 1, "/training/global_batch": 8, "/training/micro_batch": 2)"},
           {16, 3, R"("/nodes": 2, "/training/global_batch": 16, "/training/micro_batch": 2)"},
           {16, 4, R"("/nodes": 2, "/training/global_batch": 16, "/training/micro_batch": 1)"}}),
      {"/nodes", "/training/global_batch", "/training/micro_batch"});
  REQUIRE(data);
  REQUIRE(data->series.size() == 2);
  CHECK(data->series[0].name == "micro_batch 1");
  CHECK(data->series[0].points[1].tokens_per_s == 4);
  CHECK(data->batch_grows);
}

TEST_CASE("two GPU types are no line and have no scaling efficiency") {
  const std::vector<std::string> columns{"/platform", "/training/micro_batch"};
  const auto data =
      plot_data(rows_of({{16, 100, R"("/platform": "t4", "/training/micro_batch": 1)"},
                         {32, 76, R"("/platform": "v100", "/training/micro_batch": 1)"}}),
                columns);
  REQUIRE(data);
  CHECK_FALSE(data->x_counts_gpus);
  CHECK(data->categories == std::vector<std::string>{"t4", "v100"});
  CHECK_FALSE(scaling_of(*data).has_value());
  CHECK_FALSE(data->series[0].points[0].efficiency.has_value());
}

TEST_CASE("each GPU type scales by itself") {
  const auto data = plot_data(rows_of({{16, 100, R"("/platform": "t4", "/nodes": 1)"},
                                       {32, 150, R"("/platform": "t4", "/nodes": 2)"},
                                       {8, 400, R"("/platform": "v100", "/nodes": 1)"},
                                       {16, 720, R"("/platform": "v100", "/nodes": 2)"}}),
                              {"/platform", "/nodes"});
  REQUIRE(data);
  REQUIRE(data->series.size() == 2);
  CHECK(data->series[0].name == "platform t4");
  // 150 / 32 over 100 / 16, and 720 / 16 over 400 / 8
  CHECK(data->series[0].points[1].efficiency == doctest::Approx(0.75).epsilon(1e-12));
  CHECK(data->series[1].points[1].efficiency == doctest::Approx(0.9).epsilon(1e-12));
  const auto scaling = scaling_of(*data);
  REQUIRE(scaling);
  CHECK(scaling->series->name == "platform v100");
  CHECK(scaling->largest->tokens_per_s == 720);
}

TEST_CASE("a plan that changes with the size is another line, unless it follows the size") {
  const auto other = plot_data(rows_of({{8, 100, R"("/nodes": 1, "/parallel/zero_stage": 0)"},
                                        {16, 200, R"("/nodes": 2, "/parallel/zero_stage": 1)"}}),
                               {"/nodes", "/parallel/zero_stage"});
  REQUIRE(other);
  CHECK(other->series.size() == 2);
  CHECK_FALSE(scaling_of(*other).has_value());
  const auto same = plot_data(rows_of({{8, 100, R"("/nodes": 1, "/parallel/data": 2)"},
                                       {16, 200, R"("/nodes": 2, "/parallel/data": 4)"}}),
                              {"/nodes", "/parallel/data"});
  REQUIRE(same);
  CHECK(same->series.size() == 1);
  CHECK(scaling_of(*same).has_value());
}

TEST_CASE("where the size is the same the axis is the first swept number, or names in a row") {
  const auto number = plot_data(
      rows_of({{8, 1, R"("/a": "x", "/b": 4)"}, {8, 2, R"("/a": "x", "/b": 2)"}}), {"/a", "/b"});
  REQUIRE(number);
  CHECK(number->x_name == "b");
  CHECK(number->series[0].points[0].x == 2);
  CHECK_FALSE(number->series[0].points[0].efficiency.has_value());
  const auto labelled = plot_data(
      rows_of({{8, 1, R"("/training/micro_batch": 4)"}, {8, 2, R"("/training/micro_batch": 2)"}}),
      {"/training/micro_batch"});
  REQUIRE(labelled);
  CHECK(labelled->x_name == "microbatch (samples)");
  const auto names =
      plot_data(rows_of({{8, 1, R"("/a": "none")"}, {8, 2, R"("/a": "full")"}}), {"/a"});
  REQUIRE(names);
  CHECK(names->categories == std::vector<std::string>{"none", "full"});
}

TEST_CASE("of too many series those with the fastest points are drawn, each with equal values") {
  std::vector<Drawn> all;
  for (int i = 0; i < 12; ++i)
    for (const int gpus : {8, 16})
      all.push_back({gpus, i == 7 && gpus == 16 ? 99.0 : i,
                     "\"/nodes\": " + std::to_string(gpus / 8) + ", \"/b\": " + std::to_string(i)});
  const auto data = plot_data(rows_of(all), {"/nodes", "/b"});
  REQUIRE(data);
  REQUIRE(data->series.size() == most_series);
  CHECK(data->series[0].name == "b 7");
  CHECK(data->series[0].points[0].tokens_per_s == 7);
  CHECK(data->series[0].points[1].tokens_per_s == 99);
  CHECK(data->others.size() == 8);  // both points of 12 - 8 series
  // The fastest at each size are of two series, and no line.
  CHECK(fastest_points(*data)[0].tokens_per_s == 11);
  CHECK(fastest_points(*data)[1].tokens_per_s == 99);
}

TEST_CASE("a picture draws lines and ideals within a series only") {
  const std::string svg = sweep_svg("x", {"/platform", "/nodes"},
                                    rows_of({{16, 100, R"("/platform": "t4", "/nodes": 1)"},
                                             {32, 150, R"("/platform": "t4", "/nodes": 2)"},
                                             {8, 400, R"("/platform": "v100", "/nodes": 1)"},
                                             {16, 720, R"("/platform": "v100", "/nodes": 2)"}}));
  CHECK(svg.find("class=\"ideal s0\"/>") != std::string::npos);
  CHECK(svg.find("class=\"ideal s1\"/>") != std::string::npos);
  const std::string types =
      sweep_svg("x", {"/platform"},
                rows_of({{16, 100, R"("/platform": "t4")"}, {32, 76, R"("/platform": "v100")"}}));
  CHECK(types.find("<polyline") == std::string::npos);
  CHECK(types.find("<circle class=\"s0") != std::string::npos);
  CHECK(types.find("Scaling efficiency") == std::string::npos);
}

TEST_CASE("a picture needs two points, and names are written as text") {
  CHECK(sweep_svg("x", {"/a"}, rows_of({{8, 1, "\"/a\": 1"}})).empty());
  const std::string svg = sweep_svg("a < b & c", {"/nodes"},
                                    rows_of({{8, 1, "\"/nodes\": 1"}, {16, 2, "\"/nodes\": 2"}}));
  CHECK(svg.find("a &lt; b &amp; c") != std::string::npos);
  CHECK(svg.find("Scaling efficiency") != std::string::npos);
  CHECK(svg.find("nan") == std::string::npos);
  CHECK(svg.find("inf") == std::string::npos);
}

TEST_CASE("amounts are numbers on an axis with their unit, those of several kinds are names") {
  const std::string rate = "/platform/node_types/0/nic_rate";
  const auto row = [&](const std::string& value) {
    return Drawn{8, 1, "\"" + rate + "\": \"" + value + "\""};
  };
  const auto rates =
      plot_data(rows_of({row("200 Gbps"), row("100 Gbps"), row("3.125 GB/s")}), {rate});
  REQUIRE(rates);
  CHECK(rates->x_name == "nic_rate (Gbps)");
  CHECK(rates->categories.empty());
  REQUIRE(rates->series.size() == 1);
  CHECK(rates->series[0].points[0].x == 25);  // 3.125 GB/s are 25 Gb/s
  CHECK(rates->series[0].points[2].x == 200);
  const auto mixed = plot_data(rows_of({row("200 Gbps"), row("1 us")}), {rate});
  REQUIRE(mixed);
  CHECK(mixed->categories == std::vector<std::string>{"200 Gbps", "1 us"});
}

TEST_CASE("points that all have a label stand below each other, with it and their interval") {
  const auto row = [](const std::string& label, int nodes, const char* time) {
    return Drawn{8 * nodes, 1,
                 "\"label\": \"" + label + "\", \"/nodes\": " + std::to_string(nodes) +
                     ", \"iteration_time_s\": " + time +
                     ", \"iteration_time_interval_s\": [8, 12], \"speedup\": 2"};
  };
  const PartRows& rows = rows_of({row("two racks", 2, "10"), row("one rack", 1, "11")});
  const auto data = plot_data(rows, {"/nodes"});
  REQUIRE(data);
  CHECK(data->categories == std::vector<std::string>{"two racks", "one rack"});
  REQUIRE(data->series.size() == 1);
  CHECK(data->series[0].name.empty());
  CHECK(interval_of(data->series[0].points[1].row->content, time_interval_key)->second == 12);
  const std::string svg = sweep_svg("x", {"/nodes"}, rows);
  for (const char* part : {">two racks</text>", "Speed-up over the baseline", "90 % interval",
                           "two racks: 10 s, 90 % interval 8 to 12 s",
                           // 1 token/s in 10 s; 10 / 12 and 10 / 8 tokens/s at the ends
                           "two racks: 1, 90 % interval 0.833 to 1.25<"})
    CHECK_MESSAGE(svg.find(part) != std::string::npos, part);
  CHECK(svg.find("<polyline") == std::string::npos);
}

TEST_CASE("an axis over decades has the unit of the amount in the middle") {
  const std::string rate = "/platform/node_types/0/nic_rate";
  const auto row = [&](const std::string& value) {
    return Drawn{8, 1, "\"" + rate + "\": \"" + value + "\""};
  };
  const PartRows rows = rows_of({row("10 TB/s"), row("1 GB/s"), row("100 MB/s")});
  const auto data = plot_data(rows, {rate});
  REQUIRE(data);
  CHECK(data->x_name == "nic_rate (GB/s)");
  const std::string svg = sweep_svg("x", {rate}, rows);
  for (const char* mark : {">0.1</text>", ">1</text>", ">10,000</text>"})
    CHECK_MESSAGE(svg.find(mark) != std::string::npos, mark);
}

}  // namespace
}  // namespace windtunnel
