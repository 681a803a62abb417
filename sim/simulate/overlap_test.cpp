// Savings of overlapping the gradient reduction, worked out by hand.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>

#include "core/testing.hpp"
#include "scenario/testing.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

/// A model on two replicas of one node each: gradients cross the network, nothing else does. No latency anywhere. `taken`: multiprocessors
/// that a reduction takes from kernels that overlap with it, of 108.
Report report_of(const char* overlap, const char* nic_rate, const char* schedule = "1f1b",
                 int zero_stage = 0, const char* taken = "0") {
  const Library library{source_dir()};
  const std::string text = std::string(R"({
    "model": "gpt-1.7b", "platform": "selene-a100", "nodes": 2, "software": "megatron-lm-2021",
    "training": {"global_batch": 8, "micro_batch": 2, "precision": "fp16", "gradient_dtype": "fp32"},
    "parallel": {"tensor": 8, "pipeline": 1, "data": 2, "schedule": ")") +
                           schedule + R"(", "zero_stage": )" + std::to_string(zero_stage) +
                           R"(, "overlap_gradient_reduce": )" + overlap + "}}";
  Problems problems;
  const auto source = std::make_shared<const SourceText>(SourceText{"overlap.json", text});
  ReadOptions options;
  options.overrides = {{"/platform/fabric/collective_latency", "0 us"},
                       {"/platform/fabric/latency", "0 us"},
                       {"/platform/node_types/0/device/collective_multiprocessors", taken},
                       {"/platform/node_types/0/nic_rate", nic_rate}};
  const Scenario scenario =
      read_scenario(parse_json(source, problems), library.root, library, options);
  SimulateOptions heap;
  heap.make_engine = make_heap_engine;
  return simulate(scenario, heap).report;
}

TEST_CASE("with fast links only the last bucket is exposed") {
  // 24 layers make 24 buckets. Each bucket takes D/24 of the whole reduction's time D, less than the piece of the backward pass
  // before it, so all but the last end behind the next piece: the iteration is 23/24 D shorter.
  const Report off = report_of("false", "200 Gbps"), on = report_of("true", "200 Gbps");
  const Seconds reduction = off.breakdown.of(Line::data_comm);
  CHECK(reduction > Seconds{0});
  CHECK(on.iteration_time.value() ==
        doctest::Approx((off.iteration_time - reduction * (23.0 / 24)).value()).epsilon(1e-9));
  CHECK(on.breakdown.of(Line::data_comm).value() ==
        doctest::Approx((reduction / 24).value()).epsilon(1e-6));
}

TEST_CASE(
    "with slow links the reduction starts one piece into the last backward pass and runs through") {
  // Buckets follow one another without a gap: from the end of the first piece on, D in all. The last backward pass B is hidden
  // but for its first piece, B/24.
  const Report off = report_of("false", "1 Gbps"), on = report_of("true", "1 Gbps");
  const Seconds hidden = off.backward_time * (23.0 / 24);
  CHECK(on.iteration_time.value() ==
        doctest::Approx((off.iteration_time - hidden).value()).epsilon(1e-9));
}

TEST_CASE("kernels overlapped with a reduction run on the multiprocessors that it leaves them") {
  // The reduction has 27 of 108 multiprocessors, a quarter. Fast links: 23 pieces of the last backward pass overlap with a bucket of D/24
  // each, and take a quarter of that longer. Slow links, where buckets follow one another: all 23 run at three quarters of their rate,
  // so take a third longer, which hides behind the buckets.
  const Report off = report_of("false", "200 Gbps"), free = report_of("true", "200 Gbps"),
               taken = report_of("true", "200 Gbps", "1f1b", 0, "27");
  const Seconds longer = off.breakdown.of(Line::data_comm) * (23.0 / 24 / 4);
  CHECK((taken.iteration_time - free.iteration_time).value() ==
        doctest::Approx(longer.value()).epsilon(1e-6));
  CHECK((taken.breakdown.of(Line::compute) - free.breakdown.of(Line::compute)).value() ==
        doctest::Approx(longer.value()).epsilon(1e-6));
  CHECK(report_of("true", "1 Gbps", "1f1b", 0, "27").iteration_time.value() ==
        doctest::Approx(report_of("true", "1 Gbps").iteration_time.value()).epsilon(1e-9));
  // ZeRO 2: during each of the two backward passes, half as long.
  const Report scattered = report_of("true", "200 Gbps", "1f1b", 2, "27");
  CHECK((scattered.iteration_time - report_of("true", "200 Gbps", "1f1b", 2).iteration_time)
            .value() == doctest::Approx(longer.value()).epsilon(1e-6));
}

