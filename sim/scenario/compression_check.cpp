#include "scenario/compression_check.hpp"

#include <algorithm>

#include "cost/codec_cost.hpp"

namespace windtunnel {
namespace {

using Say = std::function<void(const std::string&, const std::string&, const std::string&)>;

std::string codec_place(const std::string& name) { return "/compression/" + name + "/codec"; }

/// Whether the codec keeps only a part of the values, and relies on sums for the rest.
bool keeps_part(const Compressor& c) {
  return c.codec == CodecKind::powersgd || c.codec == CodecKind::topk;
}

void check_sums(const std::string& name, const std::optional<Compressor>& c,
                const std::string& what, const Say& problem) {
  if (!c || !keeps_part(*c)) return;
  problem(codec_place(name),
          std::string(name_of(c->codec)) + " cannot compress " + name + ": " + what,
          "use zfp, mpc, int8 or fixed");
}

void check_speeds(const Scenario& scenario, const std::string& name,
                  const std::optional<Compressor>& c, const Say& problem) {
  if (!c) return;
  for (const NodeType& node : scenario.nodes)
    if (const auto missing = missing_speed(*c, node.device))
      return problem(codec_place(name), *missing, "add it to the device with its source");
}

void check_stages(const Scenario& scenario, const Say& problem) {
  const CompressedStages& stages = scenario.plan.compression.gradient_stages;
  const int pipeline = scenario.plan.parallel.pipeline;
  const auto beyond = std::find_if(stages.listed.begin(), stages.listed.end(),
                                   [pipeline](int stage) { return stage >= pipeline; });
  if (beyond == stages.listed.end()) return;
  problem(
      "/compression/data_gradients/stages",
      "there is no stage " + std::to_string(*beyond) + ": pipeline is " + std::to_string(pipeline),
      "stages count from 0");
}

void check_sharding(const Scenario& scenario, const Say& problem) {
  const auto& c = scenario.plan.compression.data_gradients;
  const int zero = scenario.plan.parallel.zero_stage;
  if (!c || c->codec != CodecKind::powersgd || zero < 2) return;
  problem(codec_place("data_gradients"),
          "powersgd all-reduces its factors and needs whole gradients on every replica, but "
          "zero_stage " +
              std::to_string(zero) + " shards them",
          "use zero_stage 0 or 1, or another codec");
}

}  // namespace

void check_compression(const Scenario& scenario, const Say& problem) {
  const Compression& c = scenario.plan.compression;
  check_sums("pipeline_forward", c.pipeline_forward, "an activation is used once, whole", problem);
  check_sums("tensor_activations", c.tensor_activations, "an activation is used once, whole",
             problem);
  check_sums("zero_gather", c.zero_gather, "parameters are used whole", problem);
  check_sharding(scenario, problem);
  check_stages(scenario, problem);
  check_speeds(scenario, "pipeline_forward", c.pipeline_forward, problem);
  check_speeds(scenario, "pipeline_backward", c.pipeline_backward, problem);
  check_speeds(scenario, "data_gradients", c.data_gradients, problem);
  check_speeds(scenario, "tensor_activations", c.tensor_activations, problem);
  check_speeds(scenario, "zero_gather", c.zero_gather, problem);
}

}  // namespace windtunnel
