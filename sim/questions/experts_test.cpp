// Models with experts, simulated.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "core/testing.hpp"
#include "questions/explain.hpp"
#include "simulate/expert_fixtures.hpp"

namespace windtunnel {
namespace {

using two_by_two::report_for;

Scenario read(const std::string& text, Overrides overrides = {}) {
  const bool is_given = std::any_of(overrides.begin(), overrides.end(),
                                    [](const auto& each) { return each.first == "/software"; });
  if (!is_given)
    overrides.insert(overrides.begin(), {"/software/experts/dispatch", "one_copy_per_node"});
  return testing::read_text(text, overrides);
}

/// Two nodes of two GPUs, an expert on each, top 2, one layer: 1,024 tokens of 1,024 values of two bytes a rank.
const std::string four_gpus = std::string(two_by_two::cluster_and_model) + R"(
  "training": {"global_batch": 4, "micro_batch": 1},
  "parallel": {"data": 4, "expert": 4}})";

}  // namespace

TEST_CASE("4 GPUs, 2 nodes, 4 experts, top 2: exchanges to the microsecond") {
  // Two copies of each token: 4,194,304 bytes a rank. In the node half of that: 10 us + 2,097,152 B / 100 GB/s = 30.97 us. 5/6 of the
  // tokens have an expert on the other node: 1,747,627 B / 25 GB/s = 69.905 us, and 20 us before. Dispatch and combine, forward and
  // backward: 4 * 89.905 us.
  constexpr double paper = 4 * (20e-6 + 1024 * 2048 * (5.0 / 6) / 25e9);
  const Scenario scenario = read(four_gpus);
  CHECK(report_for(scenario).breakdown.of(Line::expert_comm).value() ==
        doctest::Approx(paper).epsilon(1e-6));
  // As flows between the GPUs, operation by operation.
  const Report layered = report_for(scenario, Detail::layer);
  CHECK(layered.breakdown.of(Line::expert_comm).value() == doctest::Approx(paper).epsilon(1e-6));
  CHECK(layered.iteration_time.value() ==
        doctest::Approx(report_for(scenario).iteration_time.value()).epsilon(1e-9));
  // Sent by each of four GPUs, each way twice: half of the copies in the node, forwarded ones included, and 5/12 between nodes.
  const auto sent = [](const Report& report, Traffic traffic) {
    return report.traffic[static_cast<std::size_t>(traffic)].value();
  };
  for (const Report& report : {layered, report_for(scenario)})
    for (const Traffic traffic : {Traffic::expert_dispatch, Traffic::expert_combine})
      CHECK(sent(report, traffic) == doctest::Approx(4 * 2 * 4194304 * (11.0 / 12)).epsilon(1e-12));
  // With a copy for every expert three quarters leave their GPU.
  const Overrides plain{{"/software/experts/dispatch", "all_to_all"}};
  CHECK(sent(report_for(testing::read_text(four_gpus, plain)), Traffic::expert_dispatch) ==
        doctest::Approx(4 * 2 * 4194304 * 0.75).epsilon(1e-12));
}

TEST_CASE(
    "4 GPUs, 2 nodes, 4 experts: an all-gather takes every token to every rank, however many its "
    "experts take") {
  // A rank's 2,097,152 bytes of tokens pass three links of each of two rings, one through each NIC: 3,145,728 B / 25 GB/s and 20 us.
  constexpr double paper = 4 * (20e-6 + 3 * 1024 * 2048 / 2.0 / 25e9);
  const auto with_all_gather = [](Overrides more = {}) {
    more.emplace_back("/software/experts/dispatch", "all_gather");
    return testing::read_text(four_gpus, more);
  };
  for (const Detail detail : {Detail::pass, Detail::layer}) {
    const Report report = report_for(with_all_gather(), detail);
    CHECK(report.breakdown.of(Line::expert_comm).value() == doctest::Approx(paper).epsilon(1e-6));
    for (const Traffic traffic : {Traffic::expert_dispatch, Traffic::expert_combine})
      CHECK(report.traffic[static_cast<std::size_t>(traffic)].value() ==
            doctest::Approx(4 * 2 * 3 * 1024 * 2048).epsilon(1e-12));
  }
  const Report half = report_for(with_all_gather({{"/model/moe/capacity", "0.5"}}));
  CHECK(half.breakdown.of(Line::expert_comm).value() == doctest::Approx(paper).epsilon(1e-6));
  CHECK(half.traffic[static_cast<std::size_t>(Traffic::expert_dispatch)].value() ==
        doctest::Approx(4 * 2 * 3 * 1024 * 2048).epsilon(1e-12));
}

