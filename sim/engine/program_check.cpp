#include "engine/program_check.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/contracts.hpp"
#include "schedule/order_of_waiting.hpp"

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

namespace {

constexpr std::size_t max_described = 20;

std::string name_of_device(DeviceId device) { return "device " + std::to_string(device.index()); }
std::string name_of_stream(const StuckStream& stream) {
  return name_of_device(stream.device) + " " + name_of(stream.stream);
}

std::string describe_op(const Op& op) {
  const std::string of = " of microbatch " + std::to_string(op.microbatch);
  switch (op.kind) {
    case OpKind::send:
      return std::string("send ") + name_of(op.phase) + of;
    case OpKind::receive:
      return std::string("receive ") + name_of(op.phase) + of;
    case OpKind::collective:
      return std::string("collective ") + name_of(op.phase);
    case OpKind::wait:
      return "wait for event " + std::to_string(op.slot);
    case OpKind::record:
      return "record event " + std::to_string(op.slot);
    case OpKind::compute:
      return name_of(op.phase) + of;
    case OpKind::exchange:
      break;
  }
  std::string text = "exchange:";
  for (std::uint32_t i = 1; i <= op.slot; ++i) {
    text += (i > 1 ? ", " : " ") + describe_op((&op)[i]);
  }
  return text;
}

std::string awaited_by(const StuckStream& stuck, const ProgramSet& set) {
  const OpKind kind = stuck.awaited->kind;
  if (kind == OpKind::exchange) return "nothing";
  if (kind == OpKind::receive)
    return stuck.from ? "a message that " + name_of_device(*stuck.from) + " has not sent"
                      : "a message that no device sends";
  if (kind == OpKind::send)
    return name_of_device(*stuck.from) +
           (stuck.provider ? " to receive its message" : ", which never receives its message");
  if (kind == OpKind::wait)
    return stuck.provider ? std::string("an event that its ") + name_of(stuck.provider->stream) +
                                " stream has not recorded"
                          : "an event that no stream records";
  const CollectiveId id = set.devices[stuck.device.index()].entered(stuck.awaited->slot);
  return "a collective that " + std::to_string(stuck.entered) + " of " +
         std::to_string(set.collectives[id.index()].members.size()) + " members have entered; " +
         (stuck.from ? name_of_device(*stuck.from) + " has not" : "no member is missing");
}

std::string describe(const StuckStream& stuck, const ProgramSet& set) {
  const StageProgram& program = set.programs[set.devices[stuck.device.index()].program];
  const Op* const first = program.streams[static_cast<std::size_t>(stuck.stream)].data();
  return name_of_stream(stuck) + " op " + std::to_string(stuck.op - first) + " (" +
         describe_op(*stuck.op) + ") waits for " + awaited_by(stuck, set);
}

std::string short_text(const WaitCycle& cycle) {
  const bool one_device = std::all_of(cycle.begin(), cycle.end(), [&](const StuckStream& stuck) {
    return stuck.device == cycle.front().device;
  });
  std::string text = "\ncyclic wait: ";
  for (std::size_t i = 0; i <= cycle.size(); ++i) {
    const StuckStream& stuck = cycle[i % cycle.size()];
    if (i > 0 && !one_device && cycle[i - 1].device == stuck.device) continue;
    text +=
        (i > 0 ? " -> " : "") + (one_device ? name_of_stream(stuck) : name_of_device(stuck.device));
  }
  return text;
}

}  // namespace

std::string describe_deadlock(const ProgramSet& programs) {
  const std::vector<StuckStream> stuck = for_each_wait(programs, [](const WaitStep&) {});
  std::size_t num_devices = 0;
  for (std::size_t i = 0; i < stuck.size(); ++i)
    if (i == 0 || stuck[i - 1].device != stuck[i].device) ++num_devices;
  std::string text = "deadlock: " + std::to_string(num_devices) + " of " +
                     std::to_string(programs.devices.size()) + " devices never finish";
  for (std::size_t i = 0; i < std::min(stuck.size(), max_described); ++i)
    text += "\n  " + describe(stuck[i], programs);
  if (stuck.size() > max_described)
    text += "\n  ... and " + std::to_string(stuck.size() - max_described) + " more streams";
  const std::vector<WaitCycle> cycles = cyclic_waits(stuck);
  return cycles.empty() ? text : text + short_text(cycles.front());
}

}  // namespace windtunnel::detail
