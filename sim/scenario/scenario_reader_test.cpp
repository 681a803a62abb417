#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>

#include "core/file_io.hpp"
#include "core/testing.hpp"
#include "scenario/corpus_fixtures.hpp"
#include "scenario/scenario.hpp"
#include "scenario/testing.hpp"

namespace windtunnel {
namespace {

Scenario read(const std::string& good_file, const Overrides& overrides = {}) {
  return read_scenario(corpus() / "good" / (good_file + ".json"), test_library(), {overrides, 0});
}

std::string refusal(const std::string& good_file, const Overrides& overrides) {
  try {
    read(good_file, overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

const char* const base_text = R"({
  "version": 1, "model": "tiny", "platform": "boxes",
  "training": {"global_batch": 64, "micro_batch": 1, "precision": "bf16"},
  "parallel": {"tensor": 2, "pipeline": 2, "data": 2, "stage_layers": [2, 6]}
})";

TEST_CASE("a scenario is read with its documented defaults") {
  const Scenario scenario = read("plain");
  CHECK(scenario.name == "plain");
  CHECK(scenario.model.layers == 8);
  CHECK(scenario.software.name == "megatron-lm-2021");
  CHECK(scenario.plan.training.precision == Precision::fp16);
  CHECK(scenario.plan.training.gradient_type == GradientType::fp32);
  CHECK(scenario.plan.training.recompute == Recompute::none);
  CHECK(scenario.plan.parallel.schedule == schedule_named("1f1b"));
  // The test library's megatron-lm-2021 sends in blocking pairs.
  CHECK(scenario.plan.parallel.pipeline_send == PipelineSend::blocking_pairs);
  CHECK(scenario.plan.microbatches == 32);  // 64 / (2 * 1)
  CHECK(scenario.nodes.size() == 1);        // 2 * 2 * 2 = 8 GPUs
}

TEST_CASE("gradient type and send style come from the software profile") {
  const Scenario scenario = read("plain", {{"/software", "flashy"}});
  CHECK(scenario.plan.training.gradient_type == GradientType::bf16);
  CHECK(scenario.plan.parallel.pipeline_send == PipelineSend::eager);
}

TEST_CASE("schedules that split backward passes do not wait as the stack's loop for 1F1B does") {
  // The test library's megatron-lm-2021 sends in blocking pairs.
  const auto send = [](const Scenario& scenario) { return scenario.plan.parallel.pipeline_send; };
  for (const char* schedule : {"1f1b", "gpipe"})
    CHECK(send(read("zero_bubble", {{"/parallel/schedule", schedule}})) ==
          PipelineSend::blocking_pairs);
  CHECK(send(read("zero_bubble")) == PipelineSend::eager);
  for (const char* schedule : {"zero_bubble_v", "dualpipe", "dualpipe_v"})
    CHECK(send(read("zero_bubble", {{"/parallel/schedule", schedule},
                                    {"/parallel/virtual_pipeline", "2"},
                                    {"/parallel/zero_stage", "1"}})) == PipelineSend::eager);
  const std::string written = R"({"version": 1, "stages": 2, "microbatches": 2, "orders": )";
  const auto with = [&](const std::string& orders) {
    return read("zero_bubble",
                {{"/training/global_batch", "4"}, {"/parallel/schedule", written + orders + "}"}});
  };
  CHECK(send(with(R"([["F0","F1","B0","W0","B1","W1"],["F0","B0","W0","F1","B1","W1"]])")) ==
        PipelineSend::eager);
  CHECK(send(with(R"([["F0","F1","B0","B1"],["F0","B0","F1","B1"]])")) ==
        PipelineSend::blocking_pairs);
  // The plan's own value holds, where the schedule can finish with it.
  CHECK(send(read("zero_bubble", {{"/parallel/pipeline_send", "blocking_pairs"}})) ==
        PipelineSend::blocking_pairs);
}

TEST_CASE("data is what the given nodes leave: 2 * 8 / (4 * 2) = 2") {
  CHECK(read("data_derived").plan.parallel.data == 2);
  // 2 * 8 / 4 = 4 replicas, two of which share out states between them.
  CHECK(read("data_derived", {{"/parallel/pipeline", "1"},
                              {"/parallel/zero_stage", "3"},
                              {"/parallel/zero_group", "2"}})
            .plan.parallel.data == 4);
}

TEST_CASE("a plan smaller than one node uses its first GPUs") {
  const Scenario scenario = read("part_of_a_node");
  CHECK(scenario.plan.num_ranks() == 2);
  CHECK(scenario.nodes.size() == 1);
}

TEST_CASE("nodes are taken in the platform's order, as many as the plan needs") {
  // 8 ranks fit the first node, of 8 GPUs; 12 need the second, of 4.
  CHECK(read("mixed_nodes").nodes.size() == 1);
  const Scenario both =
      read("mixed_nodes", {{"/parallel/data", "3"}, {"/training/global_batch", "63"}});
  REQUIRE(both.nodes.size() == 2);
  CHECK(both.nodes[1].gpus == 4);
}

TEST_CASE("a built-in scenario is extended by its name, and a misspelt one gets a suggestion") {
  const Scenario scenario = testing::read_text(
      R"({"version": 1, "extends": "gpt-39b-512xa100", "training": {"micro_batch": 4}})");
  CHECK(scenario.model.name == "gpt-39b");
  CHECK(scenario.plan.training.micro_batch == 4);
  CHECK_THROWS_WITH(testing::read_text(R"({"version": 1, "extends": "gpt-39b-512xa10"})"),
                    doctest::Contains("unknown scenario \"gpt-39b-512xa10\" at /extends (did you "
                                      "mean \"gpt-39b-512xa100\"?)"));
}

TEST_CASE("extends merges objects, replaces arrays, deletes by null, and the last one wins") {
  const TemporaryFolder folder;
  folder.write("a.json", base_text);
  folder.write("b.json",
               R"({"version": 1, "training": {"precision": "fp32", "optimizer": "sgd"}})");
  const auto file = folder.write("c.json", R"({"version": 1, "extends": ["a.json", "b.json"],
      "training": {"optimizer": null}, "parallel": {"stage_layers": [7, 1]}})");
  const Scenario scenario = read_scenario(file, test_library());
  CHECK(scenario.plan.training.precision == Precision::fp32);   // b over a
  CHECK(scenario.plan.training.optimizer == Optimizer::adam);   // deleted, so the default
  CHECK(scenario.plan.training.global_batch == 64);             // a
  CHECK(scenario.plan.stage_layers == std::vector<int>{7, 1});  // replaced, not merged
}

TEST_CASE("relative paths are relative to the file that they are written in") {
  const TemporaryFolder folder;
  folder.write("deep/model.json",
               R"({"layers": 4, "hidden": 64, "heads": 8, "sequence": 8, "vocab": 9})");
  folder.write("deep/base.json", R"({"version": 1, "model": "model.json", "platform": "boxes",
      "training": {"global_batch": 64, "micro_batch": 1}})");
  const auto file = folder.write("top.json", R"({"version": 1, "extends": "deep/base.json"})");
  const Scenario scenario = read_scenario(file, test_library());
  CHECK(scenario.model.layers == 4);
  CHECK(scenario.model.name == "model");
}

TEST_CASE("an object over the name of a file is a whole one, or names what it changes") {
  const TemporaryFolder folder;
  folder.write("base.json", R"({"version": 1, "model": "tiny", "platform": "boxes",
      "training": {"global_batch": 64, "micro_batch": 1}})");
  const auto with = [&](const std::string& part) {
    return read_scenario(
        folder.write("top.json", R"({"version": 1, "extends": "base.json", )" + part + "}"),
        test_library());
  };
  CHECK_THROWS_WITH_AS(
      with(R"("model": {"heads": 16})"),
      doctest::Contains("what stands here replaces the model \"tiny\", but has no \"layers\" at "
                        "/model (to change some of its values, add \"extends\": \"tiny\")"),
      const InputError&);
  CHECK_THROWS_WITH_AS(with(R"("platform": {"fabric": {}})"),
                       doctest::Contains("add \"extends\": \"boxes\""), const InputError&);
  CHECK(with(R"("model": {"extends": "tiny", "vocab": 77})").model.vocab == 77);
  CHECK_THROWS_WITH_AS(with(R"("model": "./base.json")"),
                       doctest::Contains("holds a scenario, where a model is needed"),
                       const InputError&);
  folder.write("heads.json", R"({"version": 1, "model": {"heads": 16}})");
  CHECK_THROWS_WITH_AS(
      read_scenario(
          folder.write("list.json", R"({"version": 1, "extends": ["base.json", "heads.json"]})"),
          test_library()),
      doctest::Contains("add \"extends\": \"tiny\""), const InputError&);
}

