#include "cost/collective_algorithm.hpp"

namespace windtunnel::collectives {

/// NCCL_ALGO=NVLSTree: all-reduces over several nodes are trees of nodes whose switches reduce; where they do not, as in flat.
CollectiveAlgorithm nvls_tree() {
  return {.name = "nvls_tree",
          .steps = [](const CollectiveTask& task) { return flat_collective(task, "NVLS tree"); }};
}

}  // namespace windtunnel::collectives
