#include "engine/collapse.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include "core/contracts.hpp"
#include "engine/device_classes.hpp"
#include "engine/link_flows.hpp"

namespace windtunnel {
namespace {

/// Makes the programs of one device of each class.
class Collapser {
 public:
  Collapser(const ProgramSet& whole, const Network& network,
            const std::vector<std::vector<LinkId>>& paths, const DeviceClasses& classes)
      : whole_(whole),
        network_(network),
        paths_(paths),
        classes_(classes),
        device_(classes.num_devices),
        collective_(DeviceClasses::count_of(classes.of_collective)),
        link_(DeviceClasses::count_of(classes.of_link)),
        path_(paths.size()) {
    for (std::size_t i = 0, flow = 0; i < whole.collectives.size(); ++i) {
      first_flow_.push_back(flow);
      flow += whole.collectives[i].flows.size();
    }
  }

  CollapsedPrograms collapse() {
    set().programs = whole_.programs;
    set().work = whole_.work;
    set().message_bytes = whole_.message_bytes;
    set().drawn_rows = whole_.drawn_rows;
    set().fullness = whole_.fullness;
    number_devices();
    for (const DeviceId device : result_.stands_for) add_device(whole_.devices[device.index()]);
    return std::move(result_);
  }

 private:
  ProgramSet& set() { return result_.programs; }

  void number_devices() {
    for (std::size_t i = 0; i < whole_.devices.size(); ++i) {
      std::optional<DeviceId>& played = device_[classes_.of_device[i]];
      if (!played) {
        played.emplace(result_.stands_for.size());
        result_.stands_for.emplace_back(i);
      }
      result_.played_as.push_back(*played);
    }
  }

  void add_device(const ProgramDevice& original) {
    ProgramDevice device;
    device.program = original.program;
    device.work_base = original.work_base;
    for (const ChannelId channel : original.channels)
      device.channels.push_back(add_channel(whole_.channels[channel.index()]));
    for (const std::optional<CollectiveId> collective : original.collectives) {
      device.collectives.emplace_back();
      if (collective) device.collectives.back() = collective_of(*collective);
    }
    set().devices.push_back(std::move(device));
  }

  ChannelId add_channel(const Channel& original) {
    Channel channel = original;
    channel.from = result_.played_as[original.from.index()];
    channel.to = result_.played_as[original.to.index()];
    if (!channel.in_node) {
      channel.up = path_of(original.up);
      channel.down = path_of(original.down);
    }
    set().channels.push_back(channel);
    return ChannelId{set().channels.size() - 1};
  }

  CollectiveId collective_of(CollectiveId original) {
    std::optional<CollectiveId>& played = collective_[classes_.of_collective[original.index()]];
    if (!played) {
      played.emplace(set().collectives.size());
      set().collectives.push_back(one_of_each(original));
    }
    return *played;
  }

  /// The collective with one member and one flow of each class.
  Collective one_of_each(CollectiveId id) {
    const Collective& original = whole_.collectives[id.index()];
    Collective collective;
    collective.fixed = original.fixed;
    collective.latency = original.latency;
    collective.traffic_bytes = original.traffic_bytes;
    collective.varying = original.varying;
    collective.draws = original.draws;
    for (const DeviceId member : original.members)
      collective.members.push_back(result_.played_as[member.index()]);
    std::sort(collective.members.begin(), collective.members.end());
    collective.members.erase(std::unique(collective.members.begin(), collective.members.end()),
                             collective.members.end());
    std::vector<std::uint32_t> seen;
    for (std::size_t i = 0; i < original.flows.size(); ++i) {
      const std::uint32_t number = classes_.of_flow[first_flow_[id.index()] + i];
      if (std::find(seen.begin(), seen.end(), number) != seen.end()) continue;
      seen.push_back(number);
      const CollectiveFlow& flow = original.flows[i];
      collective.flows.push_back({path_of(flow.up), path_of(flow.down), flow.bytes});
    }
    return collective;
  }

  /// The path over the first link of each class: once, where it has several of a class, since they carry the same.
  PathId path_of(PathId original) {
    std::optional<PathId>& played = path_[original.index()];
    if (!played) {
      std::vector<LinkId> links;
      for (const LinkId original_link : paths_[original.index()]) {
        const LinkId link = link_of(original_link);
        if (std::find(links.begin(), links.end(), link) == links.end()) links.push_back(link);
      }
      const auto [made, is_new] = made_.try_emplace(links, PathId{made_.size()});
      if (is_new) result_.network.add_path(std::move(links));
      played = made->second;
    }
    return *played;
  }

