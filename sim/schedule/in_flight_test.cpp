#include "schedule/in_flight.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "schedule/pipeline_program.hpp"

using namespace windtunnel;

namespace {

/// Passes from words as F0 B0 W0 (forward, backward, weight gradient of microbatch 0), with chunk as in F0.1.
std::vector<Step> order_of(const std::string& text) {
  std::vector<Step> order;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t dot = word.find('.');
    Step step;
    step.phase = word[0] == 'F'   ? Phase::forward
                 : word[0] == 'B' ? Phase::backward
                                  : Phase::weight_gradient;
    step.microbatch = static_cast<std::uint32_t>(std::stoi(word.substr(1, dot - 1)));
    if (dot != std::string::npos)
      step.chunk = static_cast<std::uint16_t>(std::stoi(word.substr(dot + 1)));
    order.push_back(step);
  }
  return order;
}

/// 1F1B (Narayanan et al. 2021, figure 4): p - i - 1 forwards, then forward and backward in turn,
/// then backwards.
std::vector<Step> one_f_one_b(int pipeline, int microbatches, int stage) {
  std::vector<Step> order;
  const auto add = [&](Phase phase, int microbatch) {
    order.push_back({phase, 0, static_cast<std::uint32_t>(microbatch)});
  };
  const int warm_up = std::min(microbatches, pipeline - stage - 1);
  for (int f = 0; f < warm_up; ++f) add(Phase::forward, f);
  for (int f = warm_up; f < microbatches; ++f) {
    add(Phase::forward, f);
    add(Phase::backward, f - warm_up);
  }
  for (int b = microbatches - warm_up; b < microbatches; ++b) add(Phase::backward, b);
  return order;
}

void check(InFlight counted, double all, double with_gradients) {
  CHECK(counted.all == all);
  CHECK(counted.with_gradients == with_gradients);
}

Plan plan_of(const SchedulePtr& schedule, int pipeline, int microbatches,
             int virtual_pipeline = 1) {
  Plan plan;
  plan.parallel.schedule = schedule;
  plan.parallel.pipeline = pipeline;
  plan.parallel.virtual_pipeline = virtual_pipeline;
  plan.microbatches = microbatches;
  return plan;
}

}  // namespace

TEST_CASE("1F1B with 4 stages and 8 microbatches holds p - i microbatches on stage i") {
  // Stage 0: F0 F1 F2 F3 B0 F4 B1 ...: four at the first backward pass, and four again at the
  // second.
  const std::string orders[] = {"F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7",
                                "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 B6 B7",
                                "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7",
                                "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7"};
  for (int i = 0; i < 4; ++i) check(count_in_flight(order_of(orders[i])), 4 - i, 4 - i);
}

TEST_CASE("1F1B counts are min(m, p-i), and min(max(m-1, 1), p-i) once gradients exist") {
  for (int pipeline = 1; pipeline <= 6; ++pipeline)
    for (int m = 1; m <= 9; ++m)
      for (int i = 0; i < pipeline; ++i) {
        CAPTURE(pipeline);
        CAPTURE(m);
        CAPTURE(i);
        check(count_in_flight(one_f_one_b(pipeline, m, i)), std::min(m, pipeline - i),
              std::min(std::max(m - 1, 1), pipeline - i));
      }
}

TEST_CASE("GPipe holds all microbatches, and one fewer once gradients exist") {
  check(count_in_flight(order_of("F0 F1 F2 F3 B3 B2 B1 B0")), 4, 3);
}

TEST_CASE("model chunks are counted each on their own") {
  // 4 forwards before the first backward frees one; then F2.1 makes it 4 again.
  check(count_in_flight(order_of("F0.0 F1.0 F0.1 F1.1 B1.1 F2.1 B0.1 B2.1 B1.0 B0.0")), 4, 4);
}

TEST_CASE("a split backward pass holds its microbatch until its weight gradient") {
  // B0 frees nothing, W0 does: F0 F1 held through B0 and B1.
  check(count_in_flight(order_of("F0 B0 F1 B1 W0 F2 B2 W1 W2")), 2, 2);
}

