#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/contracts.hpp"
#include "core/id.hpp"
#include "operations/operation.hpp"
#include "plan/schedule.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

enum class OpKind : std::uint8_t {
  compute,     ///< occupies the stream for work[op.work]; labelled launch_floor, for as long as the
               ///< launches of its pass, which began behind batch_read, still take
  send,        ///< hands message `slot` of the peer to channel `peer`; never waits (eager)
  receive,     ///< waits until message `slot` has arrived
  exchange,    ///< the next `slot` ops (send and receive) are posted together; each message starts
               ///< when both ends have posted it, the op ends when all have arrived
  collective,  ///< enters collective `slot` of this device; ends for all members together
  record,      ///< marks event `slot` as happened
  wait,        ///< waits until event `slot` has happened
};

/// One step of a stream. Small and flat: programs of 10^7 ops fit in memory.
struct Op {
  OpKind kind = OpKind::compute;
  Phase phase = Phase::forward;
  Traffic traffic = Traffic::pipeline_forward;
  /// send: which outgoing channel of the device (StageProgram::targets); compute and collective: the operation's label
  std::uint8_t peer = 0;
  std::uint16_t chunk = 0;  ///< model chunk of this device (interleaved schedules)
  std::uint16_t work =
      0;  ///< compute: row of the device's work table; send: row of the message size table
  std::uint32_t microbatch = 0;
  std::uint32_t slot =
      0;  ///< see OpKind; compute: the layer of the operation, counted from 1 in its chunk; 0: of none
};
static_assert(sizeof(Op) == 16);

/// How often each op of programs happens that stand for a longer iteration: as many times more as a steady state was left out for ops of
/// the microbatches from `begin` to before `end`, and once for all others.
struct Repeats {
  std::uint32_t begin = 0, end = 0;
  int left_out = 0;

  int of(const Op& op) const {
    return op.microbatch >= begin && op.microbatch < end ? 1 + left_out : 1;
  }
};

/// The operation of a pass that an op plays; whole_pass for all others.
constexpr Label label_of(const Op& op) {
  const bool has_label = op.kind == OpKind::compute || op.kind == OpKind::collective;
  return has_label ? static_cast<Label>(op.peer) : Label::whole_pass;
}
/// The layer of that operation, counted from 1 in its chunk; 0: of none.
constexpr std::uint32_t layer_of(const Op& op) {
  if (label_of(op) == Label::whole_pass) return 0;
  return op.kind == OpKind::compute ? op.slot : op.work;
}

/// The ops of one pipeline stage, stream by stream. All replicas of the stage play the same
/// program.
struct StageProgram {
  EnumArray<Stream, std::vector<Op>> streams;
  std::vector<StageId> targets;  ///< outgoing channels: the stages this one sends to
  std::uint32_t num_slots = 0;   ///< messages this stage receives in one iteration
  std::uint32_t num_events = 0;
  std::uint32_t num_collectives = 0;
};

/// One row of a device's work table.
struct Work {
  Seconds duration{};
  PassTimes parts{};       ///< in this order inside the span
  LaunchFloor floor = {};  ///< where its launches may bind
};

/// A first-in first-out path for messages between two devices: the next message starts when the
/// previous has arrived.
struct Channel {
  DeviceId from, to;
  bool in_node = true;
  BytesPerSecond bandwidth{};  ///< in_node: nothing else shares it
  PathId up, down;             ///< otherwise: a flow over these links
  Seconds latency{};
};

/// One flow of a collective: bytes over shared links.
struct CollectiveFlow {
  PathId up, down;
  Bytes bytes{};
};

/// One process group's collective. It starts when every member has entered and ends when its
/// uncontended part (in the node) and all its flows have ended; flows start after the latency.
struct Collective {
  std::vector<DeviceId> members;
  Seconds fixed{};    ///< uncontended duration (in-node part)
  Seconds latency{};  ///< paid before the flows start
  std::vector<CollectiveFlow> flows;
  Bytes traffic_bytes{};  ///< sent by all members together
  Bytes payload{};        ///< what one rank of a ring holds
  /// Where tokens are not spread evenly (ProgramSet::fullness): of `fixed`, what goes in proportion to them, as all bytes of flows do; and
  /// where its draws begin, 0 where it has none.
  Seconds varying{};
  std::uint32_t draws = 0;
};

/// One simulated device: the program it plays and its tables.
struct ProgramDevice {
  std::uint32_t program = 0;
  std::uint32_t work_base = 0;      ///< first row of its work table in ProgramSet::work
  std::vector<ChannelId> channels;  ///< by Op::peer of send
  /// By Op::slot of collective; nothing where its program enters none.
  std::vector<std::optional<CollectiveId>> collectives;

  /// The collective of a slot that its program enters.
  CollectiveId entered(std::uint32_t slot) const {
    WT_EXPECT(slot < collectives.size() && collectives[slot]);
    return *collectives[slot];
  }
};

/// Rows of the work table that differ from microbatch to microbatch, since tokens are not spread evenly over experts.
struct DrawnRows {
  /// By row: where the rows begin that stand for it, those of all microbatches of a layer one after the other; 0: it stands for itself.
  std::vector<std::uint32_t> first;
  std::uint32_t microbatches = 0;
  /// Where a layer and microbatch have their place. Layers count from 1; 0, of none, is the first.
  std::uint32_t place(std::uint32_t layer, std::uint32_t microbatch) const {
    return (layer > 0 ? layer - 1 : 0) * microbatches + microbatch;
  }
};

/// Everything the engine plays: programs, who plays which, what things cost.
struct ProgramSet {
  std::vector<StageProgram> programs;
  std::vector<ProgramDevice> devices;
  std::vector<Work> work;
  std::vector<Bytes>
      message_bytes;  ///< by Op::work of send: bytes of one device's share of the message
  std::vector<Channel> channels;
  std::vector<Collective> collectives;
  DrawnRows drawn_rows;
  /// Tokens of the fullest rank of an exchange over their mean over all draws, in the places of DrawnRows. The first one is of no draw.
  std::vector<double> fullness;

  /// What a compute op of the device takes.
  const Work& work_of(const ProgramDevice& device, const Op& op) const {
    return work[row_of(device.work_base, op)];
  }
  /// Its row, of a device whose table begins there.
  std::uint32_t row_of(std::uint32_t work_base, const Op& op) const {
    const std::uint32_t row = work_base + op.work;
    const std::uint32_t first = row < drawn_rows.first.size() ? drawn_rows.first[row] : 0;
    return first == 0 ? row : first + drawn_rows.place(layer_of(op), op.microbatch);
  }
  double fullness_of(const Collective& collective, const Op& op) const {
    if (collective.draws == 0) return 1;
    return fullness[collective.draws + drawn_rows.place(layer_of(op), op.microbatch)];
  }
};

}  // namespace windtunnel
