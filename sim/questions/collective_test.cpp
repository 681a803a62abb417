#include "questions/collective.hpp"

#include <doctest/doctest.h>

#include "core/problem.hpp"
#include "core/testing.hpp"
#include "scenario/testing.hpp"

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
  CHECK(simulate_collective(run_of(CollectiveOperation::all_reduce, 4, 1), quads()).time.value() ==
        doctest::Approx(0.12));
  CHECK(simulate_collective(run_of(CollectiveOperation::reduce_scatter, 4, 1), quads())
            .time.value() == doctest::Approx(0.06));
}

TEST_CASE("across two nodes an all-reduce is a tree, or the ring that NCCL_ALGO asks for") {
  // 8 GB over 4 * 10 GB/s, behind a chunk of 4 MiB on 6 hops at 100 GB/s, and half of it on 2 at 40; in the ring 2 * 8 GB * 7/8 = 14 GB over all
  CollectiveRun run = run_of(CollectiveOperation::all_reduce, 4, 2);
  constexpr double chunk = 4 * 1048576;
  CHECK(simulate_collective(run, quads()).time.value() ==
        doctest::Approx(0.2 + chunk / 40e9 + 6 * chunk / 100e9));
  run.algorithm = "ring";
  CHECK(simulate_collective(run, quads()).time.value() == doctest::Approx(0.35));
  // half of the ring for a gather
  CHECK(simulate_collective(run_of(CollectiveOperation::all_gather, 4, 2), quads()).time.value() ==
        doctest::Approx(0.175));
}

TEST_CASE("an NVLink domain is one node to a collective, and takes no NIC") {
  Platform trays = quads();
  trays.domain_nodes = 4;
  // 2 * 8 GB * 15/16 = 15 GB at 100 GB/s
  CHECK(simulate_collective(run_of(CollectiveOperation::all_reduce, 4, 4), trays).time.value() ==
        doctest::Approx(0.15));
  // Two domains: 8 GB over 16 * 2.5 GB/s, overlapped with 2 * 8 GB at 100 GB/s in each; a chunk of 32 channels on 30 hops, and half of it on 2
  trays.node_types.front().nic_rate = 20_Gbps;
  constexpr double chunk = 16 * 1048576;
  CHECK(simulate_collective(run_of(CollectiveOperation::all_reduce, 4, 8), trays).time.value() ==
        doctest::Approx(0.2 + chunk / 40e9 + 30 * chunk / 100e9));
}

TEST_CASE("ring steps across nodes pay the fabric's latency") {
  Platform platform = quads();
  platform.fabric.collective_latency = 1_ms;
  // one GPU a node: 2 * 8 GB * 1/2 = 8 GB over 10 GB/s, and 2 steps
  CHECK(simulate_collective(run_of(CollectiveOperation::all_reduce, 1, 2), platform).time.value() ==
        doctest::Approx(0.802));
}

TEST_CASE(
    "two nodes of 8 A100 and 4 x 100 Gb/s reduce 2 GiB as a tree at what their cards attain") {
  JsonValue scenario{JsonValue::Object{}};
  scenario.set("platform", JsonValue(std::string("hgx-a100-80gb-4x100g")));
  CollectiveRun run{CollectiveOperation::all_reduce, 8, 2, 2_GiB, {}};
  const double time =
      simulate_collective(run, read_platform(scenario, ".", Library{source_dir()})).time.value();
  // 2 GiB over 4 * 12.5 GB/s * 0.85 = 50.5 ms, where a ring would take 94, and 0.5 until the first chunk has come through
  CHECK(time == doctest::Approx(0.0510).epsilon(0.002));
  // Two P4de of AWS took 51.4 ms (aws-samples/awsome-distributed-training).
  CHECK(time / 0.0514 == doctest::Approx(0.99).epsilon(0.01));
}

TEST_CASE("a rack of 72 GB200 reduces 8 GiB in the time it was measured with") {
  // 20.3 ms (coreweave/nccl-tests, README.md)
  JsonValue scenario{JsonValue::Object{}};
  scenario.set("platform", JsonValue(std::string("gb200-nvl72")));
  CollectiveRun run{CollectiveOperation::all_reduce, 4, 18, 8_GiB, {}};
  CHECK(
      simulate_collective(run, read_platform(scenario, ".", Library{source_dir()})).time.value() ==
      doctest::Approx(0.0203).epsilon(0.04));
}

TEST_CASE("a collective on GPUs that the platform has not is refused") {
  const Library library{source_dir()};
  JsonValue scenario{JsonValue::Object{}};
  scenario.set("platform", JsonValue(std::string("dgx1-v100")));
  CHECK_THROWS_WITH_AS(simulate_collective(run_of(CollectiveOperation::all_reduce, 16, 1),
                                           read_platform(scenario, ".", library)),
                       doctest::Contains("nodes of 8 GPUs"), InputError);
  CHECK(simulate_collective(run_of(CollectiveOperation::all_reduce, 8, 1),
                            read_platform(scenario, ".", library))
            .time > Seconds{0});
  // A rack of 18 trays: 72 GPUs of one NVLink domain
  scenario.set("platform", JsonValue(std::string("gb200-nvl72")));
  CHECK(simulate_collective(run_of(CollectiveOperation::all_reduce, 4, 18),
                            read_platform(scenario, ".", library))
            .time < Seconds{0.03});
}