TEST_CASE("pairs count as much as their chunk") {
  // Held when F2.1 has begun: 3 of chunk 0 and 3 of chunk 1 less one that is done; chunk 1 has no layers.
  const std::vector<Step> order =
      order_of("F0.0 F1.0 F2.0 F0.1 F1.1 B1.1 F2.1 B0.1 B2.1 B1.0 B0.0 B2.0");
  check(count_in_flight(order), 5, 5);
  const InFlight first_only = count_in_flight(order, {4, 0});
  CHECK(first_only.all == 12);
  CHECK(first_only.with_gradients == 12);
  const InFlight uneven = count_in_flight(order, {1, 3});  // 3 + 2 * 3 before and after B1.1
  CHECK(uneven.all == 9);
  CHECK(uneven.with_gradients == 9);
}

TEST_CASE("an empty order holds nothing") { check(count_in_flight(std::vector<Step>{}), 0, 0); }

TEST_CASE("what is counted in a plan is what its stages hold") {
  for (int m : {1, 2, 3, 8})
    for (int i = 0; i < 4; ++i) {
      const InFlight counted = count_in_flight(one_f_one_b(4, m, i));
      for (const char* name : {"1f1b", "interleaved_1f1b"}) {  // with one chunk both are 1F1B
        CAPTURE(name);
        check(count_in_flight(schedule_order(plan_of(schedule_named(name), 4, m), StageId{i})),
              counted.all, counted.with_gradients);
      }
    }
  check(count_in_flight(schedule_order(plan_of(schedule_named("gpipe"), 4, 8), StageId{2})), 8, 7);
}

/// The passes that a program computes, each once.
static std::vector<Step> passes_of(const StageProgram& program) {
  std::vector<Step> passes;
  for (const Op& op : program.streams[static_cast<std::size_t>(Stream::compute)]) {
    const bool is_pass = op.phase == Phase::forward || op.phase == Phase::backward ||
                         op.phase == Phase::weight_gradient;
    const Step step{op.phase, op.chunk, op.microbatch};
    if (op.kind == OpKind::compute && is_pass && (passes.empty() || !(passes.back() == step)))
      passes.push_back(step);
  }
  return passes;
}

TEST_CASE("the program of every schedule holds what its order holds") {
  for (const SchedulePtr& schedule : named_schedules()) {
    const int p = 4, v = schedule->takes(2) ? 2 : 1;
    for (const int m : {p, 2 * p, 5 * p}) {
      if (!schedule->misfit({p, m, v}).empty()) continue;
      PipelineShape shape;
      shape.stages = p;
      shape.microbatches = m;
      shape.chunks = v;
      shape.chunk_path = schedule->chunk_path;
      for (int i = 0; i < p; ++i) {
        CAPTURE(schedule->name);
        CAPTURE(m);
        CAPTURE(i);
        std::vector<Step> order = schedule->order({p, m, v}, StageId{i});
        for (Step& step : order) step.joined = false;
        CHECK(passes_of(make_pipeline_program(shape, order, StageId{i})) == order);
      }
    }
  }
}

TEST_CASE("a V holds 2 p chunks on every stage, a loop of two chunks more on the first") {
  // Qi et al. 2024 (arXiv:2401.10241), section 6: the activations of p microbatches, as 1F1B's first stage.
  const SchedulePtr v = schedule_named("zero_bubble_v");
  for (int i = 0; i < 4; ++i) {
    check(count_in_flight(v->order({4, 8, 2}, StageId{i})), 8, 8);
  }
  check(count_in_flight(schedule_named("interleaved_1f1b")->order({4, 8, 2}, StageId{0})), 11, 11);
}

TEST_CASE("DualPipe and DualPipeV hold one chunk more than the model has parts, on every stage") {
  // DeepSeek-V3 (arXiv:2412.19437), table 2: PP + 1.
  for (int i = 0; i < 8; ++i)
    check(count_in_flight(schedule_named("dualpipe")->order({8, 20, 2}, StageId{i})), 9, 9);
  for (int i = 0; i < 4; ++i)
    check(count_in_flight(schedule_named("dualpipe_v")->order({4, 10, 2}, StageId{i})), 9, 9);
}

TEST_CASE("interleaved 1F1B holds 2 (p-i-1) + (v-1) p + 1 pairs") {
  // p 4, v 2, m 8: stage 0 holds 2*3 + 4 + 1 = 11 of 16 pairs (Narayanan et al. 2021, figure 4: 11
  // forwards come first).
  check(count_in_flight(
            schedule_order(plan_of(schedule_named("interleaved_1f1b"), 4, 8, 2), StageId{0})),
        11, 11);
  check(count_in_flight(
            schedule_order(plan_of(schedule_named("interleaved_1f1b"), 4, 8, 2), StageId{3})),
        5, 5);
}
