#include "scenario/scenario.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/problem.hpp"
#include "core/testing.hpp"

namespace windtunnel {
namespace {

using Values = std::vector<std::pair<std::string, JsonValue>>;

JsonValue number(std::int64_t value) { return JsonValue(value); }
JsonValue text(const char* value) { return JsonValue(std::string(value)); }

/// The resolved scenario with its hash and a few figures of what was read, or what is wrong.
template <class Read>
std::string outcome_of(Read read) {
  try {
    const Scenario scenario = read();
    const Device& device = scenario.nodes.front().device;
    return scenario.hash + " " + scenario.name + " " + canonical_text(scenario.resolved) + " " +
           std::to_string(device.memory_bandwidth.value()) + " " +
           std::to_string(scenario.nodes.front().nic_rate.value()) + " " +
           std::to_string(scenario.software.launch.kernel.value()) + " " +
           std::to_string(scenario.model.layers) + " " +
           std::to_string(scenario.platform.sources.size() + device.sources.size());
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST_CASE("a set of measurements is told from a scenario before anything is missed in it") {
  const auto file = source_dir() / "validation/torchtitan/fsdp2.json";
  try {
    merged_scenario(file, Library{source_dir()});
    FAIL("accepted");
  } catch (const InputError& error) {
    CHECK(std::string(error.what()).find("validate reads measurement sets") != std::string::npos);
    CHECK(error.problems().size() == 1);
  }
}

TEST_CASE("a template gives what reading the whole again would, problems included") {
  const Library library{source_dir()};
  const auto file = source_dir() / "scenarios" / "gpt-39b-512xa100.json";
  const JsonValue merged = merged_scenario(file, library);
  const ScenarioTemplate reused(merged, file.parent_path(), library);
  const std::string device = "/platform/node_types/0/device";
  const std::vector<Values> points{
      {},
      {{"/training/global_batch", number(3072)}},
      {{"/platform/node_types/0/nic_rate", text("100 Gbps")}},
      {{device + "/memory/bandwidth", text("1 TB/s")}},
      {{device, text("h100-sxm-80gb")}},
      {{"/platform", text("selene-a100")}},
      {{"/platform/extends", text("selene-a100")}},
      {{"/platform/node_types/1/nics", number(3)}},
      {{"/platform/node_types/0", JsonValue(JsonValue::Object{})}},
      {{"/software/launch/kernel", text("30 us")}},
      {{"/software", text("megatron-lm-2022")}},
      {{"/software/misspelt", number(3)}, {"/training/micro_batch", number(-1)}},
      {{"/model", text("gpt-1.7b")}},
      {{"/model/hidden", number(8191)}, {device + "/misspelt", number(1)}},
      {{"/model", JsonValue{}}},
  };
  for (const Values& values : points) {
    ReadOptions options;
    options.values = values;
    CAPTURE(values.empty() ? "" : values.front().first);
    CHECK(outcome_of([&] { return reused.read(options); }) ==
          outcome_of([&] { return read_scenario(merged, file.parent_path(), library, options); }));
  }
}

TEST_CASE("a template of a tree with names and mistakes gives what reading it would") {
  const Library library{source_dir()};
  const auto folder = source_dir() / "scenarios";
  for (const char* const tree :
       {R"({"model": "gpt-39b", "platform": "a100-80gb-4hdr", "training": {"global_batch": 8}})",
        R"({"model": "gpt-40b", "platform": "a100-80gb-4hdr"})", R"({"extends": "missing.json"})",
        R"([])"}) {
    Problems problems;
    const JsonValue value =
        parse_json(std::make_shared<const SourceText>(SourceText{"", tree}), problems);
    const ScenarioTemplate reused(value, folder, library);
    for (const char* const platform : {"a100-80gb-4hdr", "selene-a100", "selene-a200"}) {
      ReadOptions options;
      options.values = {{"/platform", text(platform)}};
      CHECK(outcome_of([&] { return reused.read(options); }) ==
            outcome_of([&] { return read_scenario(value, folder, library, options); }));
    }
  }
}

}  // namespace
}  // namespace windtunnel