TEST_CASE("files that extend each other are refused, with the circle") {
  const TemporaryFolder folder;
  folder.write("a.json", R"({"version": 1, "extends": "b.json"})");
  const auto file = folder.write("b.json", R"({"version": 1, "extends": "a.json"})");
  CHECK_THROWS_WITH_AS(read_scenario(file, test_library()),
                       doctest::Contains("the file extends itself: b.json -> a.json -> b.json"),
                       const InputError&);
}

TEST_CASE("models, platforms and profiles that extend each other are refused, with the circle") {
  const TemporaryFolder folder;
  folder.write("a.json", R"({"extends": "./b.json"})");
  folder.write("b.json", R"({"extends": "./a.json"})");
  folder.write("own.json", R"({"extends": "./own.json"})");
  folder.write("base.json", base_text);
  for (const std::string part : {"model", "platform", "software"})
    for (const auto& [name, circle] :
         {std::pair{"a", "a.json -> b.json -> a.json"}, {"own", "own.json -> own.json"}}) {
      const auto file = folder.write("top.json", R"({"version": 1, "extends": "base.json", ")" +
                                                     part + R"(": "./)" + name + R"(.json"})");
      CHECK_THROWS_WITH_AS(read_scenario(file, test_library()),
                           doctest::Contains((std::string(" extends itself: ") + circle).c_str()),
                           const InputError&);
    }
}

