#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "plan/plan.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// Cost of a stage with a given number of parts of the model.
struct StageOption {
  Seconds time{};    ///< of one microbatch
  bool fits = true;  ///< in memory
};

/// Parts of the model by stage, all of them, so that the slowest stage is as fast as can be; among those splits, the stages' times add
/// up to the least (what filling the pipeline takes); among those, the most even (the least sum of squares), equal to about a
/// millionth. `options[s][n]` is stage s with n parts, n = 0 to the number there is. Stages that do not fit are avoided,
/// unless no split fits: then memory is left to the verdict on the plan. Dynamic programming over the stages, once for the slowest
/// and once for the sums: O(stages * parts^2) each.
std::vector<int> split_stages(const std::vector<std::vector<StageOption>>& options);

/// A fault of a layout, and its place.
struct LayoutFault {
  std::size_t column = 0;  ///< in characters from 0
  std::string message;
  std::string suggestion;
};

/// Layers of each part of the model, in order, and those of multi-token prediction, which the last part has in addition to them.
struct PipelineLayout {
  std::vector<int> layers;
  int mtp_layers = 0;
};

/// Reads Megatron-LM's --pipeline-model-parallel-layout, as in "Et*3|(tt|)*29,mL". A part is a model chunk (plan/chunk_map.hpp).
///
///   layout = { item [ "*" number ] }     item = "E" | "t" | "m" | "L" | "|" | "(" layout ")"     commas are for the eye
///
/// E is the embedding and must come first, L the head with the loss and must come last; t is a layer, m one of multi-token prediction,
/// which must come just before L (Megatron-LM also takes it alone in a part of its own); | begins the next part. (Megatron-LM, pipeline_parallel_layer_layout.py, parse_str_to_list and
/// validate_layer_layout; here parentheses may also be nested and stand without a repetition.)
std::variant<PipelineLayout, LayoutFault> read_pipeline_layout(std::string_view layout);

/// The layers of a plan's stages in that form: "Et*5|t*6|t*5mL".
std::string pipeline_layout(const Plan& plan);

}  // namespace windtunnel