TEST_CASE("eight nodes by each algorithm: flows of the engine take what the closed form says") {
  Platform platform = quads();
  platform.fabric.collective_latency = 10_us;
  platform.node_types.front().interconnect.reduces_in_switch = true;
  const auto time = [&](const char* algorithm) {
    CollectiveRun run = run_of(CollectiveOperation::all_reduce, 4, 8);
    run.algorithm = algorithm;
    return simulate_collective(run, platform).time.value();
  };
  // 32 ranks, 40 GB/s out of a node, 100 GB/s inside, 8 GB. Ring: 2 * 31/32 * 8 GB = 15.5 GB; of 62 hops 15.5 cross.
  CHECK(time("ring") == doctest::Approx(15.5e-5 + 15.5 / 40));
  // Tree: 16 GB; 3 levels up and down, and a chain of 4, with chunks of 8 channels
  constexpr double chunk = 4 * 1048576;
  CHECK(time("tree") ==
        doctest::Approx(6 * (10e-6 + chunk / 40e9) + 6 * chunk / 100e9 + 16.0 / 40));
  // NVLS tree: 16 GB; 16 channels * 4 GPUs * 64 KiB are 4 MiB too, for each of which NICs pay 4.5 us; two of them fill the node
  CHECK(time("nvls_tree") ==
        doctest::Approx(6 * (10e-6 + chunk / 40e9) + 2 * (chunk * 1.25 / 85e9 + 4.5e-6) +
                        16.0 / 40 + 4.5e-6 * 8e9 / chunk));
  // Scattered and gathered inside, 2 * 3/4 * 8 GB at 100 GB/s; 2 * 7/8 * 8 GB between nodes in 14 hops
  CHECK(time("hierarchical") == doctest::Approx(0.12 + 14e-5 + 14.0 / 40));
  // NCCL's choice: the ring sends least.
  CHECK(time("flat") == doctest::Approx(time("ring")));
}

TEST_CASE("an all-to-all sends each share over NVLink or through the NICs, both at once") {
  // Each GPU sends 3/4 of 8 GB to the three others of its node, at 100 GB/s.
  const CollectiveResult inside =
      simulate_collective(run_of(CollectiveOperation::all_to_all, 4, 1), quads());
  CHECK(inside.time.value() == doctest::Approx(0.06));
  CHECK(inside.algorithm == "pairwise");
  // With two nodes half of it leaves: 4 * 4 GB through 4 * 10 GB/s, overlapped with 3 GB at 100 GB/s.
  CHECK(simulate_collective(run_of(CollectiveOperation::all_to_all, 4, 2), quads()).time.value() ==
        doctest::Approx(0.4));
}

/// A kind of fabric by its name.
const FabricKind* kind_named(const std::string& name) {
  for (const FabricKind& kind : fabric_kinds())
    if (kind.name == name) return &kind;
  return nullptr;
}

TEST_CASE("an all-to-all over rails crosses the spine where nothing relays it") {
  Platform platform = quads();
  platform.fabric.kind = kind_named("rails");
  platform.fabric.values = {{"nodes_per_group", 2.0}, {"oversubscription", 4.0}};
  const CollectiveRun run = run_of(CollectiveOperation::all_to_all, 4, 2);
  // With PXN all of it stays on its rail: as without a taper, 4 GB through each NIC of 10 GB/s.
  CHECK(simulate_collective(run, platform).time.value() == doctest::Approx(0.4));
  // Without, three of the four GB that a GPU sends away go to other rails: 2 * 3 GB over each rail's uplink of 2 * 10 / 4 GB/s.
  platform.fabric.values["pxn"] = 0.0;
  CHECK(simulate_collective(run, platform).time.value() == doctest::Approx(1.2));
  // A ring goes from each GPU to the one of its number, and needs no other rail.
  CHECK(simulate_collective(run_of(CollectiveOperation::all_gather, 4, 2), platform).time.value() ==
        doctest::Approx(0.175));
}

TEST_CASE("a collective on more nodes than the fabric joins is refused") {
  Platform platform = quads();
  platform.fabric.kind = kind_named("rails_only");
  platform.fabric.values = {{"nodes_per_group", 2.0}};
  const CollectiveRun run = run_of(CollectiveOperation::all_gather, 4, 2);
  CHECK(simulate_collective(run, platform).time.value() == doctest::Approx(0.175));
  CHECK_THROWS_AS(simulate_collective(run_of(CollectiveOperation::all_gather, 4, 3), platform),
                  InputError);
}

