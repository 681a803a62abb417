#include "engine/link_traffic.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>

namespace windtunnel {
namespace {

/// Number of messages of each kind that a program sends, and the ops that enter each collective.
struct FlowCounts {
  using Message = std::tuple<std::uint8_t, std::uint16_t, Traffic>;  ///< peer, size row, class
  using Entry = std::tuple<std::uint32_t, Traffic>;                  ///< slot, class
  std::map<Message, double> messages;
  std::map<Entry, std::vector<const Op*>> collectives;
};

FlowCounts count_flows(const StageProgram& program, const Repeats& repeats) {
  FlowCounts counts;
  for (const std::vector<Op>& stream : program.streams) {
    for (const Op& op : stream) {
      if (op.kind == OpKind::send)
        counts.messages[{op.peer, op.work, op.traffic}] += repeats.of(op);
      if (op.kind == OpKind::collective) counts.collectives[{op.slot, op.traffic}].push_back(&op);
    }
  }
  return counts;
}

/// Traffic by path.
class PathTraffic {
 public:
  PathTraffic(const Network& network, const ProgramSet& programs, const Repeats& repeats)
      : programs_(programs), repeats_(repeats), of_path_(network.paths().size()) {
    std::vector<FlowCounts> counts;
    for (const StageProgram& program : programs.programs)
      counts.push_back(count_flows(program, repeats));
    for (std::size_t i = 0; i < programs.devices.size(); ++i)
      add_device(DeviceId{i}, counts[programs.devices[i].program]);
  }
  const std::vector<TrafficBytes>& of_path() const { return of_path_; }

 private:
  void add_device(DeviceId id, const FlowCounts& counts) {
    const ProgramDevice& device = programs_.devices[id.index()];
    for (const auto& [message, count] : counts.messages) {
      const auto& [peer, size, traffic] = message;
      const Channel& channel = programs_.channels[device.channels[peer].index()];
      if (!channel.in_node)
        add(channel.up, channel.down, traffic, programs_.message_bytes[size] * count);
    }
    for (const auto& [entry, ops] : counts.collectives) {
      const auto& [slot, traffic] = entry;
      const Collective& collective = programs_.collectives[device.entered(slot).index()];
      if (collective.members.front() != id) continue;  // all members enter it together
      double count = 0;  // of flows as large as tokens that are spread as on average
      for (const Op* const op : ops)
        count += programs_.fullness_of(collective, *op) * repeats_.of(*op);
      for (const CollectiveFlow& flow : collective.flows)
        add(flow.up, flow.down, traffic, flow.bytes * count);
    }
  }

  void add(PathId up, PathId down, Traffic traffic, Bytes bytes) {
    for (const PathId path : {up, down})
      of_path_[path.index()][static_cast<std::size_t>(traffic)] += bytes;
  }

  const ProgramSet& programs_;
  const Repeats& repeats_;
  std::vector<TrafficBytes> of_path_;
};

}  // namespace

Bytes total_of(const TrafficBytes& bytes) {
  Bytes total{};
  for (const Bytes each : bytes) total += each;
  return total;
}

std::vector<TrafficBytes> traffic_of_links(const Network& network, const ProgramSet& programs,
                                           const Repeats& repeats) {
  const PathTraffic traffic(network, programs, repeats);
  std::vector<TrafficBytes> links(network.links().size());
  for (std::size_t i = 0; i < network.paths().size(); ++i)
    for (const LinkId link : network.paths()[i])
      for (std::size_t kind = 0; kind < links[link.index()].size(); ++kind)
        links[link.index()][kind] += traffic.of_path()[i][kind];
  return links;
}

}  // namespace windtunnel
