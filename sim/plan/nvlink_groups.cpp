#include "plan/nvlink_groups.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

namespace windtunnel {
namespace {

/// The ranks of each expert group: neighbours among the ranks of a stage, of which tensor counts fastest.
std::vector<std::vector<RankId>> expert_groups(const Parallel& parallel) {
  using enum AxisName;
  const Layout layout = layout_of(parallel);
  std::vector<std::vector<RankId>> groups;
  for (const std::vector<RankId>& stage : layout.groups({tensor, context, data})) {
    std::vector<RankId> ranks = stage;
    const auto place = [&](RankId rank) {
      return std::tuple(layout.coordinate(rank, data), layout.coordinate(rank, context),
                        layout.coordinate(rank, tensor));
    };
    std::ranges::sort(ranks, [&](RankId a, RankId b) { return place(a) < place(b); });
    const auto size = static_cast<std::size_t>(expert_group_size(parallel));
    for (std::size_t first = 0; first < ranks.size(); first += size)
      groups.emplace_back(
          ranks.begin() + static_cast<std::ptrdiff_t>(first),
          ranks.begin() + static_cast<std::ptrdiff_t>(std::min(first + size, ranks.size())));
  }
  return groups;
}

/// Neighbouring ranks of the world that hold whole expert groups, which are neighbours among the ranks of a stage.
std::int64_t block_of_experts(const Parallel& parallel, const Layout& layout, int experts) {
  const std::int64_t of_tensor = layout.stride(AxisName::tensor);
  const std::int64_t of_replica = layout.stride(AxisName::context);
  const bool replicas_follow = of_replica == of_tensor * parallel.tensor;
  if (replicas_follow || parallel.tensor % experts == 0) return of_tensor * experts;
  const std::int64_t replicas =
      std::lcm(std::int64_t{experts}, std::int64_t{parallel.tensor}) / parallel.tensor;
  return std::max(of_tensor * parallel.tensor, of_replica * replicas);
}

}  // namespace

std::vector<NvlinkGroup> nvlink_groups(const Parallel& parallel) {
  const Layout layout = layout_of(parallel);
  const auto block = [&](AxisName axis, int ranks) {
    return std::int64_t{layout.stride(axis)} * ranks;
  };
  std::vector<NvlinkGroup> groups;
  const auto add = [&](AxisName axis, int ranks, std::int64_t ranks_of_block) {
    if (ranks > 1) groups.push_back({axis, ranks, ranks_of_block});
  };
  add(AxisName::tensor, parallel.tensor, block(AxisName::tensor, parallel.tensor));
  const int experts = expert_group_size(parallel);
  add(AxisName::expert, experts, block_of_experts(parallel, layout, experts));
  add(AxisName::context, parallel.context, block(AxisName::context, parallel.context));
  return groups;
}

int default_segment(const Parallel& parallel, int domain_nodes, int gpus_per_node) {
  if (parallel.num_ranks() <= std::int64_t{domain_nodes} * gpus_per_node) return domain_nodes;
  std::int64_t block = 1;  // that holds whole blocks of all groups so far
  const auto most_nodes = [&](std::int64_t ranks) {
    for (int nodes = domain_nodes; nodes > 0; --nodes)
      if (std::int64_t{nodes} * gpus_per_node % ranks == 0) return nodes;
    return 0;
  };
  for (const NvlinkGroup& group : nvlink_groups(parallel))
    if (const std::int64_t wider = std::lcm(block, group.block); most_nodes(wider) > 0)
      block = wider;
  return most_nodes(block);
}

Platform in_segments(const Platform& machine, int nodes, int segment) {
  Platform cut = machine;
  cut.domain_nodes = segment;
  cut.fabric.scale_nodes(static_cast<double>(segment) / machine.domain_nodes);  // as many domains
  if (segment == 1) cut.node_types.front().count = nodes;
  Platform job = in_domains(cut, nodes);
  job.domain_nodes = machine.domain_nodes;
  return job;
}

int domains_of(const NvlinkGroup& group, const Plan& plan) {
  const std::vector<std::vector<RankId>> groups =
      group.axis == AxisName::expert ? expert_groups(plan.parallel)
                                     : layout_of(plan.parallel).groups({group.axis});
  std::size_t most = 1;
  for (const std::vector<RankId>& ranks : groups) {
    std::set<NodeId> domains;
    for (const RankId rank : ranks) domains.insert(plan.places[rank.index()].node);
    most = std::max(most, domains.size());
  }
  return static_cast<int>(most);
}

}  // namespace windtunnel
