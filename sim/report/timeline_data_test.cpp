#include "report/timeline_data.hpp"

#include <doctest/doctest.h>

#include "core/json_value.hpp"
#include "report/testing.hpp"

namespace windtunnel {
namespace {

/// The small world, simulated; and as many replicas of its plan as asked for, of which only the first is simulated.
struct World {
  ProgramSet programs = testing::two_stage_programs();
  Plan plan = testing::two_stage_plan();
  Network network;
  testing::SimulatedWorld simulated = testing::simulate_alone(programs);
  SimulatedIteration iteration() const {
    return {&simulated.timeline, &programs, &network, &plan, simulated.result.last_device};
  }
};

TEST_CASE("all devices are shown when they fit") {
  const World world;
  const ShownDevices shown = shown_devices(world.iteration());
  CHECK(shown.devices == std::vector<DeviceId>{DeviceId{0}, DeviceId{1}});
  CHECK(shown.text == "all 2 simulated devices (16 GPUs)");
}

/// Three replicas of two stages; only devices count, so their programs may be the same.
World three_replicas() {
  World world;
  world.plan.parallel.data = 3;
  for (int replica = 1; replica < 3; ++replica) {
    for (int stage = 0; stage < 2; ++stage) {
      PlanDevice device = world.plan.devices[static_cast<std::size_t>(stage)];
      device.replica = replica;
      world.plan.devices.push_back(device);
      world.programs.devices.push_back(world.programs.devices[static_cast<std::size_t>(stage)]);
    }
  }
  Timeline more = world.simulated.timeline;
  for (std::uint32_t replica = 1; replica < 3; ++replica)
    for (Span span : world.simulated.timeline.computes) {
      span.device = DeviceId{span.device.index() + 2 * replica};
      more.computes.push_back(span);
    }
  world.simulated.timeline = more;
  world.simulated.result.last_device = DeviceId{4};
  return world;
}

TEST_CASE("what is too much is shown by whole replicas, and the text says which") {
  const World world = three_replicas();
  // 5 ops on each of the 6 devices, and on replica 0 the 4 messages and 4 or so waits: beyond 30 things in all.
  const ShownDevices two = shown_devices(world.iteration(), 30);
  CHECK(two.devices == std::vector<DeviceId>{DeviceId{0}, DeviceId{1}, DeviceId{4}, DeviceId{5}});
  CHECK(two.text ==
        "4 of 6 simulated devices (32 of 48 GPUs): replica 2, which ends last, and replica 0");
  const ShownDevices one = shown_devices(world.iteration(), 12);
  CHECK(one.devices == std::vector<DeviceId>{DeviceId{4}, DeviceId{5}});
  CHECK(one.text == "2 of 6 simulated devices (16 of 48 GPUs): replica 2, which ends last");
  const ShownDevices some = shown_devices(world.iteration(), 6);
  CHECK(some.devices ==
        std::vector<DeviceId>{DeviceId{4},
                              DeviceId{5}});  // never fewer than both ends of the pipeline
  CHECK(some.text.find("first and last stage") != std::string::npos);
}

TEST_CASE("the only device of a replica is shown, however much it does") {
  World world = three_replicas();
  std::erase_if(world.plan.devices,
                [](const PlanDevice& device) { return device.stage == StageId{1}; });
  world.simulated.result.last_device = DeviceId{2};
  const ShownDevices shown = shown_devices(world.iteration(), 1);
  CHECK(shown.devices == std::vector<DeviceId>{DeviceId{2}});
  CHECK(shown.text.ends_with("replica 2, which ends last"));
}

TEST_CASE("the timeline's data has a row for everything that was simulated") {
  const World world;
  Problems problems;
  const std::string text =
      timeline_json(world.iteration(), shown_devices(world.iteration()),
                    find_critical_path(world.programs, *world.iteration().timeline));
  const JsonValue json =
      parse_json(std::make_shared<const SourceText>(SourceText{"data", text}), problems);
  REQUIRE(problems.empty());
  const auto rows = [&](const char* column) {
    return std::get<std::int64_t>(json.find("columns")->find(column)->array()[1].content);
  };
  CHECK(rows("compute_begin") ==
        static_cast<std::int64_t>(world.simulated.timeline.computes.size()));
  CHECK(rows("message_begin") == 4);     // two microbatches, forward and backward
  CHECK(rows("collective_begin") == 1);  // the embedding
  CHECK(json.find("devices")->array().size() == 2);
  CHECK(std::get<std::int64_t>(json.find("end")->content) ==
        32000);                                             // nanoseconds of the world's 32 us
  CHECK(json.find("bytes")->string().starts_with("H4sI"));  // a gzip file in base64
}

}  // namespace
}  // namespace windtunnel