TEST_CASE("a node type extends the first one of a platform") {
  const TemporaryFolder folder;
  folder.write("mixed.json", R"({
    "extends": "dgx-h100", "name": "mixed",
    "node_types": [
      {"count": 2},
      {"extends": "hgx-a100-80gb", "count": 1, "nics": 1, "source": "datasheet: our order"},
      {"extends": "hgx-a100-80gb"}]})");
  const auto file = folder.write("top.json", R"({
    "version": 1, "model": "gpt-1.7b", "platform": "./mixed.json", "nodes": 4,
    "software": "megatron-lm-2021", "training": {"global_batch": 64, "micro_batch": 1},
    "parallel": {"data": 32}})");
  const Scenario scenario = read_scenario(file, Library{source_dir()});
  const auto& types = scenario.platform.node_types;
  REQUIRE(types.size() == 3);
  CHECK(types[0].device.name == "h100-sxm-80gb");
  CHECK(types[1].device.name == "a100-sxm-80gb");
  CHECK(types[1].nics == 1);
  CHECK(types[2].nics == 8);
  CHECK(types[1].interconnect.saturated_bandwidth == types[2].interconnect.saturated_bandwidth);

  for (const auto& [extends, message] :
       {std::pair{"5", "extends is 5, which is no platform"},
        {R"("dgx-h10")", R"(did you mean "dgx-h100"?)"},
        {R"("./mixed.json")", "node types extend each other in more than 16 platforms"}}) {
    folder.write(
        "mixed.json",
        std::string(R"({"extends": "dgx-h100", "node_types": [{"extends": )") + extends + "}]}");
    CHECK_THROWS_WITH_AS(read_scenario(file, Library{source_dir()}), doctest::Contains(message),
                         const InputError&);
  }
}

TEST_CASE("a file may extend the same file along two paths") {
  const TemporaryFolder folder;
  folder.write("base.json", base_text);
  folder.write("left.json", R"({"version": 1, "extends": "base.json"})");
  folder.write("right.json",
               R"({"version": 1, "extends": "base.json", "training": {"micro_batch": 2}})");
  const auto file =
      folder.write("top.json", R"({"version": 1, "extends": ["left.json", "right.json"]})");
  CHECK(read_scenario(file, test_library()).plan.training.micro_batch == 2);
}

TEST_CASE("more node types than files may be read name one device, which is read once") {
  JsonValue type = read("plain").resolved.find("platform")->find("node_types")->array().front();
  type.set("device", JsonValue(std::string("card")));
  type.set("count", JsonValue(std::int64_t{1}));
  std::string types;
  for (int i = 0; i < 300; ++i) types += (i == 0 ? "[" : ",") + canonical_text(type);
  const Scenario many = read("plain", {{"/platform/node_types", types + "]"}});
  REQUIRE(many.platform.node_types.size() == 300);
  CHECK(many.platform.node_types.back().device.memory_capacity ==
        many.platform.node_types.front().device.memory_capacity);
}

TEST_CASE("nodes know their device, and where its numbers come from is said of their type alone") {
  const Scenario scenario = read("plain");
  CHECK_FALSE(scenario.platform.node_types.front().device.sources.empty());
  CHECK(scenario.nodes.front().device.sources.empty());
  CHECK(scenario.nodes.front().device.name == scenario.platform.node_types.front().device.name);
}

TEST_CASE("too many files end in a message, not in a long wait") {
  const TemporaryFolder folder;
  folder.write("0.json", base_text);
  std::filesystem::path last;
  // Each extends the one before twice: 2^12 readings.
  for (int i = 1; i <= 12; ++i) {
    const std::string below = "\"" + std::to_string(i - 1) + ".json\"";
    last = folder.write(std::to_string(i) + ".json",
                        R"({"version": 1, "extends": [)" + below + ", " + below + "]}");
  }
  CHECK_THROWS_WITH_AS(read_scenario(last, test_library()), doctest::Contains("256 files"),
                       const InputError&);
}

