#include <doctest/doctest.h>

#include "core/problem.hpp"
#include "core/testing.hpp"
#include "validate/point_prediction.hpp"

namespace windtunnel {
namespace {

/// Nodes of four GPUs at 100 GB/s with one NIC of 80 Gb/s a GPU; no floors, no latencies.
Platform quads() {
  Platform platform;
  NodeType node;
  node.gpus = 4;
  node.nics = 4;
  node.nic_rate = 80_Gbps;
  node.interconnect.saturated_bandwidth = 100_GBps;
  platform.node_types = {node};
  return platform;
}

CollectiveRun run_of(CollectiveOperation operation, int gpus, int nodes) {
  return {operation, gpus, nodes, 8_GB, {}};
}

TEST_CASE("in a node a collective takes what training takes for it") {
  // 2 * 8 GB * 3/4 / 100 GB/s = 120 ms; gathering or scattering moves half of it
  CHECK(collective_time(run_of(CollectiveOperation::all_reduce, 4, 1), quads()).value() ==
        doctest::Approx(0.12));
  CHECK(collective_time(run_of(CollectiveOperation::reduce_scatter, 4, 1), quads()).value() ==
        doctest::Approx(0.06));
}

TEST_CASE("across two nodes an all-reduce is a tree, or the ring that NCCL_ALGO asks for") {
  // 8 GB over 0.92 of 4 * 10 GB/s; in the ring 2 * 8 GB * 7/8 = 14 GB over all of it
  CollectiveRun run = run_of(CollectiveOperation::all_reduce, 4, 2);
  CHECK(collective_time(run, quads()).value() == doctest::Approx(0.2 / 0.92));
  run.is_always_ring = true;
  CHECK(collective_time(run, quads()).value() == doctest::Approx(0.35));
  // half of the ring for a gather
  CHECK(collective_time(run_of(CollectiveOperation::all_gather, 4, 2), quads()).value() ==
        doctest::Approx(0.175));
}

TEST_CASE("an NVLink domain is one node to a collective, and takes no NIC") {
  Platform trays = quads();
  trays.domain_nodes = 4;
  // 2 * 8 GB * 15/16 = 15 GB at 100 GB/s
  CHECK(collective_time(run_of(CollectiveOperation::all_reduce, 4, 4), trays).value() ==
        doctest::Approx(0.15));
  // Two domains: 8 GB over 0.92 of 16 * 2.5 GB/s, beside 2 * 8 GB at 0.92 of 100 GB/s in each
  trays.node_types.front().nic_rate = 20_Gbps;
  CHECK(collective_time(run_of(CollectiveOperation::all_reduce, 4, 8), trays).value() ==
        doctest::Approx(0.2 / 0.92));
}

TEST_CASE("ring steps across nodes pay the fabric's latency") {
  Platform platform = quads();
  platform.fabric.collective_latency = 1_ms;
  // one GPU a node: 2 * 8 GB * 1/2 = 8 GB over 10 GB/s, and 2 steps
  CHECK(collective_time(run_of(CollectiveOperation::all_reduce, 1, 2), platform).value() ==
        doctest::Approx(0.802));
}

TEST_CASE(
    "two nodes of 8 A100 and 4 x 100 Gb/s reduce 2 GiB as a tree at what their cards attain") {
  JsonValue scenario{JsonValue::Object{}};
  scenario.set("platform", JsonValue(std::string("hgx-a100-80gb-4x100g")));
  CollectiveRun run{CollectiveOperation::all_reduce, 8, 2, 2_GiB, {}};
  const double time = predict_collective(run, scenario, ".", Library{source_dir()}).time.value();
  // 2 GiB over 0.92 of 4 * 12.5 GB/s * 0.85 = 54.9 ms, where a ring would take 94
  CHECK(time == doctest::Approx(0.0549).epsilon(0.01));
  // Two P4de of AWS took 51.4 ms (aws-samples/awsome-distributed-training).
  CHECK(time / 0.0514 == doctest::Approx(1.07).epsilon(0.01));
}

TEST_CASE("a rack of 72 GB200 reduces 8 GiB in the time it was measured with") {
  // 20.3 ms (coreweave/nccl-tests, README.md)
  JsonValue scenario{JsonValue::Object{}};
  scenario.set("platform", JsonValue(std::string("gb200-nvl72")));
  CollectiveRun run{CollectiveOperation::all_reduce, 4, 18, 8_GiB, {}};
  CHECK(predict_collective(run, scenario, ".", Library{source_dir()}, {}).time.value() ==
        doctest::Approx(0.0203).epsilon(0.03));
}

TEST_CASE("a collective on GPUs that the platform has not is refused") {
  const Library library{source_dir()};
  JsonValue scenario{JsonValue::Object{}};
  scenario.set("platform", JsonValue(std::string("dgx1-v100")));
  CHECK_THROWS_WITH_AS(
      predict_collective(run_of(CollectiveOperation::all_reduce, 16, 1), scenario, ".", library),
      doctest::Contains("nodes of 8 GPUs"), InputError);
  CHECK(predict_collective(run_of(CollectiveOperation::all_reduce, 8, 1), scenario, ".", library)
            .time > Seconds{0});
  // A rack of 18 trays: 72 GPUs of one NVLink domain
  scenario.set("platform", JsonValue(std::string("gb200-nvl72")));
  CHECK(predict_collective(run_of(CollectiveOperation::all_reduce, 4, 18), scenario, ".", library)
            .time < Seconds{0.03});
}

}  // namespace
}  // namespace windtunnel
