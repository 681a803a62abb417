// ZeRO with experts: states of dense layers among all replicas, those of experts among the ranks that hold the same ones.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>
#include <string>

#include "simulate/expert_fixtures.hpp"

namespace windtunnel {
namespace {

using namespace two_by_two;

Scenario sharded_experts(int zero_stage, int expert, const Overrides& more = {}) {
  return two_by_two::scenario_of(zero_stage, expert, "", more);
}

constexpr double nic = 25e9;

TEST_CASE("ZeRO 2 scatters experts' gradients among two copies on every microbatch") {
  // With four experts on four ranks nobody else has them; with two on a rank, ranks 0 and 2, and 1 and 3, have the same. What is more:
  // the half of 4 bytes a gradient, of two microbatches, from each of four ranks.
  const Report shared = report_for(sharded_experts(2, 2)),
               alone = report_for(sharded_experts(2, 4));
  CHECK(sent(shared, Traffic::data_gradients) - sent(alone, Traffic::data_gradients) ==
        doctest::Approx(2 * 4 * 0.5 * 4 * of_rank));
  // Once an iteration the half of 2 bytes a parameter comes back.
  CHECK(sent(shared, Traffic::zero_gather) - sent(alone, Traffic::zero_gather) ==
        doctest::Approx(4 * 0.5 * 2 * of_rank));
  // Rings of two across nodes, each pair over its own NICs, with a latency of 5 us each.
  constexpr double paper = 2 * (5e-6 + 0.5 * 4 * of_rank / nic) + 5e-6 + 0.5 * 2 * of_rank / nic;
  CHECK(shared.breakdown.of(Line::data_comm).value() -
            alone.breakdown.of(Line::data_comm).value() ==
        doctest::Approx(paper).epsilon(1e-6));
  // Twice what ZeRO 1 scatters once an iteration.
  CHECK(sent(shared, Traffic::data_gradients) ==
        doctest::Approx(2 * sent(report_for(sharded_experts(1, 2)), Traffic::data_gradients)));
}

TEST_CASE("a plan with one copy of each expert that does not fit is told so, with finite numbers") {
  // The search for advice once halved the replicas, which left no copy of half of the experts: with ZeRO 2 their memory was no number.
  for (const int stage : {1, 2, 3}) {
    CAPTURE(stage);
    const Report report = report_for(
        sharded_experts(stage, 4, {{"/model/layers", "2"}, {"/model/moe/ffn_hidden", "4194304"}}));
    CHECK(report.memory.verdict == MemoryVerdict::does_not_fit);
    CHECK(std::isfinite(report.memory.stages.front().total.value()));
    CHECK_FALSE(report.memory.advice.empty());
  }
}

TEST_CASE("ZeRO 2 keeps a quarter of dense gradients and half of experts', ZeRO 3 of weights too") {
  const StageMemory none = report_for(sharded_experts(0, 2)).memory.stages.front(),
                    two = report_for(sharded_experts(2, 2)).memory.stages.front(),
                    three = report_for(sharded_experts(3, 2)).memory.stages.front();
  const double kept = (none.parameters - of_rank) / 4 + of_rank / 2;
  CHECK(two.gradients / none.gradients == doctest::Approx(kept / none.parameters));
  CHECK(two.weights == none.weights);
  CHECK(three.weights / none.weights == doctest::Approx(kept / none.parameters));
  CHECK(three.optimizer == two.optimizer);
}

TEST_CASE(
    "ZeRO 3 gathers a layer's experts before both passes and scatters them behind the second") {
  const Overrides apart{{"/parallel/zero_prefetch", "0"}};
  const Report shared = report_for(sharded_experts(3, 2, apart)),
               alone = report_for(sharded_experts(3, 4, apart));
  CHECK(sent(shared, Traffic::zero_gather) - sent(alone, Traffic::zero_gather) ==
        doctest::Approx(2 * 2 * 4 * 0.5 * 2 * of_rank));
  CHECK(sent(shared, Traffic::zero_scatter) - sent(alone, Traffic::zero_scatter) ==
        doctest::Approx(2 * 4 * 0.5 * 4 * of_rank));
  CHECK(sent(shared, Traffic::data_gradients) == 0);
  // With nothing gathered ahead: two gathers and a scatter a microbatch, each behind latencies of 15 and 5 us.
  constexpr double paper = 2 * (3 * 20e-6 + (2 * 0.5 * 2 + 0.5 * 4) * of_rank / nic);
  CHECK(shared.breakdown.of(Line::data_comm).value() -
            alone.breakdown.of(Line::data_comm).value() ==
        doctest::Approx(paper).epsilon(1e-6));
}

TEST_CASE("sharded experts take as long as numbers as operation by operation") {
  CHECK(rc::check([] {
    const int expert = *rc::gen::element(1, 2, 4), zero = *rc::gen::element(2, 3);
    const auto one_of = [](const char* a, const char* b) {
      return *rc::gen::element<std::string>(a, b);
    };
    Overrides more{{"/model/layers", one_of("1", "3")},
                   {"/model/moe/shared_ffn_hidden", one_of("0", "512")},
                   {"/training/recompute", one_of("none", "full")},
                   {"/software/experts/dispatch", one_of("all_to_all", "one_copy_per_node")}};
    if (zero == 3) more.emplace_back("/parallel/zero_prefetch", one_of("0", "1"));
    if (zero == 2) more.emplace_back("/parallel/overlap_gradient_reduce", one_of("false", "true"));
    const Scenario scenario = sharded_experts(zero, expert, more);
    // During gathers, exchanges across nodes are flows on the same NICs; the heap shares none.
    const Report folded = report_for(scenario, Detail::pass, make_heap_engine),
                 layered = report_for(scenario, Detail::layer, make_heap_engine);
    RC_ASSERT(std::abs(layered.iteration_time / folded.iteration_time - 1) < 1e-9);
    for (std::size_t kind = 0; kind < folded.traffic.size(); ++kind)
      RC_ASSERT(std::abs(layered.traffic[kind].value() - folded.traffic[kind].value()) <=
                1e-9 * folded.traffic[kind].value());
  }));
}

/// Two nodes of four GPUs, each a tensor group.
Scenario with_tensor_groups(int expert, int expert_tensor, const Overrides& more = {}) {
  Overrides overrides{{"/platform/node_types/0/gpus", "4"},
                      {"/parallel/tensor", "4"},
                      {"/parallel/data", "2"},
                      {"/parallel/sequence_parallel", "true"},
                      {"/parallel/expert_tensor", std::to_string(expert_tensor)}};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return sharded_experts(0, expert, overrides);
}

TEST_CASE("several groups of experts may share a tensor group") {
  constexpr double all_experts = 4.0 * 2 * 1024 * 2048;
  struct Folding {
    int expert, expert_tensor;
  };
  const double alone = sent(report_for(with_tensor_groups(4, 2)), Traffic::data_gradients);
  for (const Folding folding :
       {Folding{2, 1}, Folding{1, 2}, Folding{1, 1}, Folding{2, 2}, Folding{4, 1}}) {
    const int expert = folding.expert, expert_tensor = folding.expert_tensor;
    CAPTURE(expert);
    CAPTURE(expert_tensor);
    const Scenario scenario = with_tensor_groups(expert, expert_tensor);
    const Report report = report_for(scenario);
    // Each of 8 ranks holds a share of the experts, and reduces it in a ring with all that hold the same: 4 bytes a gradient.
    const int group = expert * expert_tensor, copies = 8 / group;
    CHECK(sent(report, Traffic::data_gradients) - alone ==
          doctest::Approx(8 * 4 * all_experts / group * 2 * (copies - 1) / copies).epsilon(1e-9));
    CHECK(
        report.iteration_time.value() ==
        doctest::Approx(report_for(scenario, Detail::layer).iteration_time.value()).epsilon(1e-9));
    // Inputs of experts that are cut are gathered, and tokens are sent to experts elsewhere.
    const Bytes dispatched = report.traffic[static_cast<std::size_t>(Traffic::expert_dispatch)];
    CHECK((group == 1) == (dispatched == Bytes{0}));
  }
}

TEST_CASE("groups of experts and tensor groups may overlap in part") {
  // Three tensor groups of four are two groups of six: an expert's two copies are 6 ranks apart.
  const Overrides overrides{{"/nodes", "3"},
                            {"/parallel/data", "3"},
                            {"/training/global_batch", "6"},
                            {"/model/moe/ffn_hidden", "3072"}};
  const Scenario scenario = with_tensor_groups(2, 3, overrides);
  CHECK(expert_data_parallel_size(scenario.plan.parallel) == 2);
  const Report whole = report_for(scenario);
  CHECK(whole.iteration_time.value() ==
        doctest::Approx(report_for(scenario, Detail::layer).iteration_time.value()).epsilon(1e-9));
  CHECK(whole.traffic[static_cast<std::size_t>(Traffic::expert_dispatch)] > Bytes{0});
}

TEST_CASE("ZeRO shares out experts among ranks of a tensor group too") {
  for (const int stage : {1, 2, 3}) {
    CAPTURE(stage);
    const Scenario scenario =
        with_tensor_groups(2, 1, {{"/parallel/zero_stage", std::to_string(stage)}});
    const Report whole = report_for(scenario), layered = report_for(scenario, Detail::layer);
    CHECK(whole.iteration_time.value() ==
          doctest::Approx(layered.iteration_time.value()).epsilon(1e-9));
    CHECK(whole.memory.stages.front().optimizer <
          report_for(with_tensor_groups(2, 1)).memory.stages.front().optimizer);
  }
}

}  // namespace
}  // namespace windtunnel