TEST_CASE("experts that take half of their tokens get half of the bytes, and half of the time") {
  const Scenario all = read(four_gpus), half = read(four_gpus, {{"/model/moe/capacity", "0.5"}}),
                 nearly =
                     read(four_gpus, {{"/model/moe/capacity", "0.5"},
                                      {"/model/moe/balance", R"({"shares": [1.0001, 1, 1, 1]})"}});
  const auto sent = [](const Report& report) {
    return report.traffic[static_cast<std::size_t>(Traffic::expert_dispatch)] / Bytes{1};
  };
  CHECK(sent(report_for(half)) == doctest::Approx(sent(report_for(all)) / 2).epsilon(1e-12));
  CHECK(report_for(half).iteration_time < report_for(all).iteration_time);
  CHECK(report_for(nearly).iteration_time.value() ==
        doctest::Approx(report_for(half).iteration_time.value()).epsilon(1e-9));
  CHECK(report_for(half).memory.stages[0].activations <
        report_for(all).memory.stages[0].activations);
}

TEST_CASE(
    "expert groups stay inside NVLink domains unless a segment says otherwise, and one that "
    "straddles is reported") {
  // 32 trays of four GPUs; groups of 32. Of each rack of 18 trays 16 hold two groups; 18 would hold two and a quarter.
  const std::string racks = R"({
    "platform": "gb200-nvl72", "nodes": 32, "software": "megatron-core-2026@26.02",
    "model": {"family": "llama", "layers": 4, "hidden": 2048, "heads": 16, "sequence": 2048, "vocab": 32000, "gated_mlp": true,
              "rotary": true, "tied_embeddings": false, "moe": {"experts": 64, "top_k": 4, "ffn_hidden": 1024}},
    "training": {"global_batch": 512, "micro_batch": 1, "attention": "flash", "precision": "bf16"},
    "parallel": {"pipeline": 4, "data": 32, "expert": 32, "zero_stage": 1}})";
  const Report inside = report_for(testing::read_text(racks));
  REQUIRE(inside.domains.has_value());
  CHECK(inside.domains->nodes_used == 16);
  CHECK(inside.domains->nodes == 18);
  CHECK(inside.domains->idle_nodes == 4);  // two in each of two racks
  CHECK(inside.domains->straddling.empty());
  CHECK(inside.traffic[static_cast<std::size_t>(Traffic::expert_dispatch)] > Bytes{0});
  const Report across = report_for(testing::read_text(racks, {{"/platform/segment", "18"}}));
  REQUIRE(across.domains->straddling.size() == 1);
  const StraddlingGroups& groups = across.domains->straddling.front();
  CHECK(groups.axis == AxisName::expert);
  CHECK(groups.gpus == 32);
  CHECK(groups.domains == 2);
  CHECK(groups.exposed >= across.breakdown.of(Line::expert_comm));
  CHECK(groups.exposed > inside.breakdown.of(Line::expert_comm));
  CHECK(across.domains->idle_nodes == 0);
  CHECK(across.iteration_time > inside.iteration_time);
  const auto names_them = [](const std::string& warning) {
    return warning.find("expert groups of 32 GPUs straddle 2 NVLink domains") != std::string::npos;
  };
  CHECK(std::any_of(across.warnings.begin(), across.warnings.end(), names_them));
  CHECK(std::none_of(inside.warnings.begin(), inside.warnings.end(), names_them));
  // A machine of 36 trays has no third rack.
  CHECK_THROWS_AS(testing::read_text(
                      racks, {{"/platform/segment", "10"}, {"/platform/node_types/0/count", "36"}}),
                  InputError);
}