TEST_CASE("overlap is never slower on links of one's own without latency") {
  for (const char* schedule : {"gpipe", "1f1b", "zero_bubble_h1"})
    for (const char* rate : {"1 Gbps", "10 Gbps", "100 Gbps", "800 Gbps"})
      for (const int zero : {0, 1, 2})
        CHECK(report_of("true", rate, schedule, zero).iteration_time <=
              report_of("false", rate, schedule, zero).iteration_time * (1 + 1e-12));
}

TEST_CASE(
    "a sharded optimizer reduces by half an all-reduce and gathers parameters with the other "
    "half") {
  // fp32 gradients (4 bytes) and fp16 parameters (2 bytes): reduction D/2, gather D/4.
  const Report whole = report_of("false", "100 Gbps"),
               sharded = report_of("false", "100 Gbps", "1f1b", 1);
  const double ratio = sharded.breakdown.of(Line::data_comm) / whole.breakdown.of(Line::data_comm);
  CHECK(ratio == doctest::Approx(0.75).epsilon(1e-9));
  CHECK(sharded.breakdown.of(Line::optimizer).value() ==
        doctest::Approx(whole.breakdown.of(Line::optimizer).value() / 2).epsilon(1e-9));
}

Bytes reduced(const Report& report) {
  return report.traffic[static_cast<std::size_t>(Traffic::data_gradients)];
}

/// Time of the scatter in the sharded report: a reduce-scatter of fp32 gradients (4 bytes a parameter) compared with an all-gather of fp16
/// parameters (2 bytes).
Seconds scatter_time(const Report& zero_1) {
  return zero_1.breakdown.of(Line::data_comm) * (2.0 / 3);
}

TEST_CASE("gradients that are kept as shards are scattered on every microbatch") {
  // 8 samples on 2 replicas in microbatches of 2 make m = 2. ZeRO 1 scatters whole gradients once, in R; ZeRO 2 keeps shards of them
  // and scatters in each of the m passes that make gradients: m times the bytes, and (m - 1) R = R more time, nothing hiding it.
  for (const char* schedule : {"1f1b", "gpipe", "zero_bubble_h1"}) {
    CAPTURE(schedule);
    const Report once = report_of("false", "10 Gbps", schedule, 1),
                 each = report_of("false", "10 Gbps", schedule, 2);
    CHECK(reduced(each) / reduced(once) == doctest::Approx(2));
    CHECK((each.iteration_time - once.iteration_time).value() ==
          doctest::Approx(scatter_time(once).value()).epsilon(1e-9));
    CHECK((each.breakdown.of(Line::data_comm) - once.breakdown.of(Line::data_comm)).value() ==
          doctest::Approx(scatter_time(once).value()).epsilon(1e-9));
  }
}

TEST_CASE(
    "during each backward pass only the last bucket of its scatter shows where links are fast") {
  // 24 buckets of R/24. Each of the m = 2 backward passes hides 23 of them and waits for the last: R/12 in all instead of 2 R.
  const Report off = report_of("false", "200 Gbps", "1f1b", 2),
               on = report_of("true", "200 Gbps", "1f1b", 2);
  const Seconds scatter = scatter_time(report_of("false", "200 Gbps", "1f1b", 1));
  CHECK((off.iteration_time - on.iteration_time).value() ==
        doctest::Approx((scatter * (2 * 23.0 / 24)).value()).epsilon(1e-6));
}

TEST_CASE("each pass waits for its own scatter before the next one begins") {
  // Slow links: a backward pass B hides all but its first piece, B/24, behind its scatter of length R > B, and the next forward pass
  // begins when that ends. So m = 2 passes save 2 * 23/24 B.
  const Report off = report_of("false", "1 Gbps", "1f1b", 2),
               on = report_of("true", "1 Gbps", "1f1b", 2);
  CHECK((off.iteration_time - on.iteration_time).value() ==
        doctest::Approx((off.backward_time * (2 * 23.0 / 24)).value()).epsilon(1e-9));
}

