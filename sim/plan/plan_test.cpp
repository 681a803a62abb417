#include "plan/plan.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>

namespace windtunnel {
namespace {

Transformer small_model() {
  Transformer model;
  model.layers = 8;
  model.hidden = 64;
  model.heads = model.kv_heads = 8;
  model.ffn_hidden = 256;
  model.sequence = 16;
  model.vocab = 1000;
  return model;
}

std::variant<Plan, std::vector<PlanRejection>> plan_of(int tensor, int pipeline, int data,
                                                       std::vector<int> gpus_by_node,
                                                       std::vector<int> stage_layers = {},
                                                       int global_batch = 16) {
  Training training;
  training.global_batch = global_batch;
  training.micro_batch = 1;
  Parallel parallel;
  parallel.tensor = tensor;
  parallel.pipeline = pipeline;
  parallel.data = data;
  parallel.stage_layers = std::move(stage_layers);
  return make_plan(small_model(), training, parallel, {std::move(gpus_by_node), true}, {});
}

std::string rejection_of(const std::variant<Plan, std::vector<PlanRejection>>& result) {
  REQUIRE(std::holds_alternative<std::vector<PlanRejection>>(result));
  const auto& list = std::get<std::vector<PlanRejection>>(result);
  REQUIRE(list.size() == 1);
  return list[0].key + ": " + list[0].message + " (" + list[0].suggestion + ")";
}

TEST_CASE("ranks run over tensor first, then data, then pipeline") {
  const Plan plan = std::get<Plan>(plan_of(2, 2, 2, {4, 4}));
  // stage 0: ranks 0-3 on node 0 (replica 0: 0,1; replica 1: 2,3); stage 1 on node 1
  const PlanDevice& device = plan.devices[plan.device(1, StageId{1}, 0).index()];
  CHECK(device.replica == 1);
  CHECK(device.ranks.front() == RankId{6});
  CHECK(device.node == NodeId{1});
  CHECK(device.gpus.front() == 2);
  CHECK(device.num_gpus() == 2);
  CHECK(plan.microbatches == 8);
  CHECK(plan.nodes_per_tensor_group == 1);
}

TEST_CASE("a bucket holds as many whole layers as its values make, and at least one") {
  const auto buckets = [](double values, int tensor) {
    SoftwareProfile software;
    software.gradient_bucket = values;
    Training training;
    training.global_batch = 2;
    training.micro_batch = 1;
    Parallel parallel;
    parallel.tensor = tensor;
    parallel.data = 2;
    parallel.overlap_gradient_reduce = true;
    const auto plan = make_plan(small_model(), training, parallel, {{2 * tensor}, true}, software);
    return gradient_buckets(std::get<Plan>(plan), StageId{0});
  };
  constexpr double layer = 12 * 64 * 64;  // of eight
  CHECK(buckets(0, 1) == 8);
  CHECK(buckets(0.9 * layer, 1) == 8);
  CHECK(buckets(2.9 * layer, 1) == 4);
  CHECK(buckets(3 * layer, 1) == 3);  // 8 / 3, rounded up: three equal parts
  CHECK(buckets(3 * layer, 2) == 2);  // half of each layer on a rank
  CHECK(buckets(1e12, 1) == 1);
}

TEST_CASE("one group of microbatches is not interleaved where messages are exchanged in pairs") {
  Plan plan = std::get<Plan>(plan_of(1, 2, 1, {2}));
  plan.parallel.alternates_one_group = true;
  CHECK(order_shape(plan).alternates_one_group);
  plan.parallel.pipeline_send = PipelineSend::blocking_pairs;
  CHECK_FALSE(order_shape(plan).alternates_one_group);
}

TEST_CASE("the nodes of a replica are those that its stages are on") {
  // Four nodes of eight GPUs, 2 × 4 × 4: tensor, data, pipeline puts each stage on a node of its own.
  Training training;
  training.global_batch = 16;
  training.micro_batch = 1;
  Parallel parallel;
  parallel.tensor = 2;
  parallel.pipeline = 4;
  parallel.data = 4;
  const auto nodes = [&](int gpus_per_node = 8) {
    return nodes_of_replica(
        std::get<Plan>(make_plan(small_model(), training, parallel, {{8, 8, 8, 8}, true}, {})),
        gpus_per_node);
  };
  CHECK(parallel.ranks_of_replica() == 8);
  CHECK(nodes() == 4);
  parallel.rank_order = {AxisName::tensor, AxisName::pipeline, AxisName::data};
  CHECK(nodes() == 1);
  CHECK(nodes(4) == 2);  // trays of an NVLink domain of eight GPUs
}

TEST_CASE("fewer GPUs train as many whole replicas as they hold") {
  Parallel parallel;
  parallel.tensor = 8;
  parallel.context = 4;
  parallel.data = 4;
  CHECK(parallel.ranks_of_replica() == 32);
  CHECK(replicas_on(200, parallel) == 4);
  CHECK(replicas_on(127, parallel) == 3);
  CHECK(replicas_on(31, parallel) == 0);
  // Two replicas hold the experts between them: 64 ranks of a stage for groups of 64.
  parallel.expert = 64;
  CHECK(replicas_on(127, parallel) == 2);
  parallel.expert = 1;
  // Eight places of two replicas share a copy of the states.
  parallel.zero_group = 8;
  CHECK(replicas_on(127, parallel) == 2);
}

Plan ordered(RankOrder order) {
  Training training;
  training.global_batch = 16;
  training.micro_batch = 1;
  Parallel parallel;
  parallel.tensor = parallel.pipeline = parallel.data = 2;
  parallel.rank_order = order;
  return std::get<Plan>(make_plan(small_model(), training, parallel, {{4, 4}, true}, {}));
}

TEST_CASE("pipelines before data keeps a whole replica in one node") {
  // Ranks of (stage, replica): (0,0) 0-1, (1,0) 2-3, (0,1) 4-5, (1,1) 6-7; four a node.
  const Plan plan = ordered({AxisName::tensor, AxisName::pipeline, AxisName::data});
  for (const PlanDevice& device : plan.devices) CHECK(device.node == NodeId{device.replica});
  CHECK(plan.devices[plan.device(0, StageId{1}, 0).index()].gpus == std::vector{2, 3});
}

TEST_CASE("with data fastest a tensor group holds every second GPU") {
  // Ranks of stage 0: (tensor 0, replica 0) 0, (0, 1) 1, (1, 0) 2, (1, 1) 3.
  const Plan plan = ordered({AxisName::data, AxisName::tensor, AxisName::pipeline});
  CHECK(plan.nodes_per_tensor_group == 1);
  const PlanDevice& device = plan.devices[plan.device(1, StageId{0}, 0).index()];
  CHECK(device.gpus == std::vector{1, 3});
  CHECK(device.ranks == std::vector{RankId{1}, RankId{3}});
  CHECK(device.tensor_indices == std::vector{0, 1});
}

TEST_CASE("with tensor slowest its groups go across nodes") {
  const Plan plan = ordered({AxisName::data, AxisName::pipeline, AxisName::tensor});
  CHECK(plan.nodes_per_tensor_group == 2);
  for (const PlanDevice& device : plan.devices) CHECK(device.node == NodeId{device.group_node});
}

TEST_CASE("every rank order gives each rank to one device") {
  for (const RankOrder& order : rank_orders()) {
    std::vector<bool> seen(8, false);
    for (const PlanDevice& device : ordered(order).devices)
      for (const RankId rank : device.ranks) {
        CHECK_FALSE(seen[rank.index()]);
        seen[rank.index()] = true;
      }
    CHECK(std::count(seen.begin(), seen.end(), true) == 8);
  }
}

TEST_CASE("a tensor group across two nodes is one device a node") {
  const Plan plan = std::get<Plan>(plan_of(8, 1, 1, {4, 4}));
  CHECK(plan.nodes_per_tensor_group == 2);
  REQUIRE(plan.devices.size() == 2);
  CHECK(plan.devices[1].node == NodeId{1});
  CHECK(plan.devices[1].num_gpus() == 4);
}

TEST_CASE("a plan smaller than one node uses the node's first GPUs") {
  const Plan plan = std::get<Plan>(plan_of(2, 1, 1, {8}));
  CHECK(plan.num_ranks() == 2);
  CHECK(plan.places[1].gpu == 1);
}

TEST_CASE("a product that is not the cluster is refused with the numbers") {
  CHECK(rejection_of(plan_of(8, 4, 3, {8, 8, 8, 8, 8, 8, 8, 8}, {}, 24)) ==
        "/parallel: tensor * pipeline * data = 8 * 4 * 3 = 96, but 8 nodes have 64 GPUs (data 2 "
        "would use them all)");
  CHECK(rejection_of(plan_of(2, 2, 2, {8, 8})) ==
        "/parallel: tensor * pipeline * data = 2 * 2 * 2 = 8, but 2 nodes have 16 GPUs (data 4 "
        "would use them all)");
}

TEST_CASE("a batch that does not divide is refused with its neighbours") {
  CHECK(rejection_of(plan_of(1, 2, 4, {8}, {}, 18)) ==
        "/training/global_batch: global_batch 18 is no multiple of data * micro_batch = 4 * 1 = 4 "
        "(nearest: 16 or 20)");
}

TEST_CASE("layers that do not divide need stage_layers") {
  CHECK(rejection_of(plan_of(1, 3, 1, {3})) ==
        "/parallel/pipeline: 8 layers do not divide by pipeline 3 (use pipeline 2 or 4, or say "
        "stage_layers)");
  const Plan plan = std::get<Plan>(plan_of(1, 3, 1, {3}, {4, 4, 0}));
  CHECK(plan.stage_layers == std::vector<int>{4, 4, 0});
  CHECK(rejection_of(plan_of(1, 3, 1, {3}, {4, 4, 1})) ==
        "/parallel/stage_layers: stage_layers adds up to 9 layers, but the model has 8 (the sum "
        "must be 8)");
}

TEST_CASE("one number that does not fit is rejected once, where it is the only one to blame") {
  // 3 divides neither the heads, nor the MLP's columns, nor the GPUs of the cluster.
  CHECK(rejection_of(plan_of(3, 1, 1, {8, 8})).starts_with("/parallel/tensor: tensor 3 does not"));
  // Seven replicas fit neither the cluster nor the batch.
  CHECK(rejection_of(plan_of(1, 2, 7, {8, 8})).starts_with("/parallel: tensor * pipeline * data"));
  CHECK(rejection_of(plan_of(1, 5, 1, {8, 8})).starts_with("/parallel/pipeline: 8 layers"));
  CHECK(rejection_of(plan_of(1, 2, 1, {2}, {4, 3, 2})).starts_with("/parallel/stage_layers: "));
}

TEST_CASE("stages may get layers by cost, and the last one the head alone") {
  // 16 layers of 4 h^2 + 3 h 4h = 16 h^2 weights, a head of 64 h^2, worth 4 layers: on 4 stages each takes layers until those up to it
  // are 5, 10, 15.
  Transformer model = small_model();
  model.layers = 16;
  model.vocab_divisor = 1;
  model.vocab = 64 * model.hidden;
  Parallel parallel;
  parallel.pipeline = 4;
  CHECK(stages_by_cost(model, parallel) == std::vector<int>{5, 5, 5, 1});
  parallel.pipeline = 2;
  CHECK(stages_by_cost(model, parallel) == std::vector<int>{10, 6});
}

TEST_CASE("embedding and head may count as a layer each") {
  // 70 layers on 12 stages: 72 slots, 6 a stage, the edges give one each to embedding and head
  Parallel parallel;
  parallel.pipeline = 12;
  const std::vector<int> layers = default_layer_split(70, parallel, true).stages;
  CHECK(layers.front() == 5);
  CHECK(layers[1] == 6);
  CHECK(layers.back() == 5);
  CHECK(default_layer_split(70, parallel, false).stages.empty());
  // In a V the first stage gives both.
  parallel.schedule = schedule_named("zero_bubble_v");
  parallel.virtual_pipeline = 2;
  CHECK(default_layer_split(70, parallel, true).stages.front() == 4);
  CHECK(default_layer_split(70, parallel, true).stages.back() == 6);
  CHECK(default_layer_split(10, parallel, true).stages.empty());
}

TEST_CASE("with several chunks a stage, the two at the ends of the model are shorter") {
  // Llama 3.1 405B in MLPerf: 126 layers on 8 stages of 8 chunks, 128 slots of two
  Parallel parallel;
  parallel.pipeline = 8;
  parallel.virtual_pipeline = 8;
  parallel.schedule = default_schedule(8);
  CHECK(default_layer_split(126, parallel, false).stages.empty());
  const LayerSplit split = default_layer_split(126, parallel, true);
  CHECK(split.stages == std::vector<int>{15, 16, 16, 16, 16, 16, 16, 15});
  REQUIRE(split.positions.size() == 64);
  CHECK(split.positions.front() == 1);
  CHECK(split.positions[1] == 2);
  CHECK(split.positions[62] == 2);
  CHECK(split.positions.back() == 1);
  // The same asked for, and a heavier end.
  parallel.edge_layers = {1, 1};
  CHECK(default_layer_split(126, parallel, false).positions == split.positions);
  parallel.edge_layers = {0, 2};
  const LayerSplit heavy = default_layer_split(126, parallel, false);
  CHECK(heavy.positions.front() == 2);
  CHECK(heavy.positions.back() == 0);
  parallel.edge_layers = {0, 3};
  CHECK(default_layer_split(126, parallel, false).stages.empty());
}

std::variant<Plan, std::vector<PlanRejection>> cut_plan(int context, ContextMethod method,
                                                        Attention attention) {
  Training training;
  training.global_batch = 16;
  training.micro_batch = 1;
  training.attention = attention;
  Parallel parallel;
  parallel.tensor = 2;
  parallel.data = 2;
  parallel.context = context;
  parallel.context_method = method;
  return make_plan(small_model(), training, parallel, {{4 * context}, true}, {});
}

TEST_CASE("ranks of a context group are neighbours, and count as replicas") {
  const Plan plan = std::get<Plan>(cut_plan(2, ContextMethod::ring, Attention::flash));
  CHECK(plan.num_ranks() == 8);
  CHECK(plan.parallel.replicas() == 4);
  CHECK(plan.microbatches == 8);  // of the two replicas that have samples of their own
  const Layout layout = layout_of(plan.parallel);
  CHECK(layout.group(RankId{0}, {AxisName::context}) == std::vector<RankId>{RankId{0}, RankId{2}});
  CHECK(layout.group(RankId{1}, {AxisName::context, AxisName::data}) ==
        std::vector<RankId>{RankId{1}, RankId{3}, RankId{5}, RankId{7}});
  for (int replica = 0; replica < 4; ++replica)
    CHECK(plan.devices[plan.device(replica, StageId{0}, 0).index()].ranks.front() ==
          RankId{2 * replica});
}

TEST_CASE("a context that cannot cut the model is refused") {
  CHECK(rejection_of(cut_plan(3, ContextMethod::ring, Attention::flash))
            .starts_with("/parallel/context: context 3 does not cut sequences of 16 tokens"));
  CHECK(rejection_of(cut_plan(2, ContextMethod::ring, Attention::standard))
            .starts_with("/parallel/context: context 2 goes round in a ring only with flash"));
  CHECK(
      rejection_of(cut_plan(8, ContextMethod::all_to_all, Attention::standard))
          .starts_with("/parallel/context: context 8 times tensor 2 does not divide the 8 heads"));
}

TEST_CASE("a tensor group cut unevenly by the nodes is refused") {
  CHECK(rejection_of(plan_of(8, 1, 1, {6, 2})).find("cut unevenly") != std::string::npos);
}

TEST_CASE("a plan made after another is the one that is made alone") {
  const Transformer model = small_model();
  const ClusterShape cluster{{4, 4, 4, 4}, true};
  const SoftwareProfile software;
  PlanMaker maker(model, cluster, software);
  // Twice the same ranks, with other microbatches; other degrees; one that is cut unevenly; and the first again.
  for (const auto& [tensor, pipeline, data, micro_batch] : {std::array{2, 4, 2, 1},
                                                            {2, 4, 2, 2},
                                                            {4, 2, 2, 1},
                                                            {8, 1, 2, 1},
                                                            {2, 4, 2, 1},
                                                            {3, 1, 5, 1}}) {
    Training training;
    training.global_batch = 16;
    training.micro_batch = micro_batch;
    Parallel parallel;
    parallel.tensor = tensor;
    parallel.pipeline = pipeline;
    parallel.data = data;
    const auto alone = make_plan(model, training, parallel, cluster, software);
    const auto next = maker.make(training, parallel);
    REQUIRE(std::holds_alternative<Plan>(alone) == std::holds_alternative<const Plan*>(next));
    if (std::holds_alternative<std::vector<PlanRejection>>(next)) continue;
    const Plan &a = std::get<Plan>(alone), &b = *std::get<const Plan*>(next);
    CHECK(a.microbatches == b.microbatches);
    CHECK(a.stage_layers == b.stage_layers);
    CHECK(a.nodes_per_tensor_group == b.nodes_per_tensor_group);
    REQUIRE(a.devices.size() == b.devices.size());
    for (std::size_t i = 0; i < a.devices.size(); ++i) {
      CHECK(a.devices[i].node == b.devices[i].node);
      CHECK(a.devices[i].stage == b.devices[i].stage);
      CHECK(a.devices[i].ranks == b.devices[i].ranks);
      CHECK(a.devices[i].gpus == b.devices[i].gpus);
    }
  }
}

TEST_CASE(
    "what a stack or a plan lacks for sharded stages, rows of scales and eager layers is said") {
  Training training;
  training.global_batch = 16;
  training.micro_batch = 1;
  Parallel parallel;
  parallel.pipeline = parallel.data = 2;
  parallel.zero_stage = 3;
  SoftwareProfile software;
  const auto made = [&] {
    return make_plan(small_model(), training, parallel, {{4}, true}, software);
  };
  const auto rejected = [&] { return rejection_of(made()); };
  CHECK(rejected().starts_with("/parallel/reshard_after_forward: with pipeline 2, gathering"));
  parallel.reshard_after_forward = false;
  CHECK(
      std::holds_alternative<Plan>(make_plan(small_model(), training, parallel, {{4}, true}, {})));
  parallel.zero_group = 2;
  CHECK(rejected().starts_with(
      "/parallel/zero_group: zero_group with zero_stage 3 is for plans without stages"));
  parallel.zero_stage = 1;
  CHECK(std::holds_alternative<Plan>(made()));
  parallel.schedule = schedule_named("dualpipe");
  parallel.virtual_pipeline = 2;
  CHECK(rejected().starts_with("/parallel/zero_group: under schedule dualpipe"));
  parallel.schedule = default_schedule();
  parallel.virtual_pipeline = 1;
  parallel.zero_stage = 3;
  parallel.zero_group = 0;
  parallel.async_tensor_parallel = true;
  CHECK(rejected().starts_with("/parallel/async_tensor_parallel: async_tensor_parallel needs"));
  parallel.async_tensor_parallel = false;
  for (const auto& [recipe, name] :
       {std::pair{Fp8Recipe::block, "block"}, {Fp8Recipe::mx, "mx"}, {Fp8Recipe::row, "row"}}) {
    training.fp8_recipe = recipe;
    CHECK(rejected().starts_with(std::string("/training/fp8_recipe: fp8_recipe \"") + name +
                                 "\" is for precision fp8"));
  }
  training.precision = Precision::fp8;
  CHECK(rejected().find("(row_cast_efficiency)") != std::string::npos);
  training.fp8_recipe = Fp8Recipe::tensor;
  training.compile = false;
  CHECK(rejected().find("(eager_layer_traffic)") != std::string::npos);
  software.copies.keeps_gate = software.copies.keeps_norms = true;  // eager in any case
  CHECK(std::holds_alternative<Plan>(made()));
}

}  // namespace
}  // namespace windtunnel
