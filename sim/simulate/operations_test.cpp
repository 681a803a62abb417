// Passes as numbers against passes operation by operation.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/testing.hpp"
#include "scenario/testing.hpp"
#include "simulate/drawn_scenario_fixtures.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

using testing::read_text;

Simulation run_detailed(const Scenario& scenario, Detail detail) {
  SimulateOptions options;
  options.make_engine = make_heap_engine;  // nothing contends
  options.detail = detail;
  options.keep_timeline = true;  // nothing is folded
  return simulate(scenario, options);
}

Overrides drawn_overrides() {
  const auto one_of = [](const std::vector<std::string>& of) { return *rc::gen::elementOf(of); };
  return {{"/training/recompute", one_of({"none", "selective", "full"})},
          {"/parallel/sequence_parallel", one_of({"true", "false"})},
          {"/software/gather_scattered_messages", one_of({"true", "false"})},
          {"/software/overlap_backward_tensor_collectives", one_of({"true", "false"})},
          {"/software/in_node_collective_slowdown", one_of({"1", "30"})},
          {"/software/launch/kernel", one_of({"1 us", "300 us"})},
          {"/compression/tensor_activations",
           one_of({"null", R"({"codec": "fixed", "ratio": 4, "encode_rate": "50 GB/s"})"})}};
}

/// The lines of a breakdown, with all waiting for stages in one: where the two messages of a blocking pair arrive together, rounding
/// decides which of them was the last, and so from when on it was under way.
std::vector<Seconds> lines_of(const Report& report) {
  std::vector<Seconds> lines(report.breakdown.seconds.begin(), report.breakdown.seconds.end());
  Seconds& bubble = lines[static_cast<std::size_t>(Line::pipeline_bubble)];
  bubble += std::exchange(lines[static_cast<std::size_t>(Line::pipeline_comm)], Seconds{});
  return lines;
}

void check_reports_equal(const Report& folded, const Report& layered) {
  RC_ASSERT(std::abs(layered.iteration_time / folded.iteration_time - 1) < 1e-9);
  const std::vector<Seconds> expected = lines_of(folded), lines = lines_of(layered);
  for (std::size_t line = 0; line < lines.size(); ++line)
    RC_ASSERT(std::abs((lines[line] - expected[line]) / folded.iteration_time) < 1e-9);
  for (std::size_t kind = 0; kind < folded.traffic.size(); ++kind)
    RC_ASSERT(std::abs(layered.traffic[kind].value() - folded.traffic[kind].value()) <=
              1e-9 * folded.traffic[kind].value());
}

TEST_CASE("a pass takes as long in one piece as operation by operation, where nothing contends") {
  testing::Draws draws;
  draws.tensor = {1, 2, 8, 16};
  draws.least_microbatches = 4;
  draws.most_microbatches = 12;
  CHECK(rc::check([&draws] {
    const std::string text = testing::drawn_scenario(draws);
    const Overrides overrides = drawn_overrides();
    for (const auto& [pointer, value] : overrides) RC_LOG() << pointer << "=" << value << " ";
    RC_LOG() << text;
    const Scenario scenario = read_text(text, overrides);
    check_reports_equal(run_detailed(scenario, Detail::pass).report,
                        run_detailed(scenario, Detail::layer).report);
  }));
}

TEST_CASE("by layer, a timeline has every kernel and collective of every layer") {
  const Scenario scenario = read_text(R"({
      "platform": "selene-a100", "nodes": 1, "software": "megatron-lm-2021",
      "model": {"layers": 6, "hidden": 1024, "heads": 16, "sequence": 512, "vocab": 32000},
      "training": {"global_batch": 3, "micro_batch": 1, "recompute": "full"},
      "parallel": {"tensor": 4, "pipeline": 2, "data": 1}})",
                                      {});
  std::map<Label, int> counts;
  std::map<Label, std::set<std::uint32_t>> layers;
  for (const Span& span : run_detailed(scenario, Detail::layer).timeline.computes) {
    ++counts[label_of(span.op)];
    layers[label_of(span.op)].insert(layer_of(span.op));
  }
  // Three microbatches through six layers, three on each of two stages.
  CHECK(counts[Label::attention] == 2 * 18);  // forward and backward
  CHECK(counts[Label::recomputed_feed_forward] == 18);
  CHECK(counts[Label::weight_gradients] == 2 * 18);
  // Forward 2, recomputed 2, backward 2 a layer; one of the embedding, one of the head.
  CHECK(counts[Label::reduce_activation] == 6 * 18 + 2 * 3);
  CHECK(counts[Label::embedding] == 2 * 3);
  CHECK(counts[Label::head] == 2 * 3);
  CHECK(layers[Label::attention] == std::set<std::uint32_t>{1, 2, 3});
  CHECK(layers[Label::embedding] == std::set<std::uint32_t>{0});
}

std::string cut_scenario(const std::string& method) {
  return R"({"platform": "selene-a100", "nodes": 1, "software": "megatron-lm-2021",
      "model": {"layers": 6, "hidden": 1024, "heads": 16, "sequence": 512, "vocab": 32000},
      "training": {"global_batch": 3, "micro_batch": 1, "attention": "flash"},
      "parallel": {"tensor": 2, "context": 4, "context_method": ")" +
         method + R"("}})";
}

