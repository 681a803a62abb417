#include "plan/plan.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

using Rejections = std::vector<PlanRejection>;

std::string text(int number) { return std::to_string(number); }

/// "8 * 4 * 3 = 96", the product of the parallel block.
std::string product_text(const Parallel& parallel) {
  return "tensor * pipeline * data = " + text(parallel.tensor) + " * " + text(parallel.pipeline) +
         " * " + text(parallel.data) + " = " +
         text(parallel.tensor * parallel.pipeline * parallel.data);
}

/// CONTRACT: with `nodes` given, a product above nodes * GPUs is an error; a plan smaller than one
/// node uses that node's first GPUs; otherwise the two must be equal.
void check_product(const Parallel& parallel, const ClusterShape& cluster, Rejections& rejections) {
  const int ranks = parallel.tensor * parallel.pipeline * parallel.data;
  const int gpus = std::accumulate(cluster.gpus_by_node.begin(), cluster.gpus_by_node.end(), 0);
  const bool part_of_one_node = cluster.gpus_by_node.size() == 1 && ranks < gpus;
  if (ranks == gpus || part_of_one_node) return;
  std::string suggestion;
  const int model_ranks = parallel.tensor * parallel.pipeline;
  if (gpus % model_ranks == 0) {
    suggestion = "data " + text(gpus / model_ranks) + " would use them all";
  } else if (ranks > gpus) {
    suggestion = "use more nodes or smaller tensor, pipeline or data";
  } else {
    suggestion = "the product must equal the GPUs of the nodes, or be less than one node";
  }
  rejections.push_back({"/parallel",
                        product_text(parallel) + ", but " +
                            text(static_cast<int>(cluster.gpus_by_node.size())) + " nodes have " +
                            text(gpus) + " GPUs",
                        suggestion});
}

void check_batch(const Training& training, const Parallel& parallel, Rejections& rejections) {
  const int per_round = parallel.data * training.micro_batch;
  if (training.global_batch % per_round == 0) return;
  const int below = training.global_batch / per_round * per_round;
  rejections.push_back(
      {"/training/global_batch",
       "global_batch " + text(training.global_batch) + " is no multiple of data * micro_batch = " +
           text(parallel.data) + " * " + text(training.micro_batch) + " = " + text(per_round),
       "nearest: " + (below > 0 ? text(below) + " or " : "") + text(below + per_round)});
}

void check_model(const Transformer& model, const Parallel& parallel, Rejections& rejections) {
  const int t = parallel.tensor;
  const auto must_divide = [&](int amount, const char* what) {
    if (amount % t != 0) {
      rejections.push_back(
          {"/parallel/tensor",
           "tensor " + text(t) + " does not divide the model's " + text(amount) + " " + what,
           "use a divisor of " + text(amount)});
    }
  };
  must_divide(model.heads, "heads");
  if (model.kv_heads != model.heads && model.kv_heads % t != 0 && t % model.kv_heads != 0)
    must_divide(model.kv_heads, "key/value heads");
  must_divide(model.ffn_hidden, "MLP columns (ffn_hidden)");
}

void check_stage_layers(const Transformer& model, const Parallel& parallel,
                        Rejections& rejections) {
  const auto& stages = parallel.stage_layers;
  if (stages.empty()) return;
  if (static_cast<int>(stages.size()) != parallel.pipeline) {
    rejections.push_back({"/parallel/stage_layers",
                          "stage_layers names " + text(static_cast<int>(stages.size())) +
                              " stages, but pipeline is " + text(parallel.pipeline),
                          "one number a stage"});
  }
  const int sum = std::accumulate(stages.begin(), stages.end(), 0);
  if (sum != model.layers) {
    rejections.push_back({"/parallel/stage_layers",
                          "stage_layers adds up to " + text(sum) + " layers, but the model has " +
                              text(model.layers),
                          "the sum must be " + text(model.layers)});
  }
}

std::string divisors_near(int layers, int stages) {
  int below = stages, above = stages;
  while (below > 1 && layers % below != 0) --below;
  while (above < layers && layers % above != 0) ++above;
  return text(below) + (above <= layers && layers % above == 0 ? " or " + text(above) : "");
}

/// A schedule that the user wrote is for so many stages, microbatches and chunks, and no others.
void check_orders(const OrderShape& written, const OrderShape& planned, Rejections& rejections) {
  const auto must_agree = [&](int in_file, int in_plan, const std::string& what,
                              const std::string& key) {
    if (in_file == in_plan) return;
    rejections.push_back({"/parallel/schedule",
                          "the schedule file is for " + text(in_file) + " " + what + ", but " +
                              key + " is " + text(in_plan),
                          {}});
  };
  must_agree(written.stages, planned.stages, "stages", "pipeline");
  must_agree(written.microbatches, planned.microbatches, "microbatches",
             "global_batch / (data * micro_batch)");
  must_agree(written.chunks, planned.chunks, "chunks", "virtual_pipeline");
}

