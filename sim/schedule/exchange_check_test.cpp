#include <doctest/doctest.h>

#include <algorithm>

#include "plan/schedule.hpp"
#include "schedule/schedule_check.hpp"

namespace windtunnel {
namespace {

Step f(std::uint32_t i) { return {Phase::forward, 0, i}; }
Step b(std::uint32_t i) { return {Phase::backward, 0, i}; }

TEST_CASE("named schedules finish under blocking pairs where the table says so") {
  for (const SchedulePtr& schedule : named_schedules()) {
    for (const int p : {1, 2, 3, 4}) {
      for (const int rounds : {1, 2, 3}) {
        const int v = schedule->takes(2) && p > 1 ? 2 : 1;
        if (!schedule->takes(v)) continue;
        CAPTURE(schedule->name);
        CAPTURE(p);
        const int m = std::max(p * rounds, schedule->fewest_microbatches(p, v));
        if (!schedule->misfit({p, m, v}).empty()) continue;
        const auto deadlock = exchange_deadlock(schedule_orders(*schedule, {p, m, v}));
        CHECK(deadlock.has_value() == (schedule->sends == ScheduleSends::only_eager));
      }
    }
  }
}

TEST_CASE("a stage that runs ahead waits for a receiver that waits for it") {
  // Stage 0 hands over the activations of 0, 1 and 2 before it takes a gradient. Stage 1 posts the gradient of 0 together with the
  // activation of 1: that exchange ends when stage 0 takes the gradient, which stands behind its send of 2.
  const ScheduleOrders orders{"",
                              {2, 4, 1},
                              {{f(0), f(1), f(2), f(3), b(0), b(1), b(2), b(3)},
                               {f(0), b(0), f(1), b(1), f(2), b(2), f(3), b(3)}}};
  const auto deadlock = exchange_deadlock(orders);
  REQUIRE(deadlock);
  CHECK(*deadlock ==
        "stage 0's exchange after F3 waits for stage 1's exchange after B1, which waits for stage "
        "0's "
        "exchange after F3");
}

}  // namespace
}  // namespace windtunnel
