#pragma once

#include <vector>

#include "platform/platform.hpp"

namespace windtunnel {

/// The NICs that some GPUs of a node use, in order: GPU g of n uses NIC floor(g * nics / n), and those up to the next GPU's where there
/// are more NICs than GPUs.
std::vector<int> nics_of(const std::vector<int>& gpus, const NodeType& type);

/// NICs as they work: in place of each that is lost the next of the node that is not, the first following the last. Each once, in order.
std::vector<int> working_nics(const Platform& platform, NodeId node, std::vector<int> nics);
/// What these NICs carry together, one way. A message is spread evenly over them, so the slowest of them decides:
///   number of NICs * rate of a NIC * least share of its rate that one of them carries.
BytesPerSecond rate_of_nics(const Platform& platform, NodeId node, const std::vector<int>& nics);

}  // namespace windtunnel
