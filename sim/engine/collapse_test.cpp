#include "engine/collapse.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "engine/testing.hpp"

namespace windtunnel {
namespace {

using testing::in_child_process;

/// Two stages of some replicas, each device on a node of its own, 25 GB/s up and down. A message of 5 GB takes 0.2 s, compared with passes of
/// 1 s and 2 s.
struct ReplicatedStages {
  ProgramSet set;
  Network network;
  std::vector<LinkId> up, down;
};

enum class Rings { none, at_the_end };

/// A ring for each stage through its replicas. The last stage's begins while its last gradient is on its way over the same link.
void add_rings(ReplicatedStages& world, const std::vector<PathId>& up,
               const std::vector<PathId>& down) {
  constexpr std::size_t stages = 2;
  for (std::size_t stage = 0; stage < stages; ++stage) {
    Collective ring;
    ring.latency = 1_ms;
    for (std::size_t device = stage; device < up.size(); device += stages) {
      ring.members.emplace_back(device);
      ring.flows.push_back({up[device], down[(device + stages) % up.size()], 10_GB});
      world.set.devices[device].collectives = {CollectiveId{stage}};
    }
    world.set.collectives.push_back(ring);
    world.set.programs[stage].num_collectives = 1;
    world.set.programs[stage].streams[0].push_back(testing::collective(0));
  }
}

struct Odd {
  std::size_t device = 0;
  BytesPerSecond up = 25_GBps;  ///< of that device
};

ReplicatedStages make_world(int replicas, Rings rings, const Odd& odd = {}) {
  testing::PipelineShape shape;
  shape.stages = 2;
  shape.replicas = replicas;
  shape.microbatches = 5;
  ReplicatedStages world;
  world.set = testing::make_pipeline(shape);
  testing::set_compute(world.set, 1_s, 2_s);
  world.set.message_bytes = {5_GB};
  std::vector<PathId> up, down;
  for (std::size_t d = 0; d < world.set.devices.size(); ++d) {
    world.up.push_back(world.network.add_link(d == odd.device ? odd.up : 25_GBps, "up"));
    world.down.push_back(world.network.add_link(25_GBps, "down"));
    up.push_back(world.network.add_path({world.up.back()}));
    down.push_back(world.network.add_path({world.down.back()}));
  }
  for (Channel& channel : world.set.channels) {
    channel.in_node = false;
    channel.up = up[channel.from.index()];
    channel.down = down[channel.to.index()];
    channel.latency = 1_ms;
  }
  if (rings == Rings::at_the_end) add_rings(world, up, down);
  return world;
}

/// The network again, with what `more` gives for each link of a path.
template <class More>
void extend_paths(ReplicatedStages& world, More more) {
  Network network;
  for (const Link& link : world.network.links()) network.add_link(link.bandwidth, link.name);
  const LinkId shared = network.add_link(more.bandwidth, "shared");
  for (std::vector<LinkId> path : world.network.paths()) {
    if (more.passes(path)) path.push_back(shared);
    network.add_path(path);
  }
  world.network = network;
}

std::vector<double> figures(const EngineResult& result) {
  std::vector<double> all{result.end / 1_s, static_cast<double>(result.last_device.index()),
                          static_cast<double>(result.activities),
                          static_cast<double>(result.flows)};
  for (const Seconds end : result.device_end) all.push_back(end / 1_s);
  return all;
}

/// Number of devices simulated on behalf of all; the results are the same.
std::size_t num_simulated(const ReplicatedStages& world) {
  const auto collapsed = collapse(world.set, world.network);
  if (!collapsed) return world.set.devices.size();
  for (const MakeEngine kind : {make_heap_engine, make_simgrid_engine}) {
    const auto whole = in_child_process(
        [&] { return figures(simulate_programs(world.set, *kind(world.network))); });
    const auto classes = in_child_process(
        [&] { return figures(simulate_programs(*collapsed, *kind(collapsed->network))); });
    CHECK(classes == whole);  // to the last bit
  }
  return collapsed->programs.devices.size();
}

TEST_CASE("equal replicas on nodes of their own are simulated as one, with the same times") {
  CHECK(num_simulated(make_world(2, Rings::none)) == 2);
  CHECK(num_simulated(make_world(7, Rings::none)) == 2);
  CHECK(num_simulated(make_world(4, Rings::at_the_end)) == 2);
}

TEST_CASE("one replica is itself") { CHECK(num_simulated(make_world(1, Rings::none)) == 2); }

TEST_CASE("a slow link is a class of its own, and a ring carries the difference to all replicas") {
  // Alone it makes two classes of two devices; with a ring every replica has another path to the slow link.
  CHECK(num_simulated(make_world(4, Rings::none, {2, 20_GBps})) == 4);
  CHECK(num_simulated(make_world(4, Rings::at_the_end, {2, 20_GBps})) == 8);
}

TEST_CASE(
    "a slow device is a class of its own, and a ring carries the difference to all replicas") {
  for (const Rings rings : {Rings::none, Rings::at_the_end}) {
    ReplicatedStages world = make_world(4, rings);
    world.set.work[2 * 3] = testing::work(1.5_s);  // the forward pass of device 3
    CHECK(num_simulated(world) == (rings == Rings::none ? 4U : 8U));
  }
}

TEST_CASE("one message that waits longer makes another class") {
  ReplicatedStages world = make_world(3, Rings::none);
  world.set.channels.back().latency = 2_ms;
  CHECK(num_simulated(world) == 4);
}

struct FirstTwoReplicas {
  BytesPerSecond bandwidth;
  bool passes(const std::vector<LinkId>& path) const {
    constexpr std::uint32_t first_stage_up = 0, second_replica_up = 4;  // links: up, down by device
    return path[0].index() == first_stage_up || path[0].index() == second_replica_up;
  }
};

TEST_CASE("replicas that share a link which both could fill are simulated each") {
  ReplicatedStages world = make_world(2, Rings::none);
  extend_paths(world, FirstTwoReplicas{40_GBps});
  CHECK(num_simulated(world) == 4);
}

TEST_CASE("replicas that share a link which carries all they can send are simulated as one") {
  ReplicatedStages world = make_world(2, Rings::none);
  extend_paths(world, FirstTwoReplicas{50_GBps});
  CHECK(num_simulated(world) == 2);
}

TEST_CASE("two stages that share their replica's link contend as before") {
  // All stages of a replica go up one link: their messages meet there, in each replica alike.
  ReplicatedStages world = make_world(3, Rings::at_the_end);
  Network network;
  for (std::size_t d = 0; d < world.set.devices.size(); ++d) {
    network.add_link(3_GBps, "up");
    network.add_link(25_GBps, "down");
  }
  for (const auto& path : world.network.paths()) {
    const bool is_up = path[0].index() % 2 == 0;
    network.add_path({is_up ? LinkId{path[0].index() / 4 * 4} : path[0]});
  }
  world.network = network;
  CHECK(num_simulated(world) == 2);
}

TEST_CASE("a collective of some replicas makes classes of those in it and those not") {
  // The last 2 of 4 replicas wait for each other at the end of the second stage.
  ReplicatedStages world = make_world(4, Rings::none);
  world.set.programs.push_back(world.set.programs[1]);
  world.set.programs[2].streams[0].push_back(testing::collective(0));
  world.set.programs[2].num_collectives = 1;
  Collective pair;
  pair.fixed = 1_s;
  for (const std::size_t device : {5U, 7U}) {
    pair.members.emplace_back(device);
    world.set.devices[device].program = 2;
    world.set.devices[device].collectives = {CollectiveId{0}};
  }
  world.set.collectives = {pair};
  CHECK(num_simulated(world) == 4);
}

/// Three stages whose middle one lies on one node in both replicas, each with a card of its own; the outer ones on two nodes, one stage of
/// each replica on either. Every pair of nodes has a rate of its own, that of a card. Forward and backward messages of the middle stage
/// meet on its card, and those of one replica meet the other's between the nodes: cards and pairs look alike.
ReplicatedStages make_crossed_world() {
  testing::PipelineShape shape;
  shape.stages = 3;
  shape.replicas = 2;
  shape.microbatches = 5;
  ReplicatedStages world;
  world.set = testing::make_pipeline(shape);
  testing::set_compute(world.set, 1_s, 1_s);
  world.set.message_bytes = {60_GB};
  const auto add_link = [&] { return world.network.add_link(25_GBps, "link"); };
  const std::vector<LinkId> cards{add_link(), add_link()}, pairs{add_link(), add_link()};
  const PathId nothing = world.network.add_path({});
  for (Channel& channel : world.set.channels) {
    const std::size_t from = channel.from.index(), replica = from / 3;
    channel.in_node = from % 3 != 1;
    channel.bandwidth = 25_GBps;
    if (channel.in_node) continue;
    const bool is_forward = channel.to > channel.from;
    channel.up =
        world.network.add_path({cards[replica], pairs[is_forward ? replica : 1 - replica]});
    channel.down = nothing;
  }
  return world;
}

TEST_CASE(
    "a message over two links of a class is as fast as before, and takes what stands for them "
    "once") {
  const ReplicatedStages world = make_crossed_world();
  CHECK(num_simulated(world) == 3);
  const auto collapsed = collapse(world.set, world.network);
  REQUIRE(collapsed);
  CHECK(collapsed->network.links().size() == 1);
  for (const std::vector<LinkId>& path : collapsed->network.paths()) CHECK(path.size() <= 1);
}

}  // namespace
}  // namespace windtunnel
