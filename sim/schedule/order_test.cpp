#include "schedule/order.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <string>
#include <tuple>

namespace windtunnel {
namespace {

/// "F0 F1.1 B0 W0": microbatch, and chunk where it is not 0.
std::string text_of(const std::vector<Step>& order) {
  std::string text;
  for (const Step& step : order) text += token_of(step) + " ";
  return text;
}

TEST_CASE("interleaving sends groups of p microbatches through all chunks") {
  // p = 2, m = 4, v = 2, first stage: 2 (2-0-1) + (2-1) 2 = 4 warm-up forwards
  CHECK(text_of(schedule_order(Schedule::interleaved_1f1b, {2, 4, 2}, StageId{0})) ==
        "F0 F1 F0.1 F1.1 F2 B0.1 F3 B1.1 F2.1 B0 F3.1 B1 B2.1 B3.1 B2 B3 ");
}

TEST_CASE("interleaving with one group runs all forwards first, as Megatron-LM does") {
  CHECK(text_of(schedule_order(Schedule::interleaved_1f1b, {2, 2, 2}, StageId{1})) ==
        "F0 F1 F0.1 F1.1 B0.1 B1.1 B0 B1 ");
}

TEST_CASE("zero-bubble H1 delays weight gradients by the stage's index") {
  CHECK(text_of(schedule_order(Schedule::zero_bubble_h1, {3, 4, 1}, StageId{0})) ==
        "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3 ");
  CHECK(text_of(schedule_order(Schedule::zero_bubble_h1, {3, 4, 1}, StageId{2})) ==
        "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3 ");
}

TEST_CASE("every schedule runs each pass once, forward before backward before weight gradient") {
  for (const Schedule schedule : {Schedule::gpipe, Schedule::one_f_one_b,
                                  Schedule::interleaved_1f1b, Schedule::zero_bubble_h1}) {
    for (const int p : {1, 2, 4}) {
      for (const int groups : {1, 3}) {
        const int v = schedule == Schedule::interleaved_1f1b && p > 1 ? 3 : 1;
        const int m = groups * p;
        for (int s = 0; s < p; ++s) {
          std::set<std::tuple<Phase, int, std::uint32_t>> done;
          const auto before = [&done](Phase phase, const Step& step) {
            return done.count({phase, step.chunk, step.microbatch}) == 1;
          };
          for (const Step& step : schedule_order(schedule, {p, m, v}, StageId{s})) {
            CHECK(done.insert({step.phase, step.chunk, step.microbatch}).second);
            if (step.phase == Phase::backward) CHECK(before(Phase::forward, step));
            if (step.phase == Phase::weight_gradient) CHECK(before(Phase::backward, step));
          }
          const int passes = schedule == Schedule::zero_bubble_h1 ? 3 : 2;
          CHECK(done.size() == static_cast<std::size_t>(passes * m * v));
        }
      }
    }
  }
}

TEST_CASE("a plan runs the order that the user wrote, in place of a named one") {
  Plan plan;
  plan.parallel.pipeline = 2;
  plan.microbatches = 4;
  plan.parallel.schedule = Schedule::zero_bubble_h1;
  const std::vector<Step> named = schedule_order(plan, StageId{1});
  CHECK(splits_backward(plan));
  plan.parallel.schedule = Schedule::custom;
  plan.parallel.orders =
      std::make_shared<const ScheduleOrders>(schedule_orders(Schedule::zero_bubble_h1, {2, 4, 1}));
  CHECK(schedule_order(plan, StageId{1}) == named);
  CHECK(splits_backward(plan));
  plan.parallel.orders =
      std::make_shared<const ScheduleOrders>(schedule_orders(Schedule::gpipe, {2, 4, 1}));
  CHECK(schedule_order(plan, StageId{1}) == schedule_order(Schedule::gpipe, {2, 4, 1}, StageId{1}));
  CHECK_FALSE(splits_backward(plan));
}

}  // namespace
}  // namespace windtunnel
