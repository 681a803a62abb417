#include "engine/link_traffic.hpp"

#include <doctest/doctest.h>

#include "engine/program_simulator.hpp"
#include "engine/testing.hpp"

namespace windtunnel {
namespace {

Bytes of(const TrafficBytes& bytes, Traffic traffic) {
  return bytes[static_cast<std::size_t>(traffic)];
}

TEST_CASE("a link carries the bytes of every message and collective whose path crosses it") {
  // Three microbatches over two stages: 3 forward messages of 1 GB go up the first stage's node link, the narrow NIC link
  // before it, and down the second's; 3 backward ones the other way. At the end both enter a collective with one 5 GB flow
  // each way.
  testing::PipelineShape shape;
  shape.stages = 2;
  shape.microbatches = 3;
  ProgramSet set = testing::make_pipeline(shape);
  testing::set_compute(set, 1_s, 2_s);
  set.message_bytes = {1_GB};
  Network network;
  const LinkId nic = network.add_link(1_GBps, "node0 nic0 up");
  const LinkId up0 = network.add_link(2_GBps, "node0 up"),
               down0 = network.add_link(2_GBps, "node0 down");
  const LinkId up1 = network.add_link(2_GBps, "node1 up"),
               down1 = network.add_link(2_GBps, "node1 down");
  const LinkId idle = network.add_link(2_GBps, "node2 up");
  const PathId from0 = network.add_path({nic, up0}), to1 = network.add_path({down1});
  const PathId from1 = network.add_path({up1}), to0 = network.add_path({down0});
  network.add_path({idle});
  for (Channel& channel : set.channels) {
    const bool forward = channel.from == DeviceId{0};
    channel.in_node = false;
    channel.up = forward ? from0 : from1;
    channel.down = forward ? to1 : to0;
  }
  Collective ring;
  ring.members = {DeviceId{0}, DeviceId{1}};
  ring.flows = {{from0, to1, 5_GB}, {from1, to0, 5_GB}};
  set.collectives = {ring};
  for (int stage = 0; stage < 2; ++stage) {
    auto& program = set.programs[static_cast<std::size_t>(stage)];
    for (Op& op : program.streams[0])
      if (op.phase == Phase::gradient) op.traffic = Traffic::pipeline_backward;
    Op enter = testing::collective(0);
    enter.traffic = Traffic::data_gradients;
    program.streams[0].push_back(enter);
    program.num_collectives = 1;
    set.devices[static_cast<std::size_t>(stage)].collectives = {CollectiveId{0}};
  }

  const std::vector<TrafficBytes> links = traffic_of_links(network, set);

  REQUIRE(links.size() == network.links().size());
  for (const LinkId link : {nic, up0, down1}) {
    CHECK(of(links[link.index()], Traffic::pipeline_forward) == 3_GB);
    CHECK(of(links[link.index()], Traffic::pipeline_backward) == 0_GB);
    CHECK(of(links[link.index()], Traffic::data_gradients) == 5_GB);
    CHECK(total_of(links[link.index()]) == 8_GB);
  }
  for (const LinkId link : {up1, down0}) {
    CHECK(of(links[link.index()], Traffic::pipeline_forward) == 0_GB);
    CHECK(of(links[link.index()], Traffic::pipeline_backward) == 3_GB);
    CHECK(of(links[link.index()], Traffic::data_gradients) == 5_GB);
  }
  CHECK(total_of(links[idle.index()]) == 0_GB);
  // As many flows are simulated: 6 messages and 2 of the collective.
  CHECK(simulate_programs(set, *make_heap_engine(network)).flows == 8);
}

TEST_CASE("links carry the tokens that were drawn, not their mean") {
  testing::PipelineShape shape;
  shape.stages = 2;
  shape.microbatches = 2;
  ProgramSet set = testing::make_pipeline(shape);
  Network network;
  const PathId path = network.add_path({network.add_link(1_GBps, "node0 up")});
  Collective exchange;
  exchange.members = {DeviceId{0}};
  exchange.flows = {{path, path, 1_GB}};
  exchange.draws = 1;
  set.collectives = {exchange};
  set.fullness = {1, 1.5, 2};
  set.drawn_rows.microbatches = 2;
  set.devices[0].collectives = {CollectiveId{0}};
  for (std::uint32_t microbatch = 0; microbatch < 2; ++microbatch) {
    Op enter = testing::collective(0);
    enter.microbatch = microbatch;
    enter.work = 1;  // its layer
    enter.peer = static_cast<std::uint8_t>(Label::dispatch_tokens);
    set.programs[0].streams[0].push_back(enter);
  }
  // 1.5 GB and 2 GB, up and down
  CHECK(total_of(traffic_of_links(network, set)[0]) == 7_GB);
}

TEST_CASE("messages inside a node are on no link") {
  testing::PipelineShape shape;
  shape.stages = 2;
  shape.microbatches = 3;
  ProgramSet set = testing::make_pipeline(shape);
  testing::set_compute(set, 1_s, 2_s);
  set.message_bytes = {1_GB};
  for (Channel& channel : set.channels) channel.bandwidth = 1_GBps;
  Network network;
  network.add_path({network.add_link(1_GBps, "node0 up")});
  CHECK(total_of(traffic_of_links(network, set)[0]) == 0_GB);
}

}  // namespace
}  // namespace windtunnel
