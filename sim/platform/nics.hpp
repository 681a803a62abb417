#pragma once

#include <vector>

#include "platform/platform.hpp"

namespace windtunnel {

/// The NICs that some GPUs of a node use, in order: GPU g of n uses NIC floor(g * nics / n), and those up to the next GPU's where there
/// are more NICs than GPUs.
std::vector<int> nics_of(const std::vector<int>& gpus, const NodeType& type);

}  // namespace windtunnel
