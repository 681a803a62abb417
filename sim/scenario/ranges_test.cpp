#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/testing.hpp"
#include "scenario/corpus_fixtures.hpp"

namespace windtunnel {
namespace {

using Json = nlohmann::json;

Json json_in(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return Json::parse(stream, nullptr, true, true);
}

/// A key of the schema that holds a number, and values at the ends of its range and beyond them.
struct NumberKey {
  std::string pointer;
  std::vector<Json> inside, outside;
};

/// "1 Mbps" times `factor`
std::string scaled(const std::string& amount, double factor) {
  std::size_t end = 0;
  const double number = std::stod(amount, &end);
  return Json(number * factor).dump() + amount.substr(end);
}

/// Collects every key of the schema that holds a number, with its range.
class NumberKeys {
 public:
  explicit NumberKeys(Json schema) : schema_(std::move(schema)) { walk(schema_, "", {}); }
  const std::vector<NumberKey>& keys() const { return keys_; }
  /// Keys without a range.
  const std::vector<std::string>& unbounded() const { return unbounded_; }
  /// Every key, whatever it holds.
  const std::set<std::string>& all() const { return all_; }

 private:
  void walk(const Json& node, const std::string& pointer, Json range) {
    for (const char* end : {"x-minimum", "x-maximum"})
      if (node.contains(end) && !range.contains(end)) range[end] = node[end];
    if (node.contains("$ref")) {
      const std::string target = node["$ref"].get<std::string>().substr(1);
      walk(schema_.at(Json::json_pointer(target)), pointer, range);
    }
    for (const char* choices : {"anyOf", "allOf"})
      if (node.contains(choices))
        for (const Json& choice : node[choices]) walk(choice, pointer, range);
    if (node.contains("properties"))
      for (const auto& [key, value] : node["properties"].items()) {
        all_.insert(pointer + "/" + key);
        walk(value, pointer + "/" + key, {});
      }
    if (node.contains("items")) walk(node["items"], pointer + "/0", {});
    add_number(node, pointer);
    // A kind of amount: bytes, seconds, data_rate, flop_rate.
    if (node.contains("pattern") && node.contains("x-minimum")) add_amount(pointer, range);
  }

  static bool has_type(const Json& node, const char* type) {
    if (!node.contains("type")) return false;
    const Json& types = node["type"];
    return types == type || (types.is_array() && std::count(types.begin(), types.end(), type) > 0);
  }

  void add_number(const Json& node, const std::string& pointer) {
    const bool whole = has_type(node, "integer");
    if (!whole && !has_type(node, "number")) return;
    if (!node.contains("minimum") || !node.contains("maximum")) {
      unbounded_.push_back(pointer);
      return;
    }
    NumberKey key{pointer, {node["minimum"], node["maximum"]}, {}};
    const double least = node["minimum"], most = node["maximum"];
    constexpr std::int64_t absurd = 1'000'000'000'000'000;
    if (whole)
      key.outside = {node["minimum"].get<std::int64_t>() - 1,
                     node["maximum"].get<std::int64_t>() + 1, -absurd, absurd};
    else
      key.outside = {least - std::abs(least) * 0.01 - 1e-9, most * 1.01, -1e300, 1e300};
    keys_.push_back(key);
  }

  void add_amount(const std::string& pointer, const Json& range) {
    const std::string least = range["x-minimum"], most = range["x-maximum"];
    NumberKey key{pointer, {least, most}, {scaled(most, 1.01), scaled(most, 1e280)}};
    const bool from_zero = std::stod(least) == 0;
    key.outside.push_back(from_zero ? "-1" + least.substr(1) : scaled(least, 0.99));
    if (!from_zero) key.outside.push_back(scaled(least, 1e-280));
    keys_.push_back(key);
  }

