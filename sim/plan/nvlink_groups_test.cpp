#include "plan/nvlink_groups.hpp"

#include <doctest/doctest.h>

namespace windtunnel {
namespace {

constexpr int rack = 18, tray_gpus = 4;  // nodes of a GB200 NVL72, and GPUs of each

Parallel degrees(int tensor, int context, int pipeline, int data, int expert = 1) {
  Parallel parallel;
  parallel.tensor = tensor;
  parallel.context = context;
  parallel.pipeline = pipeline;
  parallel.data = data;
  parallel.expert = expert;
  return parallel;
}

int segment(const Parallel& parallel) { return default_segment(parallel, rack, tray_gpus); }

TEST_CASE("groups lie in blocks of neighbouring ranks, wider where other axes count faster") {
  using enum AxisName;
  CHECK(nvlink_groups(degrees(1, 1, 4, 16)).empty());
  // Tensor 8, context 2: a context group is every eighth rank of 16. Expert groups of 32 are four tensor groups side by side.
  CHECK(nvlink_groups(degrees(8, 2, 4, 16, 32)) ==
        std::vector<NvlinkGroup>{{tensor, 8, 8}, {expert, 32, 32}, {context, 2, 16}});
  // With the pipeline between tensor and data, neighbours on the data axis are tensor * pipeline = 8 ranks apart.
  Parallel pipeline_first = degrees(2, 1, 4, 16, 8);
  pipeline_first.rank_order = {tensor, pipeline, data};
  CHECK(nvlink_groups(pipeline_first) == std::vector<NvlinkGroup>{{tensor, 2, 2}, {expert, 8, 32}});
  // Experts cut by tensor 2 among themselves: 4 x 2 ranks exchange.
  Parallel cut = degrees(4, 1, 1, 8, 4);
  cut.expert_tensor = 2;
  CHECK(nvlink_groups(cut) == std::vector<NvlinkGroup>{{tensor, 4, 4}, {expert, 8, 8}});
}

TEST_CASE("a job uses the most nodes of each NVLink domain that its groups divide") {
  CHECK(segment(degrees(1, 1, 4, 64, 64)) == 16);  // one group of 64 GPUs, of 72
  CHECK(segment(degrees(1, 1, 8, 32, 32)) == 16);  // two of 32
  CHECK(segment(degrees(8, 1, 4, 16)) == 18);      // nine of 8
  CHECK(segment(degrees(8, 2, 4, 16)) == 16);      // four of 16, where 4.5 would be
  CHECK(segment(degrees(4, 1, 1, 64, 12)) == 18);  // six of 12
  CHECK(segment(degrees(4, 1, 2, 40, 40)) == 10);  // one of 40
  CHECK(segment(degrees(3, 1, 4, 32)) == 18);      // 24 of 3
  CHECK(segment(degrees(5, 1, 4, 32)) == 15);      // 12 of 5, where 14.4 would be
}

TEST_CASE("the segments of a job are its nodes, with the GPUs and NICs of their trays") {
  NodeType tray;
  tray.gpus = tray_gpus;
  tray.nics = 2;
  Platform machine;
  machine.node_types = {tray};
  machine.domain_nodes = rack;
  // 40 trays: two segments of 16 trays, and 8 trays of a third domain
  const Platform job = in_segments(machine, 40, 16);
  CHECK(job.available_nodes() == 3);
  CHECK(job.type_of(NodeId{1}).gpus == 64);
  CHECK(job.type_of(NodeId{1}).nics == 32);
  CHECK(job.type_of(NodeId{2}).gpus == 32);
  CHECK(job.domain_nodes == rack);
  CHECK(in_segments(machine, 40, 1).available_nodes() == 40);
  const Platform again = in_segments(machine_of(job), 40, 18);
  CHECK(again.available_nodes() == 3);
  CHECK(again.type_of(NodeId{0}).gpus == 72);
  CHECK(again.type_of(NodeId{2}).gpus == 16);
}

TEST_CASE("a job that fits in one domain uses it as it is") {
  CHECK(segment(degrees(1, 1, 1, 72, 8)) == 18);
  CHECK(segment(degrees(1, 1, 2, 32, 32)) == 18);
}

TEST_CASE("groups that no domain holds are left to straddle, and the others still decide") {
  CHECK(segment(degrees(1, 1, 1, 256, 128)) == 18);
  CHECK(segment(degrees(8, 1, 1, 64, 128)) == 18);
  CHECK(segment(degrees(16, 1, 1, 64, 128)) == 16);
  // Blocks of 8 and of 20 GPUs come out even in 40: tensor and expert groups together. Blocks of 16 and 20 only in 80: tensor wins.
  CHECK(segment(degrees(8, 1, 1, 40, 20)) == 10);
  CHECK(segment(degrees(16, 1, 1, 40, 20)) == 16);
}

}  // namespace
}  // namespace windtunnel
