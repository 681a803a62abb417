#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "schedule/op_writer.hpp"
#include "schedule/pipeline_program.hpp"
#include "schedule/reduction_writer.hpp"

namespace windtunnel::detail {

/// Writes passes operation by operation.
class OperationWriter {
 public:
  /// `crosses_nodes`: collectives of tensor groups are played on the network.
  OperationWriter(const StageOperations& chunks, bool splits_backward, bool crosses_nodes);

  std::uint32_t num_slots() const { return places_.num_slots(); }
  void pass(const Step& step, OpWriter& writer);
  /// A pass that reduces its chunk's gradients: each bucket on the data stream when its share of the layers has ended, the last when the pass has.
  void pass_with_buckets(const Step& step, int buckets, const ReductionWriter& reductions,
                         OpWriter& writer);
  /// A forward pass and the backward pass of the other chunk, at once.
  void block(std::span<const Step> block, OpWriter& writer);

 private:
  /// The operations of `direction` in a chunk; `step_of` says which pass each of them belongs to, `before` hears of each before it is written.
  template <class StepOf, class Before>
  void play(int chunk, Direction direction, const StepOf& step_of, const Before& before,
            OpWriter& writer);
  Direction direction_of(const Step& step) const;
  const PlacedPass& placed(int chunk, Direction direction);
  Op op_of(const Step& step, int chunk, Direction direction, const PlacedOperation& placed) const;

  const StageOperations* chunks_;
  bool splits_backward_, crosses_nodes_;
  OperationPlaces places_;
  std::vector<std::array<std::optional<PlacedPass>, num_directions>> placed_;  ///< by chunk
};

}  // namespace windtunnel::detail
