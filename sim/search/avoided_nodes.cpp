#include "search/avoided_nodes.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "core/count_text.hpp"
#include "core/number_in.hpp"
#include "core/option_error.hpp"
#include "core/problem.hpp"
#include "core/text_list.hpp"
#include "platform/fabric_parts.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {
namespace {

/// Nodes and the fabric's switches: {"node", 1} is node0 with node 0, {"leaf", 16} is leaf0 with nodes 0 to 15.
std::vector<SwitchTier> named_things(const Fabric& fabric) {
  std::vector<SwitchTier> things{{"node", 1}};
  if (fabric.kind->switches)
    for (const SwitchTier& tier : fabric.kind->switches(fabric)) things.push_back(tier);
  return things;
}

/// Whether neither the platform nor its fabric says how many nodes there are.
bool has_any_number_of_nodes(const Platform& platform) {
  return platform.available_nodes() == 0 && most_nodes(platform) == most_nodes_in_use;
}

/// Those that the name stands for; none where it is unknown.
std::vector<int> nodes_called(std::string_view name, const Platform& platform) {
  std::vector<int> nodes;
  const std::int64_t end_of_nodes = most_nodes(platform);
  for (const SwitchTier& thing : named_things(platform.fabric)) {
    if (!name.starts_with(thing.name)) continue;
    const auto number = number_in<unsigned>(name.substr(thing.name.size()));
    if (!number) continue;
    const std::int64_t first = std::int64_t{*number} * thing.nodes;
    for (std::int64_t node = first; node < std::min(first + thing.nodes, end_of_nodes); ++node)
      nodes.push_back(static_cast<int>(node));
  }
  return nodes;
}

/// "the names are node0 to node63, leaf0 to leaf3; did you mean "node3"?"; without the last numbers where the platform has as many nodes as a
/// job asks for.
std::string known_names(const std::string& name, const Platform& platform) {
  const std::size_t digits = name.find_first_of("0123456789");
  std::vector<std::string> near;
  std::string text;
  for (const SwitchTier& thing : named_things(platform.fabric)) {
    const int last = (most_nodes(platform) - 1) / thing.nodes;
    text += (text.empty() ? "the names are " : ", ") + thing.name + "0" +
            (has_any_number_of_nodes(platform) ? ", " + thing.name + "1 and so on"
             : last > 0                        ? " to " + thing.name + std::to_string(last)
                                               : "");
    near.push_back(thing.name + (digits == std::string::npos ? "0" : name.substr(digits)));
    if (nodes_called(near.back(), platform).empty()) near.pop_back();
  }
  const std::string nearest = closest_match(name, near);
  return text + (nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?");
}

/// "write --set /nodes=14 --set /parallel/data=7": the file's plan with fewer replicas on the first of the nodes that are left.
std::string smaller_plan(const Scenario& base, const std::vector<NodeId>& kept) {
  const Parallel& parallel = base.plan.parallel;
  const Training& training = base.plan.training;
  std::int64_t gpus = 0;
  for (const NodeId node : kept) gpus += base.platform.type_of(node).gpus;
  for (std::size_t nodes = kept.size(); nodes > 0;
       gpus -= base.platform.type_of(kept[--nodes]).gpus) {
    const std::int64_t data = gpus / parallel.ranks_of_replica();
    if (data > 0 && gpus % parallel.ranks_of_replica() == 0 &&
        training.global_batch % (data * training.micro_batch) == 0)
      return "write --set /nodes=" + std::to_string(nodes) +
             " --set /parallel/data=" + std::to_string(data);
  }
  return "write fewer nodes, and a plan for their GPUs, with --set /nodes=N --set /parallel=…";
}

}  // namespace

std::pair<Scenario, AvoidedNodes> avoiding(Scenario base, const std::vector<std::string>& names) {
  const auto refused = [&](const std::string& why, const std::string& suggestion) {
    return option_error("--avoid", joined(names, ","), why, suggestion);
  };
  if (base.platform.domain_nodes > 1)
    throw refused("the platform's nodes are NVLink domains, whose trays are not told apart",
                  "write fewer nodes, with --set /nodes=N");
  if (!base.plan.parallel.placement.empty())
    throw refused("placement lists the GPU of each rank",
                  "write --set /parallel/placement=megatron");
  std::set<int> avoided;
  for (const std::string& name : names) {
    const std::vector<int> nodes = nodes_called(name, base.platform);
    if (nodes.empty())
      throw refused("unknown name \"" + name + "\"", known_names(name, base.platform));
    avoided.insert(nodes.begin(), nodes.end());
  }
  std::set<int> taken = avoided;
  for (const NeighbourCost& job : base.neighbour_costs)
    for (int node = job.first_node; node < job.first_node + job.nodes; ++node) taken.insert(node);
  std::vector<NodeId> kept;
  std::int64_t gpus = 0;
  const std::int64_t wanted = base.plan.num_ranks();
  const int end_of_nodes = most_nodes(base.platform);
  for (int node = 0; gpus < wanted && node < end_of_nodes; ++node) {
    if (taken.contains(node)) continue;
    kept.emplace_back(node);
    gpus += base.platform.type_of(kept.back()).gpus;
  }
  if (gpus < wanted)
    throw refused(count_text(gpus, "GPU") + " on " +
                      count_text(static_cast<std::int64_t>(kept.size()), "node") +
                      " are left, and the plan of the file takes " + std::to_string(wanted),
                  smaller_plan(base, kept));
  if (const auto rejections = move_to_nodes(base, kept); !rejections.empty())
    throw refused(
        "the plan of the file is not legal on the other nodes: " + rejections.front().message,
        "write another plan with --set /parallel=…");
  const std::set<std::string> once(names.begin(), names.end());
  return {std::move(base), {{once.begin(), once.end()}, {avoided.begin(), avoided.end()}, {}}};
}

}  // namespace windtunnel
