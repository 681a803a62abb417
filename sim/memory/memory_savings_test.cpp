// Options that make a run fit: narrower states, states and activations on the host, adapters.
#include <doctest/doctest.h>

#include <string>

#include "memory/memory_account.hpp"
#include "memory/memory_fixtures.hpp"
#include "plan/plan.hpp"

using namespace windtunnel;
using namespace windtunnel::fixtures;

namespace {

/// bf16 weights and gradients on stack C: 2 + 2 + 12 bytes a parameter, and 4 in the step.
Training half_training() {
  return {.precision = Precision::bf16, .gradient_type = GradientType::bf16};
}

double sum_of(const Training& training) {
  const StateBytes bytes = state_bytes(training, contiguous_half_gradients());
  return bytes.weights + bytes.gradients + bytes.optimizer;
}

void check_adds_up(const StageMemory& stage) {
  CHECK(stage.weights + stage.gradients + stage.optimizer + stage.activations + stage.buffers ==
        stage.allocated);
  CHECK(sum_at(stage.tensors, stage.peak) == stage.allocated);
}

Bytes held(const StageMemory& stage, HeldKind kind) {
  Bytes sum{};
  for (const HeldTensor& tensor : stage.tensors)
    if (tensor.kind == kind) sum += tensor.bytes;
  return sum;
}

}  // namespace

TEST_CASE("moments cost their own types: 8 bytes of Adam become 4 in bf16 and 2 1/32 in int8") {
  Training training = half_training();
  CHECK(sum_of(training) == 16);
  training.first_moment = training.second_moment = MomentType::bf16;
  CHECK(sum_of(training) == 12);
  training.first_moment = training.second_moment = MomentType::int8;
  CHECK(sum_of(training) == 2 + 2 + 4 + 2 * (1 + 4.0 / 256));
  training.first_moment = MomentType::fp8;
  training.second_moment = MomentType::fp16;
  CHECK(sum_of(training) == 2 + 2 + 4 + 1 + 2);
  training.optimizer = Optimizer::sgd;
  CHECK(sum_of(training) == 2 + 2 + 4 + 1);
}

TEST_CASE("a remainder of 16 bits is half of an fp32 copy, and its step makes no fp32 gradients") {
  Training training = half_training();
  training.main_parameters = MainParameters::fp32_remainder;
  CHECK(sum_of(training) == 2 + 2 + 2 + 8);
  const StateBytes bytes = state_bytes(training, contiguous_half_gradients());
  CHECK(bytes.master == 2);
  CHECK(bytes.step_temporary == 0);
  training.main_parameters = MainParameters::fp32;
  CHECK(sum_of(training) == 16);
}

TEST_CASE("weights that are stepped themselves have no copy, on stacks with fp32 weights too") {
  Training training = half_training();
  training.main_parameters = MainParameters::none;
  training.first_moment = training.second_moment = MomentType::bf16;
  CHECK(sum_of(training) == 2 + 2 + 4);
  SoftwareProfile wide;  // as torchtitan: 4 + 4 + 8
  wide.states_bf16 = {.weights = 4, .gradients = 4, .optimizer = 8};
  const StateBytes bytes = state_bytes(training, wide);
  CHECK(bytes.weights == 2);
  CHECK(bytes.gradients == 2);
  CHECK(bytes.optimizer == 4);
}

TEST_CASE("the step moves each byte of a state twice") {
  SoftwareProfile software = contiguous_half_gradients();
  software.optimizer_bytes = 40;
  Training training = half_training();
  CHECK(step_bytes(training, software) == 40);
  training.first_moment = MomentType::bf16;  // 2 bytes less, read and written
  CHECK(step_bytes(training, software) == 36);
  training.main_parameters = MainParameters::fp32_remainder;
  CHECK(step_bytes(training, software) == 32);
}

