// Bytes of states have their tests with the memory account (sim/memory/memory_savings_test.cpp); here stand the combinations that are refused.
#include "plan/plan_check.hpp"

#include <doctest/doctest.h>

#include <string>

#include "plan/plan.hpp"

namespace windtunnel {
namespace {

/// A llama of 32 layers, trained in bf16 on a stack with bf16 weights.
struct World {
  Transformer model;
  Training training;
  Parallel parallel;
  SoftwareProfile software;
  World() {
    model.layers = 32;
    model.hidden = 4096;
    model.heads = model.kv_heads = 32;
    model.gated_mlp = true;
    training.precision = Precision::bf16;
    software.name = "stack";
  }
  /// Rejections as "key: message", one after the other.
  std::string refused() const {
    RejectionList found;
    check_states({model, training, parallel, software}, found);
    check_adapters({model, training, parallel, software}, found);
    std::string text;
    for (const PlanRejection& each : found.all())
      text += (text.empty() ? "" : "; ") + each.key + ": " + each.message;
    return text;
  }
};

}  // namespace

TEST_CASE("what is not asked for is not refused") { CHECK(World().refused().empty()); }

TEST_CASE("the copy of the weights fits the weights") {
  World world;
  world.training.main_parameters = MainParameters::fp32_remainder;
  CHECK(world.refused().empty());
  world.training.precision = Precision::fp16;
  CHECK(world.refused() ==
        "/training/main_params_dtype: a remainder completes bf16 weights, but precision is fp16");
  world.training.precision = Precision::fp32;
  CHECK(world.refused() ==
        "/training/main_params_dtype: weights of precision fp32 are their own main parameters");
  world.training.precision = Precision::bf16;
  world.software.states_bf16.weights = 4;
  CHECK(world.refused().starts_with("/training/main_params_dtype: software stack keeps fp32"));
  world.training.main_parameters = MainParameters::none;
  CHECK(world.refused().empty());
}

TEST_CASE("Muon needs whole matrices, wide moments and a GPU") {
  World world;
  world.training.optimizer = Optimizer::muon;
  world.parallel.zero_stage = 1;
  CHECK(world.refused().empty());
  world.parallel.zero_stage = 3;
  CHECK(world.refused().starts_with("/training/optimizer: Muon steps whole matrices"));
  world.parallel.zero_stage = 0;
  world.training.first_moment = MomentType::int8;
  CHECK(world.refused().starts_with("/training/exp_avg_dtype: Muon's momentum"));
  world.training.first_moment = MomentType::bf16;
  world.training.optimizer_offload = 0.5;
  CHECK(world.refused() ==
        "/training/optimizer_offload_fraction: a host steps Adam or SGD, not Muon");
}

TEST_CASE("SGD has one moment, and nothing overlaps what is not offloaded") {
  World world;
  world.training.optimizer = Optimizer::sgd;
  world.training.second_moment = MomentType::bf16;
  world.training.overlap_optimizer_offload = true;
  CHECK(world.refused() ==
        "/training/exp_avg_sq_dtype: SGD has one moment, whose type is exp_avg_dtype; "
        "/training/overlap_optimizer_offload: no optimizer states are offloaded");
}

TEST_CASE("adapters are for matrices that the model has, of ranks that tensor divides") {
  World world;
  world.training.lora.rank = 16;
  CHECK(world.refused().empty());
  world.parallel.pipeline = 2;
  world.parallel.stage_layers = {32, 0};
  CHECK(world.refused() ==
        "/training/lora_rank: adapters are not modelled for stages without layers");
  // The same without being said: the embedding, which counts as two layers, is the first stage alone.
  world.model.layers = 2;
  world.parallel.stage_layers = {};
  world.parallel.edge_layers.embedding = 2;
  CHECK(world.refused() ==
        "/training/lora_rank: adapters are not modelled for stages without layers");
  world.parallel.edge_layers = {};
  world.parallel.pipeline = 1;
  world.model.layers = 32;
  world.parallel.tensor = 32;
  CHECK(world.refused() == "/training/lora_rank: tensor 32 does not divide lora_rank 16");
  world.parallel.tensor = 1;
  world.training.lora.rank = 4096;
  CHECK(world.refused().starts_with("/training/lora_rank: lora_rank 4096 is no less"));
  world.training.lora.rank = 16;
  world.training.lora.targets = {LoraTarget::gate_proj};
  world.model.gated_mlp = false;
  CHECK(world.refused().starts_with("/training/lora_target_modules: the model's MLP has no gate"));
  world.model.moe = Transformer::Experts{};
  CHECK(world.refused() == "/training/lora_target_modules: adapters of experts are not modelled");
  world.training.lora.targets = {LoraTarget::q_proj, LoraTarget::o_proj};
  CHECK(world.refused().empty());
  world.training.lora.frozen_type = FrozenType::nf4;
  CHECK(world.refused() == "/training/frozen_dtype: experts in nf4 are not modelled");
  world.training.lora.frozen_type = FrozenType::as_passes;
  world.model.moe = {};
  world.training.precision = Precision::fp8;
  CHECK(world.refused().empty());
  world.training.fp8_recipe = Fp8Recipe::row;
  CHECK(world.refused() ==
        "/training/lora_rank: adapters are not modelled for products in fp8 with a scale for each "
        "row");
  world.training.fp8_recipe = Fp8Recipe::tensor;
  world.training.lora.frozen_type = FrozenType::nf4;
  CHECK(world.refused() ==
        "/training/frozen_dtype: weights in nf4 are cast to 16 bits for their products, not to "
        "fp8");
  world.training.lora.rank = 0;
  CHECK(world.refused() == "/training/frozen_dtype: no weights are frozen: lora_rank is 0");
}

}  // namespace windtunnel
