#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/engine.hpp"
#include "lower/program_builder.hpp"
#include "plan/plan.hpp"
#include "schedule/pipeline_program.hpp"

namespace windtunnel {

/// A message between two devices that have a channel.
struct StageMessage {
  DeviceId from, to;
  MessageRow size = MessageRow::activation;
};

/// The least that each part of a plan's programs takes on an engine: passes, messages and collectives that have their links to themselves.
class LeastTimes {
 public:
  /// Plan and programs must outlive it.
  LeastTimes(const Plan& plan, const BuiltPrograms& built);

  /// A row of the device's work table.
  const Work& work(DeviceId device, std::uint16_t row) const {
    Op op;
    op.work = row;
    return built_.programs.work_of(built_.programs.devices[device.index()], op);
  }
  Seconds row(DeviceId device, std::uint16_t row) const { return work(device, row).duration; }
  Seconds collective(CollectiveId id) const { return collective_times_[id.index()]; }
  /// With its collectives across nodes.
  Seconds forward(DeviceId device, int chunk) const;
  /// A backward pass, or its input gradients where it is split.
  Seconds backward(DeviceId device, int chunk) const;
  /// Nothing where the backward pass is not split.
  Seconds weight_gradient(DeviceId device, int chunk) const;
  Seconds message(const StageMessage& message) const;
  /// Of two messages that are posted at the same time, until both have arrived.
  Seconds both(const StageMessage& one, const StageMessage& other) const;
  /// By how much the one pass of a chunk that reduces the gradients of the iteration beside it may be shorter than the others.
  Seconds saved_in_pieces(DeviceId device, int chunk) const;
  /// What of the pass that reduces them must have run before its first bucket: a piece, where it is cut into pieces.
  Seconds before_buckets(DeviceId device, int chunk) const;
  /// Into how many a chunk's gradients are cut.
  double buckets(DeviceId device) const;

 private:
  const Channel& channel(const StageMessage& message) const;
  Bytes bytes(const StageMessage& message) const {
    return built_.programs.message_bytes[static_cast<std::size_t>(message.size)];
  }
  Seconds collective_in(DeviceId device, std::uint32_t slot) const;
  /// A pass that is played operation by operation, alone on the network, with each collective at its least.
  Seconds operations(DeviceId device, int chunk, Direction direction) const;
  /// A pass takes what it takes alone, or what it takes beside another, whichever is less.
  Seconds pass_row(DeviceId device, ChunkRow alone, ChunkRow overlapped, int chunk) const;
  /// A pass that makes gradients, with their reduction where every microbatch has its own: the longer of the pass, or its pieces, and the last
  /// bucket, and of what comes before the first bucket and all of them.
  Seconds with_reduction(DeviceId device, int chunk, Seconds pass) const;

  const Plan& plan_;
  const BuiltPrograms& built_;
  bool splits_;
  bool hides_exchanges_;  ///< behind kernels of another pass
  GradientReduction reduction_;
  std::vector<Seconds> collective_times_;
};

}  // namespace windtunnel
