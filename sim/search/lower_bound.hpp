#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/engine.hpp"
#include "lower/program_builder.hpp"
#include "plan/plan.hpp"
#include "schedule/pass_groups.hpp"
#include "schedule/pipeline_program.hpp"

namespace windtunnel {

/// A time that the simulated iteration of the plan never goes below, without playing it. Every message and collective is
/// taken as if it had its links to itself, and of each device only what no order of events can avoid:
///
///   passes end   P(s) = max( fill(s) + m sum_c (F_c + B_c) + E(s),  P(s+1) + x_b + B_0 )
///   fill(s)           = sum_{i<s} ( F_0(i) + x_f(i) )
///   iteration         = max over devices of  P, gradient reduction, embedding synchronisation, optimizer, gather, overhead
///
/// F, B: passes of a stage's chunk c with their collectives across nodes; x: a message to the neighbour; m microbatches.
/// fill: nothing reaches stage s before one microbatch has passed all stages before it. The second term of P: the last
/// backward pass of a stage is followed by one on each stage before it (drain). E: with pipeline_send "blocking_pairs" the exchanges between
/// a stage's passes (StageExchanges); nothing where messages leave by themselves. A collective begins when the last member
/// comes and takes at least max(in-node part, latency + the longest that one link needs for all its flows); collectives of the
/// same kind that share links end when each link has carried all of theirs. Where the
/// backward pass is split (zero-bubble H1 and V) the drain begins behind the last input gradient. Schedules from files have no
/// drain term: their last passes may be any.
///
/// Admissible because a program is a partial order of fixed durations: with none of them longer, nothing ends later; and
/// contention only lengthens. On the heap engine flows never share links, nor do they here. Checked against the engine on a grid of plans, models and platforms (lower_bound_test.cpp).
Seconds lower_bound(const BuildInputs& inputs);

/// A lower bound that looks at the kernels of one replica alone, in the same formulas, with no message, no collective between nodes and
/// nothing of the end but the optimizer and the overhead: a hundredth of the work of lower_bound() where a plan has many devices.
Seconds kernel_bound(const BuildInputs& inputs);

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
  /// With its collectives across nodes. A pass takes what it takes alone, or what it takes beside another, whichever is less.
  Seconds pass(DeviceId device, int chunk, Direction direction) const;
  Seconds forward(DeviceId device, int chunk) const {
    return pass(device, chunk, Direction::forward);
  }
  /// A backward pass, or its input gradients where it is split.
  Seconds backward(DeviceId device, int chunk) const {
    return pass(device, chunk, splits_ ? Direction::input_gradient : Direction::backward);
  }
  /// Nothing where the backward pass is not split.
  Seconds weight_gradient(DeviceId device, int chunk) const {
    return splits_ ? pass(device, chunk, Direction::weight_gradient) : Seconds{0};
  }
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
  /// Of messages of which some are compressed: the fewest bytes that one of them has.
  Bytes bytes(const StageMessage& message) const;
  Seconds collective_in(DeviceId device, std::uint32_t slot) const;
  /// A pass that is played operation by operation, alone on the network, with each collective at its least.
  Seconds operations(DeviceId device, int chunk, Direction direction) const;
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

/// The exchanges between the passes of a stage whose messages wait for both ends (PipelineSend::blocking_pairs): no pass runs during one, and
/// none of its messages is under way before the device enters it.
class StageExchanges {
 public:
  /// Of those up to the last backward pass in the stage's `order`. None where messages leave by themselves, or go other ways than round
  /// and round.
  StageExchanges(const Plan& plan, const std::vector<Step>& order, StageId stage);

  /// The least that all of them take, for the stage's device of one part of one replica: what the passes before have to send, or what those
  /// behind wait for, whichever takes longer.
  Seconds least(const LeastTimes& times, int replica, int part) const;

 private:
  /// Messages between stages: activations, gradients or both.
  struct Messages {
    bool activation = false, gradient = false;
    std::size_t index() const { return (activation ? 1U : 0U) + (gradient ? 2U : 0U); }
  };
  static constexpr std::size_t kinds = 4;  ///< of Messages

  void count(const std::vector<Step>& order);
  Messages sent(PassGroup group) const;
  Messages received(PassGroup group) const;

  const Plan& plan_;
  int stage_;
  /// By what is sent, then what is received.
  std::array<std::array<int, kinds>, kinds> exchanges_{};
  std::array<bool, kinds> is_sent_{}, is_received_{};  ///< in any of them
};

}  // namespace windtunnel