TEST_CASE("one slow link of an expert group slows its exchanges as it should") {
  // From node 0 to node 1 25 GB/s in place of 2 x 25: what both GPUs send takes twice as long.
  constexpr double paper = 4 * (20e-6 + 2 * 1024 * 2048 * (5.0 / 6) / 25e9);
  const Scenario scenario = read(
      four_gpus, {{"/platform/link_overrides",
                   R"([{"from": 0, "to": 1, "bandwidth": "25 GB/s", "source": "assumed: x"}])"}});
  for (const MakeEngine engine : {make_native_engine, make_simgrid_engine})
    CHECK(report_for(scenario, Detail::pass, engine).breakdown.of(Line::expert_comm).value() ==
          doctest::Approx(paper).epsilon(1e-6));
}

TEST_CASE("explain names what a skew costs, and a simulation without it agrees") {
  const Overrides skewed{{"/model/moe/balance", R"({"zipf": 0.5})"}};
  const Scenario scenario = read(four_gpus, skewed);
  const Seconds with = report_for(scenario).iteration_time,
                without = report_for(read(four_gpus)).iteration_time;
  CHECK(with > without);
  const Library files{source_dir()};
  bool asked = false;
  for (const WhatIf& change : what_ifs(scenario, files)) {
    if (change.what != "tokens spread evenly over experts") continue;
    asked = true;
    const auto results = simulate_what_ifs(scenario, files, {change}, 1);
    REQUIRE(results.size() == 1);
    CHECK(results.front().failure.empty());
    CHECK(results.front().iteration_time.value() == doctest::Approx(without.value()).epsilon(1e-9));
  }
  CHECK(asked);
}

TEST_CASE("tokens that are skewed are no more tokens") {
  const auto sent = [](const Report& report) {
    return report.traffic[static_cast<std::size_t>(Traffic::expert_dispatch)];
  };
  const Overrides skewed{{"/model/moe/balance", R"({"zipf": 1})"}};
  CHECK(sent(report_for(read(four_gpus, skewed))) == sent(report_for(read(four_gpus))));
}

TEST_CASE(
    "explain says what a slow link costs an expert group, and a simulation without it agrees") {
  const Scenario slow = read(
      four_gpus, {{"/platform/link_overrides",
                   R"([{"from": 0, "to": 1, "bandwidth": "25 GB/s", "source": "assumed: x"}])"}});
  const Library files{source_dir()};
  bool asked = false;
  for (const WhatIf& change : what_ifs(slow, files)) {
    if (change.what != "no links with rates of their own") continue;
    asked = true;
    const auto results = simulate_what_ifs(slow, files, {change}, 1);
    REQUIRE(results.size() == 1);
    CHECK(results.front().iteration_time < report_for(slow).iteration_time);
    CHECK(results.front().iteration_time.value() ==
          doctest::Approx(report_for(read(four_gpus)).iteration_time.value()).epsilon(1e-9));
  }
  CHECK(asked);
}

TEST_CASE("the fullest rank's memory follows the skew") {
  const MemoryAccount even = report_for(read(four_gpus)).memory;
  const MemoryAccount skewed =
      report_for(read(four_gpus, {{"/model/moe/balance", R"({"zipf": 1})"}})).memory;
  CHECK(skewed.stages[0].activations > even.stages[0].activations);
}

