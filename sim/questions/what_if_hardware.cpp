#include <functional>

#include "platform/platform_json.hpp"
#include "questions/what_if_parts.hpp"
#include "units/amount_range.hpp"

namespace windtunnel {
namespace {

constexpr double faster = what_if_faster;

/// A file may say twice the rate.
bool can_double(BytesPerSecond rate) { return side_of(rate * 2) == RangeSide::inside; }

class HardwareWhatIfs {
 public:
  HardwareWhatIfs(const Scenario& scenario, const NodeKinds& kinds)
      : scenario_(scenario), kinds_(kinds) {}

  std::vector<WhatIf> collect() {
    for (const NodeKind& kind : kinds_.kinds()) add_nodes(kind);
    add_fabric();
    add_pairs();
    return list_.take();
  }

 private:
  bool crosses_nodes() const { return scenario_.nodes.size() > 1; }

  /// Makes nodes of a kind faster: `change` says what to set in a type.
  void add_faster(const NodeKind& kind, WhatIfKind about, std::string what,
                  const std::function<Overrides(const NodeType&)>& change) {
    WhatIf what_if{about, std::move(what), {}, kind.types};
    for (const std::size_t type : kind.types) {
      if (type > 0 && kinds_.has_domains()) continue;
      for (const auto& [key, value] : change(kinds_.type(type)))
        what_if.overrides.emplace_back("/platform/node_types/" + std::to_string(type) + "/" + key,
                                       value);
    }
    list_.add(std::move(what_if));
  }

  void add_nodes(const NodeKind& kind) {
    const NodeType& first = kinds_.first_of(kind);
    const std::string of = kinds_.kinds().size() > 1 ? " (" + kinds_.label_of(kind) + ")" : "";
    add_faster(kind, WhatIfKind::gpu, "GPUs 10 % faster" + of, [](const NodeType& type) {
      return Overrides{{"compute_efficiency", exact(type.compute_efficiency * faster)}};
    });
    if (first.gpus > 1 && scenario_.plan.num_ranks() > 1) add_inside(kind, of);
    if (crosses_nodes() && can_double(first.nic_rate))
      add_faster(kind, WhatIfKind::nic, "twice the NIC rate" + of, [](const NodeType& type) {
        return Overrides{{"nic_rate", exact(type.nic_rate * 2)}};
      });
  }

  void add_inside(const NodeKind& kind, const std::string& of) {
    const Interconnect& first = kinds_.first_of(kind).interconnect;
    if (can_double(first.saturated_bandwidth) && can_double(first.point_to_point))
      add_faster(kind, WhatIfKind::link, "twice the bandwidth inside nodes" + of,
                 [](const NodeType& type) {
                   const Interconnect& inside = type.interconnect;
                   Overrides doubled{
                       {"interconnect/saturated_bandwidth", exact(inside.saturated_bandwidth * 2)},
                       {"interconnect/point_to_point", exact(inside.point_to_point * 2)}};
                   if (inside.all_to_all > BytesPerSecond{0} && can_double(inside.all_to_all))
                     doubled.emplace_back("interconnect/all_to_all", exact(inside.all_to_all * 2));
                   return doubled;
                 });
    add_faster(
        kind, WhatIfKind::link, "half the latency inside nodes" + of, [](const NodeType& type) {
          const Interconnect& inside = type.interconnect;
          return Overrides{
              {"interconnect/floor_base", exact(inside.floor_base / 2)},
              {"interconnect/floor_per_gpu", exact(inside.floor_per_gpu / 2)},
              {"interconnect/point_to_point_latency", exact(inside.point_to_point_latency / 2)}};
        });
  }

  void add_fabric() {
    if (!crosses_nodes()) return;
    const Fabric& fabric = scenario_.platform.fabric;
    list_.add(WhatIfKind::link, "half the latency between nodes",
              {{"/platform/fabric/latency", exact(fabric.latency / 2)},
               {"/platform/fabric/collective_latency", exact(fabric.collective_latency / 2)}});
    list_.add(
        WhatIfKind::link, "no latency between nodes",
        {{"/platform/fabric/latency", "0 us"}, {"/platform/fabric/collective_latency", "0 us"}});
    if (!fabric.kind->what_ifs) return;
    for (const FabricWhatIf& what_if : fabric.kind->what_ifs(fabric))
      list_.add(WhatIfKind::link, what_if.label,
                {{"/platform/fabric/" + what_if.key, exact(what_if.value)}});
  }

  /// Measured pairs of nodes, and links with a rate of their own.
  void add_pairs() {
    if (!crosses_nodes()) return;
    const Platform& platform = scenario_.platform;
    if (platform.matrix) {
      if (2 * platform.matrix->rails <= most_node_parts)
        list_.add(
            WhatIfKind::link, "twice the rate between every pair of nodes",
            {{"/platform/bandwidth_matrix/rails", std::to_string(2 * platform.matrix->rails)}});
      list_.add(WhatIfKind::link, "every pair of nodes at NIC rate",
                {{"/platform/bandwidth_matrix", "null"}});
    }
    if (platform.link_overrides.empty()) return;
    Overrides doubled;
    for (std::size_t i = 0; i < platform.link_overrides.size(); ++i)
      doubled.emplace_back("/platform/link_overrides/" + std::to_string(i) + "/bandwidth",
                           exact(clamped(platform.link_overrides[i].bandwidth * 2)));
    list_.add(WhatIfKind::link, "twice the rate of links with rates of their own", doubled);
    list_.add(WhatIfKind::link, "no links with rates of their own",
              {{"/platform/link_overrides", "null"}});
  }

  const Scenario& scenario_;
  const NodeKinds& kinds_;
  WhatIfList list_;
};

}  // namespace

std::vector<WhatIf> hardware_what_ifs(const Scenario& scenario, const NodeKinds& kinds) {
  return HardwareWhatIfs(scenario, kinds).collect();
}

}  // namespace windtunnel
