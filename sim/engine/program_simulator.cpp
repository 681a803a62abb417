#include "engine/program_simulator.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/contracts.hpp"
#include "core/work_note.hpp"
#include "cost/kernel_cost.hpp"
#include "engine/engine.hpp"
#include "engine/program_check.hpp"

namespace windtunnel {
namespace detail {
namespace {

/// Stands for "no such" in indices of streams, messages and events.
constexpr std::uint32_t none = 0xFFFFFFFF;

/// Cause of a stream's last wait: the message or collective, and when it was sent or had all its
/// members.
struct Cause {
  Seconds sent{};
  Phase phase = Phase::forward;
  Traffic traffic = Traffic::pipeline_forward;
  bool known = false;  ///< false: nothing was waited for yet
};

/// First index of a device's part of each table.
struct DeviceTables {
  std::uint32_t work = 0, slots = 0, events = 0, channels = 0;
};

/// Progress of one stream of one device. Streams without ops have none.
struct StreamState {
  const Op* next = nullptr;  ///< the op under way, or waited in
  const Op* end = nullptr;
  Seconds begin{};  ///< `next` was reached
  Cause cause;      ///< of the last wait that ended, or of what has come so far in this one
  std::uint32_t pending = 0;         ///< things still to come before `next` ends
  std::uint32_t next_waiter = none;  ///< waits behind this one for the same event or collective
  DeviceTables tables;               ///< of its device
  DeviceId device;
  Stream kind = Stream::compute;
};

/// Streams in order of their coming, linked through StreamState::next_waiter.
struct WaiterList {
  std::uint32_t first = none, last = none;
};

/// A message that a device receives.
struct SlotState {
  enum class Kind : std::uint32_t {
    idle,          ///< not arrived, and nobody waits for it
    awaited,       ///< stream `index` waits for it
    sender_ready,  ///< message `index` was posted in an exchange and waits for its receiver
    arrived,
  };
  SlotState() = default;
  explicit SlotState(Kind new_kind, std::uint32_t new_index = 0)
      : kind(new_kind), index(new_index & max_index) {
    WT_EXPECT(new_index <= max_index);
  }
  static constexpr std::uint32_t max_index = (1U << 30) - 1;
  Kind kind : 2 = Kind::idle;
  std::uint32_t index : 30 = 0;
};

/// A message from its posting to its arrival.
struct Message {
  const Op* send = nullptr;
  Seconds posted{};             ///< by the sender
  Seconds sent{};               ///< eager: posted; exchange: posted by both ends
  std::uint32_t sender = none;  ///< the stream that waits for its arrival, in an exchange
  std::uint32_t channel = none;
  std::uint32_t next = none;  ///< behind this one in the channel
  Seconds begin{};            ///< of the transfer
};

/// The messages of a channel in order; the first is being transferred.
struct ChannelState {
  std::uint32_t first = none, last = none;
  std::uint32_t slot_base = 0;  ///< of the receiving device
  bool in_node = true;
  PathId up, down;
  Seconds latency{};
};

/// The instance of a collective that is being entered or under way.
struct CollectiveState {
  std::uint32_t entered = 0;
  std::uint32_t parts_left = 0;  ///< under way: fixed part, latency and flows
  WaiterList waiters;
  Seconds begin{};
  double fullness = 1;  ///< ProgramSet::fullness
};

/// Something a program records once and other streams wait for.
struct EventState {
  bool happened = false;
  WaiterList waiters;
};

/// All that changes while a program set is simulated.
struct SimulationState {
  std::vector<StreamState> streams;         ///< of all devices; those of one in the order of Stream
  std::vector<std::uint32_t> first_stream;  ///< by device; of the next device if it has none
  std::vector<DeviceTables> tables;         ///< by device
  std::vector<Seconds> durations;           ///< by row of the work table
  std::vector<SlotState> slots;             ///< of all devices
  std::vector<EventState> events;           ///< of all devices
  std::vector<ChannelId> channel_of;        ///< of all devices, by Op::peer of send
  std::vector<ChannelState> channels;
  std::vector<CollectiveState> collectives;
  std::vector<Message> messages;  ///< a pool
};

/// Meaning of an engine event. A token is an index and, in its lowest bits, one of these.
enum class EventKind : std::uint64_t {
  compute_end,          ///< index: stream
  message_launched,     ///< index: channel; the latency of its first message is paid
  message_arrived,      ///< index: channel
  collective_launched,  ///< index: collective; its latency is paid
  collective_part,      ///< index: collective; its fixed part or one of its flows has ended
};
inline constexpr std::uint64_t event_kind_bits = 3;
inline constexpr std::uint64_t event_kind_mask = (1U << event_kind_bits) - 1;

inline std::uint64_t token(EventKind kind, std::uint32_t index) {
  return static_cast<std::uint64_t>(index) << event_kind_bits | static_cast<std::uint64_t>(kind);
}

/// Simulates the ops of all streams. An op that cannot end at once leaves its stream waiting; what it
/// waits for puts the stream on the ready list, and the list is worked off one stream after the
/// other: no recursion, however long a chain of ops that take no time.
class ProgramSimulator final : public EventHandler {
 public:
  /// Neither disturbance nor listener need be there.
  ProgramSimulator(const ProgramSet& set, Engine& engine, Disturbance* disturbance,
                   SimulationListener* listener)
      : set_(set), engine_(engine), disturbance_(disturbance), listener_(listener) {
    expect_well_formed(set);
    WT_EXPECT(engine.now() == Seconds{0});
    for (std::size_t d = 0; d < set.devices.size(); ++d) add_device(d);
    for (const Work& work : set.work) state_.durations.push_back(work.duration);
    for (const Channel& channel : set.channels) add_channel(channel);
    state_.collectives.resize(set.collectives.size());
    last_instance_.resize(set.devices.size());
    pass_begin_.resize(set.devices.size());
    if (listener_ != nullptr) {
      slot_sent_.resize(state_.slots.size());
      event_cause_.resize(state_.events.size());
      entered_.resize(state_.streams.size());
      peer_waits_.resize(state_.streams.size());
    }
    result_.device_end.resize(set.devices.size());
    result_.engine = engine.name();
    devices_left_ = set.devices.size();
  }

