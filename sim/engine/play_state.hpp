#pragma once

#include <cstdint>
#include <vector>

#include "core/contracts.hpp"
#include "schedule/program.hpp"
#include "units/quantity.hpp"

namespace windtunnel::detail {

/// Stands for "no such" in indices of streams, messages and events.
inline constexpr std::uint32_t none = 0xFFFFFFFF;

/// Cause of a stream's last wait: the message or collective, and when it was sent or had all its
/// members.
struct Cause {
  Seconds sent{};
  Phase phase = Phase::forward;
  Traffic traffic = Traffic::pipeline_forward;
  bool known = false;  ///< false: nothing was waited for yet
};

/// Where a device's part of each table begins.
struct DeviceTables {
  std::uint32_t work = 0, slots = 0, events = 0, channels = 0;
};

/// Where one stream of one device stands. Streams without ops have none.
struct StreamState {
  const Op* next = nullptr;  ///< the op under way, or waited in
  const Op* end = nullptr;
  Seconds begin{};  ///< `next` was reached
  Cause cause;      ///< of the last wait that ended, or of what has come so far in this one
  std::uint32_t pending = 0;  ///< things still to come before `next` ends
  std::uint32_t next_waiter =
      none;             ///< the stream that waits behind this one for the same event or collective
  DeviceTables tables;  ///< of its device
  DeviceId device;
  Stream kind = Stream::compute;
};

/// Streams in order of their coming, linked through StreamState::next_waiter.
struct WaiterList {
  std::uint32_t first = none, last = none;
};

/// A message that a device receives. There is one for each message of the iteration, so they are packed.
struct SlotState {
  enum class Kind : std::uint32_t {
    idle,          ///< not arrived, and nobody waits for it
    awaited,       ///< stream `index` waits for it
    sender_ready,  ///< message `index` was posted in an exchange and waits for its receiver
    arrived,
  };
  static constexpr std::uint32_t index_bits = 30;
  Kind kind : 32 - index_bits;
  std::uint32_t index : index_bits;

  explicit SlotState(Kind what = Kind::idle, std::uint32_t which = 0)
      : kind(what), index(which & ((1U << index_bits) - 1)) {
    WT_EXPECT(index == which);
  }
};
static_assert(sizeof(SlotState) == 4);

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

/// All that changes while a program set is played.
struct PlayState {
  std::vector<StreamState>
      streams;  ///< those of a device one after the other, in the order of Stream
  std::vector<std::uint32_t> first_stream;  ///< by device; of the next device if it has none
  std::vector<DeviceTables> tables;         ///< by device
  std::vector<Seconds> durations;           ///< by row of the work table
  std::vector<SlotState> slots;             ///< of all devices
  std::vector<EventState> events;           ///< of all devices
  std::vector<ChannelId> channel_of;        ///< of all devices, by Op::peer of send
  std::vector<ChannelState> channels;
  std::vector<CollectiveState> collectives;
  std::vector<Message> messages;  ///< a pool

  const SlotState& slot(DeviceId device, std::uint32_t index) const {
    return slots[tables[device.index()].slots + index];
  }
};

}  // namespace windtunnel::detail