TEST_CASE("--set replaces values, as JSON where it is JSON and as text elsewhere") {
  const Scenario scenario = read("plain", {{"/training/global_batch", "128"},
                                           {"/name", "my run"},
                                           {"/parallel/stage_layers", "[1,7]"},
                                           {"/training/precision", "\"bf16\""}});
  CHECK(scenario.plan.training.global_batch == 128);
  CHECK(scenario.name == "my run");
  CHECK(scenario.plan.stage_layers == std::vector<int>{1, 7});
  CHECK(scenario.plan.training.precision == Precision::bf16);
}

TEST_CASE("--set reaches into what the file only names") {
  const Scenario scenario = read("plain", {{"/model/layers", "16"},
                                           {"/platform/node_types/0/nic_rate", "200 Gbps"},
                                           {"/platform/node_types/0/device/peak/fp16", "50 TFLOPS"},
                                           {"/software/launch/kernel", "5 ms"}});
  CHECK(scenario.model.layers == 16);
  CHECK(scenario.model.hidden == 64);
  CHECK(scenario.nodes[0].nic_rate == 200_Gbps);
  CHECK(scenario.nodes[0].device.peak.at(Precision::fp16) == 50_TFLOPS);
  CHECK(scenario.software.launch.kernel == 5_ms);
  CHECK(scenario.software.name == "megatron-lm-2021");
}

TEST_CASE("--set of null takes a value away") {
  CHECK(read("stage_layers", {{"/parallel/stage_layers", "null"}}).plan.stage_layers ==
        std::vector<int>{4, 4});
}

TEST_CASE("--set is applied in order, and the last one wins") {
  CHECK(read("plain", {{"/model/layers", "16"}, {"/model", "tiny"}}).model.layers == 8);
}

TEST_CASE("a key in the wrong block is told where it belongs") {
  CHECK(refusal("plain", {{"/parallel/global_batch", "4"}}) ==
        "--set /parallel/global_batch=4: error: unknown key \"global_batch\" at "
        "/parallel/global_batch (did you mean /training/global_batch?)");
  CHECK(refusal("plain", {{"/training/zero_stage", "1"}})
            .ends_with("(did you mean /parallel/zero_stage?)"));
  CHECK(refusal("plain", {{"/tensor", "1"}}).ends_with("(did you mean /parallel/tensor?)"));
  CHECK(refusal("plain", {{"/parallel/nodes", "2"}}).ends_with("(did you mean /nodes?)"));
  CHECK(refusal("plain", {{"/training/sequence", "4096"}})
            .ends_with("(did you mean /model/sequence?)"));
}

TEST_CASE("the newest release that is no newer holds, in whatever order they stand") {
  const auto gradients = [](const char* releases) {
    const Scenario scenario =
        read("plain", {{"/software/releases", releases}, {"/software/release", "\"26.10\""}});
    return scenario.software.gradient_type;
  };
  CHECK(gradients(R"([{"from": "25.09", "gradient_type": "fp32"},
                      {"from": "26.09", "gradient_type": "bf16"}])") == GradientType::bf16);
  CHECK(gradients(R"([{"from": "26.09", "gradient_type": "bf16"},
                      {"from": "25.09", "gradient_type": "fp32"}])") == GradientType::bf16);
  CHECK(refusal("plain", {{"/software/releases", R"([{"from": "25.09"}, {"from": "25.09"}])"}})
            .ends_with("error: the release is that of /software/releases/0 too at "
                       "/software/releases/1/from"));
}

TEST_CASE("a mistake inside a value of --set is placed in the scenario") {
  CHECK(refusal("plain", {{"/job", R"({"steps": 1e400})"}})
            .ends_with(
                "1e400 is too large for a number at /job/steps (the largest is about 1.8e308)"));
}

TEST_CASE("a release is asked of software that has some") {
  const auto problem = [](const char* software) {
    try {
      read_scenario(source_dir() / "scenarios/gpt-39b-512xa100.json", Library{source_dir()},
                    {{{"/software", software}}});
      return std::string();
    } catch (const InputError& error) {
      return std::string(error.what());
    }
  };
  CHECK(problem("megatron-core-2026@26.04") == "");
  CHECK(
      problem("megatron-lm-2021@26.04") ==
      "--set /software=megatron-lm-2021@26.04: error: \"megatron-lm-2021\" does not tell releases "
      "apart at /software (write \"megatron-lm-2021\")");
  CHECK(problem("megatron-core-2026@").find("unknown software") != std::string::npos);
  const TemporaryFolder folder;
  const auto file = folder.write("release.json", R"({"version": 1, "model": "gpt-8.3b", "nodes": 1,
      "platform": "dgx-h100", "software": "megatron-core-2026@26.06",
      "training": {"global_batch": 8, "micro_batch": 1}, "parallel": {"tensor": 8}})");
  CHECK(read_scenario(file, Library{source_dir()}).software.gradient_type == GradientType::bf16);
}

