#include "cost/stage_cost.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "cost/collective_cost.hpp"
#include "cost/end_of_iteration.hpp"

namespace windtunnel {
namespace {

/// One layer a stage, two stages, T = 1024 tokens, h = 1024; a GPU of 100 TFLOP/s without any loss
/// and with endless memory rate, so that time is FLOPs / 10^14.
struct World {
  Transformer model;
  Plan plan;
  SoftwareProfile software;
  NodeType node;
  Fabric fabric;

  World() {
    model.layers = 2;
    model.hidden = 1024;
    model.heads = model.kv_heads = 16;
    model.ffn_hidden = 4096;
    model.sequence = 1024;
    model.vocab = 1024;
    plan.training.global_batch = 4;
    plan.training.micro_batch = 1;
    plan.parallel.pipeline = 2;
    plan.stage_layers = {1, 1};
    plan.microbatches = 4;
    software.gradient_accumulation_bytes = 0;
    software.overlap_backward_tensor_collectives = false;
    node.device.peak[Precision::fp16] = 100_TFLOPS;
    node.device.multiprocessors = 100;
    node.device.memory_bandwidth = BytesPerSecond{1e30};
    node.device.memory_efficiency = 1;
    node.device.gemm.peak_fraction = 1;
    node.device.gemm.head_factor = 1;
    node.interconnect.saturated_bandwidth = 100_GBps;
    node.interconnect.half_size = Bytes{0};
  }
  DataGroup data;
  StageCost cost(int stage, std::vector<int> gpus = {0}) const {
    return stage_cost(
        {&model, &plan, &software, &node, &fabric, StageId{stage}, std::move(gpus), data, {}, {}});
  }
};

constexpr double layer_flops =
    24.0 * 1024 * 1024 * 1024 + 4.0 * 1024 * 1024 * 1024;  // 24 T h^2 + 4 T s h
constexpr double head_flops = 2.0 * 1024 * 1024 * 1024;    // 2 T h V

TEST_CASE("a first stage's forward pass is its layers; backward is twice that") {
  const StageCost cost = World().cost(0);
  CHECK(cost.chunks[0].forward.duration.value() ==
        doctest::Approx(layer_flops / 1e14).epsilon(1e-9));
  CHECK(cost.chunks[0].backward.duration.value() ==
        doctest::Approx(2 * layer_flops / 1e14).epsilon(1e-9));
}

TEST_CASE("products of adapters take 16 bits where those of frozen weights take eight") {
  World world;
  world.plan.training.precision = Precision::fp8;
  world.plan.training.lora.rank = 16;
  world.node.device.peak = {{Precision::bf16, FlopsPerSecond{1e14}},
                            {Precision::fp8, FlopsPerSecond{2e14}}};
  const double adapters = 2 * 1024.0 * 2 * 16 * 2048, products = 24 * std::pow(1024.0, 3),
               core = 4 * std::pow(1024.0, 3);
  CHECK(world.cost(0).chunks[0].forward.duration.value() ==
        doctest::Approx((core + adapters) / 1e14 + products / 2e14).epsilon(1e-9));
}

TEST_CASE("a frozen layer passes gradients on, and its adapters have all three products") {
  World world;
  world.plan.training.lora.rank = 16;
  const StageCost cost = world.cost(0);
  // 16 (1024 + 1024) parameters for queries and for values, 2 FLOPs each for 1024 tokens; a layer's products, and those of attention.
  const double adapters = 2 * 1024.0 * 2 * 16 * 2048, products = 24 * std::pow(1024.0, 3),
               core = 4 * std::pow(1024.0, 3);
  CHECK(cost.chunks[0].forward.duration.value() ==
        doctest::Approx((layer_flops + adapters) / 1e14).epsilon(1e-9));
  CHECK(cost.chunks[0].backward.duration.value() ==
        doctest::Approx((products + 2 * core + 2 * adapters) / 1e14).epsilon(1e-9));
  CHECK(cost.chunks[0].weight_gradient.duration.value() ==
        doctest::Approx(adapters / 1e14).epsilon(1e-9));
  const FlopCounts counted = count_flops(cost.chunks[0].operations->at(Direction::backward));
  CHECK(counted.model.value() == doctest::Approx(products + 2 * core + 2 * adapters));
  CHECK(cost.gradients == Bytes{4.0 * 2 * 16 * 2048});
  // The head of the last stage is frozen too: one of its two backward products is left.
  CHECK(world.cost(1).chunks[0].backward.duration.value() ==
        doctest::Approx((products + 2 * core + 2 * adapters + head_flops) / 1e14).epsilon(1e-9));
}

TEST_CASE("of matrices in nf4 ZeRO 3 gathers half a byte a weight, and scatters adapters alone") {
  World world;
  world.plan.training.lora.rank = 16;
  world.plan.training.lora.frozen_type = FrozenType::nf4;
  world.plan.parallel.pipeline = 1;
  world.plan.stage_layers = {2};
  world.plan.parallel.data = 4;
  world.plan.parallel.zero_stage = 3;
  const StageCost cost = world.cost(0);
  const auto payload = [&](Direction direction, Label label) {
    for (const Operation& operation : cost.chunks[0].operations->at(direction).layer)
      if (operation.label == label) return operation.payload.value();
    return 0.0;
  };
  // 12 h² weights of a half byte, and 16 (1024 + 1024) of two bytes for queries and for values.
  const double matrices = 12 * 1024.0 * 1024, adapters = 2 * 16 * 2048.0;
  for (const Direction direction : {Direction::forward, Direction::backward})
    CHECK(payload(direction, Label::gather_layer) == matrices / 2 + 2 * adapters);
  CHECK(payload(Direction::backward, Label::scatter_layer) ==
        element_size(world.plan.training.gradient_type) / Bytes{1} * adapters);
}

TEST_CASE(
    "copies of activations to the host hide behind their layer, and what lasts longer is waited "
    "for") {
  World world;
  const StageCost plain = world.cost(0);
  world.plan.training.activation_offload = 0.5;
  // A layer keeps 34 sbh + 5 a s² b = (34 + 80) MiB, of which half is copied.
  world.node.host = Host{.link = 57_MiB / 10_ms, .memory_bandwidth = 1_GBps};
  const StageCost slow = world.cost(0);
  for (const auto pass : {&ChunkCost::forward, &ChunkCost::backward}) {
    CHECK((slow.chunks[0].*pass).duration.value() == doctest::Approx(0.01).epsilon(1e-9));
    CHECK((slow.chunks[0].*pass).of(Part::compute) == (plain.chunks[0].*pass).of(Part::compute));
  }
  world.node.host->link = 57_MiB / 1_us;
  CHECK(world.cost(0).chunks[0].forward.duration == plain.chunks[0].forward.duration);
}

Seconds sum_of(const ChunkOperations& chunk, Direction direction,
               const std::vector<Label>& labels) {
  Seconds sum{};
  for (const Operation& operation : chunk.at(direction).layer)
    for (const Label label : labels)
      if (operation.label == label) sum += operation.time;
  return sum;
}

TEST_CASE("one expert for all tokens is the dense network, plus router and permutation") {
  World world;
  world.node.device.memory_bandwidth = 1000_GBps;
  world.node.device.kernel_overhead = 5_us;
  world.node.device.gemm.grouped_factor = 0.5;  // of grouped products, which one expert has none of
  const ChunkOperations dense = *world.cost(0).chunks[0].operations;
  world.model.moe = Transformer::Experts{};
  world.model.moe->experts = world.model.moe->top_k = 1;
  world.model.moe->ffn_hidden = world.model.ffn_hidden;
  const ChunkOperations single = *world.cost(0).chunks[0].operations;
  // Each direction: router T x 1 x h, its values in fp32 three times, tokens moved 2 + 2 (backward 2 + 3) times, 6 + 2 kernels.
  KernelContext context;
  context.device = &world.node.device;
  const auto extra = [&](double moved, std::vector<Gemm> router) {
    KernelWork work;
    work.attention = std::move(router);
    work.memory_traffic = Bytes{1024 * (moved * 2 * 1024 + 3 * 4)};
    work.memory_kernels = 8;
    return kernel_time(work, context);
  };
  const std::vector<Label> parts{Label::routing, Label::experts, Label::merging};
  CHECK(sum_of(single, Direction::forward, parts).value() ==
        doctest::Approx(
            (sum_of(dense, Direction::forward, {Label::feed_forward}) + extra(4, {{1024, 1, 1024}}))
                .value())
            .epsilon(1e-9));
  CHECK(sum_of(single, Direction::backward, parts).value() ==
        doctest::Approx((sum_of(dense, Direction::backward, {Label::feed_forward}) +
                         extra(5, {{1024, 1024, 1}, {1024, 1, 1024}}))
                            .value())
            .epsilon(1e-9));
}

TEST_CASE("layers with and without experts are a mean layer of their chunk") {
  World world;
  world.model.layers = 4;
  world.plan.stage_layers = {4, 0};
  world.model.moe = Transformer::Experts{};
  world.model.moe->experts = 8;
  world.model.moe->top_k = 2;
  world.model.moe->ffn_hidden = 2048;
  const Seconds with_experts = world.cost(0).chunks[0].forward.duration;
  world.model.moe->dense_layers = 1;
  const Seconds mixed = world.cost(0).chunks[0].forward.duration;
  const double parameters = world.cost(0).chunks[0].parameters.all;
  world.model.moe.reset();
  const Seconds dense = world.cost(0).chunks[0].forward.duration;
  CHECK(mixed.value() ==
        doctest::Approx((with_experts * 0.75 + dense * 0.25).value()).epsilon(1e-9));
  // 3 layers of 8 experts, a router and the norm before them in place of 3 of the 4 MLPs.
  const double h = 1024, attention = 4 * h * h + 3 * h + 3 * h, mlp = 8 * h * h + 3 * h + 4 * h;
  const double experts = 8 * 2 * h * 2048 + 8 * h + 2 * h;
  CHECK(parameters - world.model.vocab * h - h * 1024 ==
        doctest::Approx(4 * attention + mlp + 3 * experts).epsilon(1e-12));
}

TEST_CASE("experts are shared out, and their gradients reduced among those that hold the same") {
  World world;
  world.model.moe = Transformer::Experts{};
  world.model.moe->experts = 8;
  world.model.moe->top_k = 2;
  world.model.moe->ffn_hidden = 1024;
  world.plan.parallel.data = 8;
  world.plan.parallel.expert = 4;
  const StageCost cost = world.cost(0);
  const double experts = 8 * 2.0 * 1024 * 1024 / 4;
  CHECK(cost.chunks[0].parameters.experts == experts);
  const Operation* dense = find(cost.end, Label::reduce_gradients);
  const Operation* shared_out = find(cost.end, Label::reduce_expert_gradients);
  REQUIRE(dense != nullptr);
  REQUIRE(shared_out != nullptr);
  CHECK(shared_out->payload == Bytes{4 * experts});
  CHECK(dense->payload == Bytes{4 * (cost.chunks[0].parameters.all - experts)});
  // With as many expert ranks as replicas, nobody else has a rank's experts.
  world.plan.parallel.expert = 8;
  CHECK(find(world.cost(0).end, Label::reduce_expert_gradients) == nullptr);
  // ZeRO 1: optimizer states of experts among the two that hold them, of all else among eight.
  world.plan.parallel.expert = 4;
  world.plan.parallel.zero_stage = 1;
  const ParameterCounts counts = world.cost(0).chunks[0].parameters;
  CHECK(counts.optimizer ==
        doctest::Approx(experts / 2 + (counts.all - experts) / 8).epsilon(1e-12));
}

TEST_CASE("ranks that cut an expert gather its inputs and scatter its outputs") {
  World world;
  world.model.moe = Transformer::Experts{};
  world.model.moe->experts = 8;
  world.model.moe->top_k = 2;
  world.model.moe->ffn_hidden = 1024;
  world.node.gpus = 8;
  world.plan.parallel.data = 8;
  world.plan.parallel.expert_tensor = 2;
  // Two ranks' tokens, two copies each, 1,024 values of two bytes: 8 MiB; half of it sent at 100 GB/s, twice.
  const StageCost cost = world.cost(0);
  const double gather = 0.5 * 2 * 2 * 1024 * 1024 * 2 / 100e9;
  CHECK(cost.chunks[0].forward.of(Part::expert_comm).value() ==
        doctest::Approx(2 * gather).epsilon(1e-9));
  // A rank has half of every expert: the products take what they did, on twice the tokens.
  world.plan.parallel.expert_tensor = 1;
  CHECK(cost.chunks[0].parameters.experts == world.cost(0).chunks[0].parameters.experts / 2);
}

TEST_CASE("the last stage has the head as well") {
  const StageCost cost = World().cost(1);
  CHECK(cost.chunks[0].forward.duration.value() ==
        doctest::Approx((layer_flops + head_flops) / 1e14).epsilon(1e-9));
}

TEST_CASE("multi-token prediction adds a layer, a projection and a head to the last stage alone") {
  World world;
  const StageCost before = world.cost(1);
  const Seconds first = world.cost(0).chunks[0].forward.duration;
  world.model.mtp_layers = world.plan.mtp_layers = 1;
  const StageCost after = world.cost(1);
  // 2 h are joined to h: 4 T h^2.
  const double added = layer_flops + head_flops + 4.0 * 1024 * 1024 * 1024;
  const ChunkCost &was = before.chunks[0], &is = after.chunks[0];
  CHECK((is.forward.duration - was.forward.duration).value() ==
        doctest::Approx(added / 1e14).epsilon(1e-9));
  CHECK((is.backward.duration - was.backward.duration).value() ==
        doctest::Approx(2 * added / 1e14).epsilon(1e-9));
  CHECK(world.cost(0).chunks[0].forward.duration == first);
  const auto work = [](const ChunkCost& chunk) {
    return count_flops(chunk.operations->at(Direction::forward)).model.value();
  };
  CHECK(work(is) - work(was) == doctest::Approx(added).epsilon(1e-12));
  // A layer's 12 h^2 + 13 h, the projection's 2 h^2, three norms of 2 h.
  const double h = 1024;
  CHECK(is.parameters.all - was.parameters.all ==
        doctest::Approx(14 * h * h + 19 * h).epsilon(1e-12));
  // A head of its own no longer serves as the copy of the words that the depth embeds.
  world.model.tied_embeddings = false;
  CHECK(world.cost(1).chunks[0].parameters.all - is.parameters.all == world.model.vocab * h);
}

TEST_CASE("full recomputation adds a forward pass without the head, selective the attention core") {
  World world;
  world.plan.training.recompute = Recompute::full;
  CHECK(world.cost(1).chunks[0].backward.duration.value() ==
        doctest::Approx((3 * layer_flops + 2 * head_flops) / 1e14).epsilon(1e-9));
  world.plan.training.recompute = Recompute::selective;
  const double core = 4.0 * 1024 * 1024 * 1024;
  CHECK(world.cost(0).chunks[0].backward.duration.value() ==
        doctest::Approx((2 * layer_flops + core) / 1e14).epsilon(1e-9));
}

TEST_CASE("tensor parallelism divides the products and adds two all-reduces a layer") {
  World world;
  world.plan.parallel.tensor = 2;
  const StageCost cost = world.cost(0, {0, 1});
  // Payload T h 2 bytes = 2 MiB; w = S; 20.97 us each; two for the layer, one for the embedding (forward only)
  const Seconds all_reduce = in_node_all_reduce(world.node.interconnect, {0, 1}, 2_MiB);
  CHECK(all_reduce.value() == doctest::Approx(2097152 / 100e9).epsilon(1e-12));
  CHECK(cost.chunks[0].forward.of(Part::tensor_comm).value() ==
        doctest::Approx(3 * all_reduce.value()).epsilon(1e-12));
  CHECK(cost.chunks[0].forward.of(Part::compute).value() ==
        doctest::Approx(layer_flops / 2 / 1e14).epsilon(1e-9));
  CHECK(operations_of(cost)[0]->message.payload == 1_MiB);  // scattered over the two ranks
}

TEST_CASE("each tensor collective of the node takes the stack's overhead besides its transfer") {
  World world;
  world.plan.parallel.tensor = 2;
  const Seconds bare = world.cost(0, {0, 1}).chunks[0].forward.of(Part::tensor_comm);
  world.software.tensor_collective_overhead = 300_us;
  CHECK(world.cost(0, {0, 1}).chunks[0].forward.of(Part::tensor_comm).value() ==
        doctest::Approx((bare + 900_us).value()));
  // Sequence parallelism makes two halves of each of the layer's; the embedding's output is scattered alone.
  world.plan.parallel.sequence_parallel = true;
  CHECK(world.cost(0, {0, 1}).chunks[0].forward.of(Part::tensor_comm).value() ==
        doctest::Approx((bare * (5.0 / 6) + 1500_us).value()));
  world.plan.parallel.tensor = 1;
  CHECK(world.cost(0, {0}).chunks[0].forward.of(Part::tensor_comm) == Seconds{0});
}

TEST_CASE("messages are sent in shares, activations alone, or whole, and take a mask along") {
  World world;
  world.plan.parallel.tensor = 2;
  const auto bytes = [&world](Label message) {
    return stage_message_size(world.model, world.plan, world.software, message);
  };
  CHECK(bytes(Label::activation_message) == 1_MiB);
  CHECK(bytes(Label::gradient_message) == 1_MiB);
  world.software.scatter_pipeline_messages = ScatteredMessages::activations;
  CHECK(bytes(Label::activation_message) == 1_MiB);
  CHECK(bytes(Label::gradient_message) == 2_MiB);
  world.software.scatter_pipeline_messages = ScatteredMessages::none;
  CHECK(bytes(Label::activation_message) == 2_MiB);
  world.software.sends_mask = true;  // 1024 x 1024 scores, 2 bytes each
  CHECK(bytes(Label::activation_message) == 4_MiB);
  CHECK(bytes(Label::gradient_message) == 2_MiB);
  // Sequence parallelism cuts what the stack would send whole.
  world.software.sends_mask = false;
  world.plan.parallel.sequence_parallel = true;
  CHECK(bytes(Label::activation_message) == 1_MiB);
  CHECK(bytes(Label::gradient_message) == 1_MiB);
}

TEST_CASE("passes wait for the slowest of equal nodes, the first and the last for their mean") {
  World world;
  const Seconds alike = world.cost(0).chunks[0].forward.duration;
  const auto slower = [&](int nodes, int batch) {
    world.plan.num_nodes = nodes;
    world.plan.training.global_batch = world.plan.microbatches = batch;
    return world.cost(0).chunks[0].forward.duration / alike;
  };
  world.node.gpus = 1;
  CHECK(slower(2, 4) == 1);  // the nodes are alike
  world.node.pass_spread = 0.1;
  CHECK(slower(1, 4) == 1);
  // The larger of two standard normal values is 1/sqrt(pi) on average; 3 of 4 + 1 passes wait for it.
  const double of_two = 1 / std::sqrt(3.14159265);
  CHECK(std::log(slower(2, 4)) == doctest::Approx(0.1 * of_two * 3 / 5).epsilon(0.05));
  CHECK(std::log(slower(2, 4000)) == doctest::Approx(0.1 * of_two).epsilon(0.05));
  // Two pipelines: 1.03 is the largest of four; at the ends the slower of the two means of two nodes counts.
  world.plan.parallel.data = 2;
  CHECK(std::log(slower(4, 8)) ==
        doctest::Approx(0.1 * (1.03 * 3 + of_two / std::sqrt(2) * 2) / 5).epsilon(0.05));
  // Without stages all wait for the slower node in each microbatch.
  world.plan.parallel.pipeline = 1;
  world.plan.num_nodes = 2;
  CHECK(std::log(slowest_node_factor(world.node, world.plan)) ==
        doctest::Approx(0.1 * of_two).epsilon(0.05));
}

TEST_CASE("a forward pass begins when the host has read the microbatch") {
  World world;
  world.software.launch.kernel = 1_us;
  world.software.launch.collective = 70_us;
  world.software.launch.sharpness =
      100;  // 300 us of products outlast the launches of their kernels
  const Seconds bare = world.cost(0).chunks[0].forward.duration;
  const Seconds back = world.cost(0).chunks[0].backward.duration;
  world.software.batch_read = {10, 2, true};
  // 10 x 1 + 2 x 70 us; one GPU has nobody to broadcast to.
  CHECK((world.cost(0).chunks[0].forward.duration - bare).value() == doctest::Approx(150e-6));
  CHECK(world.cost(0).chunks[0].backward.duration == back);
  world.node.launch_slowdown = 2;
  CHECK((world.cost(0).chunks[0].forward.duration - bare).value() == doctest::Approx(300e-6));
  // In between nobody reads it, where the stack does so at the ends alone.
  world.node.launch_slowdown = 1;
  world.plan.parallel.pipeline = 3;
  world.plan.stage_layers = {1, 1, 1};
  world.model.layers = 3;
  world.software.batch_read->on_every_stage = false;
  const Seconds between = world.cost(1).chunks[0].forward.duration;
  world.software.batch_read.reset();
  CHECK(between == world.cost(1).chunks[0].forward.duration);
}

TEST_CASE("bf16 gradients may take more traffic to add up") {
  World world;
  world.node.device.peak[Precision::bf16] = 100_TFLOPS;
  world.node.device.memory_bandwidth = 1000_GBps;
  world.plan.training.precision = Precision::bf16;
  const Seconds six = world.cost(0).chunks[0].backward.duration;
  world.software.bf16_gradient_accumulation_bytes = 18;
  // 12 h^2 weights, 18 bytes each where none were counted
  CHECK((world.cost(0).chunks[0].backward.duration - six).value() ==
        doctest::Approx(18 * 12 * 1024.0 * 1024 / 1e12));
  world.plan.training.precision = Precision::fp16;
  world.software.bf16_gradient_accumulation_bytes.reset();
  const Seconds half = world.cost(0).chunks[0].backward.duration;
  world.software.bf16_gradient_accumulation_bytes = 18;
  CHECK(world.cost(0).chunks[0].backward.duration == half);
}

TEST_CASE("a stack whose tensors are cut the other way copies them around gathers and scatters") {
  World world;
  world.plan.parallel.tensor = 2;
  world.node.device.memory_bandwidth = BytesPerSecond{1e12};
  const Seconds reduced = world.cost(0, {0, 1}).chunks[0].forward.of(Part::tensor_comm);
  world.software.copies_tensor_collectives = true;
  CHECK(world.cost(0, {0, 1}).chunks[0].forward.of(Part::tensor_comm) == reduced);
  // Two gathers and scatters of the layer and one scatter of the embedding of T h 2 = 2 MiB, read and written.
  world.plan.parallel.sequence_parallel = true;
  CHECK(world.cost(0, {0, 1}).chunks[0].forward.of(Part::tensor_comm).value() ==
        doctest::Approx(reduced.value() * 5 / 6 + 5 * 2 * 2097152 / 1e12));
}

TEST_CASE("kernels that move memory run no faster than the stack's own on that device") {
  World world;
  world.node.device.name = "known";
  world.node.device.memory_bandwidth = BytesPerSecond{2e12};
  const PassCost ahead = world.cost(0).chunks[0].forward, back = world.cost(0).chunks[0].backward;
  world.software.memory_rates = {{{"other"}, BytesPerSecond{1e12}, BytesPerSecond{1e12}}};
  CHECK(world.cost(0).chunks[0].forward.duration == ahead.duration);
  world.software.memory_rates.push_back({{"known"}, BytesPerSecond{3e12}, BytesPerSecond{1e12}});
  CHECK(world.cost(0).chunks[0].forward.duration == ahead.duration);
  CHECK(world.cost(0).chunks[0].backward.duration > back.duration);
}

TEST_CASE("overlap hides each backward all-reduce behind a quarter of the weight products") {
  World world;
  world.plan.parallel.tensor = 2;
  world.software.overlap_backward_tensor_collectives = true;
  // Eight products of the backward pass: 48 T h^2 / 2 FLOPs = 257.7 us; a quarter is 64.4 us, more
  // than the 20.97 us: nothing of the layer's two is exposed.
  CHECK(world.cost(0, {0, 1}).chunks[0].backward.of(Part::tensor_comm).value() ==
        doctest::Approx(0));
  // At a tenth of the bandwidth, 209.7 us each, 209.7 - 64.4 is exposed twice.
  world.node.interconnect.saturated_bandwidth = 10_GBps;
  const double hidden = 48.0 * 1024 * 1024 * 1024 / 2 / 1e14 / 4;
  CHECK(world.cost(0, {0, 1}).chunks[0].backward.of(Part::tensor_comm).value() ==
        doctest::Approx(2 * (209.7152e-6 - hidden)).epsilon(1e-9));
}

TEST_CASE("a pass is never shorter than its launch floor") {
  World world;
  world.software.launch.kernel = 1_s;
  const StageCost cost = world.cost(1);
  // A layer's 4 products, the 2 of its attention and its 9 memory-bound kernels; and the head's product.
  CHECK(cost.chunks[0].forward.floor.launch == 16_s);
  CHECK(cost.chunks[0].forward.duration.value() == doctest::Approx(16.0).epsilon(1e-6));
  CHECK(cost.chunks[0].forward.floor_share() > Seconds{15.9});
  // Twice the products and kernels, backward; of a split pass each half has half of them.
  CHECK(world.cost(0).chunks[0].backward.floor.launch == 30_s);
  CHECK(world.cost(0).chunks[0].input_gradient.floor.launch == 15_s);
  CHECK(world.cost(0).chunks[0].weight_gradient.floor.launch == 15_s);
}

TEST_CASE("tensor collectives may take the host longer where stages are on several nodes") {
  World world;
  world.plan.parallel.tensor = 4;
  world.software.launch.collective_per_rank = 1_s;
  // Two all-reduces of the layer and one of the embedding, each 1 s for each of three other ranks.
  for (const int node : {0, 1}) {
    world.plan.devices.assign(2, {});
    world.plan.devices[1].stage = StageId{1};
    world.plan.devices[1].node = NodeId{node};
    CHECK(world.cost(0, {0, 1, 2, 3}).chunks[0].forward.floor.launch == Seconds{9.0 * node});
  }
}

TEST_CASE("tensor collectives may take the host longer in all jobs on several nodes") {
  World world;
  world.plan.parallel.tensor = 4;
  world.software.launch.collective_per_rank = 1_s;
  world.plan.devices.assign(2, {});
  world.plan.devices[1].replica = 1;
  world.plan.devices[1].node = NodeId{1};
  const auto launch = [&world] {
    return world.cost(0, {0, 1, 2, 3}).chunks[0].forward.floor.launch;
  };
  CHECK(launch() == 0_s);
  world.software.launch.per_rank_in = DelayedLaunches::jobs;
  CHECK(launch() == Seconds{9.0});  // as above
}

TEST_CASE("a floor is what a pass is no shorter than, however much runs at the same time") {
  // 8 s of 10 s that the CPU launches run elsewhere: (10^4 + 10^4)^(1/4) - 8; work that is longer than that stays.
  const LaunchFloor floor{.launch = 10_s, .elsewhere = 8_s, .sharpness = 4};
  CHECK(with_launch_floor(2_s, floor).value() == doctest::Approx(10 * std::pow(2.0, 0.25) - 8));
  CHECK(with_launch_floor(100_s, floor).value() == doctest::Approx(100).epsilon(1e-4));
  CHECK(with_launch_floor(3_s, LaunchFloor{}) == 3_s);
}

TEST_CASE("a tensor group across nodes takes what its rings take with all NICs to themselves") {
  World world;
  world.plan.parallel.tensor = 2;
  world.plan.nodes_per_tensor_group = 2;
  world.node.nics = 2;
  world.node.nic_rate = 0.1_GBps;
  // Each of two ranks sends what it has, 2 bytes of 1,024 x 1,024 values: three times forward (one for the embedding), twice back.
  const double ring = 2.0 * 1024 * 1024 / 0.2e9;
  const ChunkCost exposed = world.cost(0, {0}).chunks[0];
  CHECK(exposed.forward.of(Part::tensor_comm).value() == doctest::Approx(3 * ring));
  CHECK(exposed.backward.of(Part::tensor_comm).value() == doctest::Approx(2 * ring));
  world.software.overlap_backward_tensor_collectives = true;
  const double hidden = 48.0 * 1024 * 1024 * 1024 / 2 / 1e14 / 4;
  CHECK(world.cost(0, {0}).chunks[0].backward.of(Part::tensor_comm).value() ==
        doctest::Approx(2 * (ring - hidden)).epsilon(1e-9));
  // With sequence parallelism, the gathers of gradients are exposed, of two halves of the layer and of the embedding.
  world.plan.parallel.sequence_parallel = true;
  CHECK(world.cost(0, {0}).chunks[0].forward.of(Part::tensor_comm).value() ==
        doctest::Approx(2.5 * ring));
}

TEST_CASE("gradients are the rank's parameters in the gradient type") {
  World world;
  world.plan.training.gradient_type = GradientType::fp16;
  const double parameters = attention_parameters(world.model).sum() +
                            feed_forward_parameters(world.model).sum() +
                            embedding_parameters(world.model, 1).sum();
  CHECK(world.cost(0).gradients == Bytes{2 * parameters});
  CHECK(find(world.cost(0).end, Label::synchronise_embedding)->payload == Bytes{2.0 * 1024 * 1024});
  // A stack may reduce the tied embeddings in a type of their own.
  world.plan.training.gradient_type = GradientType::fp32;
  world.software.embedding_gradient_type = GradientType::fp16;
  CHECK(world.cost(0).gradients == Bytes{4 * parameters});
  CHECK(find(world.cost(0).end, Label::synchronise_embedding)->payload == Bytes{2.0 * 1024 * 1024});
}

/// One stage, two replicas in a node, fully sharded. A gather of S moves S/2 a rank.
World sharded_world(int layers, BytesPerSecond bandwidth) {
  World world;
  world.model.layers = layers;
  world.plan.parallel.pipeline = 1;
  world.plan.parallel.data = 2;
  world.plan.parallel.zero_stage = 3;
  world.plan.training.gradient_type = GradientType::fp16;
  world.plan.stage_layers = {layers};
  world.data = {{0, 1}, 2, 1};
  world.node.interconnect.saturated_bandwidth = bandwidth;
  return world;
}

/// Collectives take this share of the multiprocessors while they last.
void let_collectives_take(World& world, double share) {
  world.node.device.multiprocessors = 100;
  world.node.device.collective_multiprocessors = static_cast<int>(std::lround(100 * share));
}

/// A layer's 12 h^2 parameters of 2 bytes, gathered or scattered: 125.8 us at 100 GB/s, during 300.6 us of its forward pass.
double layer_gather(BytesPerSecond bandwidth) {
  return (Bytes{12.0 * 1024 * 1024 * 2} / 2.0 / bandwidth) / 1_s;
}
double edges_gather(const World& world, BytesPerSecond bandwidth) {
  const double parameters = embedding_parameters(world.model, 1).sum() +
                            head_parameters(world.model, 1, HeadPlace::with_embedding).sum();
  return (Bytes{parameters * 2} / 2.0 / bandwidth) / 1_s;
}

TEST_CASE("fully sharded passes gather each layer, embedding and head over the replicas") {
  World world = sharded_world(4, 100_GBps);
  let_collectives_take(world, 0.5);
  const double gather = layer_gather(100_GBps), edges = edges_gather(world, 100_GBps);
  const ChunkCost cost = world.cost(0).chunks[0];
  // The first of four gathers has nothing before it; each of the others takes half of the GPU from a pass.
  CHECK(cost.forward.of(Part::data_comm).value() ==
        doctest::Approx((1 + 0.5 * 3) * gather + edges).epsilon(1e-9));
  // Backward four scatters too, the last of which has nothing behind it but that of embedding and head.
  CHECK(cost.backward.of(Part::data_comm).value() ==
        doctest::Approx((1 + 0.5 * 3 + 0.5 * 3 + 1) * gather + edges).epsilon(1e-9));
}

TEST_CASE("where gathers dominate, L layers wait for L gathers") {
  for (const int layers : {1, 2, 4}) {
    for (const double taken : {0.0, 0.6}) {
      for (const int prefetch : {1, 2}) {
        // 12.58 ms a gather, during 0.3006 ms forward and twice that backward.
        World world = sharded_world(layers, 1_GBps);
        let_collectives_take(world, taken);
        world.plan.parallel.zero_prefetch = prefetch;
        const double gather = layer_gather(1_GBps), edges = edges_gather(world, 1_GBps);
        const double pass = layer_flops / 1e14, head = head_flops / 1e14;
        const ChunkCost cost = world.cost(0).chunks[0];
        // Only the last pass overlaps with no gather. Backward a gather and a scatter a layer follow one another without a gap, where
        // there is more than one layer.
        CHECK(cost.forward.duration.value() ==
              doctest::Approx(layers * gather + pass + head + edges).epsilon(1e-9));
        CHECK(cost.backward.duration.value() ==
              doctest::Approx(2 * layers * gather + (layers == 1 ? 2 * pass : 0) + 2 * head + edges)
                  .epsilon(1e-9));
      }
    }
  }
}

TEST_CASE("fully sharded gradients are scattered in the gradients' type") {
  // Four scatters of fp32 gradients are each longer by the 125.8 us of fp16 ones: half of it shows for three of them, all of it for
  // the last and for embedding and head.
  World world = sharded_world(4, 100_GBps);
  let_collectives_take(world, 0.5);
  const StageCost half = world.cost(0);
  world.plan.training.gradient_type = GradientType::fp32;
  const StageCost single = world.cost(0);
  CHECK(
      (single.chunks[0].backward.of(Part::data_comm) - half.chunks[0].backward.of(Part::data_comm))
          .value() ==
      doctest::Approx((0.5 * 3 + 1) * layer_gather(100_GBps) + edges_gather(world, 100_GBps))
          .epsilon(1e-9));
  const auto scattered = [](const StageCost& cost) {
    return cost.chunks[0].operations->at(Direction::backward).layer.back().payload;
  };
  CHECK(scattered(single) == scattered(half) * 2);
  const auto gathered = [](const StageCost& cost) {
    return find(cost.chunks[0].operations->at(Direction::forward).layer, Label::gather_layer)
        ->payload;
  };
  CHECK(gathered(single) == gathered(half));
}

TEST_CASE("without prefetch every gather is exposed, and more than one ahead gains nothing") {
  World world = sharded_world(4, 100_GBps);
  const double gather = layer_gather(100_GBps), edges = edges_gather(world, 100_GBps);
  for (const double taken : {0.0, 0.25, 0.5}) {
    let_collectives_take(world, taken);
    world.plan.parallel.zero_prefetch = 0;
    const Seconds none = world.cost(0).chunks[0].forward.of(Part::data_comm);
    world.plan.parallel.zero_prefetch = 1;
    const Seconds one = world.cost(0).chunks[0].forward.of(Part::data_comm);
    world.plan.parallel.zero_prefetch = 2;
    CHECK(world.cost(0).chunks[0].forward.of(Part::data_comm) == one);
    CHECK(none.value() == doctest::Approx(4 * gather + edges).epsilon(1e-9));
    CHECK(one.value() == doctest::Approx((1 + 3 * taken) * gather + edges).epsilon(1e-9));
    CHECK(one <= none);
  }
}

TEST_CASE("gathers asked for behind scatters hide forward, and backward nothing does") {
  World world = sharded_world(4, 100_GBps);
  let_collectives_take(world, 0.25);
  world.software.gathers_behind_scatters = true;
  const double gather = layer_gather(100_GBps), edges = edges_gather(world, 100_GBps);
  const ChunkCost cost = world.cost(0).chunks[0];
  CHECK(cost.forward.of(Part::data_comm).value() ==
        doctest::Approx((1 + 0.25 * 3) * gather + edges).epsilon(1e-9));
  CHECK(cost.backward.of(Part::data_comm).value() ==
        doctest::Approx((4 + 4) * gather + edges).epsilon(1e-9));
}

/// The end of the last scatter of a backward pass, as _runtime_utils.py of PyTorch 2.1 issues it with BACKWARD_PRE and limit_all_gathers.
/// ProcessGroupNCCL runs the collectives of a group one after another, as they were issued.
double backward_of_fsdp1(int layers, double layer, double gather, double scatter) {
  std::vector<double> computed(static_cast<std::size_t>(layers) + 3, 0), gathered = computed;
  double collectives = 0;
  const auto issue = [&](double not_before, double time) {
    return collectives = std::max(collectives, not_before) + time;
  };
  for (auto i = static_cast<std::size_t>(layers); i-- > 0;) {
    const auto unshard = [&](std::size_t of) {  // the older of two events in _FreeEventQueue
      gathered[of] = issue(computed[of + 3], gather);
    };
    if (i + 1 == static_cast<std::size_t>(layers)) unshard(i);  // _pre_backward_hook
    if (i > 0) unshard(i - 1);                                  // its _prefetch_handle
    computed[i] = std::max(gathered[i], computed[i + 1]) + layer;
    issue(computed[i], scatter);  // _post_backward_hook
  }
  return collectives;
}

TEST_CASE("a backward pass takes as long as PyTorch's order of gathers and scatters") {
  for (const BytesPerSecond bandwidth : {10_GBps, 15_GBps, 25_GBps, 100_GBps}) {
    World world = sharded_world(6, bandwidth);
    let_collectives_take(world, 0);
    const double gather = layer_gather(bandwidth), edges = edges_gather(world, bandwidth),
                 layer = 2 * layer_flops / 1e14;
    CHECK(
        world.cost(0).chunks[0].backward.duration.value() ==
        doctest::Approx(head_flops * 2 / 1e14 + backward_of_fsdp1(6, layer, gather, gather) + edges)
            .epsilon(1e-9));
  }
}

TEST_CASE("gradients of flat parameters are put together, cast and divided") {
  World world = sharded_world(4, 100_GBps);
  world.node.device.memory_bandwidth = 1000_GBps;
  world.plan.training.gradient_type = GradientType::fp32;
  const double parameters = 4 * 12 * 1024.0 * 1024 + embedding_parameters(world.model, 1).sum() +
                            head_parameters(world.model, 1, HeadPlace::with_embedding).sum();
  const auto backward = [&world] { return world.cost(0).chunks[0].backward.duration.value(); };
  const double before = backward();
  world.software.flat_parameters = true;
  // Put together 2 + 2 bytes, cast 2 + 4, divided 4 + 4.
  CHECK(backward() - before == doctest::Approx(18 * parameters / 1e12).epsilon(1e-6));
}

TEST_CASE("a stack's own share of the multiprocessors stands in for the device's") {
  World world = sharded_world(4, 100_GBps);
  let_collectives_take(world, 0.25);
  const double gather = layer_gather(100_GBps), edges = edges_gather(world, 100_GBps);
  for (const double share : {0.0, 0.5}) {
    world.software.exposed_gather_factor = share;
    CHECK(world.cost(0).chunks[0].forward.of(Part::data_comm).value() ==
          doctest::Approx((1 + 3 * share) * gather + edges).epsilon(1e-9));
  }
}

TEST_CASE("collectives that the host drives wait for each of their tensors") {
  World world = sharded_world(4, 100_GBps);
  world.plan.parallel.zero_prefetch = 0;
  const ChunkCost before = world.cost(0).chunks[0];
  // 12 tensors a layer, embedding and head 2, each 350 us and 2 ranks of 5 us; and each gathered byte is copied, two bytes of traffic.
  world.software.host_gathers =
      SoftwareProfile::HostGathers{.per_tensor = 350_us, .per_rank = 5_us, .tensors_per_layer = 12};
  const ChunkCost after = world.cost(0).chunks[0];
  const double tensors = 4 * 12 + 2, host = tensors * 360e-6;
  const auto gathered = [&](const ChunkCost& cost) {
    const PassOperations& pass = cost.operations->at(Direction::forward);
    return find(pass.layer, Label::gather_layer)->payload * 4.0 +
           find(pass.before, Label::gather_edges)->payload;
  };
  const double copies = memory_time(gathered(after) * 2.0, world.node.device).value();
  CHECK((after.forward.duration - before.forward.duration).value() ==
        doctest::Approx(host + copies).epsilon(1e-9));
  // Backward the layers' parameters are gathered, and all gradients scattered, in halves as well.
  const Bytes layers =
      find(after.operations->at(Direction::forward).layer, Label::gather_layer)->payload * 4.0;
  CHECK((after.backward.duration - before.backward.duration).value() ==
        doctest::Approx(host + 4 * 12 * 360e-6 + copies +
                        memory_time(layers * 2.0, world.node.device).value())
            .epsilon(1e-9));
}

TEST_CASE("a host that runs ahead of its gathers takes the launches of each tensor") {
  World world = sharded_world(4, 100_GBps);
  const ChunkCost before = world.cost(0).chunks[0];
  world.node.launch_slowdown = 2;
  const ChunkCost slower = world.cost(0).chunks[0];
  world.software.host_gathers = SoftwareProfile::HostGathers{
      .per_tensor = 350_us, .per_rank = 5_us, .tensors_per_layer = 12, .runs_ahead = true};
  const ChunkCost after = world.cost(0).chunks[0];
  // Gathers are prefetched as before; 12 tensors a layer, embedding and head 2, each 350 us and 2 ranks of 5 us, on a host half as fast.
  const double tensors = 4 * 12 + 2, host = 2 * tensors * 360e-6;
  CHECK((after.forward.floor.launch - slower.forward.floor.launch).value() ==
        doctest::Approx(host));
  // Backward the layers are gathered, and all gradients scattered.
  CHECK((after.backward.floor.launch - slower.backward.floor.launch).value() ==
        doctest::Approx(host + 2 * 4 * 12 * 360e-6));
  const auto unfloored = [](const ChunkCost& cost) {
    return cost.operations->at(Direction::forward).layer_kernels();
  };
  CHECK(unfloored(after) == unfloored(before));
  CHECK(after.forward.duration.value() > host);
  CHECK(after.forward.duration.value() < host + before.forward.duration.value());
  // Experts have three matrices each.
  world.model.moe = Transformer::Experts{};
  Transformer::Experts& moe = *world.model.moe;
  moe.experts = 8;
  moe.top_k = 2;
  moe.ffn_hidden = 512;
  world.model.gated_mlp = true;
  world.software.host_gathers.reset();
  const Seconds without = world.cost(0).chunks[0].forward.floor.launch;
  world.software.host_gathers = SoftwareProfile::HostGathers{
      .per_tensor = 350_us, .per_rank = 5_us, .tensors_per_layer = 12, .runs_ahead = true};
  CHECK((world.cost(0).chunks[0].forward.floor.launch - without).value() ==
        doctest::Approx(2 * (4 * (12 + 24) + 2) * 360e-6));
  // Adapters of two matrices have two tensors each, the only ones whose gradients are scattered.
  world.model.moe.reset();
  world.plan.training.lora.rank = 8;
  const ChunkCost adapted = world.cost(0).chunks[0];
  world.software.host_gathers.reset();
  const ChunkCost alone = world.cost(0).chunks[0];
  CHECK((adapted.forward.floor.launch - alone.forward.floor.launch).value() ==
        doctest::Approx(2 * (4 * (12 + 4) + 2) * 360e-6));
  CHECK((adapted.backward.floor.launch - alone.backward.floor.launch).value() ==
        doctest::Approx(2 * (4 * (12 + 4) + 4 * 4) * 360e-6));
}

TEST_CASE("gathers and scatters in pieces leave what their products do not last") {
  World world;
  world.plan.parallel.tensor = 2;
  world.plan.parallel.sequence_parallel = true;
  world.node.device.memory_bandwidth = BytesPerSecond{1e12};
  const auto exposed = [&world](double bandwidth) {
    world.node.interconnect.saturated_bandwidth = BytesPerSecond{bandwidth};
    return world.cost(1, {0, 1}).chunks[0].forward.of(Part::tensor_comm).value();
  };
  // The last stage: two gathers and scatters of a layer, and the head's gather, of T h 2 = 2 MiB: half an all-reduce each.
  const double slow = 2097152 / 1e9 / 2, fast = 2097152 / 100e9 / 2;
  CHECK(exposed(1e9) == doctest::Approx(5 * slow));
  world.plan.parallel.async_tensor_parallel = true;
  // Products of 2 T h^2 (3, 1, 4, 4) / t FLOPs at 10^14: one of two pieces hides as much as half of them last. Scatters end with a sum
  // of 1.5 times 2 MiB.
  const double hidden = 2.0 * 1024 * 1024 * 1024 * (3 + 1 + 4 + 4) / 2 / 1e14 / 2,
               sums = 2 * 1.5 * 2097152 / 1e12;
  CHECK(exposed(1e9) == doctest::Approx(5 * slow - hidden + sums));
  CHECK(exposed(100e9) == doctest::Approx(fast + 2 * fast - 2 * fast + sums).epsilon(0.05));
}

TEST_CASE("without torch.compile layers move what the stack's own count of operations says") {
  World world;
  world.node.device.memory_bandwidth = BytesPerSecond{1e12};
  LayerTraffic eager = world.software.layer_traffic;
  eager.forward.hidden += 100;
  world.software.eager_layer_traffic = eager;
  const double compiled = world.cost(0).chunks[0].forward.of(Part::compute).value();
  world.plan.training.compile = false;
  // 100 bytes for each of T h = 2^20 elements.
  CHECK(world.cost(0).chunks[0].forward.of(Part::compute).value() ==
        doctest::Approx(compiled + 100 * 1048576 / 1e12));
}

}  // namespace
}  // namespace windtunnel
