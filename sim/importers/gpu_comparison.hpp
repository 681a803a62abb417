#pragma once

#include <string>
#include <vector>

#include "core/problem.hpp"
#include "importers/base_platform.hpp"

namespace windtunnel {

/// A GPU as a log names it, and where.
struct NamedGpu {
  std::string name;  ///< "NVIDIA H100 80GB HBM3"
  Origin origin;
};

/// Comparison of GPU names in a log with the base that its measurements are to be laid into.
struct GpuComparison {
  std::vector<Problem> contradictions;  ///< the base has another model of GPU
  std::vector<std::string> unknown;     ///< what could not be compared, each as a sentence
};

/// Compares models, not memory and form: an A100-SXM4-40GB goes with a base of a100-sxm-80gb. The base has one kind of node.
GpuComparison compare_gpus(const std::vector<NamedGpu>& named, const BasePlatform& base,
                           const Library& library);

}  // namespace windtunnel
