#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "passes/pass.hpp"
#include "plan/plan.hpp"
#include "schedule/program.hpp"

namespace windtunnel {

/// Rows of a device's work table for each of its model chunks, the first ones by Direction.
enum class ChunkRow : std::uint16_t {
  forward,         ///< one microbatch through the chunk
  backward,        ///< one microbatch back, recomputation included
  input_gradient,  ///< where the schedule splits the backward pass: recomputation and input gradients
  weight_gradient,  ///< and the weight gradients
  last_piece,       ///< one of gradient_buckets equal pieces of a pass that reduces its gradients
  overlapped_forward,  ///< one microbatch through the chunk while another goes back through the other chunk
  overlapped_input_gradient,  ///< and the halves of a backward pass, overlapped with a forward one through the other chunk
  overlapped_weight_gradient,
  reduction_slowdown,  ///< what a piece takes longer while the one before it is reduced
};
inline constexpr int num_chunk_rows = 9;
/// Row of a pass that is one op, and of one that overlaps with a pass of the other direction (never a whole backward pass).
constexpr ChunkRow row_of_pass(Direction direction) { return static_cast<ChunkRow>(direction); }
constexpr ChunkRow overlapped_row(Direction direction) {
  if (direction == Direction::forward) return ChunkRow::overlapped_forward;
  return direction == Direction::input_gradient ? ChunkRow::overlapped_input_gradient
                                                : ChunkRow::overlapped_weight_gradient;
}
static_assert(row_of_pass(Direction::weight_gradient) == ChunkRow::weight_gradient);

/// Rows behind those of the chunks; those of codecs are there in programs that compress.
enum class DeviceRow : std::uint16_t {
  optimizer,
  overhead,
  encode_activation,  ///< a message to the next stage
  decode_activation,
  encode_gradient,  ///< a message to the stage before
  decode_gradient,
  encode_gathered,  ///< parameters of a sharded step
  decode_gathered,
  encode_gathered_experts,
  decode_gathered_experts,
};
inline constexpr int num_device_rows = 10, num_kernel_rows = 2;

/// Stands for a chunk where what all chunks have is reduced together, after the last pass.
inline constexpr int at_the_end = -1;
/// Gradients that are reduced together: of all chunks at the end, or a bucket of one chunk's; those of experts on their own.
struct Reduction {
  int chunk = at_the_end;
  bool of_experts = false;

  /// Its place among all of a device, those of the end first.
  constexpr int index() const { return 2 * (chunk + 1) + (of_experts ? 1 : 0); }
};
/// The chunks whose gradients are reduced on their own, or `at_the_end` alone.
std::vector<int> reduced_chunks(const Plan& plan);

/// Rows behind those of the device: what the codec of a reduction costs.
enum class ReductionRow : std::uint16_t {
  encode,
  encode_second,  ///< between the two collectives of a codec in two parts
  decode,
};
inline constexpr int num_reduction_rows = 3;

/// Position in the work table of a device with `chunks` chunks.
constexpr std::uint16_t row_of(ChunkRow row, int chunk) {
  return static_cast<std::uint16_t>(chunk * num_chunk_rows + static_cast<int>(row));
}
constexpr std::uint16_t row_of(DeviceRow row, int chunks) {
  return static_cast<std::uint16_t>(chunks * num_chunk_rows + static_cast<int>(row));
}
constexpr std::uint16_t row_of(ReductionRow row, Reduction of, int chunks) {
  return static_cast<std::uint16_t>(chunks * num_chunk_rows + num_device_rows +
                                    of.index() * num_reduction_rows + static_cast<int>(row));
}

/// Length of the work table of a device with `chunks` chunks, but for the rows of operations.
constexpr std::uint32_t num_work_rows(int chunks, bool compresses) {
  return compresses ? row_of(ReductionRow::encode, {chunks}, chunks)
                    : row_of(DeviceRow::encode_activation, chunks);
}
/// True for rows of work that a device does once, after its passes: optimizer, overhead, and the codec of its collectives.
constexpr bool is_after_passes(std::uint16_t row, int chunks) {
  return (row >= row_of(DeviceRow::optimizer, chunks) &&
          row < row_of(DeviceRow::encode_activation, chunks)) ||
         (row >= row_of(DeviceRow::encode_gathered, chunks) &&
          row < row_of(ReductionRow::encode, {0}, chunks));
}

/// Positions in each device's list of collectives: the device's, then those of its reductions.
enum class CollectiveSlot : std::uint32_t {
  embedding_sync,
  parameter_gather,
  expert_parameter_gather,
};
enum class ReductionSlot : std::uint32_t {
  first,
  second,  ///< of a codec in two parts
  shards,  ///< of what the first leaves, over the sharding groups
};
constexpr std::uint32_t slot_of(CollectiveSlot slot) { return static_cast<std::uint32_t>(slot); }
constexpr std::uint32_t slot_of(ReductionSlot slot, Reduction of) {
  constexpr std::uint32_t of_device = 3, of_reduction = 3;
  return of_device + of_reduction * static_cast<std::uint32_t>(of.index()) +
         static_cast<std::uint32_t>(slot);
}
/// Number of slots of collectives that a device enters after its passes; they come first.
inline constexpr std::uint32_t num_device_collectives = slot_of(ReductionSlot::first, {0});

/// Place of an operation of the end of an iteration: a collective's slot, a kernel's row.
struct EndPlace {
  Phase phase = Phase::overhead;
  std::uint32_t slot = 0;
  DeviceRow row = DeviceRow::overhead;
};
EndPlace end_place(Label label);

/// Length of the list of a device with `chunks` chunks, but for the collectives of operations.
constexpr std::uint32_t num_collective_slots(int chunks) {
  return slot_of(ReductionSlot::first, {chunks});
}
/// Places of the rows and collectives of a stage's operations, behind all others, if passes are simulated operation by operation.
class OperationPlaces {
 public:
  OperationPlaces(const StageOperations& chunks, const std::vector<Direction>& directions);