  EngineResult simulate() {
    for (std::size_t d = 0; d < set_.devices.size(); ++d) {
      if (streams_left_[d] > 0) continue;  // a device with something to do
      --devices_left_;
      if (listener_ != nullptr) listener_->on_device_end(DeviceId{d}, now_);
    }
    for (std::uint32_t i = 0; i < state_.streams.size(); ++i) advance(i);
    work_off_ready();
    engine_.run(*this);
    if (devices_left_ > 0) throw DeadlockError(describe_deadlock(set_));
    const auto last = std::max_element(result_.device_end.begin(), result_.device_end.end());
    if (last != result_.device_end.end()) {
      result_.end = *last;
      result_.last_device = DeviceId{static_cast<std::size_t>(last - result_.device_end.begin())};
    }
    return std::move(result_);
  }

  void on_event(std::uint64_t token) override {
    now_ = engine_.now();
    const auto index = static_cast<std::uint32_t>(token >> event_kind_bits);
    switch (static_cast<EventKind>(token & event_kind_mask)) {
      case EventKind::compute_end:
        end_compute(index, state_.streams[index]);
        advance(index);
        break;
      case EventKind::message_launched:
        launch(ChannelId{index});
        break;
      case EventKind::message_arrived:
        end_transfer(ChannelId{index});
        break;
      case EventKind::collective_launched:
        launch_collective(CollectiveId{index});
        break;
      case EventKind::collective_part:
        end_collective_part(CollectiveId{index});
        break;
    }
    work_off_ready();
  }

 private:
  void add_device(std::size_t device) {
    const StageProgram& program = set_.programs[set_.devices[device].program];
    const ProgramDevice& tables = set_.devices[device];
    const auto end_of = [](const auto& table) { return static_cast<std::uint32_t>(table.size()); };
    const DeviceTables begins{tables.work_base, end_of(state_.slots), end_of(state_.events),
                              end_of(state_.channel_of)};
    state_.tables.push_back(begins);
    state_.first_stream.push_back(end_of(state_.streams));
    for (std::size_t kind = 0; kind < program.streams.size(); ++kind) {
      const std::vector<Op>& ops = program.streams[kind];
      if (ops.empty()) continue;
      StreamState& stream = state_.streams.emplace_back();
      stream.next = ops.data();
      stream.end = ops.data() + ops.size();
      stream.tables = begins;
      stream.device = DeviceId{device};
      stream.kind = static_cast<Stream>(kind);
    }
    streams_left_.push_back(end_of(state_.streams) - state_.first_stream.back());
    state_.slots.resize(state_.slots.size() + program.num_slots);
    state_.events.resize(state_.events.size() + program.num_events);
    state_.channel_of.insert(state_.channel_of.end(), tables.channels.begin(),
                             tables.channels.end());
  }

