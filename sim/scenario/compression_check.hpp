#pragma once

#include <vector>

#include "plan/plan_check.hpp"
#include "platform/platform.hpp"

namespace windtunnel {

/// Inputs of the checks of a compression block.
struct CompressionInputs {
  const Compression& compression;
  const Parallel& parallel;
  std::vector<const NodeType*> types;  ///< of the nodes in use
};

/// Rejects everything that the compression block asks for and cannot be:
///  - codecs that send some of the values need sums that leave an error to feed back: gradients, and messages of gradients
///    between stages;
///  - factors are all-reduced, so that every replica needs whole gradients: no ZeRO 2 or 3;
///  - stages that the pipeline does not have;
///  - a codec for which a device in use has no speed.
void check_compression(const CompressionInputs& inputs, PlanFindings& findings);

}  // namespace windtunnel