TEST_CASE("exchanges overlapped with another microbatch leave what their multiprocessors take") {
  const Overrides two{{"/training/global_batch", "8"}};
  const Overrides overlapped{{"/training/global_batch", "8"},
                             {"/software/experts/overlap_exchanges", "true"},
                             {"/software/experts/exchange_slowdown", "1"},
                             {"/software/experts/exchange_multiprocessors", "27"}};
  // 27 of an A100's 108 multiprocessors for as long as exchanges run, and the kernels take longer than they do.
  const Overrides slow_kernels{{"/model/sequence", "8192"}, {"/model/moe/ffn_hidden", "65536"}};
  const auto with = [&](Overrides changes) {
    changes.insert(changes.end(), slow_kernels.begin(), slow_kernels.end());
    return report_for(read(four_gpus, changes)).breakdown.of(Line::expert_comm);
  };
  // The first forward and the last backward pass of two microbatches run alone: half of the exchanges.
  CHECK(with(overlapped).value() ==
        doctest::Approx(with(two).value() * (0.5 + 0.5 / 4)).epsilon(1e-9));
  // Exchanges that kernels slow down hold them for longer.
  Overrides slowed = overlapped;
  slowed[2].second = "1.5";
  CHECK(with(slowed).value() ==
        doctest::Approx(with(two).value() * (0.5 + 0.5 * 1.5 / 4)).epsilon(1e-9));
}

TEST_CASE("experts hide dispatches, and attention alone hides combines") {
  const auto exchanges = [](const char* overlap) {
    return report_for(read(four_gpus, {{"/training/global_batch", "8"},
                                       {"/model/moe/ffn_hidden", "65536"},
                                       {"/platform/node_types/0/nic_rate", "10 Gbps"},
                                       {"/software/experts/overlap_exchanges", overlap},
                                       {"/software/experts/exchange_multiprocessors", "0"},
                                       {"/software/experts/exchange_slowdown", "1"}}))
        .breakdown.of(Line::expert_comm)
        .value();
  };
  // Half of the passes have others overlapped with them. Of their exchanges all dispatches hide, and of combines, 0.7 ms each, what attention lasts.
  const double alone = exchanges("false"), hidden = alone - exchanges("true");
  CHECK(hidden > alone / 4);
  CHECK(hidden < 1.5 * alone / 4);
}

TEST_CASE("of exchanges that outlast kernels the rest runs alone") {
  const auto exchanges = [](const char* overlap, const char* slowdown) {
    return report_for(read(four_gpus, {{"/training/global_batch", "8"},
                                       {"/platform/node_types/0/nic_rate", "1 Gbps"},
                                       {"/software/experts/overlap_exchanges", overlap},
                                       {"/software/experts/exchange_multiprocessors", "27"},
                                       {"/software/experts/exchange_slowdown", slowdown}}))
        .breakdown.of(Line::expert_comm)
        .value();
  };
  // Kernels K hide K of the exchanges where those are as fast as alone. With 3/4 of the multiprocessors kernels last K / (3/4); exchanges
  // that take 1.5 times as long then are at K / (3/4) / 1.5, and K / (3/4) - K more has been waited for.
  const double alone = exchanges("false", "1"), hidden = alone - exchanges("true", "1"),
               slowed = alone - exchanges("true", "1.5");
  CHECK(hidden > 0);
  CHECK(slowed / hidden == doctest::Approx(1 / 0.75 / 1.5 - (1 / 0.75 - 1)).epsilon(1e-9));
}

