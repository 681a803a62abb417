#include "schedule/order_of_waiting.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace windtunnel {
namespace {

constexpr std::uint32_t never = std::numeric_limits<std::uint32_t>::max();
constexpr Op joint{.kind = OpKind::wait};

/// Runs the programs without times: whatever can happen happens, stream after stream, until nothing more does.
class Order {
 public:
  Order(const ProgramSet& set, const std::function<void(const WaitStep&)>& visit,
        const MessageOrder& messages)
      : set_(set),
        visit_(visit),
        messages_(messages),
        channels_(set.channels.size()),
        collectives_(set.collectives.size()) {
    for (std::size_t d = 0; d < set.devices.size(); ++d) {
      const StageProgram& program = set.programs[set.devices[d].program];
      first_slot_.push_back(slots_.size());
      slots_.resize(slots_.size() + program.num_slots);
      first_event_.push_back(events_.size());
      events_.resize(events_.size() + program.num_events, never);
      for (std::size_t kind = 0; kind < program.streams.size(); ++kind) {
        const std::vector<Op>& ops = program.streams[kind];
        if (!ops.empty())
          streams_.push_back(
              {DeviceId{d}, static_cast<Stream>(kind), ops.data(), ops.data() + ops.size()});
      }
    }
  }

  std::vector<StuckStream> walk() {
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (StreamState& stream : streams_)
        while (stream.next != stream.end && advance(stream)) goes_on = true;
    }
    std::vector<StuckStream> stuck;
    for (const StreamState& stream : streams_)
      if (stream.next != stream.end) stuck.push_back(describe(stream));
    return stuck;
  }

 private:
  /// A time that is not a step yet: the later of two.
  struct Clock {
    std::uint32_t a = 0, b = 0;
  };
  struct StreamState {
    DeviceId device;
    Stream kind;
    const Op *next, *end;
    Clock clock{};
    bool has_posted = false;  ///< the exchange or collective at `next`
  };
  /// A message: when its ends have posted it, and its step once it is on its way.
  struct SlotState {
    const StreamState* sender = nullptr;
    const Op* send = nullptr;
    bool awaits_receiver = false;  ///< it was posted in an exchange
    std::uint32_t sent = never, received = never, arrival = never;
    bool is_ready() const { return sent != never && (received != never || !awaits_receiver); }
  };
  struct ChannelState {
    std::uint32_t last = 0;        ///< step of its last message
    std::size_t num_messages = 0;  ///< that have gone
  };
  /// A collective that is being entered. Different streams of a device may enter it for different microbatches.
  struct Instance {
    std::uint32_t microbatch = 0;
    Clock clock{};
    std::vector<StreamState*> members{};
  };

  std::uint32_t add(const Clock& after, const Op* op, const StreamState& stream) {
    visit_({after.a, after.b, op, stream.device, stream.kind});
    return ++num_steps_;
  }
  std::uint32_t step_of(Clock& clock) {
    if (clock.a != clock.b) {
      visit_({clock.a, clock.b, &joint, {}, {}});
      clock.a = clock.b = ++num_steps_;
    }
    return clock.a;
  }
  void come_after(Clock& clock, std::uint32_t step) { clock = {step_of(clock), step}; }

  std::uint32_t& event_of(const StreamState& stream) {
    return events_[first_event_[stream.device.index()] + stream.next->slot];
  }
  ChannelId channel_of(DeviceId device, const Op& send) const {
    return set_.devices[device.index()].channels[send.peer];
  }
  SlotState& slot_in(ChannelId channel, std::uint32_t slot) {
    return slots_[first_slot_[set_.channels[channel.index()].to.index()] + slot];
  }
  SlotState& slot_of(const StreamState& stream, const Op& op) {
    if (op.kind == OpKind::send) return slot_in(channel_of(stream.device, op), op.slot);
    return slots_[first_slot_[stream.device.index()] + op.slot];
  }

  /// Does the next op of a stream if it can happen; true when something has.
  bool advance(StreamState& stream) {
    const Op& op = *stream.next;
    switch (op.kind) {
      case OpKind::compute: {
        const std::uint32_t end = add(stream.clock, &op, stream);
        stream.clock = {end, end};
        break;
      }
      case OpKind::send:
        post(stream, op);
        break;
      case OpKind::receive:
        if (slot_of(stream, op).received == never) post(stream, op);
        if (slot_of(stream, op).arrival == never) return false;
        come_after(stream.clock, slot_of(stream, op).arrival);
        break;
      case OpKind::exchange:
        return exchange(stream);
      case OpKind::collective:
        return collective(stream);
      case OpKind::record:
        step_of(stream.clock);
        event_of(stream) = add(stream.clock, &op, stream);
        break;
      case OpKind::wait:
        if (event_of(stream) == never) return false;
        come_after(stream.clock, event_of(stream));
        break;
    }
    ++stream.next;
    return true;
  }

