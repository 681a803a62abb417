#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/id.hpp"
#include "plan/chunk_map.hpp"

namespace windtunnel {

/// Purpose of an op: its name in the timeline, and its line in the breakdown when others wait for
/// it.
enum class Phase : std::uint8_t {
  forward,
  backward,         ///< input and weight gradients (or input gradients alone, where they are split)
  weight_gradient,  ///< the weight half of a split backward
  optimizer,
  activation,        ///< forward message between stages
  gradient,          ///< backward message between stages
  tensor_reduce,     ///< tensor-parallel collective across nodes
  context_exchange,  ///< keys and values, or heads, within a context group
  gradient_reduce,   ///< data-parallel gradient collective
  embedding_sync,    ///< tied embedding gradients, first with last stage
  parameter_gather,  ///< sharded parameters
  encode,
  decode,
  overhead,         ///< once an iteration
  expert_exchange,  ///< tokens to their experts and back
};
const char* name_of(Phase phase);

/// One pass of one microbatch through one model chunk of a stage.
struct Step {
  Phase phase = Phase::forward;  ///< forward, backward, or weight_gradient
  std::uint16_t chunk = 0;
  std::uint32_t microbatch = 0;
  /// Runs together with the pass before it: all messages of such a block arrive before it begins and leave when it has ended, and a
  /// forward and a backward pass of one block share the GPU, the exchanges of each overlapped with the kernels of the other.
  bool joined = false;
  bool operator==(const Step&) const = default;
};

/// One past the last pass of the block that begins at `first`.
std::size_t end_of_block(const std::vector<Step>& order, std::size_t first);

/// "F3", "B0", "W2"; with a chunk that is not 0, "F3.1".
std::string token_of(const Step& step);

/// Shape that a schedule is asked to fill.
struct OrderShape {
  int stages = 1;
  int microbatches = 1;
  int chunks = 1;  ///< model chunks a device holds
  ChunkPath chunk_path = ChunkPath::loop;
  bool alternates_one_group = false;  ///< SoftwareProfile::alternates_one_group
  ChunkMap chunk_map() const { return {stages, chunks, chunk_path}; }
  bool operator==(const OrderShape&) const = default;
};

/// A whole schedule: the passes of each stage, in the order in which its device runs them.
struct ScheduleOrders {
  std::string name;
  OrderShape shape;
  std::vector<std::vector<Step>> of_stage;
};

/// Number of model chunks that a device may hold.
enum class ChunksPerDevice {
  one,
  two,
  any,
  any_in_groups,  ///< with several chunks, microbatches go through them in groups, one microbatch per stage
};

/// Waiting rule for the exchanges of a schedule: the stack's own, or that of the published implementation.
enum class ScheduleSends {
  as_stack,  ///< as the stack's loop for 1F1B and interleaving waits (SoftwareProfile::pipeline_send)
  eager,     ///< messages leave by themselves, unless the plan says otherwise
  only_eager,  ///< it never finishes when both ends of a message wait for each other
};

/// Distance, in microbatches, over which passes depend on earlier ones in the middle of an iteration (timeline/steady_state.hpp).
struct ScheduleReach {
  int step = 1;  ///< the order of passes repeats after this many
  int lag = 1;   ///< a pass depends on nothing further back than this
};

/// The order in which stages run their passes, and its properties. The named schedules are a table:
/// schedules.def lists them, one file of schedules/ defines each (docs/extending.md).
struct Schedule {
  std::string name;  ///< as scenario files write it
  /// The passes of one stage, in the order in which its device runs them.
  std::function<std::vector<Step>(const OrderShape& shape, StageId stage)> order;
  bool splits_backward = false;  ///< weight gradients are separate passes
  ChunksPerDevice chunks = ChunksPerDevice::one;
  ChunkPath chunk_path = ChunkPath::loop;  ///< which part of the model each chunk is
  /// Plans that name no schedule get this one. One schedule for a single chunk says so, and one for several chunks.
  bool is_default = false;
  /// If the order has a steady state: how far its passes reach. A long run is then folded; otherwise it is simulated in full.
  std::function<ScheduleReach(const OrderShape& shape)> reach = {};
  /// Equal stages idle only while the pipeline fills and drains: (p - 1) / (v m + p - 1) of the time.
  bool idles_only_at_the_ends = false;
  /// Megatron-LM's arguments besides the number of chunks; none if it has no such schedule.
  std::optional<std::vector<std::string>> megatron_arguments = {};
  /// A schedule file has `as_stack` or `eager`; whether it finishes with blocking pairs is computed (schedule/schedule_check.hpp).
  ScheduleSends sends = ScheduleSends::as_stack;
  int fewest_microbatches_of_stage = 0;  ///< a plan has at least this many microbatches per stage
  /// Forward and backward passes of a block hide each other's exchanges of tokens (Step::joined).
  bool overlaps_passes = false;
  bool is_deepspeeds = false;  ///< DeepSpeed's pipeline engine runs this order, and no other
  bool is_what_if = true;      ///< `explain` tries it on plans with another schedule
  /// The passes of all stages as the user wrote them, for one shape only; null for a named schedule.
  std::shared_ptr<const ScheduleOrders> written = {};

  int fewest_chunks() const { return chunks == ChunksPerDevice::two ? 2 : 1; }
  bool takes(int chunks_per_device) const {
    if (chunks == ChunksPerDevice::two) return chunks_per_device == 2;
    return chunks_per_device == 1 || chunks != ChunksPerDevice::one;
  }
  /// Microbatches and stages are halves of either way through the model.
  bool is_bidirectional() const { return chunk_path == ChunkPath::bidirectional; }
  /// The microbatches of a plan must be a multiple of this.
  int microbatch_group(int stages, int chunks_per_device) const {
    if (is_bidirectional()) return 2;
    return chunks_per_device > 1 && chunks == ChunksPerDevice::any_in_groups ? stages : 1;
  }
  /// The fewest microbatches that a plan may have.
  int fewest_microbatches(int stages, int chunks_per_device) const {
    const int group = microbatch_group(stages, chunks_per_device);
    return std::max(group, fewest_microbatches_of_stage * stages);
  }
  /// Why it has no order for this number of stages and microbatches; empty: it has one.
  std::string misfit(const OrderShape& shape) const;
};

/// A named schedule, or one that the user wrote; never null in a plan. Equal names are the same object.
using SchedulePtr = std::shared_ptr<const Schedule>;

/// The table.
const std::vector<SchedulePtr>& named_schedules();
/// Null when the table has no such name.
SchedulePtr schedule_named(std::string_view name);
/// The schedule of a plan that names none.
SchedulePtr default_schedule(int chunks_per_device = 1);
/// The table with the names under which files write them.
std::vector<std::pair<std::string, SchedulePtr>> schedules_by_name();
/// "gpipe, 1f1b, interleaved_1f1b": all names, for messages and help texts.
std::string schedule_name_list();
/// "interleaved_1f1b or zero_bubble_v": the names of the schedules that can have this many chunks per device.
std::string names_of_chunked_schedules(int chunks_per_device = 2);

/// A schedule that the user wrote, named "custom". It must be legal.
SchedulePtr written_schedule(ScheduleOrders orders);

/// All stages of a schedule.
ScheduleOrders schedule_orders(const Schedule& schedule, const OrderShape& shape);

}  // namespace windtunnel
