#include "cost/collective_algorithm.hpp"

namespace windtunnel::collectives {

/// NCCL_ALGO=Tree: all-reduces over several nodes are double binary trees (Sanders, Speck & Traeff, Parallel Computing 35(12), 2009), whatever
/// their size; the rest is as in flat.
CollectiveAlgorithm tree() {
  return {.name = "tree",
          .steps = [](const CollectiveTask& task) { return flat_collective(task, "tree"); }};
}

}  // namespace windtunnel::collectives
