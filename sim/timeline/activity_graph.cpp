#include "timeline/activity_graph.hpp"

#include <map>
#include <tuple>
#include <utility>

#include "core/contracts.hpp"

namespace windtunnel::detail {
namespace {

/// Walks the programs once, op by op, as the player does, and notes what each activity had to wait for.
class OrderBuilder {
 public:
  OrderBuilder(const ProgramSet& set, const Timeline& timeline) : set_(set), timeline_(timeline) {
    number_activities();
    index_computes();
    index_messages();
    index_collectives();
  }

  ActivityOrder build() {
    for (std::size_t d = 0; d < set_.devices.size(); ++d)
      for (int s = 0; s < num_streams; ++s) walk(DeviceId{d}, static_cast<Stream>(s));
    follow_in_channels();
    return std::move(order_);
  }

 private:
  using Ids = std::vector<ActivityId>;
  const StageProgram& program(DeviceId device) const {
    return set_.programs[set_.devices[device.index()].program];
  }

  void number_activities() {
    const auto add = [&](Activity::Kind kind, std::size_t count, auto duration) {
      for (std::size_t i = 0; i < count; ++i) {
        order_.activities.push_back({kind, i});
        order_.durations.push_back(duration(i));
      }
    };
    const auto length = [](const auto& spans) {
      return [&spans](std::size_t i) { return spans[i].end - spans[i].begin; };
    };
    add(Activity::Kind::compute, timeline_.computes.size(), length(timeline_.computes));
    first_message_ = next_id();
    add(Activity::Kind::message, timeline_.messages.size(), length(timeline_.messages));
    first_collective_ = next_id();
    add(Activity::Kind::collective, timeline_.collectives.size(), length(timeline_.collectives));
    for (std::size_t d = 0; d < set_.devices.size(); ++d) {
      first_event_.push_back(next_id());
      add(Activity::Kind::event, program(DeviceId{d}).num_events,
          [](std::size_t) { return Seconds{}; });
    }
  }
  ActivityId next_id() const { return static_cast<ActivityId>(order_.activities.size()); }

  /// Computes of each stream, in order: streams play one after the other, and the timeline is in order of ends.
  void index_computes() {
    computes_.resize(set_.devices.size() * num_streams);
    for (std::size_t i = 0; i < timeline_.computes.size(); ++i) {
      const Span& span = timeline_.computes[i];
      computes_[stream_index(span.device, span.stream)].push_back(static_cast<ActivityId>(i));
    }
  }

  /// Messages by what their receiver calls them.
  void index_messages() {
    std::size_t slots = 0;
    for (std::size_t d = 0; d < set_.devices.size(); ++d) {
      first_slot_.push_back(slots);
      slots += program(DeviceId{d}).num_slots;
    }
    message_of_slot_.assign(slots, no_activity);
    for (std::size_t i = 0; i < timeline_.messages.size(); ++i) {
      const MessageSpan& message = timeline_.messages[i];
      message_of_slot_[slot_of_send(message.channel, message.send)] =
          first_message_ + static_cast<ActivityId>(i);
    }
  }
  std::size_t slot_of_send(ChannelId channel, const Op& send) const {
    return first_slot_[set_.channels[channel.index()].to.index()] + send.slot;
  }
  ActivityId sent(DeviceId device, const Op& op) const {
    return message_at(slot_of_send(set_.devices[device.index()].channels[op.peer], op));
  }
  ActivityId received(DeviceId device, const Op& op) const {
    return message_at(first_slot_[device.index()] + op.slot);
  }
  ActivityId message_at(std::size_t slot) const {
    WT_EXPECT(message_of_slot_[slot] != no_activity);  // the timeline is complete
    return message_of_slot_[slot];
  }