TEST_CASE("a parameter that Muon steps has one moment, and others have Adam's two") {
  Training training = half_training();
  training.optimizer = Optimizer::muon;
  ParameterCounts parameters{.all = 1000, .weights = 1000, .gradients = 1000, .optimizer = 500};
  parameters.matrices = 400;
  Bytes moments{}, master{};
  for (const HeldTensor& tensor : state_tensors(training, contiguous_half_gradients(), parameters,
                                                MemoryReading::steady_state)) {
    if (tensor.kind == HeldKind::moments) moments += tensor.bytes;
    if (tensor.kind == HeldKind::master) master += tensor.bytes;
  }
  CHECK(moments == Bytes{4 * 400 + 8 * 100});
  CHECK(master == Bytes{4 * 500});
}

TEST_CASE("Muon counts the matrices of a stage's layers") {
  World world = small_world();
  const Bytes adam = held(world.account().stages.front(), HeldKind::moments);
  world.plan.training.optimizer = Optimizer::muon;
  const StageMemory stage = world.account().stages.front();
  // Four layers of 12 h² each have 4 bytes less.
  CHECK(adam - held(stage, HeldKind::moments) == Bytes{4.0 * 4 * 12 * 1024 * 1024});
  // The widest matrix, 1024 by 4096: 16 MiB of update, 2 · 8 MiB of X, 2 · 2 MiB of A and B.
  CHECK(held(stage, HeldKind::orthogonalisation) == 36_MiB);
  check_adds_up(stage);
}

TEST_CASE("what the host keeps of the optimizer is gone from the GPU, gradients stay") {
  World world = small_world();
  const StageMemory whole = world.account().stages.front();
  world.plan.training.optimizer_offload = 0.25;
  const StageMemory stage = world.account().stages.front();
  for (const HeldKind kind : {HeldKind::master, HeldKind::moments, HeldKind::step_temporary})
    CHECK(held(stage, kind) == held(whole, kind) * 0.75);
  CHECK(held(stage, HeldKind::gradients) == held(whole, HeldKind::gradients));
  check_adds_up(stage);
}

TEST_CASE("half of the activations on the host: two layers' share is on its way") {
  World world = small_world();
  CHECK(world.account().stages.front().activation_per_microbatch == 11_MiB);  // 4 · 2 + 2 + 1
  world.plan.training.activation_offload = 0.5;
  const StageMemory stage = world.account().stages.front();
  CHECK(stage.activation_per_microbatch == 7_MiB);  // 4 · 1 + 2 + 1
  CHECK(held(stage, HeldKind::reloaded) == 2_MiB);  // of two layers 1 MiB each
  check_adds_up(stage);
}

TEST_CASE("adapters alone have gradients and optimizer states") {
  World world = small_world();
  world.plan.training.precision = Precision::bf16;
  const double all = world.account().stages.front().parameters;
  world.plan.training.lora.rank = 16;
  const StageMemory stage = world.account().stages.front();
  // 16 (1024 + 1024) for queries and for values, four layers.
  const double adapters = 4 * 2 * 16 * 2048;
  CHECK(stage.parameters == all + adapters);
  CHECK(held(stage, HeldKind::frozen_weights) == Bytes{2 * all});
  CHECK(held(stage, HeldKind::weights) == Bytes{2 * adapters});
  CHECK(held(stage, HeldKind::gradients) == Bytes{2 * adapters});
  CHECK(held(stage, HeldKind::master) == Bytes{4 * adapters});
  CHECK(held(stage, HeldKind::moments) == Bytes{8 * adapters});
  // An adapter's matrix, 16 by 1024 in 2 bytes.
  CHECK(held(stage, HeldKind::weight_gradient) == Bytes{32.0 * 1024});
  check_adds_up(stage);
}

TEST_CASE("frozen weights whose products take eight bits are kept as the stack keeps weights") {
  World world = small_world();
  world.plan.training.precision = Precision::fp8;
  world.plan.training.lora.rank = 16;
  const double matrices = 4.0 * 12 * 1024 * 1024;
  const StageMemory both = world.account().stages.front();
  CHECK(held(both, HeldKind::cast_weights) == Bytes{2 * matrices});  // in both layouts
  check_adds_up(both);
  world.software.fp8_parameters = true;
  const StageMemory stage = world.account().stages.front();
  CHECK(held(stage, HeldKind::cast_weights) == Bytes{});
  CHECK(held(stage, HeldKind::frozen_weights) == held(both, HeldKind::frozen_weights));
  CHECK(held(stage, HeldKind::weights) == held(both, HeldKind::weights));
  check_adds_up(stage);
}

