#include "schedule/order.hpp"

#include <algorithm>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

using Order = std::vector<Step>;

std::uint32_t count(int number) { return static_cast<std::uint32_t>(number); }

Order gpipe(std::uint32_t m) {
  Order order;
  for (std::uint32_t i = 0; i < m; ++i) order.push_back({Phase::forward, 0, i});
  for (std::uint32_t i = m; i-- > 0;) order.push_back({Phase::backward, 0, i});
  return order;
}

Order one_f_one_b(std::uint32_t m, std::uint32_t warm_up) {
  Order order;
  for (std::uint32_t i = 0; i < warm_up; ++i) order.push_back({Phase::forward, 0, i});
  for (std::uint32_t i = warm_up; i < m; ++i) {
    order.push_back({Phase::forward, 0, i});
    order.push_back({Phase::backward, 0, i - warm_up});
  }
  for (std::uint32_t i = m - warm_up; i < m; ++i) order.push_back({Phase::backward, 0, i});
  return order;
}

/// 1F1B's order with each weight gradient `delay` backward passes after its own, the rest at the end.
Order zero_bubble_h1(std::uint32_t m, std::uint32_t warm_up, std::uint32_t delay) {
  Order order;
  for (const Step& step : one_f_one_b(m, warm_up)) {
    order.push_back(step);
    if (step.phase == Phase::backward && step.microbatch >= delay)
      order.push_back({Phase::weight_gradient, 0, step.microbatch - delay});
  }
  for (std::uint32_t i = m - std::min(m, delay); i < m; ++i)
    order.push_back({Phase::weight_gradient, 0, i});
  return order;
}

/// The k-th pass of a device in one direction: groups of p microbatches go through all v chunks before the next group.
Step interleaved_step(Phase phase, std::uint32_t k, const OrderShape& shape) {
  const std::uint32_t p = count(shape.stages), v = count(shape.chunks);
  const std::uint32_t in_group = k % (p * v);
  const std::uint32_t visited = in_group / p;
  const std::uint32_t chunk = phase == Phase::forward ? visited : v - 1 - visited;
  return {phase, static_cast<std::uint16_t>(chunk), k / (p * v) * p + in_group % p};
}

Order interleaved(const OrderShape& shape, int stage) {
  WT_EXPECT(shape.microbatches % shape.stages == 0);
  const int passes = shape.microbatches * shape.chunks;
  const int wanted = 2 * (shape.stages - stage - 1) + (shape.chunks - 1) * shape.stages;
  // With one group only, Megatron-LM runs all forwards first.
  const int warm_up = shape.microbatches == shape.stages ? passes : std::min(wanted, passes);
  Order order;
  for (int k = 0; k < warm_up; ++k)
    order.push_back(interleaved_step(Phase::forward, count(k), shape));
  for (int k = warm_up; k < passes; ++k) {
    order.push_back(interleaved_step(Phase::forward, count(k), shape));
    order.push_back(interleaved_step(Phase::backward, count(k - warm_up), shape));
  }
  for (int k = passes - warm_up; k < passes; ++k)
    order.push_back(interleaved_step(Phase::backward, count(k), shape));
  return order;
}

}  // namespace

std::vector<Step> schedule_order(Schedule schedule, const OrderShape& shape, StageId stage) {
  const int s = static_cast<int>(stage.index());
  WT_EXPECT(shape.microbatches > 0 && s < shape.stages && shape.chunks > 0);
  WT_EXPECT(schedule == Schedule::interleaved_1f1b || shape.chunks == 1);
  const std::uint32_t m = count(shape.microbatches);
  const std::uint32_t warm_up = count(std::min(shape.stages - s - 1, shape.microbatches));
  switch (schedule) {
    case Schedule::gpipe:
      return gpipe(m);
    case Schedule::one_f_one_b:
      return one_f_one_b(m, warm_up);
    case Schedule::interleaved_1f1b:
      return shape.chunks == 1 ? one_f_one_b(m, warm_up) : interleaved(shape, s);
    case Schedule::zero_bubble_h1:
      return zero_bubble_h1(m, warm_up, count(s));
    case Schedule::custom:
      break;
  }
  WT_UNREACHABLE();
}

ScheduleOrders schedule_orders(Schedule schedule, const OrderShape& shape) {
  ScheduleOrders orders{name_of(schedule), shape, {}};
  for (int s = 0; s < shape.stages; ++s)
    orders.of_stage.push_back(schedule_order(schedule, shape, StageId{s}));
  return orders;
}

std::vector<Step> schedule_order(const Plan& plan, StageId stage) {
  const Parallel& parallel = plan.parallel;
  if (parallel.schedule == Schedule::custom) return parallel.orders->of_stage[stage.index()];
  return schedule_order(parallel.schedule,
                        {parallel.pipeline, plan.microbatches, parallel.virtual_pipeline}, stage);
}

bool splits_backward(const Plan& plan) {
  if (plan.parallel.schedule != Schedule::custom)
    return plan.parallel.schedule == Schedule::zero_bubble_h1;
  // A legal schedule splits all of them or none.
  const std::vector<Step>& order = plan.parallel.orders->of_stage.front();
  return std::any_of(order.begin(), order.end(),
                     [](const Step& step) { return step.phase == Phase::weight_gradient; });
}

}  // namespace windtunnel
