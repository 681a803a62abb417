#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/id.hpp"
#include "layout/layout.hpp"
#include "plan/chunk_map.hpp"
#include "plan/compression.hpp"
#include "plan/schedule.hpp"
#include "platform/software_profile.hpp"
#include "workload/transformer.hpp"

namespace windtunnel {

enum class Optimizer { adam, sgd };

/// What is trained, and how: the `training` block of a scenario.
struct Training {
  int global_batch = 0;  ///< samples
  int micro_batch = 0;   ///< samples
  Precision precision = Precision::fp16;
  GradientType gradient_type = GradientType::fp32;
  Optimizer optimizer = Optimizer::adam;
  Recompute recompute = Recompute::none;
  Attention attention = Attention::standard;
};

/// Which index of a rank counts fastest, which slowest: ranks are numbered through the nodes' GPUs in order, so what counts fastest
/// is kept inside a node. Megatron-LM's order is tensor, data, pipeline (initialize_model_parallel in
/// megatron/mpu/initialize.py, v2.5; its later use-tp-pp-dp-mapping: tensor, pipeline, data).
using RankOrder = std::array<AxisName, 3>;
/// Megatron-LM's.
inline constexpr RankOrder default_rank_order{AxisName::tensor, AxisName::data, AxisName::pipeline};
/// Every order of the three.
std::vector<RankOrder> rank_orders();

/// How the work is divided: the `parallel` block of a scenario.
struct Parallel {
  int tensor = 1, pipeline = 1, data = 1;
  SchedulePtr schedule = default_schedule();
  int virtual_pipeline = 1;
  PipelineSend pipeline_send = PipelineSend::eager;
  bool sequence_parallel = false;
  int zero_stage = 0;
  bool overlap_gradient_reduce = false;
  std::string gradient_ring =
      "flat";             ///< how replicas reduce gradients: a name of cost/collectives.def
  int zero_prefetch = 1;  ///< ZeRO 3: layers gathered ahead of the one that computes
  /// ZeRO 3: replicas that share one copy of parameters, gradients and optimizer states out among them; neighbours on the data axis.
  /// 0: all of them.
  int zero_group = 0;
  RankOrder rank_order = default_rank_order;
  std::vector<int> stage_layers;  ///< by stage; empty: evenly
  std::vector<int> placement;     ///< rank -> node * gpus_per_node + gpu; empty: in order
  std::map<std::string, int, std::less<>> settings;  ///< by name: keys that one pass alone reads

  /// 0 where it is not given.
  int setting(std::string_view name) const {
    const auto found = settings.find(name);
    return found == settings.end() ? 0 : found->second;
  }
};

/// A plan that may or may not be legal: what the `training` and `parallel` blocks of a scenario say.
struct PlanChoice {
  Training training;
  Parallel parallel;
};

/// The ranks of a plan on their axes.
Layout layout_of(const Parallel& parallel);

/// Which part of the model each chunk of each stage is.
ChunkMap chunk_map_of(const Parallel& parallel);

/// Replicas among which states are sharded, where ZeRO shards any.
inline int sharding_ways(const Parallel& parallel) {
  return parallel.zero_group > 0 ? parallel.zero_group : parallel.data;
}

/// The GPU that plays a rank.
struct GpuPlace {
  NodeId node;
  int gpu = 0;
};

/// One simulated device: the ranks of a tensor group that live in one node.
struct PlanDevice {
  int replica = 0;  ///< data-parallel index
  StageId stage;
  int group_node = 0;  ///< which of the tensor group's nodes
  NodeId node;
  std::vector<RankId> ranks;
  std::vector<int> tensor_indices;  ///< of the ranks, in the tensor group
  std::vector<int> gpus;            ///< of the ranks, in the node
  int num_gpus() const { return static_cast<int>(gpus.size()); }
};

/// Who holds what and where: the parallel layout made concrete. Always consistent (make_plan
/// refuses the rest).
struct Plan {
  Training training;
  Parallel parallel;
  Compression compression;
  int num_nodes = 0;
  int gpus_per_node = 0;
  int microbatches = 0;           ///< per pipeline and iteration, m = B / (d b)
  std::vector<int> stage_layers;  ///< layers by stage; sums to the model's layers
  std::vector<GpuPlace> places;   ///< by rank
  int nodes_per_tensor_group = 1;
  std::vector<PlanDevice>
      devices;  ///< (replica * pipeline + stage) * nodes_per_tensor_group + its node of the group

  int num_ranks() const { return parallel.tensor * parallel.pipeline * parallel.data; }
  DeviceId device(int replica, StageId stage, int group_node) const {
    return DeviceId{
        (static_cast<std::size_t>(replica) * static_cast<std::size_t>(parallel.pipeline) +
         stage.index()) *
            static_cast<std::size_t>(nodes_per_tensor_group) +
        static_cast<std::size_t>(group_node)};
  }
  ChunkMap chunk_map() const { return chunk_map_of(parallel); }
  bool has_embedding(StageId stage) const { return chunk_map().first().stage == stage; }
  bool has_head(StageId stage) const { return chunk_map().last().stage == stage; }
  HeadPlace head_place() const;
  /// Layers of each of the stage's model chunks.
  int chunk_layers(StageId stage) const {
    return stage_layers[stage.index()] / parallel.virtual_pipeline;
  }
};

/// Whether two stages hold a copy of a tied word embedding, and add up its gradients.
bool synchronises_embedding(const Transformer& model, const Plan& plan);

/// What the plan asks of its schedule.
OrderShape order_shape(const Plan& plan);
/// The order in which `stage` runs its passes. O(1) a step.
std::vector<Step> schedule_order(const Plan& plan, StageId stage);

/// Why a plan cannot be made, with the numbers: which key of the scenario, what is wrong, what to
/// write.
struct PlanRejection {
  std::string key;  ///< JSON pointer of the key to blame
  std::string message;
  std::string suggestion;
  std::vector<std::string> spoils = {};  ///< pointers of what may be meant otherwise; empty: `key`
};

/// What the cluster offers to the plan.
struct ClusterShape {
  std::vector<int> gpus_by_node;  ///< of the nodes in use, in order
  bool nodes_given = false;       ///< the scenario named the number of nodes
};

/// Lays the plan out: the GPU of each rank, layers per stage, devices. Rejects products that do not match the cluster, layers that do not divide,
/// batches that do not multiply out; one rejection for one mistake (plan/plan_check.hpp).
std::variant<Plan, std::vector<PlanRejection>> make_plan(const Transformer& model,
                                                         const Training& training,
                                                         const Parallel& parallel,
                                                         const ClusterShape& cluster,
                                                         const SoftwareProfile& software);

/// The layers of each stage when the file does not say: evenly; or, when layers do not divide and
/// the stack counts embedding and head as a layer each, (L + 2) / p with one fewer where the
/// embedding is, and one fewer where the head is. Empty when neither divides.
std::vector<int> default_stage_layers(int layers, const Parallel& parallel,
                                      bool embedding_and_head_as_layers);

}  // namespace windtunnel
