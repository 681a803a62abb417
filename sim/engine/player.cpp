#include "engine/player.hpp"

#include <algorithm>
#include <utility>

#include "core/contracts.hpp"
#include "core/work_note.hpp"
#include "engine/deadlock.hpp"
#include "engine/program_check.hpp"
#include "engine/program_player.hpp"

namespace windtunnel {
namespace detail {

ProgramPlayer::ProgramPlayer(const ProgramSet& set, Engine& engine, Disturbance* disturbance,
                             PlayListener* listener)
    : set_(set), engine_(engine), disturbance_(disturbance), listener_(listener) {
  expect_well_formed(set);
  WT_EXPECT(engine.now() == Seconds{0});
  for (std::size_t d = 0; d < set.devices.size(); ++d) add_device(d);
  for (const Work& work : set.work) state_.durations.push_back(work.duration);
  for (const Channel& channel : set.channels) add_channel(channel);
  state_.collectives.resize(set.collectives.size());
  last_instance_.resize(set.devices.size());
  if (listener_ != nullptr) {
    slot_sent_.resize(state_.slots.size());
    event_cause_.resize(state_.events.size());
    entered_.resize(state_.streams.size());
    peer_waits_.resize(state_.streams.size());
  }
  played_.device_end.resize(set.devices.size());
  devices_left_ = set.devices.size();
}

void ProgramPlayer::add_device(std::size_t device) {
  const StageProgram& program = set_.programs[set_.devices[device].program];
  const ProgramDevice& tables = set_.devices[device];
  const auto end_of = [](const auto& table) { return static_cast<std::uint32_t>(table.size()); };
  const DeviceTables begins{tables.work_base, end_of(state_.slots), end_of(state_.events),
                            end_of(state_.channel_of)};
  std::uint32_t num_busy = 0;
  for (const auto& ops : program.streams) {
    StreamState& stream = state_.streams.emplace_back();
    stream.next = ops.data();
    stream.end = ops.data() + ops.size();
    stream.tables = begins;
    if (!ops.empty()) ++num_busy;
  }
  streams_left_.push_back(num_busy);
  state_.slots.resize(state_.slots.size() + program.num_slots);
  state_.events.resize(state_.events.size() + program.num_events);
  state_.channel_of.insert(state_.channel_of.end(), tables.channels.begin(), tables.channels.end());
}

void ProgramPlayer::add_channel(const Channel& channel) {
  ChannelState& state = state_.channels.emplace_back();
  state.slot_base = state_.tables(channel.to).slots;
  state.in_node = channel.in_node;
  state.up = channel.up;
  state.down = channel.down;
  state.latency = channel.latency;
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
  if (devices_left_ > 0) throw DeadlockError(describe_deadlock(set_, state_));
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
  std::size_t next = 0;
  while (next < ready_.size()) {  // grows meanwhile
    const std::uint32_t index = ready_[next++];
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

bool ProgramPlayer::begin_compute(std::uint32_t index, StreamState& stream) {
  const std::uint32_t row = set_.row_of(stream.tables.work, *stream.next);
  Seconds duration = state_.durations[row];
  if (disturbance_ != nullptr)
    duration = disturbance_->duration(device_of(index), kind_of(index), set_.work[row], now_);
  stream.begin = now_;
  if (duration == Seconds{0}) {
    end_compute(index, stream);
    return true;
  }
  engine_.after(duration, token(Happening::compute_end, index));
  return false;
}

void ProgramPlayer::end_compute(std::uint32_t index, StreamState& stream) {
  count_done(++played_.activities);
  if (listener_ != nullptr) {
    const Work& work = set_.work[set_.row_of(stream.tables.work, *stream.next)];
    listener_->on_compute(device_of(index), kind_of(index), *stream.next, work, stream.begin, now_);
  }
  const bool is_operation = label_of(*stream.next) != Label::whole_pass;
  if (is_operation &&
      kind_of(index) != Stream::compute) {  // who waits for a collective waits for it
    stream.cause = {stream.begin, stream.next->phase, stream.next->traffic, true};
    if (listener_ != nullptr) entered_[index] = stream.begin;
  }
  ++stream.next;
}

/// One of the things that the stream waits for has arrived.
void ProgramPlayer::note_arrival(std::uint32_t index, const Op& op, Seconds sent) {
  StreamState& stream = state_.streams[index];
  stream.cause = {sent, op.phase, op.traffic, true};
  if (--stream.pending == 0) ready_.push_back(index);
}

void ProgramPlayer::end_wait(std::uint32_t index, StreamState& stream) {
  const Op& op = *stream.next;
  if (listener_ != nullptr) {
    const Cause cause =
        stream.cause.known ? stream.cause : Cause{now_, op.phase, op.traffic, false};
    const Waiting waiting{stream.begin, entered_[index], cause.sent,
                          now_,         cause.phase,     cause.traffic};
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

std::uint32_t ProgramPlayer::event_index(const StreamState& stream) {
  return stream.tables.events + stream.next->slot;
}

/// The longest wait of a stream for peers since the device's compute stream, which may wait for it, has reached its op.
ProgramPlayer::PeerWait ProgramPlayer::longest_peer_wait(std::uint32_t stream) const {
  constexpr std::uint32_t per_device = num_streams;
  const Seconds reached = state_.streams[stream / per_device * per_device].begin;
  const PeerWait& wait = peer_waits_[stream];
  return wait.sent > reached ? PeerWait{std::max(wait.entered, reached), wait.sent} : PeerWait{};
}

/// The event takes over what the recording stream waited for last: whoever waits for the event waited for that, and for the peers that
/// the collectives before it on its stream waited for.
void ProgramPlayer::record(std::uint32_t index, const StreamState& stream) {
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

bool ProgramPlayer::begin_wait(std::uint32_t index, StreamState& stream) {
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

void ProgramPlayer::add_waiter(WaiterList& list, std::uint32_t stream) {
  state_.streams[stream].next_waiter = none;
  if (list.first == none) {
    list.first = stream;
  } else {
    state_.streams[list.last].next_waiter = stream;
  }
  list.last = stream;
}

}  // namespace detail

Played play(const ProgramSet& programs, Engine& engine, PlayListener* listener) {
  return detail::ProgramPlayer(programs, engine, nullptr, listener).play();
}

Played play(const ProgramSet& programs, Engine& engine, Disturbance& disturbance,
            PlayListener* listener) {
  return detail::ProgramPlayer(programs, engine, &disturbance, listener).play();
}

}  // namespace windtunnel