/// A plan nobody would run, and nobody could play: each pass of each stage is an op of its program.
void check_size(const Training& training, const Parallel& parallel, Rejections& rejections) {
  constexpr double most_passes = 20e6;  // forward passes of one pipeline; about 1 GB of program
  const double microbatches = static_cast<double>(training.global_batch) /
                              (static_cast<double>(parallel.data) * training.micro_batch);
  const double passes = microbatches * parallel.pipeline * parallel.virtual_pipeline;
  if (passes <= most_passes) return;
  rejections.push_back(
      {"/training/global_batch",
       std::to_string(static_cast<long long>(microbatches)) + " microbatches through " +
           text(parallel.pipeline) +
           " stages are more than the 20 million passes of a pipeline that can be played",
       "use a smaller global_batch, or a larger micro_batch or data"});
}

/// What interleaving, sequence parallelism and sharding ask of a plan.
void check_schedule(const Plan& plan, const Training& training, const Parallel& parallel,
                    Rejections& rejections) {
  const int v = parallel.virtual_pipeline, p = parallel.pipeline;
  const bool interleaves = parallel.schedule == Schedule::interleaved_1f1b && v > 1;
  if (v > 1 && parallel.schedule != Schedule::interleaved_1f1b &&
      parallel.schedule != Schedule::custom) {
    rejections.push_back({"/parallel/virtual_pipeline",
                          "virtual_pipeline " + text(v) +
                              " needs the interleaved schedule, but schedule is " +
                              name_of(parallel.schedule),
                          "write \"schedule\": \"interleaved_1f1b\", or virtual_pipeline 1"});
  }
  if (interleaves && p == 1) {
    rejections.push_back({"/parallel/virtual_pipeline",
                          "interleaving " + text(v) + " chunks needs more than one stage",
                          "use virtual_pipeline 1"});
  }
  const int microbatches = training.global_batch / (parallel.data * training.micro_batch);
  if (interleaves && microbatches % p != 0) {
    rejections.push_back({"/training/global_batch",
                          "the interleaved schedule needs microbatches in multiples of pipeline: " +
                              text(microbatches) + " microbatches on " + text(p) + " stages",
                          "use a global_batch in multiples of data * micro_batch * pipeline = " +
                              text(parallel.data * training.micro_batch * p)});
  }
  if (parallel.orders) check_orders(parallel.orders->shape, {p, microbatches, v}, rejections);
  for (const int layers : plan.stage_layers) {
    if (layers % v != 0) {
      rejections.push_back(
          {"/parallel/virtual_pipeline",
           text(layers) + " layers of a stage do not divide into " + text(v) + " chunks",
           "use a divisor of " + text(layers)});
      break;
    }
  }
  if (parallel.zero_stage == 3 && p > 1) {
    rejections.push_back({"/parallel/zero_stage",
                          "zero_stage 3 shards whole models: pipeline must be 1, but is " + text(p),
                          "use zero_stage 1 with pipelines"});
  }
}

/// The GPU of each rank: the GPUs of the nodes in order.
std::vector<GpuPlace> places_in_order(const ClusterShape& cluster, int num_ranks) {
  std::vector<GpuPlace> places;
  places.reserve(static_cast<std::size_t>(num_ranks));
  for (std::size_t node = 0; node < cluster.gpus_by_node.size(); ++node)
    for (int gpu = 0; gpu < cluster.gpus_by_node[node]; ++gpu)
      if (static_cast<int>(places.size()) < num_ranks) places.push_back({NodeId{node}, gpu});
  WT_ENSURE(static_cast<int>(places.size()) == num_ranks);
  return places;
}

RankId rank_of(const Parallel& parallel, int stage, int replica, int tensor_index) {
  const int t = parallel.tensor, p = parallel.pipeline, d = parallel.data;
  switch (parallel.rank_order) {
    case RankOrder::tensor_data_pipeline:
      return RankId{(stage * d + replica) * t + tensor_index};
    case RankOrder::tensor_pipeline_data:
      return RankId{(replica * p + stage) * t + tensor_index};
    case RankOrder::data_tensor_pipeline:
      return RankId{(stage * t + tensor_index) * d + replica};
    case RankOrder::data_pipeline_tensor:
      return RankId{(tensor_index * p + stage) * d + replica};
    case RankOrder::pipeline_tensor_data:
      return RankId{(replica * t + tensor_index) * p + stage};
    case RankOrder::pipeline_data_tensor:
      return RankId{(tensor_index * d + replica) * p + stage};
  }
  WT_UNREACHABLE();
}

/// Splits a tensor group into its ranks of each node, nodes in the order of their first rank.
std::vector<PlanDevice> devices_of_group(const Plan& plan, int replica, int stage) {
  std::vector<PlanDevice> devices;
  for (int i = 0; i < plan.parallel.tensor; ++i) {
    const RankId rank = rank_of(plan.parallel, stage, replica, i);
    const GpuPlace place = plan.places[rank.index()];
    auto device = std::find_if(devices.begin(), devices.end(),
                               [&](const PlanDevice& known) { return known.node == place.node; });
    if (device == devices.end()) {
      const int part = static_cast<int>(devices.size());
      device =
          devices.insert(devices.end(), {replica, StageId{stage}, part, place.node, {}, {}, {}});
    }
    device->ranks.push_back(rank);
    device->tensor_indices.push_back(i);
    device->gpus.push_back(place.gpu);
  }
  return devices;
}