  /// One end of a message, which goes if that makes it ready.
  void post(StreamState& stream, const Op& op) {
    SlotState& slot = slot_of(stream, op);
    if (op.kind == OpKind::receive) {
      slot.received = step_of(stream.clock);
      if (!slot.awaits_receiver) return;  // it has gone, or goes without
    } else {
      slot.sender = &stream;
      slot.send = &op;
      slot.awaits_receiver = stream.has_posted;
      slot.sent = step_of(stream.clock);
    }
    if (!slot.is_ready()) return;
    const ChannelId id = channel_of(slot.sender->device, *slot.send);
    if (messages_.empty()) return transfer(slot, channels_[id.index()]);
    const std::vector<std::uint32_t>& order = messages_[id.index()];
    ChannelState& channel = channels_[id.index()];
    while (channel.num_messages < order.size()) {
      SlotState& first = slot_in(id, order[channel.num_messages]);
      if (!first.is_ready()) return;
      transfer(first, channel);
    }
  }

  void transfer(SlotState& slot, ChannelState& channel) {
    Clock ends{slot.sent, slot.awaits_receiver ? slot.received : slot.sent};
    slot.arrival = add({step_of(ends), channel.last}, slot.send, *slot.sender);
    channel.last = slot.arrival;
    ++channel.num_messages;
  }

  bool exchange(StreamState& stream) {
    const Op *const first = stream.next + 1, *const last = first + stream.next->slot;
    const bool posts = !std::exchange(stream.has_posted, true);
    if (posts)
      for (const Op* op = first; op != last; ++op) post(stream, *op);
    for (const Op* op = first; op != last; ++op)
      if (slot_of(stream, *op).arrival == never) return posts;
    for (const Op* op = first; op != last; ++op)
      come_after(stream.clock, slot_of(stream, *op).arrival);
    stream.has_posted = false;
    stream.next = last;
    return true;
  }

  bool collective(StreamState& stream) {
    if (std::exchange(stream.has_posted, true)) return false;
    const CollectiveId id = set_.devices[stream.device.index()].entered(stream.next->slot);
    std::vector<Instance>& instances = collectives_[id.index()];
    auto instance = entered_instance(id, stream.next->microbatch);
    if (instance == instances.end())
      instance = instances.insert(instance, {stream.next->microbatch, stream.clock});
    else
      come_after(instance->clock, step_of(stream.clock));
    instance->members.push_back(&stream);
    if (instance->members.size() < set_.collectives[id.index()].members.size()) return false;
    const StreamState& first = *instance->members.front();
    const std::uint32_t end = add(instance->clock, first.next, first);
    for (StreamState* const member : instance->members) {
      member->clock = {end, end};
      member->has_posted = false;
      ++member->next;
    }
    instances.erase(instance);
    return true;
  }
  std::vector<Instance>::iterator entered_instance(CollectiveId id, std::uint32_t microbatch) {
    std::vector<Instance>& instances = collectives_[id.index()];
    return std::find_if(instances.begin(), instances.end(), [microbatch](const Instance& instance) {
      return instance.microbatch == microbatch;
    });
  }

  // ---- for those that never end ----

  using Provider = StuckStream::Provider;
  template <class Predicate>
  std::optional<Provider> provider_on(DeviceId device, const Predicate& gives) const {
    for (const StreamState& stream : streams_) {
      if (stream.device != device) continue;
      const std::vector<Op>& ops = ops_of(stream);
      const auto op = std::find_if(ops.begin(), ops.end(), gives);
      if (op != ops.end()) return Provider{device, stream.kind, &*op};
    }
    return std::nullopt;
  }
  const std::vector<Op>& ops_of(const StreamState& stream) const {
    const StageProgram& program = set_.programs[set_.devices[stream.device.index()].program];
    return program.streams[static_cast<std::size_t>(stream.kind)];
  }

  StuckStream describe(const StreamState& stream) {
    StuckStream stuck{stream.device, stream.kind, stream.next, stream.next, {}, {}, 0};
    if (stream.next->kind != OpKind::exchange) {
      find_provider(stuck);
      return stuck;
    }
    const Op* const first = stream.next + 1;
    for (const Op* op = first; op != first + stream.next->slot && !stuck.provider; ++op) {
      if (slot_of(stream, *op).arrival != never) continue;
      stuck.awaited = op;
      find_provider(stuck);
    }
    return stuck;
  }