  LinkId link_of(LinkId original) {
    std::optional<LinkId>& played = link_[classes_.of_link[original.index()]];
    if (!played) {
      const Link& link = network_.links()[original.index()];
      played = result_.network.add_link(link.bandwidth, link.name);
    }
    return *played;
  }

  const ProgramSet& whole_;
  const Network& network_;
  const std::vector<std::vector<LinkId>>& paths_;
  const DeviceClasses& classes_;
  CollapsedPrograms result_;
  // What is played, by class of the whole; nothing: not made yet.
  std::vector<std::optional<DeviceId>> device_;
  std::vector<std::optional<CollectiveId>> collective_;
  std::vector<std::optional<LinkId>> link_;
  std::vector<std::optional<PathId>> path_;  ///< by path of the whole
  std::map<std::vector<LinkId>, PathId> made_;
  std::vector<std::size_t> first_flow_;  ///< by collective of the whole
};

/// What one device's program does: everything but flows depends on the program alone.
struct ProgramCounts {
  std::uint64_t activities = 0;  ///< collectives left out
  std::array<std::uint64_t, std::numeric_limits<std::uint8_t>::max() + 1>
      sends{};                         ///< by peer, of some bytes
  std::vector<std::uint64_t> entries;  ///< of collectives, by slot
};

ProgramCounts counts_of(const ProgramSet& set, const StageProgram& program) {
  ProgramCounts counts;
  for (const std::vector<Op>& stream : program.streams) {
    for (const Op& op : stream) {
      if (op.kind == OpKind::compute || op.kind == OpKind::send) ++counts.activities;
      if (op.kind == OpKind::send && set.message_bytes[op.work] > Bytes{0}) ++counts.sends[op.peer];
      if (op.kind != OpKind::collective) continue;
      if (op.slot >= counts.entries.size()) counts.entries.resize(op.slot + 1);
      ++counts.entries[op.slot];
    }
  }
  return counts;
}

/// Adds up what playing every device would.
void count_whole(const ProgramSet& set, CollapsedPrograms& collapsed) {
  std::vector<ProgramCounts> counts;
  for (const StageProgram& program : set.programs) counts.push_back(counts_of(set, program));
  for (std::size_t i = 0; i < set.devices.size(); ++i) {
    const ProgramDevice& device = set.devices[i];
    const ProgramCounts& of = counts[device.program];
    collapsed.activities += of.activities;
    for (std::size_t peer = 0; peer < device.channels.size(); ++peer)
      if (!set.channels[device.channels[peer].index()].in_node) collapsed.flows += of.sends[peer];
    for (std::size_t slot = 0; slot < of.entries.size(); ++slot) {
      if (of.entries[slot] == 0) continue;
      const Collective& collective =
          set.collectives[device.entered(static_cast<std::uint32_t>(slot)).index()];
      if (collective.members.front() != DeviceId{i}) continue;  // once for all members
      collapsed.activities += of.entries[slot];
      collapsed.flows += of.entries[slot] * collective.flows.size();
    }
  }
}

}  // namespace

std::optional<CollapsedPrograms> collapse(const ProgramSet& programs, const Network& network) {
  const std::vector<std::vector<LinkId>> paths = binding_links(network);
  const std::optional<DeviceClasses> classes = find_device_classes(programs, network, paths);
  if (!classes) return std::nullopt;
  CollapsedPrograms collapsed = Collapser(programs, network, paths, *classes).collapse();
  count_whole(programs, collapsed);
  return collapsed;
}

Played play(const CollapsedPrograms& collapsed, Engine& engine, PlayListener* listener) {
  const Played played = play(collapsed.programs, engine, listener);
  Played whole;
  whole.end = played.end;
  whole.engine = played.engine;
  whole.activities = collapsed.activities;
  whole.flows = collapsed.flows;
  for (const DeviceId device : collapsed.played_as)
    whole.device_end.push_back(played.device_end[device.index()]);
  // Among devices that end last, the class of the lowest comes first among the devices played.
  whole.last_device = collapsed.stands_for[played.last_device.index()];
  return whole;
}

}  // namespace windtunnel
