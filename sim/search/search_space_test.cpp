#include "search/search_space.hpp"

#include <doctest/doctest.h>

#include <string>

#include "core/problem.hpp"
#include "search/testing.hpp"

namespace windtunnel {
namespace {

using Ints = std::vector<int>;  // of recompute: none 0, selective 1, full 2

TEST_CASE("without a block the search tries what the cluster and the model allow") {
  const SearchSpace space = search_space(on_two_nodes("{}"));
  CHECK(space.gpus == 16);
  CHECK(space.of("tensor") == Ints{1, 2, 4, 8});    // divisors of a node's 8 GPUs
  CHECK(space.of("pipeline") == Ints{1, 2, 4, 8});  // divisors of 16 GPUs, at most 12 layers
  CHECK(space.of("data").empty());
  CHECK(space.of("micro_batch") == Ints{1, 2, 4, 8, 16, 32});
}

TEST_CASE("what is not listed stays as the file has it") {
  const SearchSpace space = search_space(on_two_nodes(
      "{}", R"({"data": 16, "zero_stage": 1, "sequence_parallel": true, "virtual_pipeline": 1})"));
  CHECK(space.of("zero_stage") == Ints{1});
  CHECK(space.of("virtual_pipeline") == Ints{1});
  CHECK(space.of("sequence_parallel") == Ints{1});
  CHECK(space.of("recompute") == Ints{2});
}

TEST_CASE("lists of the block take the place of the defaults, each value once and in order") {
  const SearchSpace space = search_space(on_two_nodes(
      R"({"tensor": [8, 2, 8], "micro_batch": [3], "recompute": ["none", "full", "none"]})"));
  CHECK(space.of("tensor") == Ints{8, 2});
  CHECK(space.of("micro_batch") == Ints{3});
  CHECK(space.of("recompute") == Ints{0, 2});
}

TEST_CASE("a space of more than a million combinations is refused with their number") {
  std::string numbers = "1";
  for (int i = 2; i <= 101; ++i) numbers += ", " + std::to_string(i);
  const Scenario scenario = on_two_nodes(R"({"tensor": [)" + numbers + R"(], "pipeline": [)" +
                                         numbers + R"(], "micro_batch": [)" + numbers + "]}");
  // 101^3
  CHECK_THROWS_WITH_AS(search_space(scenario), doctest::Contains("1,030,301 combinations"),
                       InputError);
}

TEST_CASE("a plan smaller than a node is searched on its GPUs alone") {
  const Scenario part = scenario_from(
      R"({"model": "gpt-1.7b", "platform": "selene-a100",
          "training": {"global_batch": 8, "micro_batch": 1}, "parallel": {"data": 4}})");
  const SearchSpace space = search_space(part);
  CHECK(space.gpus == 4);
  CHECK(space.of("tensor") == Ints{1, 2, 4});  // divisors of 8, at most 4
}

}  // namespace
}  // namespace windtunnel
