#include "search/new_scenario.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "core/testing.hpp"
#include "report/terminal_text.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

const Library& shipped() {
  static const Library library{source_dir()};
  return library;
}

/// Read back from its text, comments and all.
Scenario scenario_in(const std::string& text) {
  Problems problems;
  JsonValue value =
      parse_json(std::make_shared<const SourceText>(SourceText{"new.json", text}), problems);
  problems.throw_if_any();
  return read_scenario(std::move(value), {}, shipped());
}

TEST_CASE("a new scenario runs as it is, fits, and uses the GPUs that were asked for") {
  const NewScenario made = new_scenario({"llama3-8b", "dgx-h100", 64}, shipped());
  const Scenario scenario = scenario_in(made.text);
  CHECK(scenario.plan.num_ranks() == 64);
  CHECK(contains(made.text, "\"nodes\": 8, "));
  CHECK(contains(made.text, "// of 8 GPUs each"));
  for (const std::string& line : detail::lines_of(made.text)) CHECK(line.size() <= 80);
  // 4e6 tokens / 8192 / 64 GPUs = 7.6 samples each, to the next power of two 8
  CHECK(scenario.plan.training.global_batch == 512);
  CHECK(simulate(scenario).report.memory.fits);
  CHECK(scenario_in(canonical_text(made.document)).hash == scenario.hash);
}

TEST_CASE("a new scenario on less than a node, on trays of a domain, and on GPUs without bf16") {
  const Scenario part = scenario_in(new_scenario({"gpt-1.7b", "dgx-h100", 4}, shipped()).text);
  CHECK(part.plan.num_ranks() == 4);
  const NewScenario trays = new_scenario({"llama3-8b", "gb200-nvl72", 256}, shipped());
  CHECK(contains(trays.text, "\"nodes\": 64, "));
  CHECK(scenario_in(trays.text).plan.num_ranks() == 256);
  CHECK(contains(new_scenario({"gpt-1.7b", "dgx2-v100", 16}, shipped()).text, "\"fp16\""));
}

TEST_CASE("a model with experts gets groups of them, and one that is too large is refused") {
  CHECK(contains(new_scenario({"qwen3-30b-a3b", "dgx-h100", 64}, shipped()).text, "\"expert\": "));
  CHECK_THROWS_WITH_AS(new_scenario({"llama3-405b", "dgx-h100", 8}, shipped()),
                       doctest::Contains("that were looked at fits on 8 GPUs of dgx-h100"),
                       InputError);
}

TEST_CASE(
    "a plan that is sure to fit goes before a faster one at risk, and where there is none, that is "
    "said") {
  const NewScenario sure = new_scenario({"llama3-70b", "dgx-h100", 1024}, shipped());
  CHECK(simulate(scenario_in(sure.text)).report.memory.verdict == MemoryVerdict::fits);
  CHECK(sure.doubt.empty());
  const NewScenario doubtful = new_scenario({"llama3-70b", "dgx-h100", 24}, shipped());
  CHECK(contains(doubtful.doubt, "no plan that was looked at is sure to fit"));
  CHECK(contains(doubtful.text, "Warning: no plan that was looked at is sure"));
}

TEST_CASE("a new scenario takes the batch and the length of samples that are asked for") {
  // 96 samples do not divide among 64 replicas: the plan has fewer.
  const NewScenario made = new_scenario({"llama3-8b", "dgx-h100", 64, 96, 4096}, shipped());
  const Scenario scenario = scenario_in(made.text);
  CHECK(scenario.plan.training.global_batch == 96);
  CHECK(scenario.model.sequence == 4096);
  CHECK(scenario.model.layers == 32);
  CHECK(contains(made.text, "\"extends\": \"llama3-8b\""));
}

TEST_CASE("a model whose training does not fit can be fine-tuned with adapters") {
  const NewScenarioRequest whole{"llama3-70b", "dgx-h100", 8, 64};
  CHECK_THROWS_WITH_AS(new_scenario(whole, shipped()), doctest::Contains("--lora-rank 16"),
                       InputError);
  NewScenarioRequest adapters = whole;
  adapters.lora_rank = 16;
  const NewScenario made = new_scenario(adapters, shipped());
  CHECK(made.doubt.empty());
  CHECK(scenario_in(made.text).plan.training.lora.rank == 16);
}

TEST_CASE("where no plan fits, the stack, the nearest plan and what it misses are said") {
  const NewScenarioRequest request{"llama3-8b", "dgx-a100-40gb", 4};
  for (const char* said :
       {"with megatron-core-2026", "of the nearest, tensor ", "the GPU has 39.4 GiB"})
    CHECK_THROWS_WITH_AS(new_scenario(request, shipped()), doctest::Contains(said), InputError);
}