  /// Kernels have a row for each kind of company they may have (PlacedOperation).
  std::uint16_t row(int chunk, Direction direction, const PlacedOperation& operation) const;
  std::uint32_t slot(int chunk, Direction direction, std::size_t number) const;
  std::uint32_t num_rows() const;                     ///< of the whole table
  static constexpr std::uint32_t most_rows = 0xffff;  ///< Op::work names a row in 16 bits
  std::uint32_t num_slots() const;

 private:
  std::uint32_t first_row() const;
  std::uint32_t index(int chunk, Direction direction, std::size_t number) const;

  int chunks_;
  std::uint32_t companies_ = 1;  ///< rows of an operation
  std::uint32_t size_ = 0;
  std::vector<EnumArray<Direction, std::uint32_t>> first_;  ///< by chunk
};

/// True if a collective is simulated as flows over links when passes are simulated operation by operation: those of replicas, and those of
/// tensor groups across nodes.
bool is_simulated_on_network(Label label, bool tensor_crosses_nodes);

/// The direction of a step's pass.
Direction direction_of(const Step& step, bool splits_backward);
/// The directions in which a schedule runs passes. Those that overlap have no operations under schedules that run none so.
std::vector<Direction> directions_of(bool splits_backward);

/// Rows of the message size table.
enum class MessageRow : std::uint16_t {
  activation,
  gradient,
  encoded_activation,
  encoded_gradient,
  encoded_activation_second,  ///< of a codec in two parts
  encoded_gradient_second,
};
inline constexpr int num_message_rows = 6;

/// In how many parts a codec sends what it encodes, one after the other.
enum class CodecParts : std::uint8_t {
  none,  ///< nothing is compressed
  one,
  two,  ///< powersgd: P and Q
};

/// Compressed classes of a pipeline's traffic.
struct CompressedTraffic {
  CodecParts activations = CodecParts::none, gradients = CodecParts::none;
  /// The backward messages that are: by sending stage, then [chunk * microbatches + microbatch] of the sending pass.
  /// Empty: all of them.
  std::vector<std::vector<bool>> gradient_messages;
  CodecStream activation_encoder = CodecStream::compute, gradient_encoder = CodecStream::compute;
  CodecParts reduced_gradients = CodecParts::none;  ///< of this stage
  CodecParts expert_gradients = CodecParts::none;
  CodecParts gathered_parameters = CodecParts::none;
};

/// Shape of a pipeline program.
struct PipelineShape {
  PipelineSend send = PipelineSend::eager;
  int stages = 1;
  int microbatches = 1;
  int chunks = 1;  ///< model chunks a device holds
  ChunkPath chunk_path = ChunkPath::loop;
  ChunkMap chunk_map() const { return {stages, chunks, chunk_path}; }
  bool tensor_crosses_nodes = false;  ///< tensor groups do, so that passes are their operations
  bool overlaps_passes = false;       ///< forward and backward passes of a block run at once
  GradientReduction gradient_reduction = GradientReduction::none;
  /// By chunk: what a pass that reduces its gradients does with them, chunk_reductions(). Where they overlap the pass (Overlap::trailing), it
  /// is cut into `gradient_buckets` pieces, and a bucket is reduced on the data stream when its piece is done, as by
  /// Bucket.register_grad_ready in megatron/core/distributed/grad_buffer.py, Megatron-LM core_v0.4.0; one bucket a layer is own.
  std::vector<std::vector<Operation>> reductions = {};
  int gradient_buckets = 1;
  /// Operations of the stage after its passes: end_of_iteration().
  std::vector<Operation> end{kernel(Label::optimizer_step, {}),
                             kernel(Label::iteration_overhead, {})};
  CompressedTraffic compressed;
  /// By chunk: each pass is simulated as its list of operations; empty: as one op. A pass that is cut into pieces (gradient_buckets) stays
  /// in pieces, unless tensor groups cross nodes: then buckets follow its layers.
  StageOperations operations;
};

/// The backward passes in `order` behind its last forward pass, by [chunk * microbatches + microbatch]: those whose
/// messages are epilogue messages.
std::vector<bool> epilogue_passes(const std::vector<Step>& order, const OrderShape& shape);

/// The program of `stage`: its passes in `order`, block by block (Step::joined), then the operations of the end. The activation of microbatch i for chunk c arrives in slot c m + i, its gradient in
/// slot (v + c) m + i.
///  - eager: receive, compute, send; the message leaves by itself.
///  - blocking_pairs: every message is posted inside an exchange that both ends enter, as in megatron/schedules.py of Megatron-LM
///    v2.5. With one chunk, what a pass sends and what the next one receives share an exchange when they go to the same neighbour
///    (send_forward_recv_backward, send_backward_recv_forward). With several chunks they always share one, and each steady pair of
///    passes has a single exchange behind it (send_forward_backward_recv_forward_backward).
/// A compressed message is encoded behind the pass that makes it and decoded before the one that needs it. A codec in two parts
/// sends the second as a message of its own, in the slot 2 v m further on.
StageProgram make_pipeline_program(const PipelineShape& shape, const std::vector<Step>& order,
                                   StageId stage);

}  // namespace windtunnel
