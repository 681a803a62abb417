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

/// Number of times that each op happens in programs that stand for a longer iteration: once, plus the periods of steady state left out for
/// ops of the microbatches in [begin, end); once for all others.
struct Repeats {
  std::uint32_t begin = 0, end = 0;
  int left_out = 0;

  int of(const Op& op) const {
    return op.microbatch >= begin && op.microbatch < end ? 1 + left_out : 1;
  }
};

/// The operation of a pass that an op stands for; whole_pass for all others.
constexpr Label label_of(const Op& op) {
  const bool has_label = op.kind == OpKind::compute || op.kind == OpKind::collective;
  return has_label ? static_cast<Label>(op.peer) : Label::whole_pass;
}
/// The layer of that operation, counted from 1 in its chunk; 0: of none.
constexpr std::uint32_t layer_of(const Op& op) {
  if (label_of(op) == Label::whole_pass) return 0;
  return op.kind == OpKind::compute ? op.slot : op.work;
}

/// The ops of one pipeline stage, stream by stream, in the order in which each stream runs them. All replicas of the stage run the same
/// program. A stream does one op after the other; streams of a device meet only in events, collectives and messages.
struct StageProgram {
  EnumArray<Stream, std::vector<Op>> streams;
  std::vector<StageId> targets;  ///< outgoing channels: the stages this one sends to
  std::uint32_t num_slots = 0;   ///< messages this stage receives in one iteration
  std::uint32_t num_events = 0;
  std::uint32_t num_collectives = 0;
};

/// One row of a device's work table: a compute op that refers to it occupies its stream for `duration`. Times are those of the work on an
/// idle node and network, as lower/stage_cost_table.cpp writes them; noise, and launches that come too late, make an op longer.
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
  /// If tokens are not spread evenly (ProgramSet::fullness): the part of `fixed` that is proportional to them, as all bytes of flows are,
  /// and the index of its first draw; 0: it has none.
  Seconds varying{};
  std::uint32_t draws = 0;
};

/// One simulated device: its program and its tables.
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
  /// Index of a layer and microbatch. Layers count from 1; 0, no layer, counts as the first.
  std::uint32_t place(std::uint32_t layer, std::uint32_t microbatch) const {
    return (layer > 0 ? layer - 1 : 0) * microbatches + microbatch;
  }
};

/// A whole iteration as the engine simulates it: one program per pipeline stage, the devices that run them, and the tables of durations,
/// message sizes, channels and collectives that programs refer to by index. Programs hold no times, so all replicas of a stage share one.
/// 1F1B on two stages with three microbatches, eager sends (F, B: passes; f, b: messages; > send, < receive):
///
///   stage 0:  F0 >f0 F1 >f1 <b0 B0 F2 >f2 <b1 B1 <b2 B2 optimizer overhead
///   stage 1:  <f0 F0 B0 >b0 <f1 F1 B1 >b1 <f2 F2 B2 >b2 optimizer overhead
///
/// build_programs() (lower/program_builder.hpp) makes it from a plan, and simulate_programs() (engine/program_simulator.hpp) runs it on a Network. The critical
/// path, the traces and the traffic of links are derived from it and from the events of that simulation.
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

  /// The row of a compute op of the device.
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