TEST_CASE("--set of a path that nobody knows is an error with a suggestion") {
  CHECK(refusal("plain", {{"/parallel/tensr", "4"}}) ==
        "--set /parallel/tensr=4: error: unknown key \"tensr\" at /parallel (did you mean "
        "\"tensor\"?)");
  CHECK(refusal("plain", {{"/paralel/tensor", "4"}}) ==
        "--set /paralel/tensor=4: error: unknown key \"paralel\" (did you mean \"parallel\"?)");
  CHECK(refusal("plain", {{"parallel.tensor", "4"}}) ==
        "--set parallel.tensor=4: error: \"parallel.tensor\" is no JSON pointer to a value of a "
        "scenario (did you mean /parallel/tensor?)");
  CHECK(refusal("plain", {{"tensor", "4"}}).ends_with("(did you mean /parallel/tensor?)"));
  CHECK(refusal("stage_layers", {{"/parallel/stage_layers/2", "4"}}) ==
        "--set /parallel/stage_layers/2=4: error: nothing can be set there: /parallel/stage_layers "
        "is "
        "an array of 2, counted from 0 at /parallel/stage_layers/2");
  CHECK(refusal("plain", {{"/nodes/count", "4"}}).find("nodes is an object") != std::string::npos);
}

TEST_CASE("--set of a wrong value says which option it was") {
  CHECK(refusal("plain", {{"/parallel/tensor", "2.7"}}) ==
        "--set /parallel/tensor=2.7: error: tensor is 2.7, which is not a whole number at "
        "/parallel/tensor (write 2 or 3)");
  CHECK(refusal("plain", {{"/model", "tinny"}}) ==
        "--set /model=tinny: error: unknown model \"tinny\" at /model (did you mean \"tiny\"?)");
  CHECK(refusal("plain", {{"/model/layers", "{\"a\": }"}})
            .starts_with("--set /model/layers={\"a\": }"));
}

/// Four nodes that train fully sharded, on a network that is changed.
std::string refusal_of_gathers(const Overrides& changes,
                               const std::string& platform = "\"selene-a100\"", int gpus = 32) {
  const std::string text = R"({"model": "gpt-1.7b", "platform": )" + platform + R"(,
    "training": {"global_batch": 64, "micro_batch": 1},
    "parallel": {"data": )" +
                           std::to_string(gpus) + R"(, "zero_stage": 3}})";
  Problems problems;
  const Library library{source_dir()};
  ReadOptions options;
  options.overrides = changes;
  try {
    read_scenario(
        parse_json(std::make_shared<const SourceText>(SourceText{"sharded.json", text}), problems),
        library.root, library, options);
  } catch (const UnsupportedError& error) {
    CHECK(error.problems().size() == 1);
    CHECK(error.problems().front().pointer == "/parallel/zero_stage");
    return error.problems().front().message;
  }
  return "accepted";
}

TEST_CASE(
    "fully sharded training is simulated on any network, whatever nodes a tensor group spans") {
  const Overrides slow_link{
      {"/platform/link_overrides",
       R"([{"from": 0, "to": 2, "bandwidth": "1 GB/s", "source": "assumed: a test"}])"}};
  const Overrides tapered{{"/platform/fabric/nodes_per_leaf", "2"},
                          {"/platform/fabric/oversubscription", "2"}};
  for (Overrides network : {Overrides{}, slow_link, tapered}) {
    CHECK(refusal_of_gathers(network) == "accepted");
    network.insert(network.end(), {{"/model/heads", "32"},
                                   {"/model/hidden", "2048"},
                                   {"/parallel/tensor", "16"},
                                   {"/parallel/data", "2"}});
    CHECK(refusal_of_gathers(network) == "accepted");
  }
  CHECK(refusal_of_gathers({}, "\"pipette-a100-hdr\"") == "accepted");
}

TEST_CASE(
    "a correct wish that is not simulated is an UnsupportedError, other problems come first") {
  CHECK_THROWS_AS(read("plain", {{"/parallel/placement", "search"}}), const UnsupportedError&);
  try {
    read("plain", {{"/parallel/placement", "search"}, {"/parallel/data", "3"}});
    FAIL("accepted");
  } catch (const UnsupportedError&) {
    FAIL("the plan is wrong, too");
  } catch (const InputError& error) {
    CHECK(std::string(error.what()).find("placement") == std::string::npos);
  }
}

