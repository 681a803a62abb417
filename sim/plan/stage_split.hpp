#pragma once

#include <vector>

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

}  // namespace windtunnel
