#pragma once

#include <cstdint>
#include <vector>

#include "engine/disturbance.hpp"
#include "engine/engine.hpp"
#include "engine/play_state.hpp"
#include "engine/player.hpp"

namespace windtunnel::detail {

/// Meaning of an engine event. A token is an index and, in its lowest bits, one of these.
enum class Happening : std::uint64_t {
  compute_end,          ///< index: stream
  message_launched,     ///< index: channel; the latency of its first message is paid
  message_arrived,      ///< index: channel
  collective_launched,  ///< index: collective; its latency is paid
  collective_part,      ///< index: collective; its fixed part or one of its flows has ended
};
inline constexpr std::uint64_t happening_bits = 3;
inline constexpr std::uint64_t happening_mask = (1U << happening_bits) - 1;

inline std::uint64_t token(Happening happening, std::uint32_t index) {
  return static_cast<std::uint64_t>(index) << happening_bits |
         static_cast<std::uint64_t>(happening);
}

/// Plays the ops of all streams. An op that cannot end at once leaves its stream waiting; what it
/// waits for puts the stream on the ready list, and the list is worked off one stream after the
/// other: no recursion, however long a chain of ops that take no time. Streams are in player.cpp, messages and
/// collectives in files of their own.
class ProgramPlayer final : public EventHandler {
 public:
  /// Neither disturbance nor listener need be there.
  ProgramPlayer(const ProgramSet& set, Engine& engine, Disturbance* disturbance,
                PlayListener* listener);
  Played play();
  void on_event(std::uint64_t token) override;
  void prefetch_first(std::uint64_t token) const override;
  void prefetch_rest(std::uint64_t token) const override;

 private:
  void add_device(std::size_t device);
  void add_channel(const Channel& channel);
  void prefetch_after_compute(const StreamState& stream) const;
  void prefetch_delivery(const ChannelState& channel) const;
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
  void post_send(std::uint32_t index, const StreamState& stream, const Op& op, Posting posting);
  void post_receive(std::uint32_t index, StreamState& stream, const Op& op);
  std::uint32_t new_message();
  void enqueue(std::uint32_t message);
  void begin_transfer(ChannelId channel);
  void launch(ChannelId channel);
  void end_transfer(ChannelId channel);
  void deliver(const Message& message);
  void note_arrival(std::uint32_t stream, const Op& op, Seconds sent);

  void enter_collective(std::uint32_t index);
  void begin_collective(CollectiveId id);
  void launch_collective(CollectiveId id);
  void end_collective_part(CollectiveId id);
  void end_collective(CollectiveId id);
  CollectiveId collective_of(std::uint32_t stream) const;

  void add_waiter(WaiterList& list, std::uint32_t stream);
  static std::uint32_t event_index(const StreamState& stream);
  Seconds latency_from(DeviceId device, Seconds usual) const {
    return disturbance_ == nullptr ? usual : disturbance_->latency(device, usual);
  }
  Bytes bytes_of(const Message& message) const { return set_.message_bytes[message.send->work]; }

  const ProgramSet& set_;
  Engine& engine_;
  Disturbance* disturbance_;
  PlayListener* listener_;
  PlayState state_;
  Played played_;
  Seconds now_{};
  std::vector<std::uint32_t> ready_;  ///< streams whose op has ended
  std::vector<std::uint32_t> free_messages_;
  std::vector<std::uint32_t> streams_left_;   ///< by device
  std::vector<std::uint64_t> last_instance_;  ///< by device: the collective it entered last
  std::vector<Seconds> slot_sent_;            ///< of arrived messages; only for a listener
  std::vector<Seconds> entered_;              ///< Waiting::entered, by stream; only for a listener
  /// Since a device had entered a collective, until the last of the others had.
  struct PeerWait {
    Seconds entered{}, sent{};
    Seconds duration() const { return sent - entered; }
  };
  std::vector<PeerWait> peer_waits_;  ///< by stream; only for a listener
  PeerWait longest_peer_wait(std::uint32_t stream) const;
  struct EventCause {
    Cause cause;
    Seconds entered{};
  };
  std::vector<EventCause> event_cause_;  ///< only for a listener
  std::uint64_t num_instances_ = 0;
  std::size_t devices_left_ = 0;
};

}  // namespace windtunnel::detail