TEST_CASE("what is set for a new scenario is in the file, and the search keeps to it") {
  NewScenarioRequest request{"llama3-8b", "dgx-a100-40gb", 4};
  request.overrides = {{"/software", "torchtitan-2025"},
                       {"/training/main_params_dtype", "none"},
                       {"/parallel/tensor", "2"}};
  const Scenario made = scenario_in(new_scenario(request, shipped()).text);
  CHECK(made.software.name == "torchtitan-2025");
  CHECK(number_of(find_at(made.resolved, "/parallel/tensor")) == 2);
  CHECK(find_at(made.resolved, "/training/main_params_dtype")->string() == "none");
  CHECK(made.plan.parallel.tensor == 2);
  // A stack that cuts no matrices, and one that shards nothing.
  request.overrides = {{"/software", "transformers-2024"}};
  request.lora_rank = 16;
  CHECK(scenario_in(new_scenario(request, shipped()).text).plan.parallel.tensor == 1);
  const NewScenarioRequest old{
      "gpt-1.7b",
      "dgx-h100",
      8,
      {},
      {},
      {},
      {{"/software", "megatron-lm-2020"}, {"/training/precision", "fp16"}}};
  CHECK(scenario_in(new_scenario(old, shipped()).text).plan.parallel.zero_stage == 0);
  const auto refused = [&](const Overrides& overrides, const char* message) {
    request.overrides = overrides;
    CHECK_THROWS_WITH_AS(new_scenario(request, shipped()), doctest::Contains(message), InputError);
  };
  refused({{"/nodes", "4"}}, "add it to run, or change it in the file that is written");
  refused({{"training/micro_batch", "2"}}, "write --set /training/micro_batch=VALUE");
  refused({{"/training/global_batch", "64"}}, "write --global-batch");
  refused({{"/platform/extends", "dgx-h100"}}, "write --platform");
  refused({{"/platform/node_types/00/nic_rate", "5 Gbps"}}, "there is no such place");
  refused({{"/parallel/tensor", "null"}}, "/parallel/tensor has no value");
  refused({{"/parallel/tensor", "3"}}, "can be laid out on 4 GPUs");
}

TEST_CASE("what is set of the platform is searched for, and in the file on top of its name") {
  NewScenarioRequest request{"llama3-8b", "dgx-h100", 16};
  const NewScenario as_shipped = new_scenario(request, shipped());
  request.overrides = {{"/platform/node_types/0/nic_rate", "5 Gbps"},
                       {"/platform/fabric/oversubscription", "2"},
                       {"/platform/fabric/nodes_per_leaf", "8"}};
  const NewScenario made = new_scenario(request, shipped());
  const Scenario scenario = scenario_in(made.text);
  CHECK(find_at(made.document, "/platform/extends")->string() == "dgx-h100");
  CHECK(made.text.find(R"("node_types": [{"nic_rate":"5 Gbps"}])") != std::string::npos);
  CHECK(scenario.nodes.front().nic_rate == 5_Gbps);
  CHECK(scenario.nodes.front().nics == 8);
  // The time in the heading is the slower network's.
  const auto heading = [](const NewScenario& each) {
    return each.text.substr(0, each.text.find('{'));
  };
  CHECK(heading(made) != heading(as_shipped));
  // Nodes of four GPUs: six of them are no whole nodes.
  request.gpus = 6;
  request.overrides = {{"/platform/node_types/0/gpus", "4"}};
  CHECK_THROWS_WITH_AS(new_scenario(request, shipped()), doctest::Contains("--gpus 4 or --gpus 8"),
                       InputError);
  request.overrides = {{"/platform/node_types/0/nic_rat", "5 Gbps"}};
  CHECK_THROWS_WITH_AS(new_scenario(request, shipped()), doctest::Contains("nic_rate"), InputError);
}

TEST_CASE("a degree that is set leaves the others to the GPUs that were asked for") {
  for (const char* degree : {"tensor", "pipeline", "data"}) {
    CAPTURE(degree);
    NewScenarioRequest request{"llama3-8b", "dgx-h100", 8};
    request.overrides = {{std::string("/parallel/") + degree, "4"}};
    const Scenario made = scenario_in(new_scenario(request, shipped()).text);
    CHECK(made.plan.num_ranks() == 8);
    CHECK(number_of(find_at(made.resolved, std::string("/parallel/") + degree)) == 4);
  }
}

TEST_CASE("long samples are cut among GPUs where that is faster") {
  const NewScenario made = new_scenario({"llama3-70b", "dgx-h100", 128, {}, 65536}, shipped());
  CHECK(scenario_in(made.text).plan.parallel.context > 1);
}

TEST_CASE("ZeRO 3 is tried where nothing else fits") {
  const std::string text = new_scenario({"qwen2.5-72b", "dgx-h100", 24}, shipped()).text;
  CHECK(contains(text, "\"zero_stage\": 3"));
  CHECK(contains(text, "// what replicas share: 3 weights too (FSDP)"));
}

TEST_CASE("where whole gradients do not fit, those of every microbatch are scattered") {
  NewScenarioRequest request{"mixtral-8x7b", "dgx-h100", 16};
  request.overrides = {{"/software", "transformers-2024"}};
  const NewScenario made = new_scenario(request, shipped());
  CHECK(made.doubt.empty());
  CHECK(contains(made.text, "\"no_sync\": false"));
  CHECK_FALSE(scenario_in(made.text).plan.parallel.no_sync);
}

TEST_CASE("GPUs that are not whole nodes are refused with the counts next to them") {
  CHECK_THROWS_WITH_AS(new_scenario({"llama3-8b", "dgx-h100", 12}, shipped()),
                       doctest::Contains("--gpus 8 or --gpus 16"), InputError);
}

}  // namespace
}  // namespace windtunnel
