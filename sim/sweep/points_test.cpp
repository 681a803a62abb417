#include "sweep/points.hpp"

#include <doctest/doctest.h>

#include "sweep/sweep_fixtures.hpp"

namespace windtunnel {
namespace {

using testing::json;

/// "8,4 8,8 16,4": the values of each point in order.
std::string listed(const SweepPoints& points) {
  std::string text;
  for (std::size_t point = 0; point < points.size(); ++point) {
    text += point == 0 ? "" : " ";
    bool is_first = true;
    for (const auto& [pointer, value] : points.values(point)) {
      text += (is_first ? "" : ",") + canonical_text(value);
      is_first = false;
    }
  }
  return text;
}

TEST_CASE("the last pointer of a matrix changes fastest") {
  const SweepPoints points(
      json(R"({"matrix": {"/nodes": [8, 16], "/parallel/tensor": [1, 2, 4]}})"));
  CHECK(listed(points) == "8,1 8,2 8,4 16,1 16,2 16,4");
  CHECK(points.columns() == std::vector<std::string>{"/nodes", "/parallel/tensor"});
}

TEST_CASE("exclude removes what matches all of an entry, include adds at the end") {
  const SweepPoints points(json(R"({
    "matrix": {"/nodes": [8, 16, 32], "/parallel/tensor": [4, 8]},
    "exclude": [{"/nodes": 8, "/parallel/tensor": 8}, {"/nodes": 32}],
    "include": [{"/nodes": 64, "/training/micro_batch": 2}]})"));
  // 6 combinations, less (8, 8), (32, 4) and (32, 8).
  CHECK(listed(points) == "8,4 16,4 16,8 64,2");
  CHECK(points.num_combinations() == 6);
  CHECK(points.num_excluded() == 3);
  CHECK(points.num_included() == 1);
  CHECK(points.columns().back() == "/training/micro_batch");
}

TEST_CASE("no point is there twice: not by equal values, nor by include") {
  const SweepPoints points(json(R"({
    "matrix": {"/nodes": [8, 8.0, 16]},
    "include": [{"/nodes": 16}, {"/nodes": 32}, {"/nodes": 32}]})"));
  CHECK(listed(points) == "8 16 32");
}

TEST_CASE("a pointer is set everywhere when it is in the matrix and in every included point") {
  const SweepPoints points(json(R"({
    "matrix": {"/nodes": [8], "/parallel/tensor": [4]}, "include": [{"/nodes": 16}]})"));
  CHECK(points.all_set("/nodes"));
  CHECK_FALSE(points.all_set("/parallel/tensor"));
  CHECK_FALSE(points.all_set("/parallel"));
}

TEST_CASE("an excluded point can be included again") {
  const SweepPoints points(json(
      R"({"matrix": {"/nodes": [8, 16]}, "exclude": [{"/nodes": 8}], "include": [{"/nodes": 8}]})"));
  CHECK(listed(points) == "16 8");
}

TEST_CASE(
    "a sweep of which nothing is left, and one of more points than anybody wants, are refused") {
  CHECK_THROWS_AS(SweepPoints(json(R"({"matrix": {"/nodes": [8]}, "exclude": [{"/nodes": 8}]})")),
                  InputError);
  std::string list = "[0";
  for (int i = 1; i < 4000; ++i) list += ", " + std::to_string(i);
  list += "]";
  // 4000 * 4000 combinations
  CHECK_THROWS_AS(SweepPoints(json("{\"matrix\": {\"/nodes\": " + list +
                                   ", \"/training/global_batch\": " + list + "}}")),
                  InputError);
}

TEST_CASE("points are listed without a matrix, and named") {
  const SweepPoints points(json(R"({"points": [
    {"label": "one rack", "/nodes": 8}, {"label": "two racks", "/nodes": 16}, {"/nodes": 32}]})"));
  CHECK(listed(points) == "8 16 32");
  CHECK(points.label(1) == "two racks");
  CHECK(points.label(2).empty());
  CHECK(points.columns() == std::vector<std::string>{"/nodes"});
  CHECK(points.num_combinations() == 0);
  CHECK(points.all_set("/nodes"));
  CHECK_THROWS_AS(SweepPoints(json(R"({"points": []})")), InputError);
}

TEST_CASE("a listed point that the matrix has gives it its label, and two labels are refused") {
  const SweepPoints points(json(R"({"matrix": {"/nodes": [8, 16]}, "exclude": [{"/nodes": 8}],
    "points": [{"label": "today", "/nodes": 16}]})"));
  CHECK(points.size() == 1);
  CHECK(points.label(0) == "today");
  CHECK_THROWS_WITH_AS(
      SweepPoints(
          json(R"({"points": [{"label": "a", "/nodes": 8}, {"label": "b", "/nodes": 8}]})")),
      doctest::Contains("sets the same values as \"a\""), InputError);
}

TEST_CASE("the baseline is named by a label, a number or values that one point has") {
  const auto with = [](const std::string& baseline) {
    return SweepPoints(json(R"({"matrix": {"/nodes": [8, 16], "/parallel/tensor": [4, 8]},
      "points": [{"label": "two racks", "/nodes": 32}], "baseline": )" +
                            baseline + "}"));
  };
  CHECK(with(R"("two racks")").baseline() == 4);
  CHECK(with("1").baseline() == 1);
  CHECK(with(R"({"/parallel/tensor": 4, "/nodes": 16})").baseline() == 2);
  CHECK_FALSE(with("null").baseline());
  CHECK_THROWS_WITH_AS(with(R"("two rack")"), doctest::Contains("did you mean \"two racks\"?"),
                       InputError);
  CHECK_THROWS_WITH_AS(with(R"({"/nodes": 8})"), doctest::Contains("fits 2 points"), InputError);
  CHECK_THROWS_AS(with("5"), InputError);
}

TEST_CASE("a baseline that is the label of one point and the number of another is refused") {
  const auto with = [](const std::string& baseline) {
    return SweepPoints(
        json(R"({"points": [{"label": "1", "/nodes": 8}, {"label": "64", "/nodes": 64}],
      "baseline": )" +
             baseline + "}"));
  };
  CHECK_THROWS_WITH_AS(with("1"), doctest::Contains("fits 2 points"), InputError);
  CHECK_THROWS_WITH_AS(with("1"), doctest::Contains("write the label in quotes"), InputError);
  CHECK(with(R"("1")").baseline() == 0);
  CHECK(with("0").baseline() == 0);
  CHECK(with("64").baseline() == 1);  // no point has this number
}

TEST_CASE("a swept key goes by as much of its pointer as tells it from the others") {
  const std::string backward = "/compression/pipeline_backward/rank",
                    gradients = "/compression/data_gradients/rank";
  CHECK(short_name(backward, {"/nodes", backward}) == "rank");
  CHECK(short_name(backward, {gradients, backward}) == "pipeline_backward/rank");
  CHECK(short_name("/nodes", {"/search/nodes", "/nodes"}) == "nodes");
}

}  // namespace
}  // namespace windtunnel
