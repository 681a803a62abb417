#include "scenario/compression_check.hpp"

#include <algorithm>
#include <string>

#include "cost/codec_cost.hpp"
#include "cost/codec_table.hpp"

namespace windtunnel {
namespace {

std::string class_place(const std::string& name) { return "/compression/" + name; }
std::string codec_place(const std::string& name) { return class_place(name) + "/codec"; }

/// "use zfp, mpc, int8 or fixed": the codecs that need no sums.
std::string other_codecs() {
  std::vector<std::string> names;
  for (const Codec* codec : codecs())
    if (!codec->needs_sums()) names.emplace_back(codec->name());
  std::string text = "use " + names.front();
  for (std::size_t i = 1; i < names.size(); ++i)
    text += (i + 1 < names.size() ? ", " : " or ") + names[i];
  return text;
}

void check_sums(const std::string& name, const std::optional<Compressor>& c,
                const std::string& what, PlanFindings& findings) {
  if (!c || !c->codec->needs_sums() || !findings.is_sound(codec_place(name))) return;
  findings.reject({codec_place(name),
                   std::string(c->codec->name()) + " cannot compress " + name + ": " + what,
                   other_codecs()});
}

void check_speeds(const CompressionInputs& inputs, const std::string& name,
                  const std::optional<Compressor>& c, PlanFindings& findings) {
  if (!c || !findings.is_sound(class_place(name))) return;
  for (const NodeType* const node : inputs.types)
    if (const auto missing = missing_speed(*c, node->device))
      return findings.reject({codec_place(name), *missing, "add it to the device with its source"});
}

void check_stages(const CompressionInputs& inputs, PlanFindings& findings) {
  const std::string place = class_place("data_gradients") + "/stages";
  if (!findings.are_sound({place, "/parallel/pipeline"})) return;
  const CompressedStages& stages = inputs.compression.gradient_stages;
  const int pipeline = inputs.parallel.pipeline;
  const auto beyond = std::find_if(stages.listed.begin(), stages.listed.end(),
                                   [pipeline](int stage) { return stage >= pipeline; });
  if (beyond == stages.listed.end()) return;
  findings.reject(
      {place,
       "there is no stage " + std::to_string(*beyond) + ": pipeline is " + std::to_string(pipeline),
       "stages count from 0"});
}

void check_sharding(const CompressionInputs& inputs, PlanFindings& findings) {
  const auto& c = inputs.compression.data_gradients;
  const int zero = inputs.parallel.zero_stage;
  const std::string place = codec_place("data_gradients");
  if (!c || !c->codec->sends_factors() || zero < 2) return;
  if (!findings.are_sound({place, "/parallel/zero_stage"})) return;
  findings.reject({place,
                   std::string(c->codec->name()) +
                       " all-reduces its factors and needs whole gradients on every replica, "
                       "but zero_stage " +
                       std::to_string(zero) + " shards them",
                   "use zero_stage 0 or 1, or another codec"});
}

}  // namespace

void check_compression(const CompressionInputs& inputs, PlanFindings& findings) {
  const Compression& c = inputs.compression;
  check_sums("pipeline_forward", c.pipeline_forward, "an activation is used once, whole", findings);
  check_sums("tensor_activations", c.tensor_activations, "an activation is used once, whole",
             findings);
  check_sums("zero_gather", c.zero_gather, "parameters are used whole", findings);
  check_sharding(inputs, findings);
  check_stages(inputs, findings);
  check_speeds(inputs, "pipeline_forward", c.pipeline_forward, findings);
  check_speeds(inputs, "pipeline_backward", c.pipeline_backward, findings);
  check_speeds(inputs, "data_gradients", c.data_gradients, findings);
  check_speeds(inputs, "tensor_activations", c.tensor_activations, findings);
  check_speeds(inputs, "zero_gather", c.zero_gather, findings);
}

}  // namespace windtunnel