  Json schema_;
  std::vector<NumberKey> keys_;
  std::vector<std::string> unbounded_;
  std::set<std::string> all_;
};

Json parsed(const char* text) { return Json::parse(text); }

/// Scenarios that have a place for every key between them.
std::vector<Json> scenarios() {
  const Scenario read = read_scenario(corpus() / "good" / "plain.json", test_library(),
                                      {{{"/platform", "pair"}, {"/nodes", "2"}}});
  Json plain = Json::parse(canonical_text(read.resolved));
  plain["parallel"].erase("stage_layers");
  plain["platform"]["link_overrides"] =
      parsed(R"([{"from": 0, "to": 1, "bandwidth": "1 GB/s", "source": "assumed: made up"}])");
  plain["platform"]["node_types"][0]["nics"] = 2;
  plain["platform"]["faults"] =
      parsed(R"([{"node": 0, "nic": 0, "share": 0.5, "source": "assumed: made up"}])");
  plain["neighbours"] = parsed(R"([{"link": "node0 up", "rate": "1 GB/s", "busy": 0.5}])");
  std::vector<Json> all{plain};
  all.emplace_back(plain)["neighbours"] = parsed(R"([{"scenario": {}, "first_node": 2}])");
  Json& matrix = all.emplace_back(plain)["platform"]["bandwidth_matrix"];
  matrix = parsed(R"({"unit": "bps", "rows": [[0, 1e9], [1e9, 0]], "source": "assumed: made up"})");
  Json& mesh = all.emplace_back(plain)["platform"]["node_types"][0]["interconnect"];
  mesh["kind"] = "mesh";
  mesh["lanes"] = parsed("[[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]]");
  all.emplace_back(plain)["platform"]["node_types"][0].erase("count");
  Json& domains = all.emplace_back(plain)["platform"];
  domains.erase("link_overrides");
  domains.erase("faults");
  domains["domain_nodes"] = 1024;
  domains["source"] = "assumed: made up";
  all.push_back(json_in(corpus() / "good" / "schedule_inline.json"));
  for (const char* fabric :
       {R"({"kind": "fat_tree", "nodes_per_switch": [2], "taper": [1], "uplinks": [1]})",
        R"({"kind": "rails", "nodes_per_group": 2})",
        R"({"kind": "torus", "dimensions": [2, 2], "link_rate": "100 Gbps"})",
        R"({"kind": "dragonfly", "nodes_per_router": 1, "routers_per_group": 2, "global_links": 1,
            "groups": 3, "local_rate": "100 Gbps", "global_rate": "100 Gbps"})",
        R"({"kind": "edge_list", "links": [["node0 nic0", "node1 nic0", "100 Gbps"]]})"}) {
    Json& changed = all.emplace_back(plain)["platform"]["fabric"];
    changed.erase("nodes_per_leaf");
    changed.erase("oversubscription");
    changed.update(parsed(fabric));
    changed["source"] = "assumed: made up";
  }
  for (const char* codec :
       {R"({"codec": "powersgd", "rank": 2})", R"({"codec": "topk", "density": 0.1})",
        R"({"codec": "zfp", "rate": 8})", R"({"codec": "mpc", "ratio": 1.3})",
        R"({"codec": "quantized", "bits": 4, "block": 256})",
        R"({"codec": "fixed", "ratio": 2})"}) {
    Json& classes = all.emplace_back(plain)["compression"];
    for (const char* traffic : {"pipeline_forward", "pipeline_backward", "data_gradients",
                                "tensor_activations", "zero_gather"})
      classes[traffic] = parsed(codec);
  }
  return all;
}

std::vector<Problem> problems_of(const Json& scenario) {
  Problems problems;
  JsonValue value = parse_json(
      std::make_shared<const SourceText>(SourceText{"test.json", scenario.dump()}), problems);
  REQUIRE(problems.empty());
  try {
    read_scenario(std::move(value), corpus() / "good", test_library());
  } catch (const InputError& error) {
    return error.problems();
  }
  return {};
}

/// The reader's complaints about the size of the value at `pointer`.
std::vector<std::string> complaints(const Json& scenario, const std::string& pointer) {
  std::vector<std::string> texts;
  for (const Problem& problem : problems_of(scenario)) {
    const bool is_of_size = problem.message.find("too small") != std::string::npos ||
                            problem.message.find("too large") != std::string::npos ||
                            problem.message.find("is negative") != std::string::npos ||
                            problem.message.find("beyond the range") != std::string::npos;
    if (is_of_size && problem.pointer == pointer) texts.push_back(problem.message);
  }
  return texts;
}

/// False where an object around `place` is a text or a number.
bool has_place_for(const Json& scenario, const Json::json_pointer& place) {
  for (Json::json_pointer holder = place.parent_pointer(); !holder.empty();
       holder = holder.parent_pointer())
    if (scenario.contains(holder) && !scenario[holder].is_structured() &&
        !scenario[holder].is_null())
      return false;
  return true;
}

/// Why the key's range is not the reader's in this scenario; empty when it is.
std::string why_not(const Json& scenario, const NumberKey& key) {
  const Json::json_pointer place(key.pointer);
  if (!has_place_for(scenario, place)) return "the scenario has no place for it";
  const auto with = [&](const Json& value) {
    Json changed = scenario;
    changed[place] = value;
    return complaints(changed, key.pointer);
  };
  for (const Json& value : key.inside)
    if (const auto texts = with(value); !texts.empty())
      return value.dump() + " is refused: " + texts.front();
  for (const Json& value : key.outside)
    if (with(value).empty()) return value.dump() + " is not refused";
  return {};
}

TEST_CASE("every number of the schema has a range, and the reader keeps to it") {
  const NumberKeys schema(json_in(source_dir() / "docs/scenario.schema.json"));
  CHECK(schema.unbounded() == std::vector<std::string>{});
  CHECK(schema.keys().size() > 150);
  const std::vector<Json> all = scenarios();
  for (const NumberKey& key : schema.keys()) {
    std::string why;
    for (const Json& scenario : all)
      if (why = why_not(scenario, key); why.empty()) break;
    CAPTURE(key.pointer);
    CHECK(why == "");
  }
}

TEST_CASE("null leaves any key of the schema out, and none is unknown for it") {
  const NumberKeys schema(json_in(source_dir() / "docs/scenario.schema.json"));
  CHECK(schema.all().size() > 300);
  const std::vector<Json> all = scenarios();
  for (const std::string& pointer : schema.all()) {
    const Json::json_pointer place(pointer);
    const std::string complaint = "unknown key \"" + place.back() + '"';
    bool is_known = false;
    for (Json scenario : all) {
      if (is_known || !has_place_for(scenario, place)) continue;
      scenario[place] = nullptr;
      is_known = std::ranges::none_of(problems_of(scenario), [&](const Problem& problem) {
        return problem.message.starts_with(complaint);
      });
    }
    CAPTURE(pointer);
    CHECK(is_known);
  }
}

}  // namespace
}  // namespace windtunnel
