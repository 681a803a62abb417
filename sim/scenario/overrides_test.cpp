#include "scenario/overrides.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "core/testing.hpp"
#include "scenario/corpus_fixtures.hpp"

namespace windtunnel {
namespace {

using TextValues = std::vector<std::pair<std::string, std::string>>;

Scenario read_plain(const Overrides& overrides) {
  const std::filesystem::path corpus = source_dir() / "sim/scenario/corpus";
  return read_scenario(corpus / "good/plain.json", Library{corpus / "library"}, {overrides, 0});
}

std::string refusal_of(const Overrides& overrides) {
  try {
    expect_independent(overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST_CASE("one --set that undoes another is refused with both names, whichever comes first") {
  const Overrides::value_type rate{"/platform/node_types/0/nics", "8"};
  const Overrides::value_type platform{"/platform", "boxes"};
  const std::string text = refusal_of({rate, platform});
  CHECK(text.find("--set /platform/node_types/0/nics=8: error: --set /platform replaces the whole "
                  "that /platform/node_types/0/nics is part of") == 0);
  CHECK(refusal_of({platform, rate}) == text);
  CHECK(refusal_of({{"/platform", "boxes"}, {"/platforms", "x"}, {"/nodes", "2"}}) == "accepted");
}

TEST_CASE("the last of two --set of the same pointer counts") {
  const Overrides twice{{"/training/micro_batch", "4"}, {"/training/micro_batch", "2"}};
  CHECK(refusal_of(twice) == "accepted");
  CHECK(read_plain(twice).plan.training.micro_batch == 2);
}

TEST_CASE("changes laid over --set give the scenario that they give one after the other") {
  const auto check = [](const Overrides& earlier, const Overrides& later) {
    Overrides both = earlier;
    both.insert(both.end(), later.begin(), later.end());
    const Overrides laid = laid_over(earlier, later, read_plain(earlier).resolved);
    CHECK(refusal_of(laid) == "accepted");
    CHECK(read_plain(laid).hash == read_plain(both).hash);
    return laid;
  };
  const Overrides rate{{"/platform/node_types/0/nic_rate", "50 Gbps"}, {"/name", "mine"}};
  // The same pointer, a value inside an earlier one, and a value around earlier ones.
  CHECK(check(rate, {{"/platform/node_types/0/nic_rate", "10 Gbps"}}).size() == 2);
  CHECK(check({{"/platform", "pair"}}, rate).size() == 2);
  CHECK(check({{"/parallel", R"({"tensor": 2, "pipeline": 2})"}},
              {{"/parallel/zero_stage", "1"}, {"/parallel/schedule", "gpipe"}})
            .size() == 1);
  const JsonValue boxes = *read_plain({}).resolved.find("platform");
  CHECK(check(rate, {{"/platform", canonical_text(boxes)}}).size() == 2);
  // Nothing to do with each other.
  CHECK(check({{"/nodes", "1"}}, {{"/training/micro_batch", "2"}}).size() == 2);
}

/// `scenario` after one --set, or what is wrong with it.
std::string after_set(const std::string& scenario, const std::string& pointer,
                      const std::string& value) {
  Problems problems;
  JsonValue tree =
      parse_json(std::make_shared<const SourceText>(SourceText{"a.json", scenario}), problems);
  const Library library{source_dir() / "sim/scenario/corpus/library"};
  ScenarioFiles files(library, {}, problems);
  apply_override(tree, pointer, value, files, problems);
  return problems.empty() ? canonical_text(tree) : problems.all().front().message;
}

/// `overlay` in a file that extends one with `base`.
std::string extended(const std::string& base, const std::string& overlay) {
  const TemporaryFolder folder;
  folder.write("base.json", base);
  const auto file = folder.write("mine.json", "{\"extends\": \"base.json\", " + overlay.substr(1));
  Problems problems;
  const Library library{folder.path()};
  ScenarioFiles files(library, folder.path(), problems);
  const JsonValue tree = files.merge_extended(parse_json(read_source(file), problems));
  CHECK(problems.empty());
  return canonical_text(tree);
}

// The rows of the table in docs/scenario.md, "Files that build on others".
TEST_CASE("--set of a value replaces it, and makes the objects around it") {
  CHECK(after_set(R"({"a": {"b": 1, "c": 2}})", "/a/b", "3") == R"({"a":{"b":3,"c":2}})");
  CHECK(after_set("{}", "/a/b/c", "3") == R"({"a":{"b":{"c":3}}})");
  CHECK(after_set(R"({"a": null})", "/a/b", "3") == R"({"a":{"b":3}})");
}

TEST_CASE("--set of an object replaces it whole, where extends merges") {
  const std::string base = R"({"a": {"b": {"x": 1}, "c": 2}})", value = R"({"b": {"y": 3}})";
  CHECK(after_set(base, "/a", value) == R"({"a":{"b":{"y":3}}})");
  CHECK(extended(base, "{\"a\": " + value + "}") == R"({"a":{"b":{"x":1,"y":3},"c":2}})");
}

TEST_CASE("lists are replaced whole by --set and by extends") {
  const std::string base = R"({"a": [1, 2, 3]})";
  CHECK(after_set(base, "/a", "[4]") == R"({"a":[4]})");
  CHECK(extended(base, R"({"a": [4]})") == R"({"a":[4]})");
}

TEST_CASE("--set of an element replaces it, and there is none behind the last") {
  const std::string base = R"({"a": [1, {"x": 2}]})";
  CHECK(after_set(base, "/a/0", "9") == R"({"a":[9,{"x":2}]})");
  CHECK(after_set(base, "/a/1/y", "9") == R"({"a":[1,{"x":2,"y":9}]})");
  CHECK(after_set(base, "/a/2", "9") ==
        "nothing can be set there: /a is an array of 2, counted from 0");
  CHECK(after_set(base, "/a/-", "9") ==
        "nothing can be set there: /a is an array of 2, counted from 0");
}

TEST_CASE("null takes a key away, whether --set or extends says it") {
  const std::string base = R"({"a": {"b": 1, "c~/": 2}})";
  CHECK(after_set(base, "/a/b", "null") == R"({"a":{"c~/":2}})");
  CHECK(after_set(base, "/a/c~0~1", "null") == R"({"a":{"b":1}})");
  CHECK(after_set(base, "/a", "null") == "{}");
  CHECK(extended(base, R"({"a": {"b": null}})") == R"({"a":{"c~/":2}})");
  // Absent keys stay null, so that a misspelt key is still found.
  CHECK(after_set(base, "/a/d", "null") == R"({"a":{"b":1,"c~/":2,"d":null}})");
  // An element has no key to take away.
  CHECK(after_set(R"({"a": [1, 2]})", "/a/0", "null") == R"({"a":[null,2]})");
}

TEST_CASE("--set inside a named file changes that file's content, and extends replaces the name") {
  const std::string inside = after_set(R"({"model": "tiny"})", "/model/layers", "9");
  CHECK(inside.find(R"("layers":9)") != std::string::npos);
  CHECK(inside.find(R"("name":"tiny")") != std::string::npos);
  CHECK(inside.find(R"("hidden":)") != std::string::npos);
  CHECK(after_set(R"({"model": {"layers": 9}})", "/model", "tiny") == R"({"model":"tiny"})");
  CHECK(extended(R"({"model": "tiny"})", R"({"model": {"layers": 9}})") ==
        R"({"model":{"layers":9}})");
}

TEST_CASE("--set through what is no object is refused") {
  CHECK(after_set(R"({"a": {"b": 1}})", "/a/b/c", "2") ==
        "nothing can be set there: /a/b is an integer");
}

TEST_CASE("the last of several extended files wins, and the file itself over them") {
  const TemporaryFolder folder;
  folder.write("one.json", R"({"a": {"x": 1, "y": 1, "z": 1}})");
  folder.write("two.json", R"({"a": {"y": 2, "z": 2}})");
  const auto file =
      folder.write("mine.json", R"({"extends": ["one.json", "two.json"], "a": {"z": 3}})");
  Problems problems;
  const Library library{folder.path()};
  ScenarioFiles files(library, folder.path(), problems);
  CHECK(canonical_text(files.merge_extended(parse_json(read_source(file), problems))) ==
        R"({"a":{"x":1,"y":2,"z":3}})");
}

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
