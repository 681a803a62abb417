#include "core/contracts.hpp"
#include "core/work_note.hpp"
#include "engine/program_player.hpp"

namespace windtunnel::detail {

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
      post_send(index, stream, *op, Posting::in_exchange);
    }
  }
  if (stream.pending > 0) return false;
  end_wait(index, stream);
  return true;
}

void ProgramPlayer::post_send(std::uint32_t index, const StreamState& stream, const Op& op,
                              Posting posting) {
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
void ProgramPlayer::post_receive(std::uint32_t index, StreamState& stream, const Op& op) {
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
  const ChannelState& channel = state_.channels[id.index()];
  Message& message = state_.messages[channel.first];
  message.begin = now_;
  const Bytes bytes = bytes_of(message);
  const Seconds latency = latency_from(set_.channels[id.index()].from, channel.latency);
  if (bytes == Bytes{0}) {
    engine_.after(latency, token(Happening::message_arrived, id.index()));
  } else if (channel.in_node) {
    engine_.after(latency + bytes / set_.channels[id.index()].bandwidth,
                  token(Happening::message_arrived, id.index()));
  } else if (latency == Seconds{0}) {
    launch(id);
  } else {
    engine_.after(latency, token(Happening::message_launched, id.index()));
    engine_.prefetch_flow(channel.up, channel.down);
  }
}

void ProgramPlayer::launch(ChannelId id) {
  const ChannelState& channel = state_.channels[id.index()];
  const Bytes bytes = bytes_of(state_.messages[channel.first]);
  ++played_.flows;
  engine_.start_flow(channel.up, channel.down, bytes,
                     token(Happening::message_arrived, id.index()));
}

void ProgramPlayer::end_transfer(ChannelId id) {
  ChannelState& channel = state_.channels[id.index()];
  const std::uint32_t number = channel.first;
  const Message message = state_.messages[number];
  free_messages_.push_back(number);
  channel.first = message.next;
  if (channel.first != none) begin_transfer(id);
  count_done(++played_.activities);
  if (listener_ != nullptr) {
    listener_->on_message(id, *message.send, bytes_of(message), message.posted, message.begin,
                          now_);
  }
  deliver(message);
}

void ProgramPlayer::deliver(const Message& message) {
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

}  // namespace windtunnel::detail
