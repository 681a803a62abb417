#include "search/search_segment.hpp"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "plan/nvlink_groups.hpp"
#include "scenario/cluster_shape.hpp"
#include "search/search_space.hpp"

namespace windtunnel {
namespace {

constexpr const char* segment_pointer = "/platform/segment";

/// The ways that tensor, context and expert groups are made in the search.
std::vector<Parallel> groupings(const Scenario& base) {
  const SearchSpace space = search_space(base);
  std::vector<Parallel> all{base.plan.parallel};
  const auto vary = [&](const char* key, int Parallel::*ways) {
    std::vector<Parallel> varied;
    for (const Parallel& each : all)
      for (const int value : space.of(key)) {
        varied.push_back(each);
        varied.back().*ways = value;
      }
    if (!varied.empty()) all = std::move(varied);
  };
  vary("tensor", &Parallel::tensor);
  vary("context", &Parallel::context);
  if (base.model.moe) {
    vary("expert", &Parallel::expert);
    vary("expert_tensor", &Parallel::expert_tensor);
  }
  return all;
}

/// Of which segment most groupings keep their groups inside; of equals the largest.
int best_segment(const Scenario& base, int gpus_per_node) {
  const int most = base.platform.domain_nodes;
  std::vector<int> keeps(static_cast<std::size_t>(most) + 1, 0);
  for (const Parallel& parallel : groupings(base)) {
    const std::vector<NvlinkGroup> groups = nvlink_groups(parallel);
    for (int segment = 1; segment <= most; ++segment)
      keeps[static_cast<std::size_t>(segment)] +=
          std::all_of(groups.begin(), groups.end(), [&](const NvlinkGroup& group) {
            return std::int64_t{segment} * gpus_per_node % group.block == 0;
          });
  }
  const auto best = std::max_element(keeps.rbegin(), keeps.rend());
  return static_cast<int>(keeps.rend() - best) - 1;
}

}  // namespace

Scenario on_segment_of_search(Scenario base) {
  JsonValue* const used = find_at(base.resolved, segment_pointer);
  if (base.platform.domain_nodes == 1 || base.plan.num_nodes == 1 || used == nullptr ||
      used->origin.kind != OriginKind::defaulted)
    return base;
  const auto segment = static_cast<int>(std::get<std::int64_t>(used->content));
  const int best = best_segment(base, base.nodes.front().gpus / segment);
  if (best == segment) return base;
  Platform platform = in_segments(machine_of(base.platform), num_trays(base.nodes), best);
  const int nodes = platform.available_nodes();
  ClusterShape cluster = first_nodes(platform, nodes);
  cluster.nodes_given = true;
  auto made = make_plan(base.model, base.plan.training, base.plan.parallel, cluster, base.software);
  if (!std::holds_alternative<Plan>(made)) return base;  // the file's own plan needs its segment
  Plan plan = std::get<Plan>(std::move(made));
  plan.compression = base.plan.compression;
  base.plan = std::move(plan);
  base.platform = std::move(platform);
  base.nodes = types_of_nodes(base.platform, nodes);
  used->content = std::int64_t{best};
  return base;
}

}  // namespace windtunnel
