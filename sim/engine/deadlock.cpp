#include "engine/deadlock.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace windtunnel::detail {
namespace {

constexpr std::size_t max_described = 20;

/// What a blocked stream waits for, and the stream that should have provided it.
struct Awaited {
  std::string what;
  std::optional<std::uint32_t> from;  ///< none: no program gives it
};

std::string name_of_device(DeviceId device) { return "device " + std::to_string(device.index()); }

/// Reads programs and state after the last event. Slow look-ups are fine: this runs once, before
/// the program gives up.
class DeadlockReport {
 public:
  DeadlockReport(const ProgramSet& set, const PlayState& state) : set_(set), state_(state) {}
  std::string report() const;

 private:
  DeviceId device_of(std::uint32_t stream) const { return state_.streams[stream].device; }
  Stream kind_of(std::uint32_t stream) const { return state_.streams[stream].kind; }
  std::string name_of_stream(std::uint32_t stream) const {
    return name_of_device(device_of(stream)) + " " + name_of(kind_of(stream));
  }
  const std::vector<Op>& ops_of(std::uint32_t stream) const {
    const StageProgram& program = set_.programs[set_.devices[device_of(stream).index()].program];
    return program.streams[static_cast<std::size_t>(kind_of(stream))];
  }
  template <class Predicate>
  std::optional<std::uint32_t> stream_with(DeviceId device, Predicate predicate) const;
  std::optional<std::uint32_t> sender_of(DeviceId device, std::uint32_t slot) const;
  bool has_entered(DeviceId device, CollectiveId collective) const;

  Awaited awaited_by(std::uint32_t stream) const;
  std::optional<Awaited> awaited_by(std::uint32_t stream, const Op& op) const;
  Awaited awaited_by_message(DeviceId device, std::uint32_t slot) const;
  Awaited awaited_by_receiver(DeviceId device, const Op& send) const;
  Awaited awaited_by_event(DeviceId device, std::uint32_t event) const;
  Awaited awaited_by_member(CollectiveId collective) const;
  std::string describe(std::uint32_t stream) const;
  std::string cycle(const std::vector<std::uint32_t>& blocked) const;
  std::string name_cycle(const std::vector<std::uint32_t>& cycle) const;

