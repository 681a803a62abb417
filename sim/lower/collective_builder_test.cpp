#include "lower/collective_builder.hpp"

#include <doctest/doctest.h>

#include <string>
#include <variant>

#include "core/json_value.hpp"
#include "core/testing.hpp"
#include "platform/testing.hpp"

namespace windtunnel {
namespace {

/// Four replicas on two nodes of two GPUs: 100 GB/s inside, one NIC of 10 GB/s a node, 5 us a hop.
struct World {
  Transformer model;
  Platform platform;
  SoftwareProfile software;
  std::vector<NodeType> nodes;
  Plan plan;
  Network network;
  std::vector<DeviceId> members{DeviceId{0}, DeviceId{1}, DeviceId{2}, DeviceId{3}};

  explicit World(const std::string& ring) : nodes(make_nodes()) {
    model.layers = 1;
    model.hidden = model.heads = model.kv_heads = model.ffn_hidden = model.sequence = 8;
    platform.node_types = {nodes.front()};
    platform.fabric.collective_latency = 5_us;
    Training training;
    training.global_batch = 4;
    training.micro_batch = 1;
    Parallel parallel;
    parallel.data = 4;
    parallel.gradient_ring = ring;
    plan = std::get<Plan>(make_plan(model, training, parallel, {{2, 2}, true}, software));
    network = Network(platform, 2);
  }
  static std::vector<NodeType> make_nodes() {
    NodeType node;
    node.gpus = 2;
    node.nics = 1;
    node.nic_rate = 10_GBps;
    node.interconnect.saturated_bandwidth = 100_GBps;
    node.interconnect.half_size = Bytes{0};
    return {node, node};
  }
  Collective ring(RingKind work, Bytes payload = 120_MB) {
    return with_builder([&](const CollectiveBuilder& builder) {
      return builder.gradients(members, payload, work);
    });
  }
  template <class Make>
  Collective with_builder(const Make& make) {
    const BuildInputs inputs{&model, &platform, &nodes, &software, &plan};
    const DeviceRoutes routes(plan, network);
    return make(CollectiveBuilder(inputs, routes));
  }
};

void check_flows(const Collective& collective, Bytes each) {
  REQUIRE(collective.flows.size() == 4);  // two node edges, two lanes each
  for (const CollectiveFlow& flow : collective.flows)
    CHECK(flow.bytes / each == doctest::Approx(1).epsilon(1e-12));
}

TEST_CASE("over two nodes a flat all-reduce is NCCL's tree, inside and between as a pipeline") {
  const Collective tree = World("flat").ring(RingKind::all_reduce, 960_MB);
  // Inside: 2 * 960 MB at 100 GB/s. Between nodes: 960 MB on two lanes, up and down.
  // First a chunk of two channels of 512 KiB goes up and down, at 100 GB/s inside and half of it at 10 GB/s between the nodes.
  const double fill = 2 * (5e-6 + 524288 / 10e9) + 2 * 1048576 / 100e9;
  CHECK(tree.latency.value() == doctest::Approx(fill).epsilon(1e-12));
  CHECK(tree.fixed.value() == doctest::Approx(fill + 19.2e-3).epsilon(1e-12));
  check_flows(tree, 480_MB);
  CHECK(tree.traffic_bytes / 5760_MB == doctest::Approx(1).epsilon(1e-12));
}

TEST_CASE("a flat ring goes through all replicas, inside and between nodes as a pipeline") {
  World world("flat");
  for (NodeType& node : world.nodes)
    node.interconnect.saturated_bandwidth = 5_GBps;  // too little for a tree
  const Collective ring = world.ring(RingKind::all_reduce);
  // Inside: 2 * 1/2 * 120 MB at 5 GB/s. An edge between nodes: 2 * 3/4 * 120 MB on two lanes. 3 of 6 hops cross.
  CHECK(ring.fixed.value() == doctest::Approx(15e-6 + 24e-3).epsilon(1e-12));
  CHECK(ring.latency.value() == doctest::Approx(15e-6).epsilon(1e-12));
  check_flows(ring, 90_MB);
  CHECK(ring.traffic_bytes / 720_MB == doctest::Approx(1).epsilon(1e-12));
}

TEST_CASE("a switch does not reduce what two GPUs of a node have") {
  World world("flat");
  for (NodeType& node : world.nodes) node.interconnect.reduces_in_switch = true;
  check_flows(world.ring(RingKind::all_reduce, 960_MB), 480_MB);
}

TEST_CASE("a hierarchical ring scatters inside, reduces between nodes, gathers inside") {
  const Collective ring = World("hierarchical").ring(RingKind::all_reduce);
  // Inside, twice: 1/2 * 120 MB at 100 GB/s; then 2 (2-1) hops. Between nodes: 2 * 1/2 * 120 MB on two lanes.
  CHECK(ring.fixed == Seconds{0});
  CHECK(ring.latency.value() == doctest::Approx(2 * 0.6e-3 + 10e-6).epsilon(1e-12));
  check_flows(ring, 60_MB);
  CHECK(ring.traffic_bytes / 720_MB == doctest::Approx(1).epsilon(1e-12));
}

TEST_CASE("a scatter or a gather is half of it") {
  const Collective flat = World("flat").ring(RingKind::all_gather);
  CHECK(flat.fixed.value() == doctest::Approx(7.5e-6 + 0.6e-3).epsilon(1e-12));
  CHECK(flat.latency.value() == doctest::Approx(7.5e-6).epsilon(1e-12));
  check_flows(flat, 45_MB);
  const Collective layered = World("hierarchical").ring(RingKind::all_gather);
  CHECK(layered.latency.value() == doctest::Approx(0.6e-3 + 5e-6).epsilon(1e-12));
  check_flows(layered, 30_MB);
}

TEST_CASE("what a pass gathers pays a message, and the hops of its ring, for each of its calls") {
  World world("flat");
  world.platform.fabric.latency = 20_us;
  for (NodeType& node : world.nodes) node.interconnect.floor_per_gpu = 8_us;
  const auto latency = [&](Bytes payload, int calls) {
    return world
        .with_builder([&](const CollectiveBuilder& builder) {
          return builder.sharded_ring(world.members, payload, RingKind::all_gather, 1, calls);
        })
        .latency.value();
  };
  // Three hops of four ranks on two nodes: 1.5 between them at 5 us, 1.5 inside at half of 8.
  const double once = 20e-6 + 1.5 * 5e-6 + 1.5 * 4e-6;
  CHECK(latency(120_MB, 1) == doctest::Approx(once).epsilon(1e-12));
  CHECK(latency(120_MB, 12) == doctest::Approx(12 * once).epsilon(1e-12));
  CHECK(latency(Bytes{0}, 12) == 0);
}

TEST_CASE("owners broadcast one after the other, each through the whole ring") {
  World world("flat");
  for (NodeType& node : world.nodes) node.interconnect.floor_per_gpu = 8_us;
  const Collective broadcasts = world.with_builder([&](const CollectiveBuilder& builder) {
    return builder.broadcasts(world.members, 120_MB, 3);
  });
  // Three of 40 MB. Of the three hops of each, 1.5 are between nodes, on average over its roots, and 1.5 in nodes, at half of 8 us.
  CHECK(broadcasts.latency.value() ==
        doctest::Approx(3 * (1.5 * 5e-6 + 1.5 * 4e-6)).epsilon(1e-12));
  check_flows(broadcasts, 60_MB);  // all 120 MB over each edge, on two lanes
  CHECK(broadcasts.traffic_bytes / 360_MB == doctest::Approx(1).epsilon(1e-12));
  // In a node of 100 GB/s.
  world.members = {DeviceId{0}, DeviceId{1}};
  const Collective inside = world.with_builder([&](const CollectiveBuilder& builder) {
    return builder.broadcasts(world.members, 120_MB, 2);
  });
  CHECK(inside.fixed.value() == doctest::Approx(1.2e-3).epsilon(1e-12));
  CHECK(inside.latency == Seconds{0});
}

TEST_CASE("with one replica a node, or one node, both rings are the same") {
  for (const std::vector<DeviceId>& members :
       {std::vector{DeviceId{0}, DeviceId{2}}, std::vector{DeviceId{0}, DeviceId{1}}}) {
    World flat("flat"), layered("hierarchical");
    flat.members = layered.members = members;
    const Collective a = flat.ring(RingKind::all_reduce), b = layered.ring(RingKind::all_reduce);
    CHECK(a.fixed == b.fixed);
    CHECK(a.latency == b.latency);
    REQUIRE(a.flows.size() == b.flows.size());
    for (std::size_t i = 0; i < a.flows.size(); ++i) CHECK(a.flows[i].bytes == b.flows[i].bytes);
  }
}

TEST_CASE("the schema has the collectives of the table") {
  Problems problems;
  const JsonValue schema =
      testing::parse_file(source_dir() / "docs/scenario.schema.json", problems);
  REQUIRE(problems.empty());
  const JsonValue* const names = find_at(schema, "/definitions/collective_name/enum");
  REQUIRE(names != nullptr);
  REQUIRE(names->array().size() == collective_algorithms().size());
  for (std::size_t i = 0; i < names->array().size(); ++i)
    CHECK(names->array()[i].string() == collective_algorithms()[i].name);
}

}  // namespace
}  // namespace windtunnel
