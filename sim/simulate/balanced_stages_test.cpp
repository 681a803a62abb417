#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>

#include "core/testing.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

const Library& library() {
  static const Library library{source_dir()};
  return library;
}

/// A GPT of so many layers on 3 nodes of 4 V100 and one of 4 T4, a stage a node.
Scenario mixed(int layers, const std::string& stage_layers, ReadOptions options = {}) {
  const std::string text = R"({
    "model": {"layers": )" +
                           std::to_string(layers) +
                           R"(, "hidden": 1024, "heads": 16, "sequence": 1024, "vocab": 16000},
    "platform": "aws-t4-v100-mixed", "nodes": 4, "software": "deepspeed-megatron-2020",
    "training": {"global_batch": 16, "micro_batch": 4, "precision": "fp16"},
    "parallel": {"tensor": 4, "pipeline": 4, "data": 1, "stage_layers": )" +
                           stage_layers + "}}";
  Problems problems;
  const auto source = std::make_shared<const SourceText>(SourceText{"mixed.json", text});
  return read_scenario(parse_json(source, problems), library().root, library(), options);
}

Report report_of(const Scenario& scenario) {
  SimulateOptions heap;
  heap.make_engine = make_heap_engine;
  return simulate(scenario, heap).report;
}

/// Forward and backward pass on the stage where they take longest.
Seconds slowest_stage(const Scenario& scenario) {
  const Report report = report_of(scenario);
  return report.forward_time + report.backward_time;
}

void check_no_split_is_faster(int layers, const ReadOptions& options) {
  const Seconds balanced = slowest_stage(mixed(layers, "\"balanced\"", options));
  for (int a = 0; a <= layers; ++a)
    for (int b = 0; a + b <= layers; ++b)
      for (int c = 0; a + b + c <= layers; ++c) {
        const std::string list = "[" + std::to_string(a) + "," + std::to_string(b) + "," +
                                 std::to_string(c) + "," + std::to_string(layers - a - b - c) + "]";
        CHECK(balanced <= slowest_stage(mixed(layers, list, options)) * (1 + 1e-12));
      }
}

/// On one node of H100, a stage two GPUs, with chunks.
Scenario chunked(const std::string& model, int chunks, const std::string& stage_layers) {
  const std::string text =
      R"({"model": )" + model +
      R"(, "platform": "dgx-h100", "nodes": 1, "software": "megatron-core-2026",
    "training": {"global_batch": 16, "micro_batch": 1, "precision": "bf16"},
    "parallel": {"tensor": 2, "pipeline": 4, "data": 1, "schedule": "interleaved_1f1b",
                 "virtual_pipeline": )" +
      std::to_string(chunks) + R"(, "stage_layers": )" + stage_layers + "}}";
  Problems problems;
  const auto source = std::make_shared<const SourceText>(SourceText{"chunked.json", text});
  return read_scenario(parse_json(source, problems), library().root, library(), {});
}

TEST_CASE("a heavy head keeps its stage short, though layers spread evenly would divide") {
  const Scenario balanced =
      chunked(R"({"extends": "llama3-8b", "layers": 16, "vocab": 256000})", 2, "\"balanced\"");
  CHECK(balanced.plan.stage_layers.back() < 4);
  CHECK(slowest_stage(balanced) <
        slowest_stage(chunked(R"({"extends": "llama3-8b", "layers": 16, "vocab": 256000})", 2,
                              "[4, 4, 4, 4]")));
}

TEST_CASE("stages of like nodes are balanced by chunks of unequal numbers of layers") {
  // 18 layers on 4 stages of 3 chunks: 12 positions of 1 layer, and the first 6 have one more; in threes it would be 6, 6, 3, 3.
  const Scenario scenario =
      chunked(R"({"layers": 18, "hidden": 1024, "heads": 16, "sequence": 1024, "vocab": 16000})", 3,
              "\"balanced\"");
  CHECK(scenario.plan.stage_layers == std::vector{5, 5, 4, 4});
  CHECK(scenario.plan.position_layers == std::vector{2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1});
  // What is resolved reads as the same.
  Problems more;
  const auto resolved = std::make_shared<const SourceText>(
      SourceText{"resolved.json", canonical_text(scenario.resolved)});
  CHECK(read_scenario(parse_json(resolved, more), library().root, library(), {})
            .plan.position_layers == scenario.plan.position_layers);
}

