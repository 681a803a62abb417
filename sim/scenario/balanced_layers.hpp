#pragma once

#include <vector>

#include "scenario/scenario.hpp"

namespace windtunnel {

/// How well the times of stages are known that are weighed against each other.
enum class StageTimes {
  exact,               ///< for each number of layers
  on_a_straight_line,  ///< between those of one layer and of all, which launches bend a little: for searches that balance many plans
};

/// Layers by stage such that the slowest stage is as fast as can be (plan/pipeline_layout.hpp), for a plan of this
/// scenario's model, stack and nodes, whose own split does not matter. A stage takes one microbatch's forward
/// and backward pass of its layers, with embedding or head, on the slowest kind of GPU that holds it, tensor collectives across nodes
/// uncontended; it fits if its memory does on the smallest. Layers go in multiples of the model chunks a device holds, unless the
/// slowest stage is faster where the layers are spread evenly and the first chunks have one layer more.
LayerSplit balanced_split(const Scenario& scenario, const Plan& plan, StageTimes times);

/// Layers by stage that add up, so that a plan can be laid out before they are balanced: all on the first.
std::vector<int> layers_before_balance(int layers, int stages);

}  // namespace windtunnel
