#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/enum_array.hpp"
#include "layout/layout.hpp"
#include "operations/held.hpp"
#include "operations/label.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// The level of detail whose items are simulated as separate events.
enum class Detail {
  pass,   ///< passes, and what inside them meets others on the network
  layer,  ///< every operation of every pass, layer by layer, whether it meets others or not
};

/// How a collective of a pass overlaps with its kernels.
enum class Overlap : std::uint8_t {
  none,  ///< in line with the kernels
  with_next,  ///< on the tensor stream, overlapped with the next kernel; the operation after that waits for both
  prefetched,  ///< on the data stream, some layers ahead; the first kernel of its layer waits for it
  trailing,  ///< on the data stream, behind the last kernel of the layer; the end of the pass waits for it
  with_other_pass,  ///< where two passes run at once: on the tensor stream; the next operation of its own pass waits for it
};

/// The pass that an operation belongs to, in a block of passes that run at once (operations/overlapped.hpp).
enum class PassOfBlock : std::uint8_t { only, forward, input_gradient, weight_gradient };

/// Time of something where tokens are not spread evenly over experts. The fullness f of a draw is the tokens of the fullest rank over
/// their mean over all draws:  t = at_mean + varying (f - 1)
struct TimeByFullness {
  Seconds at_mean{}, varying{};
  Seconds at(double fullness) const { return at_mean + varying * (fullness - 1); }
};

/// FLOPs of products. They differ in what is recomputed, and in attention, where a causal mask hides the half of the scores that lies above
/// the diagonal:
///   model     once, scores of all pairs of tokens: as publications count (Korthikanti et al. 2022, eq. 7)
///   causal    once, without the hidden half
///   hardware  with recomputation, scores of all pairs (their eq. 8 and 9; Narayanan et al. 2021, eq. 3)
///   executed  what kernels do: standard attention the whole square; flash attention the visible half, and its scores again backward
struct FlopCounts {
  Flops model{}, causal{}, hardware{}, executed{};
  FlopCounts& operator+=(const FlopCounts& other);
  friend FlopCounts operator+(FlopCounts a, const FlopCounts& b) { return a += b; }
  friend FlopCounts operator*(const FlopCounts& a, double times) {
    return {a.model * times, a.causal * times, a.hardware * times, a.executed * times};
  }
  friend FlopCounts operator-(const FlopCounts& a, const FlopCounts& b) { return a + b * -1; }
};

/// One step of a pass: a run of kernels, or a collective.
struct Operation {
  Label label = Label::whole_pass;
  Overlap overlap = Overlap::none;
  Seconds time{};  ///< with nothing else running, a collective alone on the network
  /// Kernels: the share of `time` that is products with weight matrices. Collectives: the product that they overlap with, piece by piece.
  Seconds products{};
  /// Kernels: the products that read what is gathered for them, and those that give what is scattered behind them.
  Seconds gathered_products{}, scattered_products{};
  Seconds launch{};    ///< CPU time to launch it
  FlopCounts flops{};  ///< of the mean rank where tokens are not spread evenly
  /// Durations if tokens are not spread evenly: the operation takes the longer of the two, and `time` is that of the mean draw. Exchanges
  /// have one inside nodes and one between them, kernels one.
  std::array<TimeByFullness, 2> by_fullness{};
  PassOfBlock of = PassOfBlock::only;
  /// The layer, counted from 1 in its chunk, in a list that holds the layers one after the other; 0 in other lists.
  std::uint16_t of_layer = 0;
  std::uint16_t calls =
      1;  ///< collectives: how many it is made of, one after the other, each with its latency
  /// The share of its chunk's layers that have this operation. All other numbers are means over the layers.
  double share = 1;
  double exposed =
      1;  ///< exchanges: the share of its time that no other microbatch's kernels hide; `time` is that alone
  AxisName axis = AxisName::context;  ///< collectives along an axis of replicas (GroupKind::axis)
  /// Collectives: the bytes that each rank ends up with or starts from, as they are sent.
  Bytes payload{};
  Held held;
};

Operation kernel(Label label, Seconds time);
/// True if its time depends on how tokens are spread in a draw.
bool varies(const Operation& operation);
Seconds time_of(const Operation& operation, double fullness);
/// Makes it take so many times as long, in every draw.
void slow_down(Operation& operation, double factor);
/// Turns an operation of all layers into one of a `share` of them: all its numbers, except for the memory it holds, are means over the
/// layers.
void scale(Operation& operation, double share);
/// Its time is set when the group's network is known.
Operation collective(Label label, Bytes payload, Overlap overlap = Overlap::none);

/// Time of the CPU to launch some work, while the GPU may run ahead of it or wait: with_launch_floor() (cost/kernel_cost.hpp). It launches
/// on while the GPU waits for others, so that a pass that waits long does not wait for launches as well.
struct LaunchFloor {
  Seconds launch{};
  /// Time the GPU spends on other work meanwhile, and the part of it that is kernels.
  Seconds elsewhere{}, kernels_elsewhere{};
  double sharpness = 1;
};

