#include <doctest/doctest.h>

#include <memory>

#include "scenario/corpus_fixtures.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {
namespace {

JsonValue parse(const std::string& text) {
  Problems problems;
  JsonValue value =
      parse_json(std::make_shared<const SourceText>(SourceText{"text.json", text}), problems);
  problems.throw_if_any();
  return value;
}

std::string hash_of(const std::string& text) { return resolved_hash(parse(text)); }

TEST_CASE("the printed resolved scenario reads back to the same plan and hash") {
  for (const auto& file : json_files(corpus() / "good")) {
    CAPTURE(file.filename().string());
    Scenario first;
    try {
      first = read_scenario(file, test_library(),
                            {{{"/platform/node_types/0/nic_efficiency", "0.5"}}, 0});
    } catch (const UnsupportedError&) {
      continue;
    }
    const Scenario again = read_scenario(parse(resolved_text(first.resolved)), ".", test_library());
    CHECK(again.hash == first.hash);
    CHECK(again.name == first.name);
    CHECK(again.plan.stage_layers == first.plan.stage_layers);
    // A resolved text is complete: nothing is left to default.
    CHECK(canonical_text(again.resolved) == canonical_text(first.resolved));
  }
}

TEST_CASE("each line says where its value comes from") {
  const Scenario scenario = read_scenario(corpus() / "good/plain.json", test_library(),
                                          {{{"/training/micro_batch", "2"}}, 0});
  const std::string text = resolved_text(scenario.resolved);
  const auto line_with = [&](const std::string& word) {
    const std::size_t at = text.find(word);
    REQUIRE(at != std::string::npos);
    return text.substr(at, text.find('\n', at) - at);
  };
  CHECK(line_with("\"global_batch\"").ends_with("good/plain.json:5"));
  CHECK(line_with("\"micro_batch\"").ends_with("// --set"));
  CHECK(line_with("\"optimizer\"").ends_with("// default"));
  CHECK(line_with("\"layers\"").ends_with("library/models/tiny.json:1"));
  CHECK(line_with("\"peak\"").ends_with("library/platforms/devices/card.json:6"));
}

TEST_CASE("the hash does not see names, sources, order, and what is not simulated") {
  const std::string hash = hash_of(R"({"version": 1, "nodes": 2, "model": {"layers": 8}})");
  CHECK(
      hash ==
      hash_of(
          R"({"model": {"name": "m", "layers": 8, "source": "paper"}, "nodes": 2, "version": 1})"));
  CHECK(hash == hash_of(R"({"$schema": "s", "name": "n", "version": 1, "nodes": 2,
                            "model": {"layers": 8}, "sweep": {"matrix": {"/nodes": [1]}}})"));
  CHECK(hash != hash_of(R"({"version": 1, "nodes": 3, "model": {"layers": 8}})"));
  // A device's name is what a software profile's device_efficiency refers to.
  CHECK(hash_of(R"({"platform": {"node_types": [{"device": {"name": "a"}}]}})") !=
        hash_of(R"({"platform": {"node_types": [{"device": {"name": "b"}}]}})"));
}

TEST_CASE("written and defaulted values hash alike") {
  const Scenario defaulted = read_scenario(corpus() / "good/plain.json", test_library());
  const Scenario written = read_scenario(corpus() / "good/plain.json", test_library(),
                                         {{{"/training/optimizer", "adam"}, {"/nodes", "1"}}, 0});
  CHECK(defaulted.hash == written.hash);
}

}  // namespace
}  // namespace windtunnel
