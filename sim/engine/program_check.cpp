#include "engine/program_check.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/contracts.hpp"

namespace windtunnel::detail {
namespace {

/// The largest indices that a program's ops use, plus one.
struct Extent {
  std::uint32_t peers = 0, work = 0, message_sizes = 0, slots = 0, events = 0, collectives = 0;
  std::vector<std::uint32_t> slots_of_peers;  ///< of the receivers of messages, by Op::peer
};

void include(std::uint32_t& extent, std::uint32_t index) { extent = std::max(extent, index + 1); }

void include(Extent& extent, const Op& op) {
  switch (op.kind) {
    case OpKind::compute:
      return include(extent.work, op.work);
    case OpKind::send:
      include(extent.peers, op.peer);
      extent.slots_of_peers.resize(extent.peers);
      include(extent.slots_of_peers[op.peer], op.slot);
      return include(extent.message_sizes, op.work);
    case OpKind::receive:
      return include(extent.slots, op.slot);
    case OpKind::collective:
      return include(extent.collectives, op.slot);
    case OpKind::record:
    case OpKind::wait:
      return include(extent.events, op.slot);
    case OpKind::exchange:
      return;
  }
}

void expect_exchange_is_whole(const std::vector<Op>& ops, std::size_t at) {
  WT_EXPECT(ops.size() - at > ops[at].slot);
  for (std::size_t i = at + 1; i <= at + ops[at].slot; ++i) {
    WT_EXPECT(ops[i].kind == OpKind::send || ops[i].kind == OpKind::receive);
  }
}

Extent extent_of(const StageProgram& program) {
  Extent extent;
  for (const auto& ops : program.streams) {
    for (std::size_t i = 0; i < ops.size(); ++i) {
      include(extent, ops[i]);
      if (ops[i].kind == OpKind::exchange) expect_exchange_is_whole(ops, i);
    }
  }
  WT_EXPECT(extent.slots <= program.num_slots);
  WT_EXPECT(extent.events <= program.num_events);
  return extent;
}

}  // namespace

void expect_well_formed(const ProgramSet& set) {
  std::vector<Extent> extents;
  for (const StageProgram& program : set.programs) extents.push_back(extent_of(program));
  for (std::size_t d = 0; d < set.devices.size(); ++d) {
    const ProgramDevice& device = set.devices[d];
    WT_EXPECT(device.program < set.programs.size());
    const Extent& extent = extents[device.program];
    WT_EXPECT(device.work_base + extent.work <= set.work.size());
    WT_EXPECT(extent.message_sizes <= set.message_bytes.size());
    WT_EXPECT(extent.peers <= device.channels.size());
    WT_EXPECT(extent.collectives <= device.collectives.size());
    for (std::size_t peer = 0; peer < device.channels.size(); ++peer) {
      WT_EXPECT(device.channels[peer].index() < set.channels.size());
      const Channel& channel = set.channels[device.channels[peer].index()];
      WT_EXPECT(channel.from == DeviceId{d});
      WT_EXPECT(channel.to.index() < set.devices.size());
      if (peer >= extent.slots_of_peers.size()) continue;
      const std::uint32_t receiver = set.devices[channel.to.index()].program;
      WT_EXPECT(receiver < set.programs.size());
      WT_EXPECT(extent.slots_of_peers[peer] <= set.programs[receiver].num_slots);
    }
    for (const std::optional<CollectiveId> collective : device.collectives)
      WT_EXPECT(!collective || collective->index() < set.collectives.size());
  }
}

}  // namespace windtunnel::detail