/// Fills `devices`; a group that is cut unevenly by node borders is rejected.
void add_devices(Plan& plan, Rejections& rejections) {
  for (int replica = 0; replica < plan.parallel.data; ++replica) {
    for (int stage = 0; stage < plan.parallel.pipeline; ++stage) {
      const std::vector<PlanDevice> group = devices_of_group(plan, replica, stage);
      if (plan.devices.empty()) plan.parts = static_cast<int>(group.size());
      bool even = static_cast<int>(group.size()) == plan.parts;
      for (const PlanDevice& device : group)
        even = even && device.num_gpus() * plan.parts == plan.parallel.tensor;
      if (!even) {
        rejections.push_back(
            {"/parallel/tensor",
             "the tensor group of stage " + text(stage) + ", replica " + text(replica) +
                 " is cut unevenly by the borders of the nodes (" + text(plan.parallel.tensor) +
                 " ranks on " + text(static_cast<int>(group.size())) + " nodes)",
             "use a tensor that divides the GPUs of a node, or is a multiple of them"});
        return;
      }
      plan.devices.insert(plan.devices.end(), group.begin(), group.end());
    }
  }
}

}  // namespace

const char* name_of(Schedule schedule) {
  switch (schedule) {
    case Schedule::gpipe:
      return "gpipe";
    case Schedule::one_f_one_b:
      return "1f1b";
    case Schedule::interleaved_1f1b:
      return "interleaved_1f1b";
    case Schedule::zero_bubble_h1:
      return "zero_bubble_h1";
    case Schedule::custom:
      return "custom";
  }
  return "?";
}

const char* name_of(RankOrder order) {
  switch (order) {
    case RankOrder::tensor_data_pipeline:
      return "tensor-data-pipeline";
    case RankOrder::tensor_pipeline_data:
      return "tensor-pipeline-data";
    case RankOrder::data_tensor_pipeline:
      return "data-tensor-pipeline";
    case RankOrder::data_pipeline_tensor:
      return "data-pipeline-tensor";
    case RankOrder::pipeline_tensor_data:
      return "pipeline-tensor-data";
    case RankOrder::pipeline_data_tensor:
      return "pipeline-data-tensor";
  }
  return "?";
}

std::vector<int> default_stage_layers(int layers, int stages, bool embedding_and_head_as_layers) {
  if (layers % stages == 0)
    return std::vector<int>(static_cast<std::size_t>(stages), layers / stages);
  if (embedding_and_head_as_layers && stages > 1 && (layers + 2) % stages == 0) {
    std::vector<int> result(static_cast<std::size_t>(stages), (layers + 2) / stages);
    --result.front();
    --result.back();
    return result;
  }
  return {};
}

std::variant<Plan, std::vector<PlanRejection>> make_plan(const Transformer& model,
                                                         const Training& training,
                                                         const Parallel& parallel,
                                                         const ClusterShape& cluster,
                                                         const SoftwareProfile& software) {
  WT_EXPECT(training.global_batch > 0 && training.micro_batch > 0);
  WT_EXPECT(parallel.tensor > 0 && parallel.pipeline > 0 && parallel.data > 0);
  Rejections rejections;
  check_product(parallel, cluster, rejections);
  check_batch(training, parallel, rejections);
  check_size(training, parallel, rejections);
  check_model(model, parallel, rejections);
  check_stage_layers(model, parallel, rejections);
  Plan plan;
  plan.training = training;
  plan.parallel = parallel;
  plan.stage_layers = parallel.stage_layers;
  if (plan.stage_layers.empty()) {
    plan.stage_layers = default_stage_layers(model.layers, parallel.pipeline,
                                             software.embedding_and_head_as_layers);
    if (plan.stage_layers.empty()) {
      rejections.push_back(
          {"/parallel/pipeline",
           text(model.layers) + " layers do not divide by pipeline " + text(parallel.pipeline),
           "use pipeline " + divisors_near(model.layers, parallel.pipeline) +
               ", or say stage_layers"});
    }
  }
  check_schedule(plan, training, parallel, rejections);
  if (!rejections.empty()) return rejections;

  plan.num_nodes = static_cast<int>(cluster.gpus_by_node.size());
  plan.gpus_per_node = cluster.gpus_by_node.front();
  plan.microbatches = training.global_batch / (parallel.data * training.micro_batch);
  if (parallel.placement.empty()) {
    plan.places = places_in_order(cluster, plan.num_ranks());
  } else {
    WT_EXPECT(static_cast<int>(parallel.placement.size()) == plan.num_ranks());
    for (const int gpu : parallel.placement)
      plan.places.push_back({NodeId{gpu / plan.gpus_per_node}, gpu % plan.gpus_per_node});
  }
  add_devices(plan, rejections);
  if (!rejections.empty()) return rejections;
  return plan;
}

}  // namespace windtunnel
