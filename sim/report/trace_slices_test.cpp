#include "report/trace_slices.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "report/testing.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {
namespace {

using detail::memory_counters;
using detail::MemorySample;

constexpr std::int64_t gib = std::int64_t{1} << 30;

std::int64_t peak(const std::vector<MemorySample>& samples) {
  std::int64_t result = 0;
  for (const MemorySample& sample : samples) result = std::max(result, sample.bytes);
  return result;
}

std::int64_t at(const std::vector<MemorySample>& samples, detail::Nanoseconds time) {
  std::int64_t result = -1;
  for (const MemorySample& sample : samples)
    if (sample.at <= time) result = sample.bytes;
  return result;
}

TEST_CASE("a time beyond 64 bits of nanoseconds is refused, not a bug") {
  CHECK(detail::to_nanoseconds(Seconds{8e9}) == 8'000'000'000'000'000'000);
  CHECK_THROWS_WITH_AS(detail::to_nanoseconds(Seconds{1e10}), doctest::Contains("285 years"),
                       UnsupportedError);
}

TEST_CASE("memory rises with each forward, falls with each backward, and peaks at the account") {
  const auto world = testing::simulate_alone(testing::two_stage_programs());
  MemoryAccount memory = testing::small_report().memory;
  memory.stages[0].allocated += Bytes{1};  // to the byte
  const auto counters = memory_counters(world.timeline, testing::two_stage_plan(), memory);
  REQUIRE(counters.size() == 2);
  // stage 0: 23 GiB + 1 B with two microbatches in flight in [3, 20) us
  CHECK(peak(counters[0]) == 23 * gib + 1);
  CHECK(at(counters[0], 0) == 22 * gib + 1);
  CHECK(at(counters[0], 3000) == 23 * gib + 1);
  CHECK(at(counters[0], 20000) == 22 * gib + 1);
  CHECK(at(counters[0], 32000) == 21 * gib + 1);
  // stage 1: one at a time in [4, 13) and [13, 22); the first ends as the second begins
  CHECK(peak(counters[1]) == 22 * gib);
  CHECK(at(counters[1], 0) == 21 * gib);
  CHECK(at(counters[1], 13000) == 22 * gib);
  CHECK(at(counters[1], 22000) == 21 * gib);
}

TEST_CASE("where the optimizer step sets the maximum, it is reached during the step alone") {
  const auto world = testing::simulate_alone(testing::two_stage_programs());
  MemoryAccount memory = testing::small_report().memory;
  memory.stages.resize(1);
  StageMemory& stage = memory.stages[0];
  stage.peak = Moment::step;
  stage.tensors = {{HeldKind::step_temporary, Label::whole_pass, 5_GiB, 1, {Moment::step}}};
  stage.allocated = 23_GiB;
  const auto counters = memory_counters(world.timeline, testing::two_stage_plan(), memory);
  // 23 GiB in the step at [31, 32) us; before it 18 GiB and 1 GiB for each microbatch in flight
  CHECK(at(counters[0], 0) == 19 * gib);
  CHECK(at(counters[0], 3000) == 20 * gib);
  CHECK(at(counters[0], 30999) == 18 * gib);
  CHECK(at(counters[0], 31000) == 23 * gib);
  CHECK(at(counters[0], 32000) == 18 * gib);
  CHECK(counters[1].empty());  // no account of this stage
}

TEST_CASE("a model chunk costs its part of a microbatch, until its last backward op ends") {
  Timeline timeline;
  const auto add = [&](Phase phase, std::uint16_t chunk, Seconds begin, Seconds end) {
    Op op = testing::op(OpKind::compute, phase, 0);
    op.chunk = chunk;
    timeline.computes.push_back({DeviceId{0}, Stream::compute, op, begin, end});
  };
  add(Phase::forward, 0, 0_us, 1_us);
  add(Phase::forward, 1, 1_us, 2_us);
  add(Phase::backward, 1, 2_us, 3_us);
  add(Phase::backward, 0, 3_us, 4_us);
  add(Phase::weight_gradient, 1, 4_us, 5_us);
  Plan plan = testing::two_stage_plan();
  plan.parallel.virtual_pipeline = 2;
  const auto counters = memory_counters(timeline, plan, testing::small_report().memory);
  // 1 GiB a microbatch, half of it a chunk; chunk 0 in [0, 4), chunk 1 in [1, 5) us
  CHECK(at(counters[0], 0) == 23 * gib - gib / 2);
  CHECK(at(counters[0], 1000) == 23 * gib);
  CHECK(at(counters[0], 3999) == 23 * gib);
  CHECK(at(counters[0], 4000) == 23 * gib - gib / 2);
  CHECK(at(counters[0], 5000) == 22 * gib);
}

}  // namespace
}  // namespace windtunnel
