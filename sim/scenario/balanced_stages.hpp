#pragma once

#include <vector>

#include "plan/plan.hpp"
#include "platform/platform.hpp"
#include "platform/software_profile.hpp"
#include "workload/transformer.hpp"

namespace windtunnel {

/// Inputs for balancing a plan's stages. The plan's own stage_layers do not matter.
struct BalanceInputs {
  const Transformer* model = nullptr;
  const Platform* platform = nullptr;
  const SoftwareProfile* software = nullptr;
  const Plan* plan = nullptr;
};

/// Layers by stage such that the slowest stage is as fast as can be (plan/stage_split.hpp). A stage takes one microbatch's forward
/// and backward pass of its layers, with embedding or head, on the slowest kind of GPU that holds it, tensor collectives across nodes
/// uncontended; it fits if its memory does on the smallest. Layers go in multiples of the model chunks a device holds.
std::vector<int> balanced_stage_layers(const BalanceInputs& inputs);

}  // namespace windtunnel
