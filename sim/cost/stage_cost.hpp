#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "cost/expert_exchange.hpp"
#include "cost/kernel_cost.hpp"
#include "passes/pass.hpp"
#include "plan/plan.hpp"
#include "platform/platform.hpp"

namespace windtunnel {

/// The parts of a pass that its operations have, in the order in which their times are added up.
inline constexpr std::array parts_of_pass{Part::compute,   Part::tensor_comm,  Part::expert_comm,
                                          Part::data_comm, Part::context_comm, Part::codec};

/// One pass of a model chunk over one microbatch on one rank.
struct PassCost {
  PassTimes
      parts{};  ///< kernels, the codecs of collectives inside the pass, and collectives that nothing hides
  LaunchFloor floor;  ///< CPU time to launch it all
  Seconds
      duration{};  ///< of the span: with_launch_floor() of all of the above, and reading a microbatch
  Seconds of(Part part) const { return parts[part]; }
  Seconds floor_share() const {
    Seconds rest = duration;
    for (const Part part : parts_of_pass) rest -= parts[part];
    return rest;
  }
};

/// Cost of one model chunk of a stage: the time of each pass over one microbatch, alone, on one kind of node.
struct ChunkCost {
  PassCost forward, backward;
  PassCost input_gradient, weight_gradient;  ///< the backward pass where the schedule splits it
  /// Passes that run at once: a forward pass overlapped with a backward pass of the other chunk, and the halves of a backward pass
  /// overlapped with the other chunk's forward pass. The three of a block add up to its time.
  PassCost overlapped_forward, overlapped_input_gradient, overlapped_weight_gradient;
  std::shared_ptr<const ChunkOperations> operations;  ///< the operations of the same passes
  ParameterCounts parameters;                         ///< one rank's
  /// The reductions of the chunk's gradients, if passes make them: chunk_reductions(), with the time of each on an idle network where they
  /// overlap with kernels.
  std::vector<Operation> reductions;
};

/// Cost of one pipeline stage on one kind of node, all of it for one rank: what stage_cost() derives from model, plan, stack and node
/// without simulating anything. Times are those on an idle network. lower/stage_cost_table.hpp turns it into the work table that the
/// engine simulates; a search (search/lower_bound.cpp) bounds the iteration time with it.
struct StageCost {
  std::vector<ChunkCost> chunks;
  std::vector<Operation> end;  ///< what it does when its passes have ended: end_of_iteration()
  Bytes gradients{};           ///< one rank's gradients, as reduced, without those of experts
  Bytes embedding_share{};  ///< the word embedding's share of `gradients`, where the stage holds it
  Bytes tensor_payload{};   ///< of one tensor all-reduce, as sent
  double exchanged = 0;     ///< GroupSizes::exchanged
  double taken_by_collectives = 0;  ///< share of the multiprocessors, of kernels that overlap
};

StageOperations operations_of(const StageCost& cost);

/// True if passes of one block run at once (Schedule::overlaps_passes). Limit: not if tensor groups span nodes, whose collectives are
/// the engine's; they then run one after the other.
bool overlaps_passes(const Plan& plan);

/// A group of replicas, as the collectives of ZeRO 3 see it.
struct DataGroup {
  std::vector<int> gpus_in_node;  ///< its members in the fullest node
  int members = 1;
  int nodes = 1;
  double ranks_of_tensor_group = 1;  ///< that are members of the same group
};

/// Inputs of a stage's cost.
struct StageCostInputs {
  const Transformer* model = nullptr;
  const Plan* plan = nullptr;
  const SoftwareProfile* software = nullptr;
  const NodeType* node = nullptr;
  const Fabric* fabric = nullptr;
  StageId stage;
  std::vector<int> tensor_gpus;  ///< the tensor group's GPUs in this node
  DataGroup data;  ///< the replicas that shard states, or reduce gradients during passes
  std::map<AxisName, DataGroup>
      along;                 ///< the ranks along each of the axes of replicas that cut_axes() names
  DataGroup copies;          ///< the ranks that hold the same shard, where there are several groups
  ExpertGroup experts = {};  ///< that exchange tokens, one of those that cut an expert
  DataGroup expert_copies = {};  ///< that hold the same experts, where their states are shared out
  /// Tokens of the fullest rank over those of the mean one; nothing: their mean over all draws.
  std::optional<double> expert_load = {};
  double seen_share = 1;  ///< of the chunk's layers (ChunkRole)
};

/// The stack's treatment of experts on this kind of node; without a node, on any.
const SoftwareProfile::Experts& experts_of(const StageCostInputs& in);

/// One message between stages, an activation or its gradient, as one rank sends it: all of it, or its share where the stack scatters
/// messages over the tensor group (_communicate in megatron/p2p_communication.py, Megatron-LM v2.5, splits the tensor with
/// scatter_gather_tensors_in_pipeline, and gathers it on receipt with gather_split_1d_tensor).
Bytes stage_message_size(const Transformer& model, const Plan& plan,
                         const SoftwareProfile& software, Label message);

/// The part of the model that a chunk is. The last has the layers of multi-token prediction too.
ChunkRole chunk_role(const Transformer& model, const Plan& plan, const ChunkPlace& place);
/// All chunks of a stage as if they were one.
ChunkRole stage_role(const Transformer& model, const Plan& plan, StageId stage);
/// The matrix weights of a stage's layers on one rank, without experts and routers.
double stage_matrix_parameters(const Transformer& model, const Plan& plan, StageId stage);

/// Shape of the layers of a plan as one rank executes them.
LayerShape layer_shape(const Plan& plan, const SoftwareProfile& software);

/// Operations of a chunk on one rank: those of the model (model_operations()), rewritten by all passes (operation_passes()), each
/// collective with its time on an idle network. Without a node there are no times, and no payload is
/// compressed: memory held by operations and message sizes depend on neither.
ChunkOperations chunk_operations(const StageCostInputs& inputs, const ChunkRole& chunk);

/// Expected factor by which passes take longer than on the mean node because they wait for the slowest of equal nodes. Of N nodes, r of
/// which hold a pipeline, with e(n) the largest of n standard normal values, and all passes of a microbatch in units of one stage's:
///   exp(s ((m - 1) e(N) + (1 + f) e(N/r)/sqrt(r)) / (m + f)),   s = NodeType::pass_spread, f = (p - 1)/v
/// The first and the last microbatch cross all nodes of a pipeline, between which differences average out; all others follow one another at
/// the pace of the slowest. [own] Limits: stages are alike but for their nodes; noise of the scenario adds to it.
double slowest_node_factor(const NodeType& node, const Plan& plan);

/// Extra host time to launch a tensor collective because the job is on several nodes (`LaunchFloor::collective_per_rank`).
Seconds launch_delay(const Plan& plan, const SoftwareProfile& software);

/// Costs of the stage's chunks: sums over chunk_operations(). A pass takes what its operations
/// take alone, or longer where the CPU cannot launch them as fast.
///  - Tensor collectives in the node take the platform's time for them, times the stack's and the node's slowdown; those of groups
///    across nodes, which the engine simulates as flows, what their ring takes with all NICs of the node to itself.
///  - Gathers and scatters over the replicas: a ring in the node, or the node's share of the ring through its NICs,
///    whichever is longer.
StageCost stage_cost(const StageCostInputs& inputs);

}  // namespace windtunnel
