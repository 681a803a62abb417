#include "engine/prefetch.hpp"
#include "engine/program_player.hpp"

namespace windtunnel::detail {

void ProgramPlayer::prefetch_first(std::uint64_t token) const {
  const auto index = static_cast<std::uint32_t>(token >> happening_bits);
  switch (static_cast<Happening>(token & happening_mask)) {
    case Happening::compute_end:
      return detail::prefetch(&state_.streams[index]);
    case Happening::message_launched:
    case Happening::message_arrived:
      return detail::prefetch(&state_.channels[index]);
    case Happening::collective_launched:
    case Happening::collective_part:
      return;
  }
}

void ProgramPlayer::prefetch_rest(std::uint64_t token) const {
  const auto index = static_cast<std::uint32_t>(token >> happening_bits);
  switch (static_cast<Happening>(token & happening_mask)) {
    case Happening::compute_end:
      return prefetch_after_compute(state_.streams[index]);
    case Happening::message_arrived:
      return prefetch_delivery(state_.channels[index]);
    case Happening::message_launched:
    case Happening::collective_launched:
    case Happening::collective_part:
      return;
  }
}

/// The messages on the way to the next compute op, and its duration.
void ProgramPlayer::prefetch_after_compute(const StreamState& stream) const {
  for (const Op* op = stream.next + 1; op != stream.end && op->kind != OpKind::compute; ++op) {
    if (op->kind == OpKind::receive) {
      detail::prefetch(&state_.slots[stream.tables.slots + op->slot]);
    } else if (op->kind == OpKind::send) {
      const ChannelId channel = state_.channel_of[stream.tables.channels + op->peer];
      detail::prefetch(&state_.channels[channel.index()]);
    }
  }
  detail::prefetch(&state_.durations[stream.tables.work]);
}

void ProgramPlayer::prefetch_delivery(const ChannelState& channel) const {
  const Op& send = *state_.messages[channel.first].send;
  detail::prefetch(&state_.slots[channel.slot_base + send.slot]);
}

}  // namespace windtunnel::detail