TEST_CASE("with stages exchanges hide only where each has several chunks") {
  const auto exchanges = [](const std::string& layers, const char* chunks, const char* overlap) {
    return report_for(read(four_gpus, {{"/model/layers", layers},
                                       {"/training/global_batch", "8"},
                                       {"/parallel/data", "2"},
                                       {"/parallel/pipeline", "2"},
                                       {"/parallel/expert", "2"},
                                       {"/parallel/virtual_pipeline", chunks},
                                       {"/parallel/schedule",
                                        chunks == std::string("1") ? "1f1b" : "interleaved_1f1b"},
                                       {"/software/experts/overlap_exchanges", overlap}}))
        .breakdown.of(Line::expert_comm);
  };
  CHECK(exchanges("4", "1", "true") == exchanges("4", "1", "false"));
  CHECK(exchanges("4", "2", "true") < exchanges("4", "2", "false"));
}

TEST_CASE("kernels for all experts at once spare the host its loops") {
  const auto time = [](const char* kernels, const char* launch) {
    return report_for(read(four_gpus, {{"/model/moe/experts", "16"},
                                       {"/software/experts/kernels", kernels},
                                       {"/software/experts/loop_launch", launch}}))
        .iteration_time;
  };
  CHECK(time("each_expert", "1 ms") > time("each_expert", "3 us"));
  CHECK(time("all_experts", "1 ms") == time("all_experts", "3 us"));
}

TEST_CASE("a release of the stack is the newest of its list that is no newer") {
  const auto experts = [](const std::string& software, const std::string& gpus = "h100-sxm-80gb",
                          const std::string& model = "") {
    Overrides changes{{"/software", software}};
    if (!model.empty()) changes.emplace_back("/model", model);
    const Scenario scenario = read(four_gpus, changes);
    Device device;
    device.name = gpus;
    return scenario.software.experts_on(device, Precision::mxfp8, scenario.model);
  };
  CHECK(experts("megatron-core-2026").kernels == ExpertKernels::each_expert);
  CHECK(experts("megatron-core-2026@26.04.01").kernels == ExpertKernels::each_expert);
  CHECK(experts("megatron-core-2026@26.04", "gb200").dispatch == ExpertDispatch::one_copy_per_node);
  CHECK(experts("megatron-core-2026@26.02.01", "b200").dispatch == ExpertDispatch::all_to_all);
  const std::string deepseek = "deepseek-v3";
  CHECK(experts("megatron-core-2026@26.06", "gb200", deepseek).kernels ==
        ExpertKernels::all_experts);
  CHECK(experts("megatron-core-2026@27.01", "gb300", deepseek).overlap_exchanges);
  // Kimi's recipe of v0.5.0 has Hybrid-EP, and neither fused experts nor overlapped exchanges.
  CHECK(experts("megatron-core-2026@26.06", "gb300", "kimi-k2").dispatch ==
        ExpertDispatch::one_copy_per_node);
  CHECK(experts("megatron-core-2026@26.06", "gb300", "kimi-k2").kernels ==
        ExpertKernels::each_expert);
  CHECK_FALSE(experts("megatron-core-2026@26.06", "gb300", "kimi-k2").overlap_exchanges);
  CHECK(experts("megatron-core-2026@26.06", "b300").kernels == ExpertKernels::each_expert);
  CHECK_FALSE(experts("megatron-core-2026@26.06").overlap_exchanges);
  CHECK_THROWS_AS(experts("megatron-core-2026@newest"), InputError);
  // Recipes of one model, which is known by its sizes.
  const std::string h100 = "h100-sxm-80gb";
  CHECK(experts("megatron-core-2026@26.02", "b200", "qwen3-30b-a3b").dispatch ==
        ExpertDispatch::all_to_all);
  CHECK(experts("megatron-core-2026@26.02.01", "b200", "qwen3-30b-a3b").dispatch ==
        ExpertDispatch::one_copy_per_node);
  CHECK(experts("megatron-core-2026@26.04", h100, "qwen3-235b-a22b").overlap_exchanges);
  CHECK_FALSE(experts("megatron-core-2026@26.04", h100, "deepseek-v3").overlap_exchanges);
  CHECK(experts("megatron-core-2026@26.04", h100, "gpt-oss-120b").adds_biases);
  CHECK_FALSE(experts("megatron-core-2026@26.04", h100, "qwen3-30b-a3b").adds_biases);
  CHECK(experts("megatron-core-2026@26.04", h100, "gpt-oss-120b").activation ==
        ExpertActivation::clamped_apart);
  CHECK(experts("megatron-core-2026@26.06", "gb300", "gpt-oss-120b").activation ==
        ExpertActivation::by_operation);
}