  /// Instances of each collective and microbatch, in order.
  void index_collectives() {
    for (std::size_t i = 0; i < timeline_.collectives.size(); ++i) {
      const CollectiveSpan& span = timeline_.collectives[i];
      collectives_[{span.collective, span.op.microbatch}].push_back(first_collective_ +
                                                                    static_cast<ActivityId>(i));
    }
  }

  void after(const Ids& before, ActivityId activity) {
    for (const ActivityId id : before) order_.edges.emplace_back(id, activity);
  }

  /// `last`: what has to end before the stream goes on.
  void walk(DeviceId device, Stream stream) {
    const std::vector<Op>& ops = program(device).streams[static_cast<std::size_t>(stream)];
    Ids last;
    std::size_t num_computes = 0;
    for (const Op* op = ops.data(); op != ops.data() + ops.size(); ++op) {
      switch (op->kind) {
        case OpKind::compute:
          last = enter(last, computes_[stream_index(device, stream)].at(num_computes++));
          break;
        case OpKind::send:
          after(last, sent(device, *op));
          break;
        case OpKind::receive:
          last.push_back(received(device, *op));
          break;
        case OpKind::exchange:
          last = exchange(device, last, op + 1, op + 1 + op->slot);
          op += op->slot;
          break;
        case OpKind::collective:
          last = enter(last, next_instance(device, *op));
          break;
        case OpKind::record:
          after(last, first_event_[device.index()] + op->slot);
          break;
        case OpKind::wait:
          last.push_back(first_event_[device.index()] + op->slot);
          break;
      }
    }
  }

  Ids enter(const Ids& last, ActivityId activity) {
    after(last, activity);
    return {activity};
  }

  /// Each message of an exchange starts when both ends have posted it; the exchange ends with the last of them.
  Ids exchange(DeviceId device, const Ids& last, const Op* begin, const Op* end) {
    Ids messages;
    for (const Op* op = begin; op != end; ++op) {
      messages.push_back(op->kind == OpKind::send ? sent(device, *op) : received(device, *op));
      after(last, messages.back());
    }
    return messages.empty() ? last : messages;
  }

  /// A member enters its instances of a collective in the order in which they were played; those of different microbatches it may enter
  /// from different streams.
  ActivityId next_instance(DeviceId device, const Op& op) {
    const CollectiveId id = set_.devices[device.index()].entered(op.slot);
    const auto instances = collectives_.find({id, op.microbatch});
    WT_EXPECT(instances != collectives_.end());  // the timeline is complete
    return instances->second.at(entered_[{device, id, op.microbatch}]++);
  }

  void follow_in_channels() {
    std::vector<ActivityId> last(set_.channels.size(), no_activity);
    for (std::size_t i = 0; i < timeline_.messages.size(); ++i) {
      ActivityId& before = last[timeline_.messages[i].channel.index()];
      const ActivityId id = first_message_ + static_cast<ActivityId>(i);
      if (before != no_activity) order_.edges.emplace_back(before, id);
      before = id;
    }
  }

  static std::size_t stream_index(DeviceId device, Stream stream) {
    return device.index() * num_streams + static_cast<std::size_t>(stream);
  }

  static constexpr ActivityId no_activity = 0xFFFFFFFF;
  const ProgramSet& set_;
  const Timeline& timeline_;
  ActivityOrder order_;
  ActivityId first_message_ = 0, first_collective_ = 0;
  std::vector<ActivityId> first_event_;  ///< by device
  std::vector<Ids> computes_;            ///< by stream
  std::vector<std::size_t> first_slot_;  ///< by device
  Ids message_of_slot_;
  std::map<std::pair<CollectiveId, std::uint32_t>, Ids> collectives_;  ///< by microbatch
  std::map<std::tuple<DeviceId, CollectiveId, std::uint32_t>, std::size_t> entered_;
};

}  // namespace

ActivityOrder activity_order(const ProgramSet& programs, const Timeline& timeline) {
  return OrderBuilder(programs, timeline).build();
}

}  // namespace windtunnel::detail