TEST_CASE(
    "a platform extends another: changed numbers bring their source, node types merge in order") {
  const Scenario base = read("plain");
  const Scenario scenario = read("platform_extends");
  const Platform& platform = scenario.platform;
  CHECK(platform.name == "ours");
  CHECK(platform.node_types.front().gpus == base.platform.node_types.front().gpus);
  CHECK(platform.node_types.front().nics == 2);
  CHECK(platform.fabric.number("oversubscription") == 2);
  CHECK(platform.sources.at("node_types/0/nics").text == "ours");
  CHECK(platform.sources.at("node_types/0/nic_rate").text ==
        base.platform.sources.at("node_types/0/nic_rate").text);
  CHECK(platform.sources.at("fabric/latency").text ==
        base.platform.sources.at("fabric/latency").text);
  CHECK(platform.sources.at("fabric/oversubscription").text == "the plan of the switches");
}

TEST_CASE("a model extends another: what it says replaces, and its name is its own") {
  const Scenario whole = read("plain", {{"/model", R"("tiny")"}});
  const Scenario part = read("plain", {{"/model", R"({"extends": "tiny", "vocab": 32000})"}});
  CHECK(part.model.vocab == 32000);
  CHECK(part.model.layers == whole.model.layers);
  CHECK(part.model.name == "changed tiny");
  const auto named = [](const char* model) {
    return read("plain", {{"/model", model}}).model.name;
  };
  CHECK(named(R"({"extends": "tiny", "vocab": 32000, "name": "wordy"})") == "wordy");
  // A file is called like itself, whatever it extends.
  const TemporaryFolder folder;
  folder.write("wordy.json", R"({"extends": "tiny", "vocab": 32000})");
  const auto file = folder.write("plain.json", R"({"version": 1, "model": "./wordy.json",
    "platform": "boxes", "training": {"global_batch": 64, "micro_batch": 1},
    "parallel": {"tensor": 2, "pipeline": 2, "data": 2}})");
  CHECK(read_scenario(file, test_library(), {}).model.name == "wordy");
  CHECK_THROWS_AS(read("plain", {{"/model", R"({"extends": "nothing"})"}}), const InputError&);
  CHECK_THROWS_AS(read("plain", {{"/model", R"({"extends": ["tiny"]})"}}), const InputError&);
  CHECK_THROWS_AS(read("plain", {{"/model/extends", "tiny"}}), const InputError&);
}

TEST_CASE(
    "a platform that extends none that is known is a mistake, as is one that extends a number") {
  CHECK_THROWS_AS(read("plain", {{"/platform", R"({"extends": "nothing"})"}}), const InputError&);
  CHECK_THROWS_AS(read("plain", {{"/platform", R"({"extends": 3})"}}), const InputError&);
}

TEST_CASE("a device extends another: what it says replaces, and brings its source") {
  const TemporaryFolder folder;
  const auto read_with = [&](const std::string& device) {
    const auto file = folder.write("top.json", R"({"version": 1, "model": "tiny", "nodes": 1,
      "platform": {"extends": "boxes", "node_types": [{"device": )" +
                                                   device + R"(}]},
      "training": {"global_batch": 64, "micro_batch": 1}, "parallel": {"tensor": 2, "pipeline": 2}})");
    return read_scenario(file, test_library(), {}).platform.node_types.front().device;
  };
  const Device whole = read_with(R"("card")");
  const Device large = read_with(R"({"extends": "card", "name": "large-card",
      "memory": {"capacity": "1 TB", "source": "datasheet: theirs"}})");
  CHECK(large.name == "large-card");
  CHECK(large.memory_capacity == 1000_GB);
  CHECK(large.usable_memory == whole.usable_memory);
  CHECK(large.sources.at("memory/capacity").evidence == Evidence::datasheet);
  CHECK(large.sources.at("memory/usable").evidence == Evidence::assumed);
  CHECK(read_with(R"({"extends": "card"})").name == "card");
  CHECK_THROWS_WITH_AS(read_with(R"({"extends": "cart"})"),
                       doctest::Contains("did you mean \"card\"?"), InputError);
  CHECK_THROWS_WITH_AS(read_with(R"({"extends": 3})"), doctest::Contains("which is no device"),
                       InputError);
  folder.write("a.json", R"({"extends": "./b.json"})");
  folder.write("b.json", R"({"extends": "./a.json"})");
  CHECK_THROWS_WITH_AS(read_with(R"("./a.json")"), doctest::Contains("the device extends itself: "),
                       InputError);
}