TEST_CASE("no split of five layers over V100 and T4 stages has a faster slowest stage") {
  check_no_split_is_faster(5, {});
}

TEST_CASE("what codecs take in the passes is balanced with them") {
  // A codec so slow that a layer takes about as long on either GPU.
  ReadOptions options;
  options.overrides = {
      {"/compression/tensor_activations",
       R"({"codec": "fixed", "ratio": 1, "encode_rate": "100 MB/s", "decode_rate": "100 MB/s"})"}};
  check_no_split_is_faster(4, options);
}

TEST_CASE("a T4 gets fewer layers than a V100, and the iteration is shorter for it") {
  const Scenario balanced = mixed(24, "\"balanced\"");
  const std::vector<int>& layers = balanced.plan.stage_layers;
  CHECK(std::accumulate(layers.begin(), layers.end(), 0) == 24);
  CHECK(layers[3] < *std::min_element(layers.begin(), layers.end() - 1));
  CHECK(balanced.plan.parallel.stage_layers == layers);
  CHECK(report_of(balanced).iteration_time <
        report_of(mixed(24, "[6,6,6,6]")).iteration_time * 0.8);
}

TEST_CASE("memory keeps layers from a stage that would be fast enough for them") {
  // The T4, given less memory than the even split needs, gets what it can hold.
  ReadOptions small;
  small.overrides = {{"/platform/node_types/1/device/memory/usable", "2.2 GiB"}};
  const Scenario free = mixed(24, "\"balanced\""), bound = mixed(24, "\"balanced\"", small);
  CHECK(!report_of(mixed(24, "[6,6,6,6]", small)).memory.fits);
  CHECK(report_of(bound).memory.fits);
  CHECK(bound.plan.stage_layers[3] <= free.plan.stage_layers[3]);
}

TEST_CASE("replicas on nodes of 8 and of 4 linked GPUs reduce their gradients during the passes") {
  const std::string text = R"({
    "model": {"layers": 4, "hidden": 256, "heads": 4, "sequence": 256, "vocab": 256}, "nodes": 2,
    "platform": {"extends": "dgx1-v100", "name": "8 and 4", "node_types": [{"count": 1},
      {"count": 1, "device": "v100-sxm2-16gb", "gpus": 4, "nics": 4, "nic_rate": "100 Gbps",
       "source": "assumed: for this test",
       "interconnect": {"kind": "mesh", "saturated_bandwidth": "22 GB/s", "floor_base": "24 us",
         "floor_per_gpu": "10 us", "half_size": "6 MiB", "point_to_point": "22 GB/s",
         "point_to_point_latency": "10 us", "source": "assumed: for this test",
         "lanes": [[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]]}}]},
    "training": {"global_batch": 12, "micro_batch": 1, "precision": "fp16"},
    "parallel": {"data": 12, "overlap_gradient_reduce": true}})";
  Problems problems;
  const auto source = std::make_shared<const SourceText>(SourceText{"8-and-4.json", text});
  const Scenario overlapped =
      read_scenario(parse_json(source, problems), library().root, library());
  ReadOptions options;
  options.overrides = {{"/parallel/overlap_gradient_reduce", "false"}};
  const Scenario at_the_end =
      read_scenario(parse_json(source, problems), library().root, library(), options);
  CHECK(report_of(overlapped).iteration_time <= report_of(at_the_end).iteration_time);
}

TEST_CASE("the resolved scenario names the layers, and reads the same again") {
  const Scenario balanced = mixed(24, "\"balanced\"");
  const Scenario again = read_scenario(balanced.resolved, library().root, library());
  CHECK(again.plan.stage_layers == balanced.plan.stage_layers);
  CHECK(again.hash == balanced.hash);
}

}  // namespace
}  // namespace windtunnel
