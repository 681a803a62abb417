#include <array>
#include <string_view>

#include "scenario/compression_json.hpp"
#include "scenario/what_if.hpp"
#include "workload/transformer.hpp"

namespace windtunnel {
namespace {

/// A way of compressing a class that is worth a question.
struct Candidate {
  const char* codec;
  std::string what;     ///< "powersgd of rank 16"
  std::string setting;  ///< the entry of the compression block
};

/// Optimus-CC's ranks (arXiv:2301.09830): 16 for messages between stages, 128 for gradients of replicas.
constexpr int message_rank = 16, gradient_rank = 128;
/// One value in a hundred: what `windtunnel codec` measures by default.
constexpr const char* topk_density = "0.01";
/// Lossless: what the shipped scenarios of hybrid compression assume of activations and gradients.
constexpr const char* mpc_ratio = "1.2";

std::vector<Candidate> candidates(std::string_view name, const Scenario& scenario) {
  const bool sums = name == "data_gradients" || name == "pipeline_backward";
  const bool gradients = name == "data_gradients";
  const bool sharded = gradients && scenario.plan.parallel.zero_stage >= 2;
  const bool wide = (gradients && scenario.plan.training.gradient_type == GradientType::fp32) ||
                    element_size(scenario.plan.training.precision) > 2_B;
  const std::string rate = wide ? "16" : "8",
                    rank = std::to_string(gradients ? gradient_rank : message_rank);
  std::vector<Candidate> list;
  if (sums && !sharded)
    list.push_back(
        {"powersgd", "powersgd of rank " + rank, R"({"codec":"powersgd","rank":)" + rank + "}"});
  if (sums)
    list.push_back({"topk", "the largest hundredth of the values (topk)",
                    std::string(R"({"codec":"topk","density":)") + topk_density + "}"});
  list.push_back(
      {"zfp", "zfp at " + rate + " bits a value", R"({"codec":"zfp","rate":)" + rate + "}"});
  list.push_back({"mpc", std::string("mpc, if it makes them ") + mpc_ratio + " times smaller",
                  std::string(R"({"codec":"mpc","ratio":)") + mpc_ratio + "}"});
  list.push_back({"int8", "int8", R"({"codec":"int8"})"});
  list.push_back({"fixed", "half the bytes at no cost", R"({"codec":"fixed","ratio":2})"});
  return list;
}

/// Whether the plan has traffic of the class.
bool is_in_use(std::string_view name, const Parallel& parallel) {
  if (name.starts_with("pipeline")) return parallel.pipeline > 1;
  if (name == "tensor_activations") return parallel.tensor > 1;
  if (name == "zero_gather") return parallel.data > 1 && parallel.zero_stage > 0;
  return parallel.data > 1;
}

std::string spoken_class(std::string name) {
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
    const std::string pointer = std::string("/compression/") + name, spoken = spoken_class(name);
    if (compressed)
      list.push_back({WhatIfKind::codec, "no compression of " + spoken, {{pointer, "null"}}});
    if (std::string_view(name) == "embedding_sync") {
      if (!compressed && parallel.pipeline > 1 && parallel.data > 1 &&
          scenario.model.tied_embeddings)
        list.push_back(
            {WhatIfKind::codec, "fused embedding sync", {{pointer, R"({"fused":true})"}}});
      continue;
    }
    if (!is_in_use(name, parallel)) continue;
    const JsonValue* codec = compressed ? entry->find("codec") : nullptr;
    for (const Candidate& candidate : candidates(name, scenario))
      if (codec == nullptr || codec->string() != candidate.codec)
        list.push_back(
            {WhatIfKind::codec, spoken + ": " + candidate.what, {{pointer, candidate.setting}}});
  }
  return list;
}

}  // namespace windtunnel