TEST_CASE("every shipped platform and device reads, also over another, and has its own name") {
  const Library shipped{source_dir()};
  const TemporaryFolder folder;
  const auto file = folder.write("plain.json", R"({"version": 1, "model": "gpt-8.3b",
    "platform": "aws-16xt4", "training": {"global_batch": 1, "micro_batch": 1}})");
  const auto platform_with = [&](const char* pointer, const std::string& name) {
    return read_scenario(file, shipped, {.overrides = {{pointer, name}}}).platform;
  };
  for (const std::string& name : shipped.names(platform_files.name))
    CHECK(platform_with("/platform", name).name == name);
  for (const std::string& name : shipped.names(device_files.name)) {
    const Device device = platform_with("/platform/node_types/0/device", name).node_types[0].device;
    CHECK(device.name == name);
    CHECK(device.sources.at("memory/capacity").evidence == Evidence::datasheet);
  }
}

TEST_CASE("a number that an extending platform changes without a source is assumed") {
  Problems problems;
  const std::string text =
      R"({"model": "tiny", "platform": {"extends": "boxes", "node_types": [{"nics": 2}]},
    "training": {"global_batch": 64, "micro_batch": 1}, "parallel": {"tensor": 2, "pipeline": 2, "data": 2}})";
  const JsonValue value =
      parse_json(std::make_shared<const SourceText>(SourceText{"ours.json", text}), problems);
  const Scenario scenario = read_scenario(value, {}, test_library());
  CHECK(scenario.platform.sources.at("node_types/0/nics").evidence == Evidence::assumed);
  CHECK(scenario.platform.sources.at("node_types/0/nic_rate").text == "made up");
}

TEST_CASE("eight bits need a device that has a rate for them") {
  CHECK_THROWS_AS(read("plain", {{"/training/precision", "fp8"}}), const InputError&);
  const Scenario scenario =
      read("plain", {{"/training/precision", "fp8"},
                     {"/platform/node_types/0/device/peak/bf16", "100 TFLOPS"},
                     {"/platform/node_types/0/device/peak/fp8", "200 TFLOPS"}});
  CHECK(scenario.plan.training.precision == Precision::fp8);
}

TEST_CASE("trays of an NVLink domain are one node of the plan, and the scenario counts trays") {
  const Scenario plain = read("plain", {{"/parallel/data", "8"}});  // 32 GPUs
  const Scenario scenario =
      read("plain", {{"/parallel/data", "8"}, {"/platform/domain_nodes", "2"}});
  CHECK(plain.nodes.size() == 4);
  CHECK(scenario.nodes.size() == 2);
  CHECK(scenario.nodes.front().gpus == 2 * plain.nodes.front().gpus);
  CHECK(scenario.plan.num_ranks() == plain.plan.num_ranks());
  CHECK(canonical_text(*find_at(scenario.resolved, "/nodes")) == "4");
}

TEST_CASE("flash attention needs a device or a software profile that knows its rate") {
  CHECK_THROWS_AS(read("flash_unsupported"), const UnsupportedError&);
  CHECK_THROWS_AS(read("flash_unsupported", {{"/parallel/stage_layers", "balanced"}}),
                  const UnsupportedError&);
  CHECK(read("flash").plan.training.attention == Attention::flash);
}

