#include "memory/stage_states.hpp"

#include <doctest/doctest.h>

#include "memory/memory_fixtures.hpp"

using namespace windtunnel;
using namespace windtunnel::fixtures;

namespace {

/// Bytes per parameter while training, and the step's own.
void check(const StateBytes& bytes, double sum, double step_temporary) {
  CHECK(bytes.weights + bytes.gradients + bytes.stale_gradients + bytes.optimizer ==
        doctest::Approx(sum));
  CHECK(bytes.step_temporary == doctest::Approx(step_temporary));
}

Plan plan_with(int zero_stage, int data) {
  Plan plan;
  plan.training.gradient_type = GradientType::fp16;
  plan.parallel.zero_stage = zero_stage;
  plan.parallel.data = data;
  return plan;
}

}  // namespace

TEST_CASE("stacks cost the bytes per parameter of docs/memory.md") {
  Training training{.gradient_type = GradientType::fp16};
  check(state_bytes(training, megatron_lm_2021()), 22, 0);           // A: 2 + 2 + 6 + 12
  check(state_bytes(training, contiguous_half_gradients()), 16, 4);  // C: 2 + 2 + 12, step 4
  check(state_bytes(training, megatron_deepspeed_2022()), 16, 4);    // E before sharding: 4 + 12
  training.precision = Precision::bf16;
  check(state_bytes(training, megatron_deepspeed_2022()), 20, 0);  // F before sharding: 8 + 12
}

TEST_CASE("fp32 gradients turn stacks with half gradients into stack D") {
  const Training training{.gradient_type = GradientType::fp32};
  for (const SoftwareProfile& software : {contiguous_half_gradients(), megatron_lm_2021()}) {
    check(state_bytes(training, software), 18, 0);  // 2 + 4 + 12
    CHECK_FALSE(state_bytes(training, software).gradients_freed_each_step);
  }
}

TEST_CASE(
    "a stack whose own gradients are fp32 keeps its bytes, and turns into C when asked for half") {
  SoftwareProfile software = contiguous_half_gradients();
  software.gradient_type = GradientType::fp32;
  software.states_fp16 = {.gradients = 4};
  check(state_bytes({.gradient_type = GradientType::fp32}, software), 18, 0);
  check(state_bytes({.gradient_type = GradientType::fp16}, software), 16, 4);
}

TEST_CASE("fp16 and bf16 gradients are the same to a stack with half gradients") {
  check(state_bytes({.gradient_type = GradientType::bf16}, megatron_lm_2021()), 22, 0);
}

TEST_CASE("fp32 training has no master weights: 4 + 4 + 8") {
  for (Precision precision : {Precision::fp32, Precision::tf32})
    check(state_bytes({.precision = precision}, megatron_lm_2021()), 16, 0);
}

TEST_CASE("SGD has one moment where Adam has two") {
  const Training half{.gradient_type = GradientType::fp16, .optimizer = Optimizer::sgd};
  check(state_bytes(half, contiguous_half_gradients()), 12, 4);  // 2 + 2 + master 4 + momentum 4
  const Training single{.precision = Precision::fp32, .optimizer = Optimizer::sgd};
  check(state_bytes(single, contiguous_half_gradients()), 12, 0);  // 4 + 4 + 4
}

TEST_CASE("each ZeRO stage divides one more state by the data-parallel ways") {
  // 1000 parameters, D = 4, stack C: 2 + 2 + 12 bytes and 4 in the step.
  const double weights[] = {2000, 2000, 2000, 500}, gradients[] = {2000, 2000, 500, 500};
  const double optimizer[] = {12000, 3000, 3000, 3000}, step[] = {4000, 1000, 1000, 1000};
  for (int zero = 0; zero <= 3; ++zero) {
    CAPTURE(zero);
    const auto at = static_cast<std::size_t>(zero);
    const StageStates states = stage_states(plan_with(zero, 4), contiguous_half_gradients(), 1000);
    CHECK(states.weights == Bytes{weights[at]});
    CHECK(states.live_gradients == Bytes{gradients[at]});
    CHECK(states.freed_gradients == Bytes{gradients[at]});
    CHECK(states.optimizer == Bytes{optimizer[at]});
    CHECK(states.step_temporary == Bytes{step[at]});
  }
}

TEST_CASE("the first step of stack A makes 8 bytes of moments and 4 of fp32 gradients") {
  const StageStates states = stage_states(plan_with(0, 1), megatron_lm_2021(), 1000);
  CHECK(states.moments == Bytes{8000});
  CHECK(states.main_gradients == Bytes{4000});  // stale 6 = last step's live 2 + fp32 main 4
}
