#include "engine/deadlock.hpp"

#include <algorithm>
#include <vector>

#include "schedule/order_of_waiting.hpp"

namespace windtunnel::detail {
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
           (stuck.giver ? " to receive its message" : ", which never receives its message");
  if (kind == OpKind::wait)
    return stuck.giver ? std::string("an event that its ") + name_of(stuck.giver->stream) +
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
