#include <set>

#include "questions/what_if.hpp"

namespace windtunnel {

PathBound::PathBound(const Scenario& scenario, const Simulation& simulation,
                     const CriticalPath& path) {
  const std::vector<NodeType>& types = scenario.platform.node_types;
  of_type_.resize(types.size());
  const auto type_of = [&](DeviceId device) {
    const NodeId node = scenario.plan.devices[device.index()].node;
    return static_cast<std::size_t>(&scenario.platform.type_of(node) - types.data());
  };
  for (const CriticalStep& step : path.steps) {
    const Seconds time = step.end - step.begin;
    std::set<std::size_t> passed;
    switch (step.activity.kind) {
      case Activity::Kind::compute:
        of_type_[type_of(simulation.timeline.computes[step.activity.index].device)].computing +=
            time;
        break;
      case Activity::Kind::message: {
        const ChannelId id = simulation.timeline.messages[step.activity.index].channel;
        const Channel& channel = simulation.programs.channels[id.index()];
        passed = {type_of(channel.from), type_of(channel.to)};
        break;
      }
      case Activity::Kind::collective: {
        const CollectiveId id = simulation.timeline.collectives[step.activity.index].collective;
        for (const DeviceId member : simulation.programs.collectives[id.index()].members)
          passed.insert(type_of(member));
        break;
      }
      case Activity::Kind::event:
        break;
    }
    for (const std::size_t type : passed) of_type_[type].sending += time;
  }
}

std::optional<Seconds> PathBound::most_saved(const WhatIf& change) const {
  if (change.faster_types.empty() || of_type_.size() < 2) return std::nullopt;
  constexpr double of_faster_gpus = 1 - 1 / what_if_faster, of_twice_the_rate = 0.5;
  Seconds most{};
  for (const std::size_t type : change.faster_types) {
    const Times& times = of_type_[type];
    // Passes hold the collectives inside nodes.
    if (change.kind == WhatIfKind::gpu)
      most += times.computing * of_faster_gpus;
    else if (change.kind == WhatIfKind::nic)
      most += times.sending * of_twice_the_rate;
    else
      most += (times.computing + times.sending) * of_twice_the_rate;
  }
  return most;
}

}  // namespace windtunnel
