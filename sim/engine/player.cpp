#include "engine/player.hpp"

#include <algorithm>

#include "core/contracts.hpp"
#include "engine/deadlock.hpp"
#include "engine/play_state.hpp"

namespace windtunnel {
namespace {

using detail::Cause;
using detail::ChannelState;
using detail::CollectiveState;
using detail::device_of;
using detail::EventState;
using detail::kind_of;
using detail::Message;
using detail::none;
using detail::PlayState;
using detail::SlotState;
using detail::StreamState;
using detail::WaiterList;

/// What an engine event means. A token is an index and, in its lowest bits, one of these.
enum class Happening : std::uint64_t {
  compute_end,          ///< index: stream
  message_launched,     ///< index: channel; the latency of its first message is paid
  message_arrived,      ///< index: channel
  collective_launched,  ///< index: collective; its latency is paid
  collective_part,      ///< index: collective; its fixed part or one of its flows has ended
};
constexpr std::uint64_t happening_bits = 3;
constexpr std::uint64_t happening_mask = (1U << happening_bits) - 1;

std::uint64_t token(Happening happening, std::uint32_t index) {
  return static_cast<std::uint64_t>(index) << happening_bits |
         static_cast<std::uint64_t>(happening);
}

/// The largest indices that a program's ops use, plus one.
struct Extent {
  std::uint32_t peers = 0, work = 0, message_sizes = 0, slots = 0, events = 0, collectives = 0;
};

void include(std::uint32_t& extent, std::uint32_t index) { extent = std::max(extent, index + 1); }

void include(Extent& extent, const Op& op) {
  switch (op.kind) {
    case OpKind::compute:
      return include(extent.work, op.work);
    case OpKind::send:
      include(extent.peers, op.peer);
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

/// Every index in the programs is inside its table. Checked once a program, not once an op played.
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
    for (const ChannelId channel : device.channels) {
      WT_EXPECT(channel.index() < set.channels.size());
      WT_EXPECT(set.channels[channel.index()].from == DeviceId{d});
      WT_EXPECT(set.channels[channel.index()].to.index() < set.devices.size());
    }
    for (const CollectiveId collective : device.collectives) {
      WT_EXPECT(collective.index() < set.collectives.size());
    }
  }
}

/// Plays the ops of all streams. An op that cannot end at once leaves its stream waiting; what it
/// waits for puts the stream on the ready list, and the list is worked off one stream after the
/// other: no recursion, however long a chain of ops that take no time.
class ProgramPlayer final : public EventHandler {
 public:
  ProgramPlayer(const ProgramSet& set, Engine& engine, PlayListener* listener);
  Played play();
  void on_event(std::uint64_t token) override;

 private:
  void add_device(std::size_t device);
  void work_off_ready();
  void advance(std::uint32_t stream);
  /// Begins the next op; true when it has ended already.
  bool begin_op(std::uint32_t index, StreamState& stream);
  bool begin_compute(std::uint32_t index, StreamState& stream);
  void end_compute(std::uint32_t index, StreamState& stream);
  bool begin_receive(std::uint32_t index, StreamState& stream);
  bool begin_exchange(std::uint32_t index, StreamState& stream);
  bool begin_wait(std::uint32_t index, StreamState& stream);
  void end_wait(std::uint32_t index, StreamState& stream);
  void end_stream(std::uint32_t index);
  void record(std::uint32_t index, const StreamState& stream);

  enum class Posting { eager, in_exchange };
  void post_send(std::uint32_t index, const Op& op, Posting posting);
  void post_receive(std::uint32_t index, StreamState& stream, const Op& op);
  std::uint32_t new_message();
  void enqueue(std::uint32_t message);
  void begin_transfer(ChannelId channel);
  void launch(ChannelId channel);
  void end_transfer(ChannelId channel);
  void deliver(const Message& message);
  void come(std::uint32_t stream, const Op& op, Seconds sent);

  void enter_collective(std::uint32_t index);
  void begin_collective(CollectiveId id);
  void launch_collective(CollectiveId id);
  void end_collective_part(CollectiveId id);
  void end_collective(CollectiveId id);
  CollectiveId collective_of(std::uint32_t stream) const;

  void add_waiter(WaiterList& list, std::uint32_t stream);
  std::uint32_t event_index(std::uint32_t stream) const;
  Bytes bytes_of(const Message& message) const { return set_.message_bytes[message.send->work]; }

