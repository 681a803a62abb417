#include <doctest/doctest.h>

#include "memory/memory_account.hpp"
#include "memory/memory_fixtures.hpp"
#include "plan/plan.hpp"

using namespace windtunnel;
using namespace windtunnel::fixtures;

namespace {

/// Bytes per parameter while training, and the step's own.
void check(const StateBytes& bytes, double sum, double step_temporary) {
  CHECK(bytes.weights + bytes.gradients + bytes.stale_gradients + bytes.optimizer ==
        doctest::Approx(sum));
  CHECK(bytes.step_temporary == doctest::Approx(step_temporary));
}

Bytes bytes_of(const std::vector<HeldTensor>& tensors, HeldKind kind) {
  Bytes sum{};
  for (const HeldTensor& tensor : tensors)
    if (tensor.kind == kind) sum += tensor.bytes;
  return sum;
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

TEST_CASE("gradients of a pass beside their sums are there in a layer's backward pass alone") {
  SoftwareProfile software = contiguous_half_gradients();
  software.states_fp16.pass_gradients = 2;
  software.states_fp16.gradients_freed_each_step = false;
  const ParameterCounts one{.all = 1, .weights = 1, .gradients = 1, .optimizer = 1};
  const auto tensors = state_tensors({.gradient_type = GradientType::fp16}, software, one,
                                     MemoryReading::steady_state);
  CHECK(sum_at(tensors, Moment::backward) == 18_B);  // 2 + 2 + 12 and 2
  CHECK(sum_at(tensors, Moment::head) == 16_B);
  CHECK(sum_at(tensors, Moment::step) == 20_B);  // 4 of its own
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

TEST_CASE("each state costs its bytes for the parameters that the rank keeps it of") {
  const Training training{.gradient_type = GradientType::fp16};
  // Stack C: 2 + 2 + 12 bytes and 4 in the step.
  const std::vector<HeldTensor> states =
      state_tensors(training, contiguous_half_gradients(),
                    {.all = 1000, .weights = 500, .gradients = 250, .optimizer = 125},
                    MemoryReading::steady_state);
  CHECK(bytes_of(states, HeldKind::weights) == 1000_B);
  CHECK(bytes_of(states, HeldKind::gradients) == 500_B);
  CHECK(bytes_of(states, HeldKind::master) == 500_B);
  CHECK(bytes_of(states, HeldKind::moments) == 1000_B);
  CHECK(bytes_of(states, HeldKind::step_temporary) == 500_B);
  // The first backward pass makes the gradients, and the step frees its own before the next pass.
  CHECK(sum_at(states, Moment::first_backward) == 2500_B);
  CHECK(sum_at(states, Moment::backward) == 3000_B);
  CHECK(sum_at(states, Moment::step) == 3500_B);
}

TEST_CASE("the first step of stack A makes 8 bytes of moments and 4 of fp32 gradients") {
  const Training training{.gradient_type = GradientType::fp16};
  const std::vector<HeldTensor> states = state_tensors(
      training, megatron_lm_2021(), {1000, 1000, 1000, 1000}, MemoryReading::first_step);
  CHECK(bytes_of(states, HeldKind::moments) == 8000_B);
  CHECK(bytes_of(states, HeldKind::step_temporary) ==
        4000_B);                                      // stale 6 = last step's live 2 + fp32 main 4
  CHECK(sum_at(states, Moment::backward) == 8000_B);  // 2 + 2 + master 4, nothing stale
  CHECK(sum_at(states, Moment::step) == 20000_B);
}
