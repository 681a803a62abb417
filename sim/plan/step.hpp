#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

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
  /// forward and a backward pass of one block share the GPU, the exchanges of each beside the kernels of the other.
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

}  // namespace windtunnel
