#include "sweep/sweep_svg.hpp"

#include <doctest/doctest.h>

#include "sweep/plot_axis.hpp"
#include "sweep/plot_data.hpp"

namespace windtunnel {
namespace {

/// Rows of so many GPUs and tokens a second.
struct Drawn {
  int gpus;
  double tokens;
  std::string values;
};
PartRows rows_of(const std::vector<Drawn>& all) {
  PartRows rows;
  for (const Drawn& each : all) {
    const std::size_t point = rows.by_point.size();
    rows.by_point[point] = {true,
                            "{\"point\": " + std::to_string(point) + ", " + each.values +
                                ", \"ok\": true, \"gpus\": " + std::to_string(each.gpus) +
                                ", \"tokens_per_s\": " + std::to_string(each.tokens) +
                                ", \"mfu\": 0.4, \"memory_max_bytes\": 1e10, \"fits\": true}"};
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

TEST_CASE(
    "values that differ at the same size tell series apart, and values that follow the size do "
    "not") {
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
}

TEST_CASE("where the size is the same the axis is the first swept number, or names in a row") {
  const auto number = plot_data(
      rows_of({{8, 1, R"("/a": "x", "/b": 4)"}, {8, 2, R"("/a": "x", "/b": 2)"}}), {"/a", "/b"});
  REQUIRE(number);
  CHECK(number->x_name == "/b");
  CHECK(number->series[0].points[0].x == 2);
  CHECK_FALSE(number->series[0].points[0].efficiency.has_value());
  const auto names =
      plot_data(rows_of({{8, 1, R"("/a": "none")"}, {8, 2, R"("/a": "full")"}}), {"/a"});
  REQUIRE(names);
  CHECK(names->categories == std::vector<std::string>{"none", "full"});
}

TEST_CASE("of too many series the fastest that fits is drawn") {
  std::vector<Drawn> all;
  for (int i = 0; i < 12; ++i)
    for (const int gpus : {8, 16})
      all.push_back({gpus, i == 7 ? 99.0 : i, "\"/b\": " + std::to_string(i)});
  const auto data = plot_data(rows_of(all), {"/b"});
  REQUIRE(data);
  REQUIRE(data->series.size() == 1);
  CHECK(data->series[0].points[1].tokens_per_s == 99);
}

TEST_CASE("a picture needs two points, and names are written as text") {
  CHECK(sweep_svg("x", {"/a"}, rows_of({{8, 1, "\"/a\": 1"}})).empty());
  const std::string svg =
      sweep_svg("a < b & c", {"/a"}, rows_of({{8, 1, "\"/a\": 1"}, {16, 2, "\"/a\": 2"}}));
  CHECK(svg.find("a &lt; b &amp; c") != std::string::npos);
  CHECK(svg.find("Scaling efficiency") != std::string::npos);
  CHECK(svg.find("nan") == std::string::npos);
  CHECK(svg.find("inf") == std::string::npos);
}

TEST_CASE("axes end at round numbers") {
  const PlotAxis share = PlotAxis::linear_from_zero({38, 100});
  CHECK(share.marks() == std::vector<double>{0, 20, 40, 60, 80, 100});
  CHECK(share.position(50) == 0.5);
  CHECK(PlotAxis::linear_from_zero({0, 0}).position(0) == 0);
  const PlotAxis sizes = PlotAxis::over({8, 64, 512});
  CHECK(sizes.is_logarithmic());
  CHECK(sizes.position(64) == doctest::Approx(0.5).epsilon(1e-12));
  CHECK(mark_text(1500000) == "1.5 M");
  CHECK(mark_text(2048) == "2,048");
}

}  // namespace
}  // namespace windtunnel