TEST_CASE("a profile's name alone means its newest release") {
  const auto report = [](const char* software) {
    return report_for(read(four_gpus, {{"/software", software}}));
  };
  const Report newest = report("megatron-core-2026");
  REQUIRE(newest.software_release.has_value());
  CHECK(newest.software_release->name == "26.06");
  CHECK(newest.software_release->is_newest);
  CHECK(read(four_gpus, {{"/software", "megatron-core-2026"}}).software.gradient_type ==
        GradientType::bf16);
  const Report later = report("megatron-core-2026@26.08");
  CHECK(later.software_release->name == "26.08");
  CHECK(later.software_release->known_from == "26.06");
  const Report earlier = report("megatron-core-2026@25.01");
  CHECK(earlier.software_release->known_from == "0");  // Megatron-LM's own scripts
  CHECK_FALSE(earlier.software_release->is_newest);
  CHECK_FALSE(report("nemo-2025").software_release.has_value());
}

TEST_CASE("what is written over a release wins over the release's own values") {
  // The recipes of 26.04 overlap the exchanges of Qwen3-235B on H100, reduce gradients in bf16, and keep bf16 states of 2 bytes.
  const auto software = [](const Overrides& changes) {
    Overrides all{{"/model", "qwen3-235b-a22b"}, {"/software", "megatron-core-2026@26.04"}};
    all.insert(all.end(), changes.begin(), changes.end());
    return read(four_gpus, all);
  };
  const auto experts = [](const Scenario& scenario) {
    Device device;
    device.name = "h100-sxm-80gb";
    return scenario.software.experts_on(device, Precision::fp8, scenario.model);
  };
  CHECK(experts(software({})).overlap_exchanges);
  const Scenario set = software({{"/software/experts/overlap_exchanges", "false"},
                                 {"/software/gradient_type", "fp32"},
                                 {"/software/memory/states_bf16/gradients", "4"}});
  CHECK_FALSE(experts(set).overlap_exchanges);
  CHECK(set.software.gradient_type == GradientType::fp32);
  CHECK(set.software.states_bf16.gradients == 4);
  CHECK(set.software.states_bf16.step_temporary == 4);  // the release's
  // The same from the resolved scenario, from a profile that extends it, and for a value that stands for whole blocks.
  const Library library{source_dir()};
  CHECK_FALSE(experts(read_scenario(set.resolved, {}, library)).overlap_exchanges);
  const Scenario extended =
      software({{"/software", R"({"extends": "megatron-core-2026@26.04", "gradient_type": "fp32",
                         "experts": {"overlap_exchanges": false}})"}});
  CHECK_FALSE(experts(extended).overlap_exchanges);
  CHECK(extended.software.gradient_type == GradientType::fp32);
  CHECK(extended.software.name == "megatron-core-2026");
  CHECK(extended.software.cross_entropy_bytes == 10);  // the release's
  CHECK_FALSE(experts(software({{"/software/experts", R"({"dispatch": "one_copy_per_node"})"}}))
                  .overlap_exchanges);
  // An exception that is written over another counts.
  CHECK(experts(software({{"/software",
                           R"({"extends": "megatron-core-2026@25.01", "experts": {"elsewhere":
                              [{"devices": ["h100-sxm-80gb"], "overlap_exchanges": true}]}})"}}))
            .overlap_exchanges);
}

TEST_CASE("attention rates written over a profile hold on the devices of its exceptions too") {
  const Scenario set = read(
      four_gpus, {{"/software", "torchtitan-2025"}, {"/software/flash_forward_efficiency", "0.5"}});
  for (const auto& rates : set.software.flash_elsewhere) CHECK(rates.forward == 0.5);
}

TEST_CASE("a plan that does not say has what the recipes of a release set") {
  const auto with = [](const std::string& software, Overrides changes) {
    changes.insert(changes.begin(), {"/software", software});
    return read(four_gpus, changes);
  };
  const Overrides tensor_parallel = {{"/parallel/tensor", "2"},
                                     {"/parallel/data", "2"},
                                     {"/parallel/expert", "1"},
                                     {"/model/moe", "null"}};
  const Scenario own = with("megatron-core-2026@25.01",
                            tensor_parallel),  // Megatron-LM's own scripts
      recipes = with("megatron-core-2026@26.04", tensor_parallel);
  CHECK_FALSE(own.plan.parallel.sequence_parallel);
  CHECK(recipes.plan.parallel.sequence_parallel);
  CHECK_FALSE(with("megatron-core-2026@26.04", {}).plan.parallel.sequence_parallel);
  CHECK_FALSE(own.plan.parallel.overlap_gradient_reduce);
  CHECK(recipes.plan.parallel.overlap_gradient_reduce);
  CHECK(own.plan.training.gradient_type == GradientType::fp32);
  CHECK(recipes.plan.training.gradient_type == GradientType::bf16);
  CHECK(own.software.states_bf16.gradients == 4);
  CHECK(recipes.software.states_bf16.gradients == 2);
  Overrides said = tensor_parallel;
  said.push_back({"/parallel/sequence_parallel", "false"});
  CHECK_FALSE(with("megatron-core-2026@26.04", said).plan.parallel.sequence_parallel);
}

TEST_CASE("61 layers of 256 experts on 1,024 GPUs take less than a million activities") {
  const std::string text = R"({
    "platform": "dgx-h100", "nodes": 128, "software": "megatron-core-2026@0", "model": "deepseek-v3",
    "training": {"global_batch": 2048, "micro_batch": 1, "attention": "flash", "precision": "bf16"},
    "parallel": {"pipeline": 16, "data": 64, "expert": 64, "zero_stage": 1,
      "stage_layers": [4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 1]}})";
  const Scenario scenario = read(text);
  const Report report = report_for(scenario);
  CHECK(report.breakdown.of(Line::expert_comm) > Seconds{0});
  CHECK(report.activities < 1'000'000);
}