  void find_provider(StuckStream& stuck) {
    const Op& op = *stuck.awaited;
    const ProgramDevice& device = set_.devices[stuck.device.index()];
    const auto is = [&op](OpKind kind) {
      return [&op, kind](const Op& other) { return other.kind == kind && other.slot == op.slot; };
    };
    stuck.from = std::nullopt;
    if (op.kind == OpKind::wait) {
      stuck.from = stuck.device;
      stuck.provider = provider_on(stuck.device, is(OpKind::record));
    } else if (op.kind == OpKind::send) {
      stuck.from = set_.channels[device.channels[op.peer].index()].to;
      stuck.provider = provider_on(*stuck.from, is(OpKind::receive));
    } else if (op.kind == OpKind::receive) {
      for (std::size_t c = 0; c < set_.channels.size() && !stuck.provider; ++c) {
        if (set_.channels[c].to != stuck.device) continue;
        const DeviceId from = set_.channels[c].from;
        stuck.provider = provider_on(from, [&](const Op& other) {
          return is(OpKind::send)(other) && channel_of(from, other) == ChannelId{c};
        });
      }
      if (stuck.provider) stuck.from = stuck.provider->device;
    } else {
      const CollectiveId id = device.entered(op.slot);
      const std::vector<StreamState*>& entered = entered_instance(id, op.microbatch)->members;
      stuck.entered = entered.size();
      for (const DeviceId member : set_.collectives[id.index()].members) {
        const auto has = [member](const StreamState* stream) { return stream->device == member; };
        if (std::any_of(entered.begin(), entered.end(), has)) continue;
        stuck.from = member;
        stuck.provider = provider_on(member, [&](const Op& other) {
          return other.kind == OpKind::collective &&
                 set_.devices[member.index()].collectives[other.slot] == id;
        });
        return;
      }
    }
  }

  const ProgramSet& set_;
  const std::function<void(const WaitStep&)>& visit_;
  const MessageOrder& messages_;
  std::uint32_t num_steps_ = 0;
  std::vector<StreamState> streams_;
  std::vector<SlotState> slots_;
  std::vector<std::uint32_t> events_;  ///< steps
  std::vector<ChannelState> channels_;
  std::vector<std::vector<Instance>> collectives_;
  std::vector<std::size_t> first_slot_, first_event_;  ///< by device
};

}  // namespace

std::vector<StuckStream> for_each_wait(const ProgramSet& programs,
                                       const std::function<void(const WaitStep&)>& visit,
                                       const MessageOrder& messages) {
  return Order(programs, visit, messages).walk();
}

std::vector<WaitCycle> cyclic_waits(const std::vector<StuckStream>& stuck) {
  const std::size_t none = stuck.size();
  const auto next = [&stuck](std::size_t i) {
    const auto& provider = stuck[i].provider;
    const auto found =
        std::find_if(stuck.begin(), stuck.end(), [&provider](const StuckStream& other) {
          return provider && other.device == provider->device && other.stream == provider->stream;
        });
    return static_cast<std::size_t>(found - stuck.begin());
  };
  // Each waits for one other at most, so that from each the waits lead into a cycle or to an end.
  std::vector<std::size_t> reached_from(stuck.size(), none);
  std::vector<WaitCycle> cycles;
  for (std::size_t first = 0; first < stuck.size(); ++first) {
    std::size_t at = first;
    for (; at != none && reached_from[at] == none; at = next(at)) reached_from[at] = first;
    if (at == none || reached_from[at] != first) continue;
    std::size_t lowest = at;
    for (std::size_t i = next(at); i != at; i = next(i)) lowest = std::min(lowest, i);
    WaitCycle& cycle = cycles.emplace_back();
    for (std::size_t i = lowest; cycle.empty() || i != lowest; i = next(i))
      cycle.push_back(stuck[i]);
  }
  return cycles;
}

std::string cycle_text(const WaitCycle& cycle,
                       const std::function<std::string(DeviceId, const Op*)>& name) {
  std::string text = name(cycle.front().device, cycle.front().op);
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const StuckStream::Provider& provider = *cycle[i].provider;
    const std::string awaited = name(provider.device, provider.op),
                      stands = name(provider.device, cycle[(i + 1) % cycle.size()].op);
    text += (i > 0 ? ", which waits for " : " waits for ") + awaited;
    if (awaited != stands) text += ", which comes after " + stands;
  }
  return text;
}

ProgramSet one_pipeline(std::vector<StageProgram> programs) {
  ProgramSet set;
  for (std::size_t s = 0; s < programs.size(); ++s) {
    ProgramDevice& device = set.devices.emplace_back();
    device.program = static_cast<std::uint32_t>(s);
    for (const StageId target : programs[s].targets) {
      device.channels.emplace_back(set.channels.size());
      Channel& channel = set.channels.emplace_back();
      channel.from = DeviceId{s};
      channel.to = DeviceId{target.index()};
    }
    for (std::uint32_t slot = 0; slot < programs[s].num_collectives; ++slot) {
      device.collectives.emplace_back(CollectiveId{set.collectives.size()});
      set.collectives.emplace_back().members = {DeviceId{s}};
    }
  }
  set.programs = std::move(programs);
  return set;
}

}  // namespace windtunnel