TEST_CASE("matrices in nf4 cost half a byte and their scales, and one is cast at a time") {
  World world = small_world();
  world.plan.training.precision = Precision::bf16;
  world.plan.training.lora.rank = 16;
  const Bytes whole = held(world.account().stages.front(), HeldKind::frozen_weights);
  world.plan.training.lora.frozen_type = FrozenType::nf4;
  const StageMemory stage = world.account().stages.front();
  // Four layers of 12 h²: from 2 bytes to 1/2 + 1/64 + 1/4096.
  const double matrices = 4.0 * 12 * 1024 * 1024;
  const Bytes saved = whole - held(stage, HeldKind::frozen_weights);
  CHECK(saved.value() == doctest::Approx(matrices * (1.5 - 1.0 / 64 - 1.0 / 4096)).epsilon(1e-12));
  CHECK(held(stage, HeldKind::cast_weights) == 8_MiB);  // h by 4 h
  check_adds_up(stage);
}

TEST_CASE(
    "matrices in nf4 that replicas share are gathered packed, and their scales are not shared") {
  World world = small_world();
  world.plan.training.precision = Precision::bf16;
  world.plan.training.lora.rank = 16;
  world.plan.parallel.data = 4;
  world.plan.parallel.zero_stage = 3;
  world.plan.parallel.reshard_after_forward = true;
  world.software.sharded_parameters = ShardedParameters::flat;
  const StageMemory whole = world.account().stages.front();
  world.plan.training.lora.frozen_type = FrozenType::nf4;
  const StageMemory packed = world.account().stages.front();
  // Four layers of 12 h²: of each weight a rank keeps a quarter of 1/2 instead of 2 bytes, and all of 1/64 + 1/4096.
  const double layer = 12.0 * 1024 * 1024, scales = 1.0 / 64 + 1.0 / 4096;
  const auto saved = [&](HeldKind kind) {
    return (held(whole, kind) - held(packed, kind)).value();
  };
  CHECK(saved(HeldKind::frozen_weights) ==
        doctest::Approx(4 * layer * (1.5 / 4 - scales)).epsilon(1e-12));
  // A layer that computes and the next one are whole.
  CHECK(saved(HeldKind::gathered) + saved(HeldKind::prefetched) ==
        doctest::Approx(2 * layer * 1.5).epsilon(1e-12));
  check_adds_up(packed);
}

TEST_CASE("advice names the host where it takes states or activations, and how much of them") {
  World world = small_world();
  world.plan.training.recompute = Recompute::full;
  world.plan.parallel.schedule = default_schedule();
  const Bytes needed = world.account().stages.front().required;
  world.device.usable_memory = needed - 200_MiB;
  const auto advice = [&world](bool has_host) {
    world.has_host = has_host;
    return world.account().advice;
  };
  // Others fit too; they are named first.
  CHECK(advice(true).find("pipeline 4") != std::string::npos);
  CHECK(advice(false).find("offload") == std::string::npos);
  // A single stage of one layer, one sample and one head leaves nothing else.
  World tight(gpt(1, 1024, 1, 1024, 51200), 1, 1, 1, 1, 1);
  tight.software.fixed_work = Bytes{};
  tight.plan.training.first_moment = MomentType::bf16;
  const StageMemory stage = tight.account().stages.front();
  // 0.19 of the optimizer's bytes: two tenths.
  tight.device.usable_memory =
      stage.required - stage.optimizer * (0.19 * tight.software.fragmentation);
  CHECK(tight.account().advice.find("offload") == std::string::npos);
  tight.has_host = true;
  CHECK(tight.account().advice.find("fits with optimizer_offload_fraction 0.2") !=
        std::string::npos);
}
