#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "operations/held.hpp"
#include "operations/label.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// How a collective of a pass overlaps its kernels.
enum class Overlap : std::uint8_t {
  none,  ///< in line with the kernels
  beside_next,  ///< on the tensor stream, beside the kernel that follows it; what comes then waits for both
  prefetched,  ///< on the data stream, some layers ahead of the first kernel of the layer, which waits for it
  trailing,  ///< on the data stream, behind the last kernel of the layer; the end of the pass waits for it
  beside_other_pass,  ///< of two passes at once: on the tensor stream; the next operation of its own pass waits for it
};

/// Which of the passes that run at once an operation belongs to (operations/overlapped.hpp).
enum class PassOfBlock : std::uint8_t { only, forward, input_gradient, weight_gradient };
inline constexpr int num_passes_of_block = 4;

/// What something takes where tokens are not spread evenly over experts. The fullness f of a draw is the tokens of the fullest rank over
/// their mean over all draws:  t = at_mean + varying (f - 1)
struct TimeByFullness {
  Seconds at_mean{}, varying{};
  Seconds at(double fullness) const { return at_mean + varying * (fullness - 1); }
};

/// One step of a pass: a run of kernels, or a collective.
struct Operation {
  Label label = Label::whole_pass;
  Overlap overlap = Overlap::none;
  Seconds
      time{};  ///< alone; zero for a collective whose time only the engine can tell (across nodes)
  Seconds products{};  ///< kernels: how much of `time` is products with weight matrices
  Seconds launch{};    ///< CPU time to launch it
  Flops flops{};       ///< of the model's products, as publications count them
  /// Where tokens are not spread evenly: it takes the longer of the two, `time` being that of the mean draw. Exchanges have one inside
  /// nodes and one between them, kernels one.
  std::array<TimeByFullness, 2> by_fullness{};
  PassOfBlock of = PassOfBlock::only;
  /// Counted from 1 in its chunk, where the layers of a pass stand here one after the other; 0: what PassOperations says.
  std::uint16_t of_layer = 0;
  /// Of the layers of its chunk, how many have it: all else here is a mean over the layers, a collective so often its time alone.
  double share = 1;
  /// Collectives: what each rank of the group has in the end, or has to give away, as it is sent.
  Bytes payload{};
  Held held;
};

Operation kernel(Label label, Seconds time);
/// Whether its time depends on how tokens are spread in a draw.
bool varies(const Operation& operation);
Seconds time_of(const Operation& operation, double fullness);
/// Makes it take so many times as long, in every draw.
void slow_down(Operation& operation, double factor);
/// Its time is set when the group's network is known.
Operation collective(Label label, Bytes payload, Overlap overlap = Overlap::none);

/// What one pass of one microbatch through a model chunk does, in order. Layers are alike, so their operations stand here once.
struct PassOperations {
  std::vector<Operation> before, layer, after;
  int layers = 0;
  int prefetch =
      0;  ///< layers that prefetched collectives are ahead of the one that computes, at least 1
  /// Iota: what a second of prefetched and trailing collectives costs the kernels beside them.
  double interference = 0;

  std::size_t size() const { return before.size() + layer.size() + after.size(); }
  /// By position in `before`, `layer`, `after` taken together.
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

/// One operation in its place among all operations of a pass. Those of a stream follow one another.
struct PlacedOperation {
  static constexpr int nothing = -1;
  std::uint16_t number = 0;         ///< in PassOperations
  std::uint16_t layer = 0;          ///< counted from 1; 0: of none
  Stream stream = Stream::compute;  ///< compute, tensor or data
  std::array<int, 2> after{nothing,
                           nothing};  ///< earlier ones, on other streams, whose ends it waits for
  /// Of kernels: whether collectives run beside them, or around them where nothing is prefetched.
  bool beside_gather = false, beside_scatter = false;
};

/// All operations of a pass, layer by layer.
struct PlacedPass {
  std::vector<PlacedOperation> operations;
  int awaited_at_end = PlacedOperation::nothing;  ///< by the kernels that follow the pass
};

/// The operations of `pass` in the order in which the streams begin them.
///
/// Prefetch: layer l + prefetch is asked for when the kernels of layer l - 1 have ended; collectives of a stream follow one another, so
/// what the layers before leave to scatter goes first. Source: _prefetch_handle in torch/distributed/fsdp/_runtime_utils.py, PyTorch
/// 2.1.
PlacedPass place_operations(const PassOperations& pass);

/// How long it takes: `time`; for kernels of a layer beside collectives, slowed by these in proportion:
///   layer + iota min(collectives, layer);  where nothing is prefetched  layer + (max(1, iota) - 1) collectives
/// Memory traffic is what interferes, so `collectives` is their time with nobody else on the network (own form, fitted to
/// llm-foundry-fsdp: docs/model.md, section 6).
Seconds duration_of(const PassOperations& pass, const PlacedOperation& operation);
/// In a draw of that fullness. What its company costs is that of the mean draw.
Seconds duration_of(const PassOperations& pass, const PlacedOperation& operation, double fullness);

/// The fullness of the draw that an operation of a pass meets.
using FullnessOf = std::function<double(const PlacedOperation&)>;

/// When the last operation ends, where each takes what `duration` says and nobody else is on the network.
Seconds time_alone(const PlacedPass& pass,
                   const std::function<Seconds(const PlacedOperation&)>& duration);

/// What the stream of the kernels does while the pass is played alone, by line: Seconds by Part.
using PassTimes = std::array<Seconds, num_parts>;
PassTimes times_alone(const PassOperations& pass);
/// The same where layers meet different draws. `placed`: place_operations(pass).
PassTimes times_alone(const PassOperations& pass, const PlacedPass& placed,
                      const FullnessOf& fullness);
/// Of passes that run at once, by PassOfBlock: each with the waits for its own collectives. Together they last as long as the block.
using BlockTimes = std::array<PassTimes, num_passes_of_block>;
BlockTimes times_of_block(const PassOperations& block);
BlockTimes times_of_block(const PassOperations& block, const PlacedPass& placed,
                          const FullnessOf& fullness);

/// How many ranks a group has.
struct GroupSizes {
  int tensor = 1, context = 1, sharding = 1, copies = 1, experts = 1, expert_tensor = 1,
      expert_data = 1;
  int of(GroupKind group) const;
};
/// Bytes that one rank sends in collectives of `traffic`: (n-1)/n of the payload in a group of n, twice for an all-reduce.
Bytes sent_bytes(const PassOperations& pass, Traffic traffic, const GroupSizes& sizes);

/// FLOPs of a pass: those that the model needs, and with them those of what is computed again.
struct FlopCounts {
  Flops model{}, hardware{};
};
FlopCounts count_flops(const PassOperations& pass);

/// Parameters of a chunk on one rank, and of how many of them this rank keeps the weights, gradients and optimizer states.
struct ParameterCounts {
  double all = 0, weights = 0, gradients = 0, optimizer = 0;
  double experts = 0;  ///< of all of them, those of experts
};
ParameterCounts count_parameters(const PassOperations& forward);

/// Of this kind, kept by all operations of a pass.
Bytes kept_by_pass(const PassOperations& pass, Kept kind);
/// Of this kind, kept by the operations of one layer.
Bytes kept_by_layer(const PassOperations& pass, Kept kind);
/// Of this kind, kept by what comes before and after the layers.
Bytes kept_by_edges(const PassOperations& pass, Kept kind);

}  // namespace windtunnel