  const ProgramSet& set_;
  Engine& engine_;
  PlayListener* listener_;
  PlayState state_;
  Played played_;
  Seconds now_{};
  std::vector<std::uint32_t> ready_;  ///< streams whose op has ended
  std::vector<std::uint32_t> free_messages_;
  std::vector<std::uint32_t> streams_left_;  ///< by device
  std::vector<std::uint64_t>
      last_instance_;               ///< by device: the collective instance it was counted in last
  std::vector<Seconds> slot_sent_;  ///< of arrived messages; only for a listener
  std::vector<Cause> event_cause_;  ///< only for a listener
  std::uint64_t num_instances_ = 0;
  std::size_t devices_left_ = 0;
};

ProgramPlayer::ProgramPlayer(const ProgramSet& set, Engine& engine, PlayListener* listener)
    : set_(set), engine_(engine), listener_(listener) {
  expect_well_formed(set);
  WT_EXPECT(engine.now() == Seconds{0});
  state_.slot_base.push_back(0);
  state_.event_base.push_back(0);
  for (std::size_t d = 0; d < set.devices.size(); ++d) add_device(d);
  state_.slots.resize(state_.slot_base.back());
  state_.events.resize(state_.event_base.back());
  state_.channels.resize(set.channels.size());
  state_.collectives.resize(set.collectives.size());
  last_instance_.resize(set.devices.size());
  if (listener_ != nullptr) {
    slot_sent_.resize(state_.slots.size());
    event_cause_.resize(state_.events.size());
  }
  played_.device_end.resize(set.devices.size());
  devices_left_ = set.devices.size();
}

void ProgramPlayer::add_device(std::size_t device) {
  const StageProgram& program = set_.programs[set_.devices[device].program];
  std::uint32_t num_busy = 0;
  for (const auto& ops : program.streams) {
    StreamState& stream = state_.streams.emplace_back();
    stream.next = ops.data();
    stream.end = ops.data() + ops.size();
    if (!ops.empty()) ++num_busy;
  }
  streams_left_.push_back(num_busy);
  state_.slot_base.push_back(state_.slot_base.back() + program.num_slots);
  state_.event_base.push_back(state_.event_base.back() + program.num_events);
}

Played ProgramPlayer::play() {
  for (std::uint32_t i = 0; i < state_.streams.size(); ++i) {
    if (state_.streams[i].next != state_.streams[i].end) advance(i);
  }
  for (std::size_t d = 0; d < set_.devices.size(); ++d) {
    const auto& streams = set_.programs[set_.devices[d].program].streams;
    const bool idle =
        std::all_of(streams.begin(), streams.end(), [](const auto& s) { return s.empty(); });
    if (!idle) continue;
    --devices_left_;
    if (listener_ != nullptr) listener_->on_device_end(DeviceId{d}, now_);
  }
  work_off_ready();
  engine_.run(*this);
  if (devices_left_ > 0) throw DeadlockError(detail::describe_deadlock(set_, state_));
  const auto last = std::max_element(played_.device_end.begin(), played_.device_end.end());
  if (last != played_.device_end.end()) {
    played_.end = *last;
    played_.last_device = DeviceId{static_cast<std::size_t>(last - played_.device_end.begin())};
  }
  return std::move(played_);
}

void ProgramPlayer::on_event(std::uint64_t token) {
  now_ = engine_.now();
  const auto index = static_cast<std::uint32_t>(token >> happening_bits);
  switch (static_cast<Happening>(token & happening_mask)) {
    case Happening::compute_end:
      end_compute(index, state_.streams[index]);
      advance(index);
      break;
    case Happening::message_launched:
      launch(ChannelId{index});
      break;
    case Happening::message_arrived:
      end_transfer(ChannelId{index});
      break;
    case Happening::collective_launched:
      launch_collective(CollectiveId{index});
      break;
    case Happening::collective_part:
      end_collective_part(CollectiveId{index});
      break;
  }
  work_off_ready();
}

void ProgramPlayer::work_off_ready() {
  for (std::size_t i = 0; i < ready_.size(); ++i) {  // grows meanwhile
    const std::uint32_t index = ready_[i];
    end_wait(index, state_.streams[index]);
    advance(index);
  }
  ready_.clear();
}

void ProgramPlayer::advance(std::uint32_t index) {
  StreamState& stream = state_.streams[index];
  while (stream.next != stream.end) {
    if (!begin_op(index, stream)) return;
  }
  end_stream(index);
}

bool ProgramPlayer::begin_op(std::uint32_t index, StreamState& stream) {
  switch (stream.next->kind) {
    case OpKind::compute:
      return begin_compute(index, stream);
    case OpKind::receive:
      return begin_receive(index, stream);
    case OpKind::exchange:
      return begin_exchange(index, stream);
    case OpKind::wait:
      return begin_wait(index, stream);
    case OpKind::send:
      post_send(index, *stream.next++, Posting::eager);
      return true;
    case OpKind::record:
      record(index, stream);
      ++stream.next;
      return true;
    case OpKind::collective:
      enter_collective(index);
      return false;
  }
  WT_ENSURE(false);
  return false;
}

bool ProgramPlayer::begin_compute(std::uint32_t index, StreamState& stream) {
  const ProgramDevice& device = set_.devices[device_of(index).index()];
  const Seconds duration = set_.work[device.work_base + stream.next->work].duration;
  stream.begin = now_;
  if (duration == Seconds{0}) {
    end_compute(index, stream);
    return true;
  }
  engine_.after(duration, token(Happening::compute_end, index));
  return false;
}

void ProgramPlayer::end_compute(std::uint32_t index, StreamState& stream) {
  ++played_.activities;
  if (listener_ != nullptr) {
    const DeviceId device = device_of(index);
    const Work& work = set_.work[set_.devices[device.index()].work_base + stream.next->work];
    listener_->on_compute(device, kind_of(index), *stream.next, work, stream.begin, now_);
  }
  ++stream.next;
}

bool ProgramPlayer::begin_receive(std::uint32_t index, StreamState& stream) {
  stream.begin = now_;
  post_receive(index, stream, *stream.next);
  if (stream.pending > 0) return false;
  end_wait(index, stream);
  return true;
}

bool ProgramPlayer::begin_exchange(std::uint32_t index, StreamState& stream) {
  stream.begin = now_;
  const Op* const first = stream.next + 1;
  const Op* const last = first + stream.next->slot;
  if (first == last) stream.cause = {};
  for (const Op* op = first; op != last; ++op) {
    if (op->kind == OpKind::receive) {
      post_receive(index, stream, *op);
    } else {
      ++stream.pending;
      post_send(index, *op, Posting::in_exchange);
    }
  }
  if (stream.pending > 0) return false;
  end_wait(index, stream);
  return true;
}

void ProgramPlayer::post_send(std::uint32_t index, const Op& op, Posting posting) {
  const ChannelId channel = set_.devices[device_of(index).index()].channels[op.peer];
  const DeviceId to = set_.channels[channel.index()].to;
  WT_EXPECT(op.slot < state_.slot_base[to.index() + 1] - state_.slot_base[to.index()]);
  const std::uint32_t number = new_message();
  state_.messages[number] = {&op, now_, now_, none, channel.index(), none};
  if (posting == Posting::eager) return enqueue(number);
  state_.messages[number].sender = index;
  SlotState& slot = state_.slot(to, op.slot);
  if (slot.kind == SlotState::Kind::awaited) return enqueue(number);
  WT_EXPECT(slot.kind == SlotState::Kind::idle);  // a message is sent once
  slot = {SlotState::Kind::sender_ready, number};
}

/// Leaves the stream with one more thing pending, unless the message has arrived already.
void ProgramPlayer::post_receive(std::uint32_t index, StreamState& stream, const Op& op) {
  SlotState& slot = state_.slot(device_of(index), op.slot);
  if (slot.kind == SlotState::Kind::arrived) {
    if (listener_ == nullptr) return;
    const Seconds sent = slot_sent_[state_.slot_base[device_of(index).index()] + op.slot];
    if (stream.pending == 0) stream.cause = {sent, op.phase, op.traffic, true};
    return;
  }
  WT_EXPECT(slot.kind != SlotState::Kind::awaited);  // one stream waits for a message
  ++stream.pending;
  const SlotState before = slot;
  slot = {SlotState::Kind::awaited, index};
  if (before.kind == SlotState::Kind::sender_ready) {
    state_.messages[before.index].sent = now_;
    enqueue(before.index);
  }
}

std::uint32_t ProgramPlayer::new_message() {
  if (free_messages_.empty()) {
    free_messages_.push_back(static_cast<std::uint32_t>(state_.messages.size()));
    state_.messages.emplace_back();
  }
  const std::uint32_t message = free_messages_.back();
  free_messages_.pop_back();
  return message;
}

void ProgramPlayer::enqueue(std::uint32_t message) {
  const ChannelId id{state_.messages[message].channel};
  ChannelState& channel = state_.channels[id.index()];
  if (channel.first == none) {
    channel.first = channel.last = message;
    begin_transfer(id);
  } else {
    state_.messages[channel.last].next = message;
    channel.last = message;
  }
}

void ProgramPlayer::begin_transfer(ChannelId id) {
  const Channel& channel = set_.channels[id.index()];
  ChannelState& state = state_.channels[id.index()];
  state.begin = now_;
  const Bytes bytes = bytes_of(state_.messages[state.first]);
  if (bytes == Bytes{0}) {
    engine_.after(channel.latency, token(Happening::message_arrived, id.index()));
  } else if (channel.in_node) {
    engine_.after(channel.latency + bytes / channel.bandwidth,
                  token(Happening::message_arrived, id.index()));
  } else if (channel.latency == Seconds{0}) {
    launch(id);
  } else {
    engine_.after(channel.latency, token(Happening::message_launched, id.index()));
  }
}

void ProgramPlayer::launch(ChannelId id) {
  const Channel& channel = set_.channels[id.index()];
  const Bytes bytes = bytes_of(state_.messages[state_.channels[id.index()].first]);
  ++played_.flows;
  engine_.start_flow(channel.up, channel.down, bytes,
                     token(Happening::message_arrived, id.index()));
}

void ProgramPlayer::end_transfer(ChannelId id) {
  ChannelState& channel = state_.channels[id.index()];
  const std::uint32_t number = channel.first;
  const Message message = state_.messages[number];
  const Seconds begin = channel.begin;
  free_messages_.push_back(number);
  channel.first = message.next;
  if (channel.first != none) begin_transfer(id);
  ++played_.activities;
  if (listener_ != nullptr) {
    listener_->on_message(id, *message.send, bytes_of(message), message.posted, begin, now_);
  }
  deliver(message);
}

void ProgramPlayer::deliver(const Message& message) {
  const DeviceId to = set_.channels[message.channel].to;
  SlotState& slot = state_.slot(to, message.send->slot);
  WT_ENSURE(slot.kind == SlotState::Kind::idle || slot.kind == SlotState::Kind::awaited);
  if (listener_ != nullptr) {
    slot_sent_[state_.slot_base[to.index()] + message.send->slot] = message.sent;
  }
  const SlotState before = slot;
  slot = {SlotState::Kind::arrived, none};
  if (before.kind == SlotState::Kind::awaited) come(before.index, *message.send, message.sent);
  if (message.sender != none) come(message.sender, *message.send, message.sent);
}

/// One of the things that the stream waits for has come.
void ProgramPlayer::come(std::uint32_t index, const Op& op, Seconds sent) {
  StreamState& stream = state_.streams[index];
  stream.cause = {sent, op.phase, op.traffic, true};
  if (--stream.pending == 0) ready_.push_back(index);
}

void ProgramPlayer::end_wait(std::uint32_t index, StreamState& stream) {
  const Op& op = *stream.next;
  if (listener_ != nullptr) {
    const Cause cause =
        stream.cause.known ? stream.cause : Cause{now_, op.phase, op.traffic, false};
    const Waiting waiting{stream.begin, cause.sent, now_, cause.phase, cause.traffic};
    listener_->on_wait(device_of(index), kind_of(index), op, waiting);
  }
  stream.next += op.kind == OpKind::exchange ? 1 + op.slot : 1;
}

void ProgramPlayer::end_stream(std::uint32_t index) {
  const DeviceId device = device_of(index);
  if (--streams_left_[device.index()] > 0) return;
  played_.device_end[device.index()] = now_;
  --devices_left_;
  if (listener_ != nullptr) listener_->on_device_end(device, now_);
}

std::uint32_t ProgramPlayer::event_index(std::uint32_t stream) const {
  return state_.event_base[device_of(stream).index()] + state_.streams[stream].next->slot;
}

/// The event takes over what the recording stream waited for last: whoever waits for the event
/// waited for that.
void ProgramPlayer::record(std::uint32_t index, const StreamState& stream) {
  const std::uint32_t number = event_index(index);
  EventState& event = state_.events[number];
  event.happened = true;
  if (listener_ != nullptr) event_cause_[number] = stream.cause;
  for (std::uint32_t waiter = event.waiters.first; waiter != none;) {
    StreamState& waiting = state_.streams[waiter];
    waiting.cause = stream.cause;
    --waiting.pending;
    ready_.push_back(waiter);
    waiter = waiting.next_waiter;
  }
  event.waiters = {};
}

bool ProgramPlayer::begin_wait(std::uint32_t index, StreamState& stream) {
  const std::uint32_t number = event_index(index);
  EventState& event = state_.events[number];
  stream.begin = now_;
  if (!event.happened) {
    ++stream.pending;
    add_waiter(event.waiters, index);
    return false;
  }
  if (listener_ != nullptr) stream.cause = event_cause_[number];
  end_wait(index, stream);
  return true;
}

void ProgramPlayer::add_waiter(WaiterList& list, std::uint32_t stream) {
  state_.streams[stream].next_waiter = none;
  if (list.first == none) {
    list.first = stream;
  } else {
    state_.streams[list.last].next_waiter = stream;
  }
  list.last = stream;
}

CollectiveId ProgramPlayer::collective_of(std::uint32_t stream) const {
  return set_.devices[device_of(stream).index()].collectives[state_.streams[stream].next->slot];
}

void ProgramPlayer::enter_collective(std::uint32_t index) {
  const CollectiveId id = collective_of(index);
  CollectiveState& collective = state_.collectives[id.index()];
  StreamState& stream = state_.streams[index];
  stream.begin = now_;
  ++stream.pending;
  add_waiter(collective.waiters, index);
  WT_EXPECT(collective.parts_left == 0);  // one stream of a device enters a collective
  if (++collective.entered == set_.collectives[id.index()].members.size()) begin_collective(id);
}

void ProgramPlayer::begin_collective(CollectiveId id) {
  const Collective& collective = set_.collectives[id.index()];
  CollectiveState& state = state_.collectives[id.index()];
  state.begin = now_;
  state.entered = 0;
  ++num_instances_;
  for (std::uint32_t waiter = state.waiters.first; waiter != none;
       waiter = state_.streams[waiter].next_waiter) {
    std::uint64_t& last = last_instance_[device_of(waiter).index()];
    WT_EXPECT(last != num_instances_);  // every member has entered, not one of them twice
    last = num_instances_;
  }
  state.parts_left = 2;
  engine_.after(collective.fixed, token(Happening::collective_part, id.index()));
  engine_.after(collective.latency, token(Happening::collective_launched, id.index()));
}

void ProgramPlayer::launch_collective(CollectiveId id) {
  const Collective& collective = set_.collectives[id.index()];
  state_.collectives[id.index()].parts_left += static_cast<std::uint32_t>(collective.flows.size());
  for (const CollectiveFlow& flow : collective.flows) {
    ++played_.flows;
    engine_.start_flow(flow.up, flow.down, flow.bytes,
                       token(Happening::collective_part, id.index()));
  }
  end_collective_part(id);  // the latency
}

void ProgramPlayer::end_collective_part(CollectiveId id) {
  if (--state_.collectives[id.index()].parts_left == 0) end_collective(id);
}

void ProgramPlayer::end_collective(CollectiveId id) {
  CollectiveState& state = state_.collectives[id.index()];
  ++played_.activities;
  if (listener_ != nullptr) {
    listener_->on_collective(id, *state_.streams[state.waiters.first].next, state.begin, now_);
  }
  const WaiterList waiters = state.waiters;
  state.waiters = {};
  for (std::uint32_t waiter = waiters.first; waiter != none;
       waiter = state_.streams[waiter].next_waiter) {
    come(waiter, *state_.streams[waiter].next, state.begin);
  }
}

}  // namespace

Played play(const ProgramSet& programs, Engine& engine, PlayListener* listener) {
  return ProgramPlayer(programs, engine, listener).play();
}

}  // namespace windtunnel
