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

TEST_CASE("a swept key goes by as much of its pointer as tells it from the others") {
  const std::string backward = "/compression/pipeline_backward/rank",
                    gradients = "/compression/data_gradients/rank";
  CHECK(short_name(backward, {"/nodes", backward}) == "rank");
  CHECK(short_name(backward, {gradients, backward}) == "pipeline_backward/rank");
  CHECK(short_name("/nodes", {"/search/nodes", "/nodes"}) == "nodes");
}

}  // namespace
}  // namespace windtunnel
