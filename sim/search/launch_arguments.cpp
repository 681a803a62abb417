#include "search/launch_arguments.hpp"

#include <cstddef>

namespace windtunnel {

LaunchArguments megatron_arguments(const Plan& plan) {
  LaunchArguments launch;
  const PlanChoice choice{plan.training, plan.parallel};
  for (const char* block : {"/parallel/", "/training/"})
    for (const Key& key : key_table())
      if (key.launch && key.pointer.starts_with(block))
        key.launch(plan, key.value.get ? key.value.get(choice) : 0, launch);
  return launch;
}

std::string host_map(const Plan& plan) {
  std::string map = "# rank node gpu\n";
  for (std::size_t rank = 0; rank < plan.places.size(); ++rank)
    map += std::to_string(rank) + " node" + std::to_string(plan.places[rank].node.index()) + " " +
           std::to_string(plan.places[rank].gpu) + "\n";
  return map;
}

}  // namespace windtunnel