Report report_of(const std::string& text, const Overrides& changes = {}) {
  SimulateOptions options;
  options.make_engine = make_native_engine;
  return simulate(testing::read_text(text, changes), options).report;
}

/// A GPT-NeoX of four layers on a tensor group of eight, or what `changes` make of it.
Report neox(const Overrides& changes) {
  return report_of(R"({
    "model": {"family": "neox", "layers": 4, "hidden": 6144, "heads": 64, "sequence": 2048, "vocab": 50432, "rotary": true,
      "tied_embeddings": false},
    "platform": "dgx-a100-40gb", "nodes": 1, "software": "megatron-deepspeed-2021",
    "training": {"global_batch": 8, "micro_batch": 4, "precision": "fp16"},
    "parallel": {"tensor": 8}})",
                   changes);
}

TEST_CASE("halves that both read a layer's input send half of its tensor traffic") {
  const auto sent = [](const Report& report) {
    return report.traffic[static_cast<std::size_t>(Traffic::tensor_activations)] / Bytes{1};
  };
  const Report parallel = neox({}), apart = neox({{"/model/parallel_residual", "false"}});
  // Each all-reduce 2 * 7/8 of 4 * 2048 * 6144 values of two bytes from each of 8 GPUs, for two microbatches; two for a layer and one
  // more at either end of the model, or four for a layer.
  constexpr double one = 2 * 7.0 / 8 * 4 * 2048 * 6144 * 2 * 8 * 2;
  CHECK(sent(parallel) == doctest::Approx((4 * 2 + 2) * one).epsilon(1e-12));
  CHECK(sent(apart) == doctest::Approx((4 * 4 + 2) * one).epsilon(1e-12));
  CHECK(parallel.iteration_time < apart.iteration_time);
  CHECK(parallel.memory.stages[0].activations < apart.memory.stages[0].activations);
  // Their order alone differs: the same parameters, and the same work.
  CHECK(parallel.memory.stages[0].parameters == apart.memory.stages[0].parameters);
  CHECK(parallel.model_flops_per_gpu * parallel.iteration_time ==
        apart.model_flops_per_gpu * apart.iteration_time);
  // Cut into sequences, an all-reduce is a gather and a scatter of the same bytes.
  const Overrides cut{{"/parallel/sequence_parallel", "true"}};
  CHECK(sent(neox(cut)) < sent(neox({{"/parallel/sequence_parallel", "true"},
                                     {"/model/parallel_residual", "false"}})));
}

TEST_CASE("Megatron-LM of 2021 reduces gradients as it holds them") {
  const auto reduced = [](const std::string& precision) {
    const Report report = report_of(R"({
      "model": "gpt-1.7b", "platform": "selene-a100", "nodes": 2, "software": "megatron-lm-2021",
      "training": {"global_batch": 16, "micro_batch": 1, "precision": ")" +
                                    precision + R"("}, "parallel": {"tensor": 8, "data": 2}})");
    const StageMemory& stage = report.memory.stages.front();
    // Per parameter: bytes that each of two replicas sends of it, half of an all-reduce of two times what there is; and bytes held.
    return std::pair{report.traffic[static_cast<std::size_t>(Traffic::data_gradients)] /
                         Bytes{16 * stage.parameters},
                     stage.gradients / Bytes{stage.parameters}};
  };
  const auto [sent_fp16, held_fp16] = reduced("fp16");
  CHECK(sent_fp16 == doctest::Approx(2).epsilon(1e-9));
  CHECK(held_fp16 >= 2);  // and stale ones of the step before
  const auto [sent_bf16, held_bf16] = reduced("bf16");
  CHECK(sent_bf16 == doctest::Approx(4).epsilon(1e-9));
  CHECK(reduced("tf32").first == doctest::Approx(4).epsilon(1e-9));
  CHECK(held_bf16 == doctest::Approx(4).epsilon(1e-9));
}

}  // namespace
}  // namespace windtunnel