TEST_CASE("no profile's name hides what computes attention") {
  const auto scenario = [](const std::string& software, const std::string& platform,
                           const std::string& training) {
    return testing::read_text(
        R"({"model": "llama3-8b", "software": ")" + software + R"(", "platform": ")" + platform +
        R"(", "training": {"global_batch": 8, "micro_batch": 1, )" + R"("attention": "flash", )" +
        training + R"(}, "parallel": {"data": 8}})");
  };
  const auto kernel = [&](const std::string& software, const std::string& platform,
                          const std::string& training) {
    return scenario(software, platform, training).plan.training.attention_kernel;
  };
  CHECK(kernel("nemo-2025", "dgx-b200", R"("precision": "fp8")") == FlashKernel::cudnn);
  CHECK(kernel("nemo-2025", "dgx-b200", R"("precision": "fp8", "attention_kernel": "fp8")") ==
        FlashKernel::fp8);
  CHECK(kernel("torchtitan-2025", "dgx-h100", R"("precision": "bf16")") == FlashKernel::flash2);
  CHECK(kernel("torchtitan-2025", "dgx-b200", R"("precision": "bf16")") == FlashKernel::cudnn);
  CHECK(kernel("torchtitan-2025", "dgx-b200",
               R"("precision": "bf16", "attention_kernel": "flash2")") == FlashKernel::flash2);
  CHECK(kernel("composer-fsdp-2023", "dgx-b200", R"("precision": "bf16")") == FlashKernel::flash2);
  CHECK(kernel("megatron-core-2026", "dgx-h100",
               R"("precision": "bf16", "attention_kernel": "flash3")") == FlashKernel::flash3);
  const auto refusal_of = [&](const std::string& software, const std::string& platform,
                              const std::string& training) -> std::string {
    try {
      scenario(software, platform, training);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  const auto says = [](const std::string& text, const char* part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  says(refusal_of("nemo-2025", "dgx-b200", R"("precision": "bf16", "attention_kernel": "fp8")"),
       "but precision is bf16");
  says(refusal_of("nemo-2025", "dgx-b200", R"("precision": "fp8", "attention_kernel": "flash3")"),
       "they know flash2, cudnn, fp8");
  says(refusal_of("nemo-2025", "dgx-b200", R"("precision": "fp32")"),
       "flash attention computes in 16 bits or fewer, but precision is fp32");
  CHECK_THROWS_AS(read("plain", {{"/training/attention_kernel", "flash2"}}), const InputError&);
}

TEST_CASE("shipped stacks of FSDP and DeepSpeed are the one they extend, but for what they say") {
  const Library shipped{source_dir()};
  const TemporaryFolder folder;
  const auto stack = [&](const std::string& name) {
    return read_scenario(
               folder.write(
                   name + ".json",
                   R"({"version": 1, "model": "llama3-8b", "platform": "dgx-h100",
      "software": ")" + name +
                       R"(", "training": {"global_batch": 8, "micro_batch": 1, "precision": "bf16"},
      "parallel": {"data": 8, "zero_stage": 3}})"),
               shipped)
        .software;
  };
  const SoftwareProfile base = stack("torchtitan-2025"), fsdp = stack("pytorch-fsdp-2024"),
                        deepspeed = stack("deepspeed-2024");
  CHECK(fsdp.flash_elsewhere.size() == base.flash_elsewhere.size());
  CHECK(fsdp.layer_traffic.forward.hidden == base.eager_layer_traffic->forward.hidden);
  CHECK_FALSE(fsdp.eager_layer_traffic);
  CHECK(fsdp.sources.at("launch/collective").text == base.sources.at("launch/collective").text);
  CHECK(fsdp.sources.at("launch/kernel").evidence == Evidence::assumed);
  CHECK(deepspeed.layer_traffic.forward.kernels == 33);
  CHECK(deepspeed.states_bf16.weights == 2);
  CHECK(deepspeed.sources.contains("memory/states_bf16/weights"));
  CHECK(deepspeed.gradients_of(Precision::bf16) == GradientType::bf16);
  CHECK_FALSE(deepspeed.profiled);
}

TEST_CASE("keys of sharding that would change nothing are refused") {
  const auto with = [](const std::string& software, const std::string& more) {
    return testing::read_text(R"({"model": "gpt-1.7b", "platform": "selene-a100", "software": ")" +
                              software + R"(", "training": {"global_batch": 8, "micro_batch": 1},
                                   "parallel": {"data": 8, "zero_stage": 3)" +
                              more + "}}");
  };
  CHECK(with("torchtitan-2025", "").plan.parallel.zero_prefetch == 1);
  CHECK(with("deepspeed-zero3-2021", "").plan.parallel.zero_prefetch == 0);
  CHECK_THROWS_AS(with("torchtitan-2025", R"(, "overlap_gradient_reduce": true)"),
                  const InputError&);
  CHECK_THROWS_AS(with("deepspeed-zero3-2021", R"(, "zero_prefetch": 1)"), const InputError&);
}

TEST_CASE("a fragment without a version is read as version 1 when it comes from another document") {
  Problems problems;
  JsonValue value = parse_json(std::make_shared<const SourceText>(SourceText{"set.json", R"({
      "model": "tiny", "platform": "boxes", "training": {"global_batch": 8, "micro_batch": 1}})"}),
                               problems);
  CHECK(read_scenario(std::move(value), ".", test_library()).plan.num_ranks() == 1);
}

TEST_CASE("a file that is not there is the environment's fault") {
  CHECK_THROWS_AS(read_scenario(std::filesystem::path("/none/such.json"), test_library()),
                  const EnvironmentError&);
}

TEST_CASE("what is no regular file is not read as a model") {
  CHECK(refusal("plain", {{"/model", "/dev/zero"}}).find("it is no regular file") !=
        std::string::npos);
}

TEST_CASE("the library is where WINDTUNNEL_DATA says, and lists its names sorted") {
  setenv("WINDTUNNEL_DATA", (corpus() / "library").c_str(), 1);
  const Library library = Library::find();
  CHECK(library.names("platforms") == std::vector<std::string>{"boxes", "mixed", "pair"});
  CHECK(library.names("software") == std::vector<std::string>{"flashy", "megatron-lm-2021"});
  CHECK(library.names("nothing").empty());
  setenv("WINDTUNNEL_DATA", "/none", 1);
  CHECK_THROWS_AS(Library::find(), const EnvironmentError&);
}

}  // namespace
}  // namespace windtunnel
