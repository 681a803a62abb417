#include "plan/plan.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "core/contracts.hpp"
#include "plan/plan_check.hpp"

namespace windtunnel {
namespace {

std::string text(int number) { return std::to_string(number); }

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

/// Splits a tensor group into its ranks of each node, nodes in the order of their first rank.
std::vector<PlanDevice> devices_of_group(const Plan& plan, const Layout& layout, int replica,
                                         int stage) {
  const std::array places{Axis{AxisName::data, replica}, Axis{AxisName::pipeline, stage}};
  const int first = static_cast<int>(layout.rank(places).index());
  const int apart = layout.stride(AxisName::tensor);
  std::vector<PlanDevice> devices;
  for (int i = 0; i < plan.parallel.tensor; ++i) {
    const RankId rank{first + i * apart};
    const GpuPlace place = plan.places[rank.index()];
    auto device = std::find_if(devices.begin(), devices.end(),
                               [&](const PlanDevice& known) { return known.node == place.node; });
    if (device == devices.end()) {
      const int part = static_cast<int>(devices.size());
      device =
          devices.insert(devices.end(), {replica, StageId{stage}, part, place.node, {}, {}, {}});
      const auto most = static_cast<std::size_t>(plan.parallel.tensor - i);
      device->ranks.reserve(most);
      device->tensor_indices.reserve(most);
      device->gpus.reserve(most);
    }
    device->ranks.push_back(rank);
    device->tensor_indices.push_back(i);
    device->gpus.push_back(place.gpu);
  }
  return devices;
}

/// The GPU of each rank.
std::vector<GpuPlace> places_of(const Parallel& parallel, const ClusterShape& cluster) {
  const int num_ranks = parallel.tensor * parallel.pipeline * parallel.data;
  if (parallel.placement.empty()) return places_in_order(cluster, num_ranks);
  WT_EXPECT(static_cast<int>(parallel.placement.size()) == num_ranks);
  const int gpus_per_node = cluster.gpus_by_node.front();
  std::vector<GpuPlace> places;
  for (const int gpu : parallel.placement)
    places.push_back({NodeId{gpu / gpus_per_node}, gpu % gpus_per_node});
  return places;
}

/// Fills `devices`; a group that is cut unevenly by node borders is rejected.
void add_devices(Plan& plan, PlanFindings& findings) {
  const Layout layout = layout_of(plan.parallel);
  for (int replica = 0; replica < plan.parallel.data; ++replica) {
    for (int stage = 0; stage < plan.parallel.pipeline; ++stage) {
      std::vector<PlanDevice> group = devices_of_group(plan, layout, replica, stage);
      if (plan.devices.empty()) plan.nodes_per_tensor_group = static_cast<int>(group.size());
      bool even = static_cast<int>(group.size()) == plan.nodes_per_tensor_group;
      for (const PlanDevice& device : group)
        even = even && device.num_gpus() * plan.nodes_per_tensor_group == plan.parallel.tensor;
      if (!even) {
        findings.reject({"/parallel/tensor",
                         "the tensor group of stage " + text(stage) + ", replica " + text(replica) +
                             " is cut unevenly by the borders of the nodes (" +
                             text(plan.parallel.tensor) + " ranks on " +
                             text(static_cast<int>(group.size())) + " nodes)",
                         "use a tensor that divides the GPUs of a node, or is a multiple of them"});
        return;
      }
      std::move(group.begin(), group.end(), std::back_inserter(plan.devices));
    }
  }
}

}  // namespace

ChunkMap chunk_map_of(const Parallel& parallel) {
  return {parallel.pipeline, parallel.virtual_pipeline, parallel.schedule->chunk_path};
}

HeadPlace Plan::head_place() const {
  const ChunkMap map = chunk_map();
  return map.first().stage == map.last().stage ? HeadPlace::with_embedding
                                               : HeadPlace::on_another_stage;
}

bool synchronises_embedding(const Transformer& model, const Plan& plan) {
  return model.tied_embeddings && plan.head_place() == HeadPlace::on_another_stage;
}

OrderShape order_shape(const Plan& plan) {
  return {plan.parallel.pipeline, plan.microbatches, plan.parallel.virtual_pipeline,
          plan.parallel.schedule->chunk_path};
}

std::vector<Step> schedule_order(const Plan& plan, StageId stage) {
  const OrderShape shape = order_shape(plan);
  WT_EXPECT(shape.microbatches > 0 && static_cast<int>(stage.index()) < shape.stages);
  WT_EXPECT(plan.parallel.schedule->takes(shape.chunks));
  return plan.parallel.schedule->order(shape, stage);
}

std::vector<RankOrder> rank_orders() {
  using enum AxisName;
  return {RankOrder{tensor, data, pipeline}, {tensor, pipeline, data}, {data, tensor, pipeline},
          {data, pipeline, tensor},          {pipeline, tensor, data}, {pipeline, data, tensor}};
}

Layout layout_of(const Parallel& parallel) {
  const auto size_of = [&parallel](AxisName axis) {
    if (axis == AxisName::tensor) return parallel.tensor;
    return axis == AxisName::data ? parallel.data : parallel.pipeline;
  };
  std::vector<Axis> axes;
  for (const AxisName axis : parallel.rank_order) axes.push_back({axis, size_of(axis)});
  return Layout(std::move(axes));
}

std::vector<int> default_stage_layers(int layers, const Parallel& parallel,
                                      bool embedding_and_head_as_layers) {
  const int stages = parallel.pipeline;
  if (layers % stages == 0)
    return std::vector<int>(static_cast<std::size_t>(stages), layers / stages);
  if (embedding_and_head_as_layers && stages > 1 && (layers + 2) % stages == 0) {
    std::vector<int> result(static_cast<std::size_t>(stages), (layers + 2) / stages);
    const ChunkMap map = chunk_map_of(parallel);
    --result[map.first().stage.index()];
    --result[map.last().stage.index()];
    if (result.front() < 0) return {};  // a V of stages with one layer each has no room for both
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
  RejectionList rejections;
  const PlanInputs inputs{model, training, parallel, software};
  check_tensor(inputs, rejections);
  if (parallel.stage_layers.empty()) check_even_stages(inputs, rejections);
  check_pairs(inputs, rejections);
  check_product(inputs, cluster, rejections);
  check_work(inputs, rejections);
  if (!rejections.all().empty()) return rejections.all();

  Plan plan;
  plan.training = training;
  plan.parallel = parallel;
  plan.stage_layers =
      !parallel.stage_layers.empty()
          ? parallel.stage_layers
          : default_stage_layers(model.layers, parallel, software.embedding_and_head_as_layers);
  plan.num_nodes = static_cast<int>(cluster.gpus_by_node.size());
  plan.gpus_per_node = cluster.gpus_by_node.front();
  plan.microbatches = training.global_batch / (parallel.data * training.micro_batch);
  plan.places = places_of(parallel, cluster);
  add_devices(plan, rejections);
  if (!rejections.all().empty()) return rejections.all();
  return plan;
}

void check_borders(const Parallel& parallel, const ClusterShape& cluster, PlanFindings& findings) {
  Plan plan;
  plan.parallel = parallel;
  plan.places = places_of(parallel, cluster);
  add_devices(plan, findings);
}

}  // namespace windtunnel