/// The operations of one pass of one microbatch through a model chunk, in order. All layers are alike, so theirs are listed once.
struct PassOperations {
  std::vector<Operation> before, layer, after;
  int layers = 0;
  int prefetch = 0;  ///< how many layers ahead collectives are prefetched, at least 1
  double taken = 0;  ///< share of the multiprocessors that a collective overlapped with kernels has
  LaunchFloor floor = {};  ///< of all of it

  std::size_t size() const { return before.size() + layer.size() + after.size(); }
  /// The operation at a position in `before`, `layer` and `after`, counted through.
  const Operation& operator[](std::size_t number) const;
  /// Kernels of one layer.
  Seconds layer_kernels() const;
  /// Calls `change` with each operation, those of a layer once.
  template <class Change>
  void for_each(const Change& change) {
    for (std::vector<Operation>* list : {&before, &layer, &after})
      for (Operation& operation : *list) change(operation);
  }
};

/// One operation in the order of its pass. Operations of the same stream run one after the other.
struct PlacedOperation {
  static constexpr int nothing = -1;
  std::uint16_t number = 0;         ///< in PassOperations
  std::uint16_t layer = 0;          ///< counted from 1; 0: of none
  Stream stream = Stream::compute;  ///< compute, tensor or data
  std::array<int, 2> after{
      nothing, nothing};  ///< earlier operations on other streams, for whose ends it waits
  /// Kernels: whether collectives overlap with them, or before and after them where nothing is prefetched.
  bool overlaps_gather = false, overlaps_scatter = false;
};

/// All operations of a pass, layer by layer.
struct PlacedPass {
  std::vector<PlacedOperation> operations;
  int awaited_at_end =
      PlacedOperation::nothing;  ///< the kernels that follow the pass wait for this one
};

/// The operations of `pass` in the order in which the streams begin them.
///
/// Prefetch: the gather of layer l + prefetch is issued when the kernels of layer l - 1 have ended. Collectives of a stream run one after
/// the other, so the scatters of earlier layers go first. Source: _prefetch_handle in torch/distributed/fsdp/_runtime_utils.py, PyTorch
/// 2.1.
PlacedPass place_operations(const PassOperations& pass);

/// By how much longer kernels take that run at 1 - taken of their rate while collectives overlap with them:
///   taken min(collectives, kernels / (1 - taken))
/// `collectives` is their time on an idle network (docs/model.md, section 6).
Seconds overlap_slowdown(Seconds collectives, Seconds kernels, double taken);
/// Duration of an operation: its `time`, longer for kernels of a layer that overlap with collectives.
Seconds duration_of(const PassOperations& pass, const PlacedOperation& operation);
/// In a draw of that fullness. What its company costs is that of the mean draw.
Seconds duration_of(const PassOperations& pass, const PlacedOperation& operation, double fullness);

/// The fullness of the draw that an operation of a pass meets.
using FullnessOf = std::function<double(const PlacedOperation&)>;

/// The time until the last operation ends, on an idle network, if each takes what `duration` says.
Seconds time_alone(const PlacedPass& pass,
                   const std::function<Seconds(const PlacedOperation&)>& duration);

/// Time of the kernel stream while the pass runs alone, by Part.
using PassTimes = EnumArray<Part, Seconds>;
PassTimes times_alone(const PassOperations& pass);
/// The same where layers meet different draws. `placed`: place_operations(pass).
PassTimes times_alone(const PassOperations& pass, const PlacedPass& placed,
                      const FullnessOf& fullness);
/// Times of passes that run at once, by PassOfBlock, each with the waits for its own collectives. They add up to the duration of the block.
using BlockTimes = EnumArray<PassOfBlock, PassTimes>;
BlockTimes times_of_block(const PassOperations& block);
BlockTimes times_of_block(const PassOperations& block, const PlacedPass& placed,
                          const FullnessOf& fullness);

/// Number of ranks in each kind of group.
struct GroupSizes {
  EnumArray<GroupKind, int> members{};  ///< of the kinds of groups that passes have, but for axes
  Layout replicas{{}};                  ///< replica_layout() of the plan
  double exchanged = 0;  ///< what a rank sends in an exchange of tokens, over its payload
  int of(const Operation& operation) const;
};
/// Bytes that one rank sends in collectives of `traffic`: (n-1)/n of the payload in a group of n, twice for an all-reduce; in exchanges of
/// tokens GroupSizes::exchanged of it.
Bytes sent_bytes(const PassOperations& pass, Traffic traffic, const GroupSizes& sizes);

/// FLOPs of a pass: what is recomputed is no work of the model.
FlopCounts count_flops(const PassOperations& pass);

/// Parameters of a chunk on one rank, and how many of them have their weights, gradients and optimizer states there.
struct ParameterCounts {
  double all = 0, weights = 0, gradients = 0, optimizer = 0;
  double experts = 0,
         trained_experts = 0;  ///< how many of `all` and trained() are parameters of experts
  double frozen = 0, frozen_weights = 0;  ///< how many of `all` and `weights` are not trained
  /// The part of `optimizer`, and of `frozen_weights`, that belongs to weight matrices of layers.
  double matrices = 0, frozen_matrices = 0;
  double trained() const { return all - frozen; }
  ParameterCounts& operator+=(const ParameterCounts& other);
};
ParameterCounts count_parameters(const PassOperations& forward);

}  // namespace windtunnel
