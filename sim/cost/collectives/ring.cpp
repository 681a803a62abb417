#include "cost/collective_algorithm.hpp"

namespace windtunnel::collectives {

/// NCCL_ALGO=Ring: all-reduces are rings too, whatever their size.
CollectiveAlgorithm ring() {
  return {.name = "ring",
          .steps = [](const CollectiveTask& task) { return flat_collective(task, "ring"); }};
}

}  // namespace windtunnel::collectives