TEST_CASE("a simulated collective says its algorithm") {
  const auto algorithm = [](const CollectiveRun& run, const Platform& platform) {
    return simulate_collective(run, platform).algorithm;
  };
  Platform platform = quads();
  CollectiveRun across = run_of(CollectiveOperation::all_reduce, 4, 2);
  CHECK(algorithm(run_of(CollectiveOperation::all_reduce, 4, 1), platform) == "ring");
  CHECK(algorithm(run_of(CollectiveOperation::all_gather, 4, 2), platform) == "ring");
  CHECK(algorithm(across, platform) == "tree");
  across.algorithm = "ring";
  CHECK(algorithm(across, platform) == "ring");
  platform.node_types.front().interconnect.reduces_in_switch = true;
  platform.node_types.front().interconnect.switch_efficiency =
      1;  // 5/4 of the payload, in a ring 6/4
  CHECK(algorithm(run_of(CollectiveOperation::all_reduce, 4, 1), platform) == "NVLS");
  CHECK(algorithm(run_of(CollectiveOperation::all_gather, 4, 1), platform) == "ring");
  across.algorithm = "nvls_tree";
  CHECK(algorithm(across, platform) == "NVLS tree");
}

TEST_CASE("bus bandwidth is what a link carries, whatever the number of GPUs") {
  // 2 * 3/4 * 8 GB in 120 ms, and half of that in 60 ms
  CHECK(bus_bandwidth(run_of(CollectiveOperation::all_reduce, 4, 1), 120_ms) / 1_GBps ==
        doctest::Approx(100));
  CHECK(bus_bandwidth(run_of(CollectiveOperation::all_gather, 4, 1), 60_ms) / 1_GBps ==
        doctest::Approx(100));
}

TEST_CASE("the table of a collective has a row for each payload on each number of GPUs") {
  CollectiveQuestion question;
  question.gpus = {8, 4};
  question.bytes = {8_GB, 4_GB};
  const document::Document document = collective_document(question, quads());
  const JsonValue::Array& rows = document.data.find("rows")->array();
  REQUIRE(rows.size() == 4);
  CHECK(std::get<std::int64_t>(rows[0].find("gpus")->content) == 4);
  CHECK(std::get<double>(rows[1].find("time_s")->content) == doctest::Approx(0.12));
  CHECK(std::get<double>(rows[1].find("bus_bandwidth_bytes_per_s")->content) ==
        doctest::Approx(100e9));
  CHECK(rows[3].find("algorithm")->string() == "tree");
  CHECK(document.warnings.empty());
  question.algorithm = "nvls_tree";
  CHECK(collective_document(question, quads()).warnings.size() == 1);
  question.gpus = {6};
  CHECK_THROWS_WITH_AS(collective_document(question, quads()), doctest::Contains("write 4 or 8"),
                       InputError);
}

TEST_CASE("half of the nodes send to the rest what the uplinks of their leaves carry") {
  Platform platform;
  NodeType node;
  node.gpus = node.nics = 2;
  node.nic_rate = 10_GBps;
  platform.node_types = {node};
  // Eight nodes of 20 GB/s: four send 80 GB/s. They are on two leaves, whose uplinks carry 2 * 20 / 4 = 10 GB/s each.
  platform.fabric.values = {{"nodes_per_leaf", 2.0}, {"oversubscription", 4.0}};
  const Bisection half = simulate_bisection(platform, 8);
  CHECK(half.nics / 1_GBps == doctest::Approx(80));
  CHECK(half.carried / 1_GBps == doctest::Approx(20));
  CHECK(half.taper() == doctest::Approx(4));
  CHECK(half.fullest == "leaf0 up");
  CHECK(half.fullest_bandwidth / 1_GBps == doctest::Approx(10));
  platform.fabric.values.clear();
  CHECK(simulate_bisection(platform, 8).taper() == doctest::Approx(1));
}

TEST_CASE("the network of a scenario is told in three lines") {
  const Scenario scenario = testing::read_text(
      R"({"version": 1, "model": "gpt-8.3b", "platform": "dgx-h100", "nodes": 8, "software": "megatron-lm-2021",
          "training": {"global_batch": 64, "micro_batch": 1}, "parallel": {"tensor": 8, "data": 8}})",
      {{"/platform/fabric/nodes_per_leaf", "2"}, {"/platform/fabric/oversubscription", "2"}});
  const std::string text = network_text(scenario);
  CHECK(text.starts_with("fabric     leaf_switches: "));
  CHECK(text.find("an oversubscription of 2; slowest with equal messages: leaf0 up (") !=
        std::string::npos);
  CHECK(text.find("nodes      8 of 8 GPUs and 8 NICs of 45.0 GB/s\n") != std::string::npos);
  CHECK(find_at(network_json(scenario), "/bisection/taper") != nullptr);
  Scenario unlike = scenario;
  unlike.nodes.back().nics = 4;
  CHECK(network_text(unlike).find(
            "7 of 8 GPUs and 8 NICs of 45.0 GB/s, 1 of 8 GPUs and 4 NICs of 45.0 GB/s\n") !=
        std::string::npos);
}

}  // namespace
}  // namespace windtunnel
