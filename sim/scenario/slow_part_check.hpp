#pragma once

#include <vector>

#include "plan/plan.hpp"
#include "scenario/noise_json.hpp"

namespace windtunnel {

/// Slow parts that the nodes in use do not have, or that hold no part of the plan, are problems of `block`, the block as it was written.
void check_slow_parts(const NoiseBlock& noise, const std::vector<NodeType>& nodes, const Plan& plan,
                      JsonValue& block, Problems& problems);

}  // namespace windtunnel
