#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "cost/codec_table.hpp"
#include "questions/what_if_parts.hpp"
#include "scenario/compression_json.hpp"
#include "workload/transformer.hpp"

namespace windtunnel {
namespace {

TrialTraffic trial_traffic(std::string_view name, const Scenario& scenario) {
  const Training& training = scenario.plan.training;
  TrialTraffic traffic{TrialTraffic::Kind::messages, element_size(training.precision)};
  if (name != "data_gradients") return traffic;
  traffic.kind = TrialTraffic::Kind::replica_gradients;
  if (training.gradient_type == GradientType::fp32)
    traffic.element = std::max(traffic.element, 4_B);
  return traffic;
}

/// The codecs that can compress the class, those that lean on sums first.
std::vector<const Codec*> candidates(std::string_view name, const Plan& plan) {
  const bool gradients = name == "data_gradients";
  const bool sums = gradients || name == "pipeline_backward";
  const bool sharded = gradients && plan.parallel.zero_stage >= 2;
  std::vector<const Codec*> list = codecs();
  std::erase_if(list, [&](const Codec* codec) {
    return (codec->needs_sums() && !sums) || (codec->sends_factors() && sharded);
  });
  std::stable_partition(list.begin(), list.end(),
                        [](const Codec* codec) { return codec->needs_sums(); });
  return list;
}

/// The entry of the compression block.
std::string setting_text(const Codec& codec, const CodecTrial& trial) {
  return std::string(R"({"codec":")") + codec.name() + '"' + (trial.keys.empty() ? "" : ",") +
         trial.keys + "}";
}

/// Whether the plan has traffic of the class that can be compressed.
bool is_in_use(std::string_view name, const Scenario& scenario) {
  const Parallel& parallel = scenario.plan.parallel;
  if (name.starts_with("pipeline")) return parallel.pipeline > 1;
  if (name == "tensor_activations") return parallel.tensor > 1;
  if (name == "zero_gather") return parallel.replicas() > 1 && parallel.zero_stage > 0;
  return parallel.replicas() > 1 && !parallel.schedule->is_both_ways();  // which refuses it
}

std::string words_for_class(std::string name) {
  for (char& letter : name)
    if (letter == '_') letter = ' ';
  return name;
}

}  // namespace

std::vector<WhatIf> codec_what_ifs(const Scenario& scenario) {
  std::vector<WhatIf> list;
  const Parallel& parallel = scenario.plan.parallel;
  const JsonValue* compression = scenario.resolved.find("compression");
  if (compression != nullptr && !compression->is_object()) compression = nullptr;
  for (const char* name : compression_classes) {
    const JsonValue* entry = compression == nullptr ? nullptr : compression->find(name);
    const bool compressed = entry != nullptr && !entry->is_null();
    const std::string pointer = std::string("/compression/") + name, words = words_for_class(name);
    if (compressed)
      list.push_back({WhatIfKind::codec, "no compression of " + words, {{pointer, "null"}}});
    if (std::string_view(name) == "embedding_sync") {
      if (!compressed && parallel.replicas() > 1 &&
          synchronises_embedding(scenario.model, scenario.plan))
        list.push_back(
            {WhatIfKind::codec, "fused embedding sync", {{pointer, R"({"fused":true})"}}});
      continue;
    }
    if (!is_in_use(name, scenario)) continue;
    const JsonValue* codec = compressed ? entry->find("codec") : nullptr;
    const TrialTraffic traffic = trial_traffic(name, scenario);
    for (const Codec* candidate : candidates(name, scenario.plan)) {
      if (codec != nullptr && codec->string() == candidate->name()) continue;
      const CodecTrial trial = candidate->trial(traffic);
      list.push_back({WhatIfKind::codec,
                      words + ": " + trial.what,
                      {{pointer, setting_text(*candidate, trial)}}});
    }
  }
  return list;
}

}  // namespace windtunnel
