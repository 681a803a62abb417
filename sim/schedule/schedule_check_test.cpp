#include "schedule/schedule_check.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "plan/schedule.hpp"
#include "schedule/in_flight.hpp"

namespace windtunnel {
namespace {

using Messages = std::vector<std::string>;

/// "F0 B0.1 W2" as an order.
std::vector<Step> order(const std::string& text) {
  std::vector<Step> steps;
  for (std::size_t at = 0; at < text.size(); at += 3) {
    const Phase phase = text[at] == 'F'   ? Phase::forward
                        : text[at] == 'B' ? Phase::backward
                                          : Phase::weight_gradient;
    steps.push_back({phase, 0, static_cast<std::uint32_t>(text[at + 1] - '0')});
  }
  return steps;
}

std::vector<std::string> faults(const ScheduleOrders& orders) {
  std::vector<std::string> messages;
  for (const ScheduleFault& fault : check_schedule(orders)) messages.push_back(fault.message);
  return messages;
}

TEST_CASE("each pass stands once in the order of its stage") {
  CHECK(faults({"", {1, 2, 1}, {order("F0 F1 B0 B1")}}) == Messages{});
  CHECK(faults({"", {1, 2, 1}, {order("F0 B0 F0 F2 B1")}}) ==
        Messages{"stage 0 has F0 twice",
                 "stage 0 has F2, which is beyond microbatch 1 and chunk 0, the last of each",
                 "stage 0 has no F1"});
}

TEST_CASE("weight gradients stand apart for all passes or for none") {
  CHECK(faults({"", {1, 2, 1}, {order("F0 B0 W0 F1 B1 W1")}}) == Messages{});
  CHECK(faults({"", {2, 1, 1}, {order("F0 B0"), order("F0 B0 W0")}}) ==
        Messages{"stage 0 has no W0, and weight gradients stand apart for all passes or for none"});
}

TEST_CASE("passes that wait for each other are told as the cycle") {
  // Three stages: stage 1 takes B0 before it has made F1, without which stage 2, in GPipe's order, makes no B0.
  CHECK(
      faults({"", {3, 2, 1}, {order("F0 F1 B0 B1"), order("F0 B0 F1 B1"), order("F0 F1 B0 B1")}}) ==
      Messages{"the schedule never finishes: stage 1 B0 waits for stage 2 B0, which comes after "
               "stage 2 F1, which waits for stage 1 F1, which comes after stage 1 B0"});
  CHECK(faults({"", {1, 1, 1}, {order("W0 B0 F0")}})
            .front()
            .find("stage 0 W0 waits for stage 0 B0, which comes after stage 0 W0") !=
        std::string::npos);
}

TEST_CASE("each pass that stands before an input of its own stage is told") {
  CHECK(faults({"", {1, 3, 1}, {order("B0 F0 F1 B2 F2 B1")}}) ==
        Messages{"the schedule never finishes: stage 0 B0 waits for stage 0 F0, which comes after "
                 "stage 0 B0",
                 "the schedule never finishes: stage 0 B2 waits for stage 0 F2, which comes after "
                 "stage 0 B2"});
}

TEST_CASE("a cycle is told in full, and neighbours in an order as one step") {
  // Stage 1 takes no backward pass before F2, which stage 0 gives only after two of them.
  const Messages messages =
      faults({"", {2, 3, 1}, {order("F0 F1 B0 B1 F2 B2"), order("F0 F1 F2 B2 B1 B0")}});
  REQUIRE(messages.size() == 1);
  CHECK(
      messages[0] ==
      "the schedule never finishes: stage 0 B0 waits for stage 1 B0, which comes after stage 1 F2, "
      "which waits for stage 0 F2, which comes after stage 0 B0");
}

TEST_CASE("the bubble without communication is what theory says") {
  // 1F1B and GPipe (p-1)/m; interleaved (p-1)/(v m); zero-bubble H1 with equal halves (p-1)/(3 m): idle (p-1)(F+B-W), busy 3 m.
  const auto bubble = [](const SchedulePtr& schedule, const OrderShape& shape) {
    return time_schedule(schedule_orders(*schedule, shape)).bubble();
  };
  CHECK(bubble(schedule_named("gpipe"), {4, 8, 1}) == doctest::Approx(3.0 / 8));
  CHECK(bubble(schedule_named("1f1b"), {4, 8, 1}) == doctest::Approx(3.0 / 8));
  CHECK(bubble(schedule_named("interleaved_1f1b"), {4, 8, 2}) == doctest::Approx(3.0 / 16));
  CHECK(bubble(schedule_named("zero_bubble_h1"), {4, 8, 1}) == doctest::Approx(3.0 / 24));
  // Zero-bubble V: stage i begins i passes late and then never idles, so all ends p - 1 passes of a chunk after 6 m of them.
  CHECK(bubble(schedule_named("zero_bubble_v"), {4, 8, 2}) == doctest::Approx(3.0 / 48));
}

TEST_CASE("no stage of a V idles between its first and its last pass") {
  // Qi et al. 2024 (arXiv:2401.10241), section 6: F = B = W and at least 2 p - 1 microbatches.
  for (const int p : {1, 2, 3, 4, 8}) {
    for (const int m : {2 * p - 1, 2 * p, 5 * p + 1}) {
      const ScheduleOrders orders = schedule_orders(*schedule_named("zero_bubble_v"), {p, m, 2});
      REQUIRE(check_schedule(orders).empty());
      const ScheduleTiming timing = time_schedule(orders);
      for (std::size_t i = 0; i < orders.of_stage.size(); ++i) {
        CHECK(timing.begin[i].front() == static_cast<int>(i));
        CHECK(timing.begin[i].back() + 1 - timing.begin[i].front() == 6 * m);
        CHECK(count_in_flight(orders.of_stage[i]).all == 2 * p);
      }
    }
  }
}

TEST_CASE("DualPipe is legal from both ends, and idles p - 2 passes of a chunk") {
  // DeepSeek-V3 (arXiv:2412.19437), table 2, with F = W = B / 2: (p/2 - 1) (3 + 2 - 3) of 3 m, and p + 1 chunks in flight.
  for (const int p : {2, 4, 8})
    for (const int m : {2 * p, 2 * p + 2, 5 * p}) {
      const ScheduleOrders orders = schedule_orders(*schedule_named("dualpipe"), {p, m, 2});
      REQUIRE(check_schedule(orders).empty());
      const ScheduleTiming timing = time_schedule(orders);
      CHECK(timing.busy == 3 * m);
      CHECK(timing.end == 3 * m + p - 2);
      for (const std::vector<Step>& order : orders.of_stage)
        CHECK(count_in_flight(order).all == p + 1);
    }
  const ScheduleOrders half = schedule_orders(*schedule_named("dualpipe_v"), {4, 8, 2});
  REQUIRE(check_schedule(half).empty());
  CHECK(time_schedule(half).end == 6 * 8 + 8 - 2);
}

TEST_CASE("what leaves with a block leaves when it has ended") {
  // Stage 0 runs F1 together with B0 of 2 s; stage 1 has F1 only then.
  ScheduleOrders orders{"",
                        {2, 2, 1},
                        {{{Phase::forward, 0, 0},
                          {Phase::forward, 0, 1},
                          {Phase::backward, 0, 0, true},
                          {Phase::backward, 0, 1}},
                         order("F0 B0 F1 B1")}};
  CHECK(faults(orders) == Messages{});
  // F0 0-1; stage 1 F0 1-2, B0 2-4; stage 0 F1 4-5, B0 5-7; stage 1 F1 7-8, B1 8-10; stage 0 B1 10-12.
  CHECK(time_schedule(orders).begin == std::vector<std::vector<int>>{{0, 4, 5, 10}, {1, 2, 7, 8}});
}

TEST_CASE("with few microbatches a V is legal, and holds what there is") {
  for (const int p : {2, 3, 4, 8})
    for (int m = 1; m < 2 * p - 1; ++m)
      CHECK(check_schedule(schedule_orders(*schedule_named("zero_bubble_v"), {p, m, 2})).empty());
}

TEST_CASE("what waits for what follows the way through the chunks") {
  // On the turn of a V chunk 1 follows chunk 0 on the same stage; in a loop chunk 0 of stage 1 is followed by chunk 1 of stage 0.
  const Step f{Phase::forward, 0, 0}, f1{Phase::forward, 1, 0}, b{Phase::backward, 0, 0},
      b1{Phase::backward, 1, 0};
  ScheduleOrders turned{"", {2, 1, 2, ChunkPath::v}, {{f, f1, b1, b}, {f1, f, b, b1}}};
  CHECK(faults(turned).front().find(
            "stage 1 F0.1 waits for stage 1 F0, which comes after stage 1 F0.1") !=
        std::string::npos);
  turned.of_stage[1] = {f, f1, b1, b};
  CHECK(faults(turned) == Messages{});
  CHECK(time_schedule(turned).begin == std::vector<std::vector<int>>{{0, 3, 4, 10}, {1, 2, 6, 8}});
  turned.shape.chunk_path = ChunkPath::loop;
  CHECK(time_schedule(turned).begin == std::vector<std::vector<int>>{{0, 2, 6, 10}, {1, 3, 4, 8}});
}

TEST_CASE("in-flight microbatches of each stage are what theory says") {
  for (const int p : {1, 2, 4, 6}) {
    for (const int m : {p, 2 * p, 5 * p}) {
      for (int i = 0; i < p; ++i) {
        const auto peak = [&](const SchedulePtr& schedule, int v) {
          return count_in_flight(schedule->order({p, m, v}, StageId{i})).all;
        };
        CHECK(peak(schedule_named("gpipe"), 1) == m);
        CHECK(peak(schedule_named("1f1b"), 1) == std::min(m, p - i));
        // i microbatches more wait for their weight gradients; no stage holds more than 1F1B's first (Qi et al. 2024, 2.1).
        CHECK(peak(schedule_named("zero_bubble_h1"), 1) == std::min(m, p));
        for (const int v : {2, 3}) {
          if (p == 1) continue;
          // Megatron-LM's warm-up and the pass after it; with one group of microbatches it runs all forwards first.
          const int warm_up = 2 * (p - i - 1) + (v - 1) * p;
          CHECK(peak(schedule_named("interleaved_1f1b"), v) ==
                (m == p ? m * v : std::min(warm_up + 1, m * v)));
        }
      }
    }
  }
}

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
