#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "scenario/corpus_fixtures.hpp"
#include "scenario/overrides.hpp"

namespace windtunnel {
namespace {

using TextValues = std::vector<std::pair<std::string, std::string>>;

TEST_CASE("each value is where --set finds it, and setting it again changes nothing") {
  for (const char* name : {"plain.json", "compression_all.json", "mixed_nodes.json"}) {
    const auto file = corpus() / "good" / name;
    CAPTURE(name);
    const Scenario scenario = read_scenario(file, test_library());
    const TextValues values = settable_values(scenario, test_library());
    CHECK(values.size() > 60);
    for (const auto& value : values) {
      CAPTURE(value.first);
      CAPTURE(value.second);
      CHECK(read_scenario(file, test_library(), {{value}, 0}).hash == scenario.hash);
    }
  }
}

TEST_CASE("names, numbers, lists and what is absent are written as --set takes them") {
  const Scenario scenario = read_scenario(corpus() / "good" / "plain.json", test_library());
  const TextValues values = settable_values(scenario, test_library());
  const std::map<std::string, std::string> by_pointer(values.begin(), values.end());
  CHECK(by_pointer.at("/model") == "tiny");
  CHECK(by_pointer.at("/compression/data_gradients") == "null");
  CHECK(by_pointer.at("/parallel/tensor") == std::to_string(scenario.plan.parallel.tensor));
  CHECK(by_pointer.count("/platform/source") == 0);
  CHECK(by_pointer.count("/platform/node_types/0/nic_rate") == 1);
  CHECK(by_pointer.size() == values.size());
}

}  // namespace
}  // namespace windtunnel
