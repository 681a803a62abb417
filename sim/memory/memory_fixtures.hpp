#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "memory/memory_account.hpp"
#include "memory/memory_advice.hpp"
#include "schedule/in_flight.hpp"

namespace windtunnel::fixtures {

inline constexpr Bytes one_GiB = 1_GiB;
inline constexpr Bytes one_MiB = 1_MiB;

/// A plain GPT model with learned positions and Megatron's padding.
inline Transformer gpt(int layers, int hidden, int heads, int sequence, int vocab) {
  return {.name = "gpt",
          .layers = layers,
          .hidden = hidden,
          .heads = heads,
          .sequence = sequence,
          .vocab = vocab,
          .kv_heads = heads,
          .ffn_hidden = 4 * hidden,
          .projection_bias = {},
          .norm_bias = {}};
}

/// Usable memory and context of docs/memory.md, section 5 (the latter without a stack's
/// buckets).
inline Device v100_32gb() {
  Device device;
  device.name = "v100-32gb";
  device.memory_capacity = 32_GiB;
  device.usable_memory = 31.75 * one_GiB;
  device.context = 1_GiB;
  return device;
}
inline Device a100_80gb() {
  Device device;
  device.name = "a100-80gb";
  device.memory_capacity = 80_GiB;
  device.usable_memory = 79.2 * one_GiB;
  device.context = 2.3 * one_GiB;
  return device;
}

/// Stack A of docs/memory.md, section 2: ungrouped fp16 gradients; 2 + 2 + 6 stale + 12 = 22
/// bytes a parameter.
inline SoftwareProfile megatron_lm_2021() {
  SoftwareProfile software;
  software.name = "megatron-lm-2021";
  software.gradient_type = GradientType::fp16;
  software.states_fp16 = {.stale_gradients = 6};
  software.fixed_work = 46_MiB;
  return software;
}

/// Stacks E (fp16: 4 + 12/D, step 4/D) and F (bf16: 8 + 12/D) of docs/memory.md, section 2.
/// Context 3.24 GiB on A100.
inline SoftwareProfile megatron_deepspeed_2022() {
  SoftwareProfile software;
  software.name = "megatron-deepspeed-2022";
  software.gradient_type = GradientType::fp16;
  software.states_fp16 = {.step_temporary = 4};
  software.states_bf16 = {.gradients = 6};
  software.fixed_work = 46_MiB;
  software.extra_context = 0.94 * one_GiB;
  return software;
}

/// Stack C of docs/memory.md, section 2: 2 + 2 + 12, and an fp32 copy of the gradients in the
/// step.
inline SoftwareProfile contiguous_half_gradients() {
  SoftwareProfile software;
  software.name = "contiguous-half-gradients";
  software.gradient_type = GradientType::fp16;
  software.states_fp16 = software.states_bf16 = {.step_temporary = 4};
  software.fixed_work = 46_MiB;
  return software;
}

/// A model trained somehow somewhere; full recomputation and even stages unless a test changes
/// them.
struct World {
  Transformer model;
  Plan plan;
  SoftwareProfile software = contiguous_half_gradients();
  Device device = a100_80gb();
  MemoryReading reading = MemoryReading::steady_state;
  bool has_host = false;

  World(Transformer transformer, int tensor, int pipeline, int data, int micro_batch,
        int microbatches)
      : model(std::move(transformer)) {
    plan.training = {.global_batch = data * micro_batch * microbatches,
                     .micro_batch = micro_batch,
                     .gradient_type = GradientType::fp16,
                     .recompute = Recompute::full};
    plan.parallel.tensor = tensor;
    plan.parallel.pipeline = pipeline;
    plan.parallel.data = data;
    plan.gpus_per_node = 8;
    plan.microbatches = microbatches;
    plan.stage_layers.assign(static_cast<std::size_t>(pipeline), model.layers / pipeline);
  }

  /// Inputs with the schedule's closed-form counts; valid as long as this world.
  MemoryInputs inputs() const {
    MemoryInputs inputs;
    inputs.model = &model;
    inputs.plan = &plan;
    inputs.software = &software;
    inputs.reading = reading;
    inputs.has_host = has_host;
    inputs.device_of_stage.assign(static_cast<std::size_t>(plan.parallel.pipeline), &device);
    const InFlightOfStages held = count_in_flight(plan);
    inputs.in_flight = held.all;
    inputs.in_flight_with_gradients = held.with_gradients;
    return inputs;
  }
  /// With advice on nodes as of the plan, as many as a change needs.
  MemoryAccount account() const {
    MemoryAccount account = account_memory(inputs());
    if (account.fits) return account;
    account.advice = memory_advice(
        inputs(), account, [this](const PlanChoice& choice) -> std::optional<MemoryAccount> {
          const auto ranks = static_cast<int>(choice.parallel.num_ranks());
          const ClusterShape cluster{
              std::vector<int>(static_cast<std::size_t>(std::max(1, ranks / plan.gpus_per_node)),
                               plan.gpus_per_node)};
          auto made = make_plan(model, choice.training, choice.parallel, cluster, software);
          if (!std::holds_alternative<Plan>(made)) return std::nullopt;
          World changed = *this;
          changed.plan = std::get<Plan>(std::move(made));
          return account_memory(changed.inputs());
        });
    return account;
  }
};

/// t 1, p 2, D 1, b 1, m 4; four layers of h 1024 on each stage; sbh = 1024 * 1024 = 1 MiB; no constant part, so that sums are round.
inline World small_world() {
  World world(gpt(8, 1024, 16, 1024, 51200), 1, 2, 1, 1, 4);
  world.software.fixed_work = Bytes{};
  return world;
}

}  // namespace windtunnel::fixtures