  void add_channel(const Channel& channel) {
    ChannelState& state = state_.channels.emplace_back();
    state.slot_base = state_.tables[channel.to.index()].slots;
    state.in_node = channel.in_node;
    state.up = channel.up;
    state.down = channel.down;
    state.latency = channel.latency;
  }

  void work_off_ready() {
    std::size_t next = 0;
    while (next < ready_.size()) {  // grows meanwhile
      const std::uint32_t index = ready_[next++];
      end_wait(index, state_.streams[index]);
      advance(index);
    }
    ready_.clear();
  }

  void advance(std::uint32_t index) {
    StreamState& stream = state_.streams[index];
    while (stream.next != stream.end) {
      if (!begin_op(index, stream)) return;
    }
    end_stream(index);
  }

  /// Begins the next op; true when it has ended already.
  bool begin_op(std::uint32_t index, StreamState& stream) {
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
        post_send(index, stream, *stream.next++, Posting::eager);
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

  bool begin_compute(std::uint32_t index, StreamState& stream) {
    const std::uint32_t row = set_.row_of(stream.tables.work, *stream.next);
    Seconds duration = state_.durations[row];
    if (label_of(*stream.next) == Label::launch_floor)
      duration = wait_for_launches(stream.device, set_.work[row].floor);
    else if (disturbance_ != nullptr)
      duration = disturbance_->duration(stream.device, stream.kind, set_.work[row], now_);
    stream.begin = now_;
    if (duration == Seconds{0}) {
      end_compute(index, stream);
      return true;
    }
    engine_.after(duration, token(EventKind::compute_end, index));
    return false;
  }

  /// The CPU launches on while the pass waits for others, so that the floor holds for all of the time that the pass has taken.
  Seconds wait_for_launches(DeviceId device, const LaunchFloor& floor) const {
    const Seconds taken = now_ - pass_begin_[device.index()];
    const Seconds launch =
        disturbance_ == nullptr ? floor.launch : disturbance_->launches(device, floor.launch);
    return with_launch_floor(taken, launch, floor.sharpness) - taken;
  }

  void end_compute(std::uint32_t index, StreamState& stream) {
    count_done(++result_.activities);
    if (listener_ != nullptr) {
      const Work& work = set_.work[set_.row_of(stream.tables.work, *stream.next)];
      listener_->on_compute(stream.device, stream.kind, *stream.next, work, stream.begin, now_);
    }
    const Label label = label_of(*stream.next);
    if (label == Label::batch_read) pass_begin_[stream.device.index()] = now_;
    if (label != Label::whole_pass &&
        stream.kind != Stream::compute) {  // who waits for a collective waits for it
      stream.cause = {stream.begin, stream.next->phase, stream.next->traffic, true};
      if (listener_ != nullptr) entered_[index] = stream.begin;
    }
    ++stream.next;
  }

  bool begin_receive(std::uint32_t index, StreamState& stream) {
    stream.begin = now_;
    post_receive(index, stream, *stream.next);
    if (stream.pending > 0) return false;
    end_wait(index, stream);
    return true;
  }

  bool begin_exchange(std::uint32_t index, StreamState& stream) {
    stream.begin = now_;
    const Op* const first = stream.next + 1;
    const Op* const last = first + stream.next->slot;
    if (first == last) stream.cause = {};
    for (const Op* op = first; op != last; ++op) {
      if (op->kind == OpKind::receive) {
        post_receive(index, stream, *op);
      } else {
        ++stream.pending;
        post_send(index, stream, *op, Posting::in_exchange);
      }
    }
    if (stream.pending > 0) return false;
    end_wait(index, stream);
    return true;
  }

  bool begin_wait(std::uint32_t index, StreamState& stream) {
    const std::uint32_t number = event_index(stream);
    EventState& event = state_.events[number];
    stream.begin = now_;
    if (!event.happened) {
      ++stream.pending;
      add_waiter(event.waiters, index);
      return false;
    }
    if (listener_ != nullptr) {
      stream.cause = event_cause_[number].cause;
      entered_[index] = event_cause_[number].entered;
    }
    end_wait(index, stream);
    return true;
  }

  void end_wait(std::uint32_t index, StreamState& stream) {
    const Op& op = *stream.next;
    if (listener_ != nullptr) {
      const Cause cause =
          stream.cause.known ? stream.cause : Cause{now_, op.phase, op.traffic, false};
      const Waiting waiting{stream.begin, entered_[index], cause.sent,
                            now_,         cause.phase,     cause.traffic};
      listener_->on_wait(stream.device, stream.kind, op, waiting);
    }
    stream.next += op.kind == OpKind::exchange ? 1 + op.slot : 1;
  }

  void end_stream(std::uint32_t index) {
    const DeviceId device = state_.streams[index].device;
    if (--streams_left_[device.index()] > 0) return;
    result_.device_end[device.index()] = now_;
    --devices_left_;
    if (listener_ != nullptr) listener_->on_device_end(device, now_);
  }

  /// The event takes over what the recording stream waited for last: whoever waits for the event waited for that, and for the peers that
  /// the collectives before it on its stream waited for.
  void record(std::uint32_t index, const StreamState& stream) {
    const std::uint32_t number = event_index(stream);
    EventState& event = state_.events[number];
    event.happened = true;
    EventCause known{stream.cause, {}};
    if (listener_ != nullptr) {
      known.entered = entered_[index];
      if (const PeerWait longest = longest_peer_wait(index); longest.duration() > Seconds{0}) {
        known.entered = longest.entered;
        known.cause.sent = longest.sent;
      }
      event_cause_[number] = known;
    }
    for (std::uint32_t waiter = event.waiters.first; waiter != none;) {
      StreamState& waiting = state_.streams[waiter];
      waiting.cause = known.cause;
      if (listener_ != nullptr) entered_[waiter] = known.entered;
      --waiting.pending;
      ready_.push_back(waiter);
      waiter = waiting.next_waiter;
    }
    event.waiters = {};
  }

  enum class Posting { eager, in_exchange };
  void post_send(std::uint32_t index, const StreamState& stream, const Op& op, Posting posting) {
    const ChannelId channel = state_.channel_of[stream.tables.channels + op.peer];
    const std::uint32_t number = new_message();
    state_.messages[number] = {&op, now_, now_, none, channel.index(), none, {}};
    if (posting == Posting::eager) return enqueue(number);
    state_.messages[number].sender = index;
    SlotState& slot = state_.slots[state_.channels[channel.index()].slot_base + op.slot];
    if (slot.kind == SlotState::Kind::awaited) return enqueue(number);
    WT_EXPECT(slot.kind == SlotState::Kind::idle);  // a message is sent once
    slot = SlotState(SlotState::Kind::sender_ready, number);
  }

  /// Leaves the stream with one more thing pending, unless the message has arrived already.
  void post_receive(std::uint32_t index, StreamState& stream, const Op& op) {
    const std::uint32_t number = stream.tables.slots + op.slot;
    SlotState& slot = state_.slots[number];
    if (slot.kind == SlotState::Kind::arrived) {
      if (listener_ == nullptr) return;
      if (stream.pending == 0) stream.cause = {slot_sent_[number], op.phase, op.traffic, true};
      return;
    }
    WT_EXPECT(slot.kind != SlotState::Kind::awaited);  // one stream waits for a message
    ++stream.pending;
    const SlotState before = slot;
    slot = SlotState(SlotState::Kind::awaited, index);
    if (before.kind == SlotState::Kind::sender_ready) {
      state_.messages[before.index].sent = now_;
      enqueue(before.index);
    }
  }

  std::uint32_t new_message() {
    if (free_messages_.empty()) {
      free_messages_.push_back(static_cast<std::uint32_t>(state_.messages.size()));
      state_.messages.emplace_back();
    }
    const std::uint32_t message = free_messages_.back();
    free_messages_.pop_back();
    return message;
  }

  void enqueue(std::uint32_t message) {
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

  void begin_transfer(ChannelId id) {
    const ChannelState& channel = state_.channels[id.index()];
    Message& message = state_.messages[channel.first];
    message.begin = now_;
    const Bytes bytes = bytes_of(message);
    const Seconds latency = latency_from(set_.channels[id.index()].from, channel.latency);
    if (bytes == Bytes{0}) {
      engine_.after(latency, token(EventKind::message_arrived, id.index()));
    } else if (channel.in_node) {
      engine_.after(latency + bytes / set_.channels[id.index()].bandwidth,
                    token(EventKind::message_arrived, id.index()));
    } else if (latency == Seconds{0}) {
      launch(id);
    } else {
      engine_.after(latency, token(EventKind::message_launched, id.index()));
    }
  }

  void launch(ChannelId id) {
    const ChannelState& channel = state_.channels[id.index()];
    const Bytes bytes = bytes_of(state_.messages[channel.first]);
    ++result_.flows;
    engine_.start_flow(channel.up, channel.down, bytes,
                       token(EventKind::message_arrived, id.index()));
  }

  void end_transfer(ChannelId id) {
    ChannelState& channel = state_.channels[id.index()];
    const std::uint32_t number = channel.first;
    const Message message = state_.messages[number];
    free_messages_.push_back(number);
    channel.first = message.next;
    if (channel.first != none) begin_transfer(id);
    count_done(++result_.activities);
    if (listener_ != nullptr) {
      listener_->on_message(id, *message.send, bytes_of(message), message.posted, message.begin,
                            now_);
    }
    deliver(message);
  }

  void deliver(const Message& message) {
    const std::uint32_t number = state_.channels[message.channel].slot_base + message.send->slot;
    SlotState& slot = state_.slots[number];
    WT_ENSURE(slot.kind == SlotState::Kind::idle || slot.kind == SlotState::Kind::awaited);
    if (listener_ != nullptr) {
      slot_sent_[number] = message.sent;
    }
    const SlotState before = slot;
    slot = SlotState(SlotState::Kind::arrived);
    if (before.kind == SlotState::Kind::awaited)
      note_arrival(before.index, *message.send, message.sent);
    if (message.sender != none) note_arrival(message.sender, *message.send, message.sent);
  }

  /// One of the things that the stream waits for has arrived.
  void note_arrival(std::uint32_t index, const Op& op, Seconds sent) {
    StreamState& stream = state_.streams[index];
    stream.cause = {sent, op.phase, op.traffic, true};
    if (--stream.pending == 0) ready_.push_back(index);
  }

  void enter_collective(std::uint32_t index) {
    const CollectiveId id = collective_of(index);
    CollectiveState& collective = state_.collectives[id.index()];
    StreamState& stream = state_.streams[index];
    stream.begin = now_;
    ++stream.pending;
    add_waiter(collective.waiters, index);
    WT_EXPECT(collective.parts_left == 0);  // one stream of a device enters a collective
    if (++collective.entered == set_.collectives[id.index()].members.size()) begin_collective(id);
  }

  void begin_collective(CollectiveId id) {
    const Collective& collective = set_.collectives[id.index()];
    CollectiveState& state = state_.collectives[id.index()];
    state.begin = now_;
    state.entered = 0;
    ++num_instances_;
    for (std::uint32_t waiter = state.waiters.first; waiter != none;
         waiter = state_.streams[waiter].next_waiter) {
      std::uint64_t& last = last_instance_[state_.streams[waiter].device.index()];
      WT_EXPECT(last != num_instances_);  // every member has entered, not one of them twice
      last = num_instances_;
    }
    state.parts_left = 2;
    state.fullness = set_.fullness_of(collective, *state_.streams[state.waiters.first].next);
    const Seconds fixed = collective.fixed + collective.varying * (state.fullness - 1);
    engine_.after(fixed, token(EventKind::collective_part, id.index()));
    const Seconds latency = latency_from(collective.members.front(), collective.latency);
    engine_.after(latency, token(EventKind::collective_launched, id.index()));
  }

  void launch_collective(CollectiveId id) {
    const Collective& collective = set_.collectives[id.index()];
    CollectiveState& state = state_.collectives[id.index()];
    state.parts_left += static_cast<std::uint32_t>(collective.flows.size());
    for (const CollectiveFlow& flow : collective.flows) {
      ++result_.flows;
      engine_.start_flow(flow.up, flow.down, flow.bytes * state.fullness,
                         token(EventKind::collective_part, id.index()));
    }
    end_collective_part(id);  // the latency
  }

  void end_collective_part(CollectiveId id) {
    if (--state_.collectives[id.index()].parts_left == 0) end_collective(id);
  }

  void end_collective(CollectiveId id) {
    CollectiveState& state = state_.collectives[id.index()];
    count_done(++result_.activities);
    if (listener_ != nullptr) {
      listener_->on_collective(id, *state_.streams[state.waiters.first].next, state.begin, now_);
    }
    const WaiterList waiters = state.waiters;
    state.waiters = {};
    for (std::uint32_t waiter = waiters.first; waiter != none;
         waiter = state_.streams[waiter].next_waiter) {
      if (listener_ != nullptr) {
        entered_[waiter] = state_.streams[waiter].begin;
        const PeerWait wait{entered_[waiter], state.begin};
        if (wait.duration() >= longest_peer_wait(waiter).duration()) peer_waits_[waiter] = wait;
      }
      note_arrival(waiter, *state_.streams[waiter].next, state.begin);
    }
  }

  CollectiveId collective_of(std::uint32_t stream) const {
    const StreamState& state = state_.streams[stream];
    return set_.devices[state.device.index()].entered(state.next->slot);
  }

  void add_waiter(WaiterList& list, std::uint32_t stream) {
    state_.streams[stream].next_waiter = none;
    if (list.first == none) {
      list.first = stream;
    } else {
      state_.streams[list.last].next_waiter = stream;
    }
    list.last = stream;
  }

  static std::uint32_t event_index(const StreamState& stream) {
    return stream.tables.events + stream.next->slot;
  }

  Seconds latency_from(DeviceId device, Seconds usual) const {
    return disturbance_ == nullptr ? usual : disturbance_->latency(device, usual);
  }

  Bytes bytes_of(const Message& message) const { return set_.message_bytes[message.send->work]; }

  const ProgramSet& set_;
  Engine& engine_;
  Disturbance* disturbance_;
  SimulationListener* listener_;
  SimulationState state_;
  EngineResult result_;
  Seconds now_{};
  std::vector<std::uint32_t> ready_;  ///< streams whose op has ended
  std::vector<std::uint32_t> free_messages_;
  std::vector<std::uint32_t> streams_left_;   ///< by device
  std::vector<Seconds> pass_begin_;           ///< by device: of its pass in single operations
  std::vector<std::uint64_t> last_instance_;  ///< by device: the collective it entered last
  std::vector<Seconds> slot_sent_;            ///< of arrived messages; only for a listener
  std::vector<Seconds> entered_;              ///< Waiting::entered, by stream; only for a listener
  /// Since a device had entered a collective, until the last of the others had.
  struct PeerWait {
    Seconds entered{}, sent{};
    Seconds duration() const { return sent - entered; }
  };
  std::vector<PeerWait> peer_waits_;  ///< by stream; only for a listener
  /// The longest wait of a stream for peers since the device's compute stream, which may wait for it, has reached its op.
  PeerWait longest_peer_wait(std::uint32_t stream) const {
    const StreamState& first =
        state_.streams[state_.first_stream[state_.streams[stream].device.index()]];
    const Seconds reached = first.kind == Stream::compute ? first.begin : Seconds{0};
    const PeerWait& wait = peer_waits_[stream];
    return wait.sent > reached ? PeerWait{std::max(wait.entered, reached), wait.sent} : PeerWait{};
  }

  struct EventCause {
    Cause cause;
    Seconds entered{};
  };
  std::vector<EventCause> event_cause_;  ///< only for a listener
  std::uint64_t num_instances_ = 0;
  std::size_t devices_left_ = 0;
};

}  // namespace
}  // namespace detail

EngineResult simulate_programs(const ProgramSet& programs, Engine& engine,
                               SimulationListener* listener) {
  return detail::ProgramSimulator(programs, engine, nullptr, listener).simulate();
}

EngineResult simulate_programs(const ProgramSet& programs, Engine& engine, Disturbance& disturbance,
                               SimulationListener* listener) {
  return detail::ProgramSimulator(programs, engine, &disturbance, listener).simulate();
}

}  // namespace windtunnel
