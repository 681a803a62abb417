#include "scenario/key_table.hpp"

#include <doctest/doctest.h>

#include <string>

#include "core/problem.hpp"
#include "scenario/corpus_fixtures.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {
namespace {

TEST_CASE("a plan keeps what a key sets, from the least value to the most") {
  for (const Key& key : key_table()) {
    if (key.value.kind == KeyValue::Kind::other || key.read) continue;
    CAPTURE(key.pointer);
    PlanChoice choice;
    for (const int value : {key.value.least, key.value.most}) {
      key.value.set(choice, value);
      CHECK(key.value.get(choice) == value);
      CHECK(text_of(key, value) != "");
    }
  }
}

TEST_CASE("a number that one pass alone reads needs no member of its own") {
  const KeyValue checks = setting("checks", 0, 9);
  PlanChoice choice;
  CHECK(checks.get(choice) == 0);
  checks.set(choice, 7);
  CHECK(choice.parallel.setting("checks") == 7);
  CHECK(checks.get(choice) == 7);
}

TEST_CASE("the search tries what the plan's own key takes, and no more") {
  const auto refused = [](const char* pointer, const char* values, const char* with) {
    CHECK_THROWS_WITH_AS(
        read_scenario(corpus() / "good" / "plain.json", test_library(), {{{pointer, values}}}),
        doctest::Contains(with), InputError);
  };
  refused("/parallel/virtual_pipeline", "1001", "1 to 1000");
  refused("/search/virtual_pipeline", "[1001]", "1 to 1000");
  refused("/search/zero_stage", "[4]", "0 to 3");
  refused("/search/recompute", "[\"half\"]", "none of none, selective, full");
  refused("/search/sequence_parallel", "[1]", "is no true or false");
  const Scenario read = read_scenario(corpus() / "good" / "plain.json", test_library(),
                                      {{{"/search/micro_batch", "[2000000]"}}});
  CHECK(read.search.values.at("micro_batch") == std::vector<int>{2'000'000});
}

TEST_CASE("axes carry the labels of keys, with units") {
  CHECK(axis_label("/training/micro_batch") == "microbatch (samples)");
  CHECK(axis_label("/parallel/zero_stage") == "ZeRO");
  CHECK(axis_label("/platform/fabric/latency") == "/platform/fabric/latency");
}

}  // namespace
}  // namespace windtunnel