TEST_CASE("plans that experts cannot be laid out by are refused with what would do") {
  const auto problem = [](const Overrides& overrides) {
    try {
      read(four_gpus, overrides);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(has(problem({{"/parallel/expert", "3"}}), "does not divide the model's 4 experts"));
  CHECK(has(problem({{"/model/moe/experts", "8"}, {"/parallel/expert", "8"}}),
            "does not divide the 4 ranks of a stage"));
  CHECK(has(problem({{"/parallel/zero_stage", "3"}, {"/parallel/zero_group", "2"}}),
            "shared out among all ranks that hold them"));
  CHECK(has(problem({{"/parallel/tensor", "2"},
                     {"/parallel/data", "2"},
                     {"/parallel/expert", "2"},
                     {"/parallel/sequence_parallel", "false"}}),
            "tokens that are split over the tensor group"));
  CHECK(problem({{"/parallel/tensor", "2"}, {"/parallel/data", "2"}, {"/parallel/expert", "2"}})
            .empty());
  CHECK(has(problem({{"/model/moe", "null"}}), "needs a model with experts"));
  CHECK(has(problem({{"/model/layers", "4"},
                     {"/model/moe/dense_layers", "1"},
                     {"/parallel",
                      R"({"pipeline": 2, "data": 2, "expert": 2, "stage_layers": "balanced"})"}}),
            "are not balanced among stages"));
}

}  // namespace windtunnel