  const ProgramSet& set_;
  const PlayState& state_;
};

template <class Predicate>
std::optional<std::uint32_t> DeadlockReport::stream_with(DeviceId device,
                                                         Predicate predicate) const {
  for (std::uint32_t stream = state_.first_stream[device.index()];
       stream < state_.streams.size() && device_of(stream) == device; ++stream) {
    const auto& ops = ops_of(stream);
    if (std::any_of(ops.begin(), ops.end(), predicate)) return stream;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> DeadlockReport::sender_of(DeviceId device, std::uint32_t slot) const {
  for (std::size_t c = 0; c < set_.channels.size(); ++c) {
    if (set_.channels[c].to != device) continue;
    const DeviceId from = set_.channels[c].from;
    const auto& channels = set_.devices[from.index()].channels;
    const auto stream = stream_with(from, [&](const Op& op) {
      return op.kind == OpKind::send && op.slot == slot && channels[op.peer] == ChannelId{c};
    });
    if (stream) return stream;
  }
  return std::nullopt;
}

Awaited DeadlockReport::awaited_by_message(DeviceId device, std::uint32_t slot) const {
  const auto sender = sender_of(device, slot);
  if (!sender) return {"a message that no device sends", sender};
  return {"a message that " + name_of_device(device_of(*sender)) + " has not sent", sender};
}

Awaited DeadlockReport::awaited_by_receiver(DeviceId device, const Op& send) const {
  const ChannelId channel = set_.devices[device.index()].channels[send.peer];
  const DeviceId to = set_.channels[channel.index()].to;
  const auto receiver = stream_with(
      to, [&](const Op& op) { return op.kind == OpKind::receive && op.slot == send.slot; });
  if (!receiver) return {name_of_device(to) + ", which never receives its message", receiver};
  return {name_of_device(to) + " to receive its message", receiver};
}

Awaited DeadlockReport::awaited_by_event(DeviceId device, std::uint32_t event) const {
  const auto recorder = stream_with(
      device, [&](const Op& op) { return op.kind == OpKind::record && op.slot == event; });
  if (!recorder) return {"an event that no stream records", recorder};
  return {
      std::string("an event that its ") + name_of(kind_of(*recorder)) + " stream has not recorded",
      recorder};
}

bool DeadlockReport::has_entered(DeviceId device, CollectiveId collective) const {
  const auto& waiters = state_.collectives[collective.index()].waiters;
  for (std::uint32_t s = waiters.first; s != none; s = state_.streams[s].next_waiter) {
    if (device_of(s) == device) return true;
  }
  return false;
}

Awaited DeadlockReport::awaited_by_member(CollectiveId collective) const {
  const Collective& group = set_.collectives[collective.index()];
  const auto entered = std::to_string(state_.collectives[collective.index()].entered) + " of " +
                       std::to_string(group.members.size()) + " members have entered; ";
  for (const DeviceId member : group.members) {
    if (has_entered(member, collective)) continue;
    const auto& table = set_.devices[member.index()].collectives;
    const auto stream = stream_with(member, [&](const Op& op) {
      return op.kind == OpKind::collective && table[op.slot] == collective;
    });
    return {"a collective that " + entered + name_of_device(member) + " has not", stream};
  }
  return {"a collective that " + entered + "no member is missing", std::nullopt};
}

std::optional<Awaited> DeadlockReport::awaited_by(std::uint32_t stream, const Op& op) const {
  const DeviceId device = device_of(stream);
  if (op.kind == OpKind::receive) {
    if (state_.slot(device, op.slot).kind == SlotState::Kind::arrived) return std::nullopt;
    return awaited_by_message(device, op.slot);
  }
  const ChannelId channel = set_.devices[device.index()].channels[op.peer];
  const SlotState& slot = state_.slot(set_.channels[channel.index()].to, op.slot);
  if (slot.kind == SlotState::Kind::arrived) return std::nullopt;
  return awaited_by_receiver(device, op);
}

/// Of several, the first that some program gives: it leads on to a cycle if there is one.
Awaited DeadlockReport::awaited_by(std::uint32_t stream) const {
  const DeviceId device = device_of(stream);
  const Op* op = state_.streams[stream].next;
  if (op->kind == OpKind::wait) return awaited_by_event(device, op->slot);
  if (op->kind == OpKind::collective) {
    return awaited_by_member(set_.devices[device.index()].entered(op->slot));
  }
  const Op* const first = op->kind == OpKind::exchange ? op + 1 : op;
  const Op* const last = op->kind == OpKind::exchange ? op + 1 + op->slot : op + 1;
  Awaited found{"nothing", std::nullopt};
  for (const Op* member = first; member != last; ++member) {
    const auto awaited = awaited_by(stream, *member);
    if (awaited && !found.from) found = *awaited;
  }
  return found;
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

std::string DeadlockReport::describe(std::uint32_t stream) const {
  const Op* op = state_.streams[stream].next;
  return name_of_stream(stream) + " op " + std::to_string(op - ops_of(stream).data()) + " (" +
         describe_op(*op) + ") waits for " + awaited_by(stream).what;
}

std::string DeadlockReport::name_cycle(const std::vector<std::uint32_t>& cycle) const {
  const bool one_device = std::all_of(cycle.begin(), cycle.end(), [&](std::uint32_t s) {
    return device_of(s) == device_of(cycle.front());
  });
  std::string text = "cyclic wait: ";
  for (std::size_t i = 0; i <= cycle.size(); ++i) {
    const std::uint32_t stream = cycle[i % cycle.size()];
    const bool same = i > 0 && device_of(cycle[i - 1]) == device_of(stream);
    if (same && !one_device) continue;
    if (i > 0) text += " -> ";
    text += one_device ? name_of_stream(stream) : name_of_device(device_of(stream));
  }
  return text;
}

/// Follows each blocked stream to the one it waits for, until a stream comes again.
std::string DeadlockReport::cycle(const std::vector<std::uint32_t>& blocked) const {
  for (std::size_t i = 0; i < std::min(blocked.size(), max_described); ++i) {
    std::vector<std::uint32_t> way{blocked[i]};
    for (auto from = awaited_by(way.back()).from; from; from = awaited_by(way.back()).from) {
      if (state_.streams[*from].next == state_.streams[*from].end) break;
      const auto seen = std::find(way.begin(), way.end(), *from);
      if (seen != way.end()) return name_cycle({seen, way.end()});
      way.push_back(*from);
    }
  }
  return {};
}

std::string DeadlockReport::report() const {
  std::vector<std::uint32_t> blocked;
  std::size_t num_devices = 0;
  for (std::uint32_t s = 0; s < state_.streams.size(); ++s) {
    if (state_.streams[s].next == state_.streams[s].end) continue;
    if (blocked.empty() || device_of(blocked.back()) != device_of(s)) ++num_devices;
    blocked.push_back(s);
  }
  std::string text = "deadlock: " + std::to_string(num_devices) + " of " +
                     std::to_string(set_.devices.size()) + " devices never finish";
  for (std::size_t i = 0; i < std::min(blocked.size(), max_described); ++i) {
    text += "\n  " + describe(blocked[i]);
  }
  if (blocked.size() > max_described) {
    text += "\n  ... and " + std::to_string(blocked.size() - max_described) + " more streams";
  }
  const std::string cyclic = cycle(blocked);
  return cyclic.empty() ? text : text + "\n" + cyclic;
}

}  // namespace

std::string describe_deadlock(const ProgramSet& programs, const PlayState& state) {
  return DeadlockReport(programs, state).report();
}

}  // namespace windtunnel::detail