TEST_CASE(
    "context groups send keys, values and their gradients round, or heads for tokens and back") {
  const auto bytes = [](const std::string& method) {
    const Report report = run_detailed(read_text(cut_scenario(method), {}), Detail::pass).report;
    CHECK(report.num_gpus == 8);
    CHECK(report.breakdown.of(Line::context_comm) > 0_s);
    return report.traffic[static_cast<std::size_t>(Traffic::context)].value();
  };
  // Eight heads of 64 a rank, two bytes a value; 8 ranks, 3 microbatches, 6 layers; a rank sends three quarters.
  constexpr double all = 0.75 * 8 * 3 * 6, sequence = 512, heads = 8 * 64 * 2;
  // K and V of the whole sequence forward, and backward once more with the gradients of both
  CHECK(bytes("ring") == doctest::Approx(3 * 2 * sequence * heads * all));
  // Q, K, V and the output of a quarter of the sequence, either way
  CHECK(bytes("all_to_all") == doctest::Approx(2 * 4 * sequence / 4 * heads * all));
}

TEST_CASE(
    "a context group across nodes exchanges over the network, and waits for its slowest link") {
  const std::string text =
      R"({"platform": "selene-a100", "nodes": 2, "software": "megatron-lm-2021",
      "model": {"layers": 6, "hidden": 1024, "heads": 16, "sequence": 4096, "vocab": 32000},
      "training": {"global_batch": 3, "micro_batch": 1, "attention": "flash"},
      "parallel": {"tensor": 8, "context": 2}})";
  const Report even = run_detailed(read_text(text, {}), Detail::pass).report;
  CHECK(even.breakdown.of(Line::context_comm) > 0_s);
  const Report slow =
      run_detailed(read_text(text, {{"/platform/node_types/0/nic_rate", "1 Gbps"}}), Detail::pass)
          .report;
  CHECK(slow.breakdown.of(Line::context_comm) > 10 * even.breakdown.of(Line::context_comm));
  const Report uneven =
      run_detailed(
          read_text(
              text,
              {{"/platform/link_overrides",
                R"([{"from": 0, "to": 1, "bandwidth": "1 Gbps", "source": "assumed: made up"}])"}}),
          Detail::pass)
          .report;
  CHECK(uneven.iteration_time > 2 * even.iteration_time);
}

/// Narayanan et al. 2021 eq. 3 and Korthikanti et al. 2022 eq. 7-9, for a plain GPT layer; attention is 12 B s² L h of the model's work,
/// 4 of it forward, and half of it lies above the diagonal. Flash attention leaves that half out, and makes five products backward where
/// four are counted.
FlopCounts counted_flops(const Transformer& m, double batch, const Training& training) {
  const Recompute recompute = training.recompute;
  const double s = m.sequence, l = m.layers, h = m.hidden, v = m.vocab;
  const double model = 72 * batch * s * l * h * h * (1 + s / (6 * h) + v / (12 * l * h));
  double again = 0;
  if (recompute == Recompute::full) again = 24 * batch * s * l * h * h * (1 + s / (6 * h));
  if (recompute == Recompute::selective) again = 4 * batch * s * s * l * h;
  const double core = 4 * batch * s * s * l * h;
  double executed = model + again;
  if (training.attention == Attention::flash) {
    executed += core * (0.5 + 2.5 / 2 - 3);
    if (recompute != Recompute::none) executed -= core / 2;
  }
  return {Flops{model}, Flops{model - 3 * core / 2}, Flops{model + again}, Flops{executed}};
}

TEST_CASE("the FLOPs of all operations are the published counts, and the executed ones") {
  testing::Draws draws;
  draws.tensor = {1, 2, 8, 16};
  draws.least_microbatches = 4;
  draws.most_microbatches = 300;
  CHECK(rc::check([&draws] {
    const std::string text = testing::drawn_scenario(draws);
    Overrides overrides = drawn_overrides();
    if (*rc::gen::arbitrary<bool>())
      overrides.insert(overrides.end(), {{"/training/attention", "flash"},
                                         {"/software/flash_forward_efficiency", "0.5"},
                                         {"/software/flash_backward_efficiency", "0.4"}});
    RC_LOG() << text;
    const Scenario scenario = read_text(text, overrides);
    SimulateOptions options;
    options.make_engine = make_heap_engine;
    const Report report = simulate(scenario, options).report;
    const double gpus = scenario.plan.num_ranks();
    const Training& training = scenario.plan.training;
    const FlopCounts counted = counted_flops(scenario.model, training.global_batch, training);
    const auto is_near = [&](FlopsPerSecond rate, Flops flops) {
      return std::abs(rate * report.iteration_time * gpus / flops - 1) < 1e-12;
    };
    RC_ASSERT(is_near(report.model_flops_per_gpu, counted.model));
    RC_ASSERT(is_near(report.causal_flops_per_gpu, counted.causal));
    RC_ASSERT(is_near(report.hardware_flops_per_gpu, counted.hardware));
    RC_ASSERT(is_near(report.model_flops_per_gpu * (report.hfu / report.mfu), counted.executed));
  }));
}

}  // namespace
}  // namespace windtunnel
