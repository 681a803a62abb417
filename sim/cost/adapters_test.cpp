#include "cost/adapters.hpp"

#include <doctest/doctest.h>

#include "cost/model_held.hpp"
#include "cost/stage_cost.hpp"

namespace windtunnel {
namespace {

/// h 8, four heads of 2, two of keys and values, a gated MLP of 16; adapters of rank 2.
struct AdaptedModel {
  Transformer model;
  Plan plan;
  AdaptedModel() {
    model.family = "llama";
    model.layers = 2;
    model.hidden = 8;
    model.heads = 4;
    model.kv_heads = 2;
    model.ffn_hidden = 16;
    model.gated_mlp = true;
    model.sequence = 10;
    plan.training.micro_batch = 1;
    plan.training.precision = Precision::bf16;
    plan.training.attention = Attention::flash;
    plan.training.lora.rank = 2;
    plan.stage_layers = {2};
  }
  Lora& lora() { return plan.training.lora; }
};

}  // namespace

TEST_CASE("an adapter has r (in + out) parameters, and its products 2 T r (in + out) FLOPs") {
  AdaptedModel world;
  // q 8 -> 8 and v 8 -> 4: 2 (16 + 12) = 56
  CHECK(adapter_parameters(world.model, world.lora(), LayerHalf::attention) == 56);
  CHECK(adapter_parameters(world.model, world.lora(), LayerHalf::feed_forward) == 0);
  LayerShape shape;
  const KernelWork forward = adapters_forward(world.model, world.lora(), LayerHalf::attention,
                                              shape, AdapterKernels::fused);
  CHECK(product_flops(forward.linear) == Flops{2 * 10 * 56});
  // Their outputs are multiplied and added: 3 values of 2 bytes, 10 tokens, 8 + 4 columns.
  CHECK(forward.memory_traffic == Bytes{3 * 2 * 10 * 12});
  const KernelWork backward = adapters_backward(world.model, world.lora(), LayerHalf::attention,
                                                shape, AdapterKernels::fused);
  CHECK(product_flops(backward.linear) == Flops{2 * 2 * 10 * 56});
  shape.tensor = 2;
  CHECK(product_flops(adapters_forward(world.model, world.lora(), LayerHalf::attention, shape,
                                       AdapterKernels::fused)
                          .linear) == Flops{10 * 56});
  world.lora().targets = {LoraTarget::o_proj, LoraTarget::gate_proj, LoraTarget::down_proj};
  CHECK(adapter_parameters(world.model, world.lora(), LayerHalf::attention) == 2 * 16);
  CHECK(adapter_parameters(world.model, world.lora(), LayerHalf::feed_forward) == 2 * (24 + 24));
}

TEST_CASE("adapters whose operations are kernels of their own read and write each value again") {
  AdaptedModel world;
  LayerShape shape;
  shape.precision = Precision::bf16;
  // Q 8 -> 8 and V 8 -> 4, ten tokens: 160 values go in, 120 come out. Bytes a value, forward and backward:
  struct Case {
    AdapterKernels kernels;
    double dropout, forward_in, forward_out, backward_in, backward_out;
    int forward_kernels, backward_kernels;
  };
  for (
      const Case& each : std::vector<Case>{
          {AdapterKernels::fused, 0, 0, 6, 6, 0, 1, 1},
          {AdapterKernels::fused, 0.1, 5, 6, 5 + 6, 0, 2, 2},
          // multiplied 2 + 2, added 2 + 2 + 2; gradient multiplied 4, that of the input added to the frozen product's 6
          {AdapterKernels::by_operation, 0, 0, 10, 6, 4, 2, 2},
          {AdapterKernels::by_operation, 0.1, 5, 10, 11, 4, 3, 3},
          // to fp32 2 + 4, dropout 4 + 4 + 1, to bf16 4 + 2
          {AdapterKernels::autocast_fp32, 0.1, 21, 10, 21 + 6, 4, 5, 5},
          {AdapterKernels::autocast_fp32, 0, 12, 10, 12 + 6, 4, 4, 4},
          // to fp32 and dropout; multiplied 4 + 4, added 2 + 4 + 4, to bf16 6; backward to fp32 and bf16 12, multiplied 8
          {AdapterKernels::fp32, 0.1, 15, 24, 15 + 6, 20, 5, 6}}) {
    CAPTURE(each.dropout);
    CAPTURE(each.forward_in);
    world.lora().dropout = each.dropout;
    const KernelWork forward = adapters_forward(world.model, world.lora(), LayerHalf::attention,
                                                shape, each.kernels),
                     backward = adapters_backward(world.model, world.lora(), LayerHalf::attention,
                                                  shape, each.kernels);
    CHECK(forward.memory_traffic == Bytes{160 * each.forward_in + 120 * each.forward_out});
    CHECK(backward.memory_traffic == Bytes{160 * each.backward_in + 120 * each.backward_out});
    CHECK(forward.memory_kernels == 2 * each.forward_kernels);
    CHECK(backward.memory_kernels == 2 * each.backward_kernels);
  }
  // Kept of 16 input columns a token: dropped values and their mask; and r values of two adapters.
  const auto kept = [&world](AdapterKernels kernels, double dropout) {
    world.lora().dropout = dropout;
    return kept_by_adapters(world.model, world.lora(), LayerHalf::attention, 1, kernels, Bytes{2});
  };
  CHECK(kept(AdapterKernels::fused, 0) == Bytes{2 * 2 * 2});
  CHECK(kept(AdapterKernels::by_operation, 0.1) == Bytes{16 * 3 + 2 * 2 * 2});
  CHECK(kept(AdapterKernels::autocast_fp32, 0.1) == Bytes{16 * 3 + 2 * 2 * 2});
  CHECK(kept(AdapterKernels::fp32, 0.1) == Bytes{16 * 5 + 2 * 2 * 4});
  CHECK(kept(AdapterKernels::fp32, 0) == Bytes{16 * 4 + 2 * 2 * 4});
  // The input of a row-parallel matrix is divided.
  world.lora().targets = {LoraTarget::o_proj};
  world.lora().dropout = 0.1;
  CHECK(kept_by_adapters(world.model, world.lora(), LayerHalf::attention, 2,
                         AdapterKernels::by_operation, Bytes{2}) == Bytes{4 * 3 + 2 * 2});
}

TEST_CASE("a frozen product keeps no input, and every second backward product is left out") {
  AdaptedModel world;
  const double sbh = 10 * 8;
  const auto attention = [&] {
    return ModelHeld(world.model, world.plan, {.transposes_attention = true}).attention();
  };
  const auto mlp = [&] { return ModelHeld(world.model, world.plan).feed_forward(); };
  // Inputs of the norm and of Q and V; Q, half of it K and V each, and the output once, as the projection has no adapter; and r values
  // a token of two adapters.
  CHECK(attention().at(Kept::tensors).whole == Bytes{2 * 2 * sbh + 2 * 2 * 2 * 10});
  CHECK(attention().at(Kept::tensors).divided == Bytes{2 * (1 + 1 + 1) * sbh});
  // The norm's input; what gate and up give, 2 h each.
  CHECK(mlp().at(Kept::tensors).whole == Bytes{2 * sbh});
  CHECK(mlp().at(Kept::tensors).divided == Bytes{2 * 4 * sbh});
  world.lora().targets = {LoraTarget::o_proj, LoraTarget::up_proj, LoraTarget::down_proj};
  CHECK(attention().at(Kept::tensors).whole == Bytes{2 * sbh + 2 * 2 * 10});
  CHECK(attention().at(Kept::tensors).divided == Bytes{2 * (1 + 1 + 2) * sbh});
  CHECK(mlp().at(Kept::tensors).whole == Bytes{2 * 2 * sbh + 2 * 2 * 2 * 10});
  CHECK(mlp().at(Kept::tensors).divided == Bytes{2 * 6 * sbh});
  // Of a divided sequence adapters keep the whole input of first products, in two shares of the group.
  world.plan.parallel.tensor = 2;
  world.plan.parallel.sequence_parallel = true;
  CHECK(mlp().at(Kept::tensors).whole == Bytes{2 * (1 + 2) * sbh + 2 * 2 * 2 * 10});
  world.plan.parallel.tensor = 1;
  world.plan.parallel.sequence_parallel = false;
  // Products in eight bits keep no operands either: what adapters read has 16 bits.
  world.plan.training.precision = Precision::fp8;
  CHECK(attention().at(Kept::tensors).divided == Bytes{2 * (1 + 1 + 2) * sbh});
  CHECK(mlp().at(Kept::tensors).whole == Bytes{2 * 2 * sbh + 2 * 2 * 2 * 10});
  CHECK(mlp().at(Kept::tensors).divided == Bytes{2 * 6 * sbh});
  const KernelWork work = layer_backward(world.model, {}).attention;
  const KernelWork passed = without_weight_gradients(work);
  CHECK(product_flops(passed.linear) == product_flops(work.linear) * (1.0 / 2));
}

TEST_CASE("next to weights of four bits PEFT's norms, and what passes between layers, are fp32") {
  AdaptedModel world;
  const double sbh = 10 * 8;
  const auto input = [&](AdapterKernels adapters) {
    return ModelHeld(world.model, world.plan, {}, adapters).attention().at(Kept::input).whole;
  };
  CHECK(input(AdapterKernels::autocast_fp32) == Bytes{2 * sbh});
  world.lora().frozen_type = FrozenType::nf4;
  CHECK(input(AdapterKernels::autocast_fp32) == Bytes{4 * sbh});
  CHECK(input(AdapterKernels::by_operation) == Bytes{2 * sbh});
  world.plan.parallel.zero_stage = 3;
  CHECK(input(AdapterKernels::autocast_fp32) == Bytes{2 * sbh});
  world.plan.parallel.zero_stage = 0;
  // A norm keeps its input, which is its own fp32 copy, and the normalised values: 8 where 2 + 4 is kept of bf16.
  const auto of_norm = [&](AdapterKernels adapters) {
    const auto kept = [&](bool keeps) {
      return ModelHeld(world.model, world.plan, {.keeps_norms = keeps}, adapters)
          .feed_forward()
          .at(Kept::tensors)
          .whole;
    };
    return kept(true) - kept(false);
  };
  CHECK(of_norm(AdapterKernels::by_operation) == Bytes{(2 + 4 - 2) * sbh});
  CHECK(of_norm(AdapterKernels::autocast_fp32) == Bytes{(4 + 4 - 4) * sbh});
}

TEST_CASE("of a model with adapters they alone are trained") {
  AdaptedModel world;
  const SoftwareProfile software;
  StageCostInputs in;
  in.model = &world.model;
  in.plan = &world.plan;
  in.software = &software;
  const ChunkRole role{.layers = 2, .first = true, .last = true};
  const ParameterCounts lora = count_parameters(chunk_operations(in, role).at(Direction::forward));
  world.plan.training.lora.rank = 0;
  const ParameterCounts all = count_parameters(chunk_operations(in, role).at(Direction::forward));
  CHECK(lora.frozen == all.all);
  CHECK(lora.trained() == 2 * 56);
  CHECK(lora.weights == all.all + 2 * 56);
  CHECK(lora.gradients == 2 * 56);
  CHECK(lora.optimizer == 2 * 56);
  // Two layers of 8 (8 + 8 + 8) + 3 · 8 · 16 matrix elements.
  CHECK(lora.frozen_matrices == 2 * (8 * 24 + 384));
  CHECK(all.matrices == 2 * (8 * 24 + 384));
}

TEST_CASE("experts are frozen next to adapters, in their share of the layers and of the ranks") {
  AdaptedModel world;
  world.model.moe = Transformer::Experts{};
  Transformer::Experts& moe = *world.model.moe;
  moe.experts = 8;
  moe.top_k = 2;
  moe.ffn_hidden = 16;
  world.plan.parallel.expert = world.plan.parallel.data = 4;
  const SoftwareProfile software;
  StageCostInputs in;
  in.model = &world.model;
  in.plan = &world.plan;
  in.software = &software;
  const ChunkRole role{.layers = 2, .first = true, .last = true, .expert_layers = 1};
  const ParameterCounts lora = count_parameters(chunk_operations(in, role).at(Direction::forward));
  // Two of eight experts of 3 · 8 · 16 in one of the layers.
  CHECK(lora.experts == 2 * 384);
  CHECK(lora.trained_experts == 0);
  CHECK(lora.trained() == 2 * 56);
  CHECK(lora.gradients == 2 * 56);
  // Attention twice, a gated MLP of 16 once, the router of 8 · 8, and the experts.
  CHECK(lora.frozen_matrices == 2 * 8 * 24 + 384 + 64 + 2 * 384);
  world.lora().rank = 0;
  const ParameterCounts all = count_parameters(chunk_operations(in, role).at(Direction::forward));
  CHECK(all.trained_experts == all.experts);
  CHECK(all.matrices == lora.frozen_matrices);
  // Kept of ten tokens in two copies: what gate and up give, 16 values each in two bytes, and inputs and the last product's input only
  // where there are gradients of weights.
  const auto kept = [&] {
    return ModelHeld(world.model, world.plan).experts().at(Kept::tensors).sum();
  };
  const Bytes trained = kept();
  world.lora().rank = 2;
  CHECK(kept() == Bytes{2 * 2 * 10 * 2 * 16.0});
  CHECK(trained == kept() + Bytes{2 * 2 * 10 * (8 + 16.0)});
}

}  // namespace windtunnel
