#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "cost/collective_algorithm.hpp"
#include "cost/collective_cost.hpp"
#include "cost/nccl_tuner.hpp"

namespace windtunnel {

CollectiveSteps flat_collective(const CollectiveTask& task, std::string_view algorithm) {
  const RingLayout& layout = *task.layout;
  const int members = layout.num_members(), nodes = layout.num_nodes();
  const int ranks = static_cast<int>(std::lround(members * task.copies_per_member));
  CollectiveSteps steps;
  steps.traffic = ring_traffic(task);
  if (nodes == 1) {
    steps.fixed = task.in_node(task.payload, task.work);
    if (!task.in_switch || task.work != RingKind::all_reduce || algorithm == "ring" ||
        algorithm == "tree")
      return steps;
    const Seconds in_switch = task.in_switch(task.payload).sum();
    if (algorithm.empty() && steps.fixed < in_switch &&
        !tuner_picks_switch(task.payload, ranks, task.links.wires))
      return steps;
    steps.algorithm = "NVLS";
    steps.fixed = in_switch;
    return steps;
  }
  const double rings = task.ranks_per_member / task.copies_per_member;
  const auto in_node = [&](Bytes payload) { return task.in_node(payload, task.work); };
  const NodeExit exit = task.exit();
  const int nics = std::max(1, static_cast<int>(std::lround(exit.nics / rings)));
  const NodeCrossing taken =
      crossing({task.payload, ranks, nodes, exit.rate / rings, nics, task.hop, task.hop_in_node,
                in_node, task.in_switch, task.switch_channels, task.links, task.work, task.pat,
                std::max(1.0, rings / exit.nics)},
               algorithm);
  steps.algorithm = taken.algorithm;
  steps.protocol = taken.protocol;
  if (taken.protocol != "Simple") steps.algorithm += " (" + std::string(taken.protocol) + ")";
  steps.latency = taken.latency;
  steps.fixed = steps.latency + taken.in_node;
  steps.flows = edge_flows(layout, taken.volume * rings);
  return steps;
}

namespace collectives {

CollectiveAlgorithm flat() {
  return {.name = "flat",
          .steps = [](const CollectiveTask& task) { return flat_collective(task); }};
}

}  // namespace collectives
}  // namespace windtunnel
