#include "cost/collective_cost.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace windtunnel {
namespace {

Interconnect nvswitch() {
  Interconnect wires;
  wires.kind = Interconnect::Kind::nvswitch;
  wires.saturated_bandwidth = 200_GBps;
  wires.floor_base = 10_us;
  wires.floor_per_gpu = 5_us;
  wires.half_size = 8_MiB;
  wires.sharpness = 1;
  return wires;
}

std::vector<int> gpus(int n) {
  std::vector<int> list;
  for (int i = 0; i < n; ++i) list.push_back(i);
  return list;
}

TEST_CASE("a large all-reduce runs at the saturated bus bandwidth") {
  // S = 8 GiB = 1024 half sizes: w = 2 * 7/8 * S = 14 GiB; 14 GiB / 200 GB/s * (1 + 1/1024)
  const double expected = 14.0 * 1073741824 / 200e9 * (1 + 1.0 / 1024);
  CHECK(in_node_all_reduce(nvswitch(), gpus(8), 8_GiB).value() ==
        doctest::Approx(expected).epsilon(1e-12));
}

TEST_CASE("a small all-reduce takes the floor") {
  // 10 us + 8 * 5 us; at 200 GB/s the kilobyte itself is gone in 9 ns
  Interconnect wires = nvswitch();
  wires.half_size = Bytes{0};
  CHECK(in_node_all_reduce(wires, gpus(8), 1_kB).value() == doctest::Approx(50e-6).epsilon(1e-12));
}

TEST_CASE("a smaller payload takes no longer inside a node, however sharp the ramp is") {
  Interconnect wires = nvswitch();
  wires.floor_base = wires.floor_per_gpu = Seconds{0};
  wires.sharpness = 1.4;
  for (const RingKind kind : {RingKind::all_reduce, RingKind::all_gather})
    for (Bytes payload = 1_kB; payload < 1_GB; payload = payload * 2)
      CHECK(in_node_ring(wires, gpus(4), payload, kind) <=
            in_node_ring(wires, gpus(4), payload * 2, kind) * (1 + 1e-12));
}

TEST_CASE("an added floor is paid on top of the transfer") {
  Interconnect wires = nvswitch();
  wires.half_size = Bytes{0};
  wires.floor = Interconnect::Floor::added;
  // 50 us + 14 GB / 200 GB/s
  CHECK(in_node_all_reduce(wires, gpus(8), 8_GB).value() ==
        doctest::Approx(0.07005).epsilon(1e-12));
}

TEST_CASE("below the switch size a GPU the small protocol's bandwidth is the cap") {
  Interconnect wires = nvswitch();
  wires.half_size = Bytes{0};
  wires.floor_base = wires.floor_per_gpu = Seconds{0};
  wires.switch_size = 1_MB;
  wires.small_bandwidth = 100_GBps;
  // 8 MB is 1 MB a GPU: 14 MB at 200 GB/s. 4 MB is half of that: 7 MB at 100 GB/s, as long.
  CHECK(in_node_all_reduce(wires, gpus(8), 8_MB).value() == doctest::Approx(70e-6).epsilon(1e-12));
  CHECK(in_node_all_reduce(wires, gpus(8), 4_MB).value() == doctest::Approx(70e-6).epsilon(1e-12));
  wires.small_bandwidth = 400_GBps;  // a cap is no gain
  CHECK(in_node_all_reduce(wires, gpus(8), 4_MB).value() == doctest::Approx(35e-6).epsilon(1e-12));
}

TEST_CASE("one GPU alone reduces nothing") {
  CHECK(in_node_all_reduce(nvswitch(), {3}, 1_GB) == Seconds{0});
}

TEST_CASE("a gather takes half the steps of an all-reduce, and all of its floor and ramp") {
  // 3/4 GB at 200 GB/s, and twice of it times 8 MiB over 1 GB.
  CHECK(in_node_ring(nvswitch(), gpus(4), 1_GB, RingKind::all_gather).value() ==
        doctest::Approx(3.75e-3 * (1 + 2 * 8.388608e-3)));
  CHECK(in_node_ring(nvswitch(), gpus(8), 1_B, RingKind::all_gather) >= 50_us);  // 10 us + 8 * 5 us
}

TEST_CASE("the last steps of a scatter and of a gather send nothing, and an all-reduce has both") {
  Interconnect wires = nvswitch();
  wires.half_size = Bytes{0};
  wires.group_loss = 2;
  const auto time = [&](int n, RingKind kind) {
    return in_node_ring(wires, gpus(n), 1_GB, kind).value();
  };
  // Two GPUs: a step of 0.5 GB at 200 GB/s, and 2 * 0.69 or 2 * 0.31 that do not send.
  CHECK(time(2, RingKind::reduce_scatter) == doctest::Approx(2.5e-3 * 2.38));
  CHECK(time(2, RingKind::all_gather) == doctest::Approx(2.5e-3 * 1.62));
  for (const int n : {2, 3, 8, 72})
    CHECK(time(n, RingKind::all_reduce) ==
          doctest::Approx(time(n, RingKind::reduce_scatter) + time(n, RingKind::all_gather)));
  // As an all-reduce's bus bandwidth: 2 steps of 4, 14 of 16, 142 of 144.
  CHECK(saturated_bus_bandwidth(wires, gpus(2)).value() == doctest::Approx(100e9));
  CHECK(saturated_bus_bandwidth(wires, gpus(8)).value() == doctest::Approx(175e9));
  CHECK(saturated_bus_bandwidth(wires, gpus(72)).value() == doctest::Approx(200e9 * 142 / 144));
}

TEST_CASE("a switch that reduces takes each byte of a GPU once, in rounds that follow each other") {
  Interconnect wires = nvswitch();
  wires.reduces_in_switch = true;
  wires.switch_efficiency = 0.5;
  // 1 GiB, 8 GPUs, 16 channels: 64 rounds of 16 MiB and two more to fill, 9/8 of it at 100 GB/s; 10 us to begin.
  const double round = 16777216 * 1.125 / 100e9 + 4.5e-6;
  CHECK(in_switch_all_reduce(wires, 8, 1_GiB).fill.value() == doctest::Approx(10e-6 + 2 * round));
  CHECK(in_switch_all_reduce(wires, 8, 1_GiB).rounds.value() == doctest::Approx(64 * round));
  // A payload of less than two rounds of the smallest chunks: 1 MiB is half of one.
  CHECK(in_switch_all_reduce(wires, 8, 1_MiB).sum().value() ==
        doctest::Approx(10e-6 + 3 * (1048576 * 1.125 / 100e9 + 4.5e-6)));
  // Twice the channels: rounds of twice the bytes.
  wires.switch_channels = 32;
  CHECK(in_switch_all_reduce(wires, 8, 2_GiB).sum().value() ==
        doctest::Approx(10e-6 + 66 * (2 * 16777216 * 1.125 / 100e9 + 4.5e-6)));
}

TEST_CASE("an all-reduce in a node goes through the switch where that is shorter") {
  Interconnect wires = nvswitch();
  wires.reduces_in_switch = true;
  // 8 GPUs: 14/8 of 1 GiB in a ring, 9/8 at 0.85 through the switch.
  CHECK(in_node_all_reduce(wires, gpus(8), 1_GiB) == in_switch_all_reduce(wires, 8, 1_GiB).sum());
  // Two GPUs have no switch to reduce in, and of three a ring sends 4/3, the switch takes 4/3 at 0.85.
  for (const int n : {2, 3})
    CHECK(in_node_all_reduce(wires, gpus(n), 1_GiB) ==
          in_node_ring(wires, gpus(n), 1_GiB, RingKind::all_reduce));
}

TEST_CASE("a mesh has as many rings as cycles through the group share no lane") {
  Interconnect mesh;
  mesh.kind = Interconnect::Kind::mesh;
  mesh.saturated_bandwidth = 20_GBps;
  mesh.lanes = {{0, 1, 2, 2}, {1, 0, 2, 2}, {2, 2, 0, 1}, {2, 2, 1, 0}};
  CHECK(saturated_bus_bandwidth(mesh, {0, 1}) == 20_GBps);        // one lane
  CHECK(saturated_bus_bandwidth(mesh, {0, 2}) == 40_GBps);        // two lanes
  CHECK(saturated_bus_bandwidth(mesh, {0, 1, 2, 3}) == 80_GBps);  // four cycles; five lanes a GPU
}

TEST_CASE("a ring all-reduce sends 2 (n-1)/n of the payload") {
  CHECK(ring_all_reduce_volume(1_GB, 4) == Bytes{1.5e9});
}

TEST_CASE(
    "a ring crosses nodes once a step when every member has its own, less often when they share") {
  CHECK(ring_all_reduce_crossings(4, 4) == 6);
  CHECK(ring_all_reduce_crossings(16, 2) == 3.75);  // 30 hops, one in eight crosses
  CHECK(ring_all_reduce_crossings(8, 1) == 0);
}

TEST_CASE("a ring pays each of its hops, those inside nodes too") {
  // 30 hops of 16 members on 2 nodes: 3.75 cross at 10 us, 26.25 stay inside at 4.
  CHECK(ring_all_reduce_latency(16, 2, 10_us, 4_us).value() ==
        doctest::Approx(3.75 * 10e-6 + 26.25 * 4e-6));
  CHECK(ring_all_reduce_latency(4, 4, 10_us, 4_us).value() == doctest::Approx(6 * 10e-6));
  CHECK(ring_all_reduce_latency(8, 1, 10_us, 4_us) == Seconds{0});  // in the floor
  // 14 hops among 8 GPUs grow the floor by 8 times what one GPU does.
  Interconnect wires = nvswitch();
  wires.floor_per_gpu = 8_us;
  CHECK(hop_in_node(wires).value() == doctest::Approx(4e-6));
}

/// `members` on `nodes`, each with eight NICs that carry `rate` together; inside, 100 GB/s of bus bandwidth and no latency.
CrossingTask task_of(int members, int nodes, BytesPerSecond rate, bool reduced_in_switch,
                     Bytes payload = 1_GB) {
  const double here = static_cast<double>(members) / nodes;
  const auto in_node = [here](Bytes bytes) { return bytes * (2 * (here - 1) / here) / 100_GBps; };
  const auto in_switch = [in_node](Bytes bytes) { return SwitchTime{3_us, in_node(bytes)}; };
  return {payload,
          members,
          nodes,
          rate,
          8,
          10_us,
          Seconds{0},
          in_node,
          reduced_in_switch ? in_switch : std::function<SwitchTime(Bytes)>{},
          16,
          {100_GBps, 1, NcclGpu::hopper, true}};
}

NodeCrossing crossing_by(const CrossingTask& task, std::string_view algorithm,
                         std::string_view protocol = "Simple") {
  for (const NodeCrossing& each : crossings(task))
    if (each.algorithm == algorithm && each.protocol == protocol) return each;
  return {};
}

TEST_CASE("over two nodes a tree sends the payload once out of each node") {
  const CrossingTask task = task_of(16, 2, 40_GBps, false);
  CHECK(crossing_by(task, "ring").volume == Bytes{1.875e9});
  CHECK(crossing_by(task, "ring").latency.value() == doctest::Approx(37.5e-6));
  const NodeCrossing tree = crossing_by(task, "tree");
  CHECK(tree.volume == Bytes{1e9});
  // 16 channels of eight NICs: chunks of 8 MiB, half of them up and half down between the nodes at 40 GB/s; 7 hops up and 7 down inside at 100.
  const double fill = 2 * (10e-6 + 4194304 / 40e9) + 14 * 8388608 / 100e9;
  CHECK(tree.latency.value() == doctest::Approx(fill));
  CHECK(tree.in_node.value() == doctest::Approx(0.02));
  CHECK(time_alone(task, tree).value() == doctest::Approx(fill + 0.025));
  // The tuner counts a tree of 80 GB/s inside, twice what leaves the node, at 0.92 / 2, and a ring of 40 at 16/30.
  CHECK(crossing(task).algorithm == "tree");
  CHECK(crossing(task_of(16, 2, 120_GBps, false)).algorithm == "ring");
}

TEST_CASE("over more nodes large all-reduces are rings, small ones trees") {
  CHECK(crossing(task_of(32, 4, 20_GBps, false)).volume == Bytes{1.9375e9});
  const NodeCrossing small = crossing(task_of(2048, 1024, 400_GBps, false, 1_MB));
  CHECK(small.algorithm == "tree");
  // Three nodes are a chain; of more, an inner node of one tree has two children there and a parent in the other.
  CHECK(crossing_by(task_of(24, 3, 20_GBps, false), "tree").volume == Bytes{1.5e9});
  CHECK(crossing_by(task_of(32, 4, 20_GBps, false), "tree").volume == Bytes{2e9});
}

TEST_CASE("with a member a node there is nothing to reduce inside") {
  const CrossingTask task = task_of(4, 4, 20_GBps, true);
  const NodeCrossing ring = crossing_by(task, "ring"), tree = crossing_by(task, "tree");
  CHECK(ring.volume == Bytes{1.5e9});
  CHECK(ring.latency.value() == doctest::Approx(60e-6));
  // Two levels up and down with chunks of 8 MiB, and twice the payload out of an inner node.
  CHECK(tree.volume == Bytes{2e9});
  CHECK(tree.latency.value() == doctest::Approx(4 * (10e-6 + 8388608 / 20e9)));
  CHECK(tree.in_node == Seconds{0});
  CHECK(crossing(task).algorithm == "ring");
  CHECK(crossing(task_of(128, 128, 20_GBps, false, 1_MB)).algorithm == "tree");
}

TEST_CASE("halves of an all-reduce with a member a node go by PAT where NCCL has it") {
  const auto half = [](int nodes, Bytes payload, bool pat, int here = 1) {
    CrossingTask task = task_of(here * nodes, nodes, 20_GBps, false, payload);
    task.work = RingKind::all_gather;
    task.pat = pat;
    return task;
  };
  const NodeCrossing ring = crossing(half(4, 1_GB, true));
  CHECK(ring.algorithm == "ring");
  CHECK(ring.volume == Bytes{0.75e9});
  CHECK(ring.latency.value() == doctest::Approx(30e-6));
  // 8 us, 7 levels of 10 us of which 3.5 go at once, and 2.8 us for each of 128; three quarters of the ring's rate.
  const NodeCrossing pat = crossing(half(128, 16_MB, true));
  CHECK(pat.algorithm == "PAT");
  CHECK(pat.latency.value() == doctest::Approx(8e-6 + 20e-6 + 358.4e-6));
  CHECK(pat.volume.value() == doctest::Approx(16e6 * 127 / 128 / 0.75));
  CHECK(crossing(half(128, 16_MB, false)).algorithm == "ring");
  CHECK(crossing(half(128, 16_MB, true, 2)).algorithm == "ring");
}

TEST_CASE(
    "where switches reduce, nodes form a tree, and inner nodes of more than two pay handshakes") {
  const NodeCrossing tree = crossing_by(task_of(16, 2, 20_GBps, true), "NVLS tree");
  CHECK(tree.volume == Bytes{1e9});
  // 16 channels deal a chunk of 128 KiB to each of 8 GPUs: rounds of 16 MiB, half of which a node sends up and half down.
  CHECK(tree.latency.value() == doctest::Approx(2 * (10e-6 + 8388608 / 20e9) + 3e-6));
  CHECK(tree.in_node.value() == doctest::Approx(0.0175));  // what rounds take in the node
  // Six levels up and down, with chunks of half the size, which are sent twice, and for each round 4.5 us at 20 GB/s.
  const NodeCrossing of_64 = crossing(task_of(512, 64, 20_GBps, true), "NVLS tree");
  CHECK(of_64.volume.value() == doctest::Approx(2e9 + 20e9 * 4.5e-6 * (1e9 / 8388608)));
  CHECK(of_64.latency.value() == doctest::Approx(12 * (10e-6 + 8388608 / 20e9) + 3e-6));
  // A payload of less than a round is one.
  const NodeCrossing small = crossing(task_of(512, 64, 20_GBps, true, 1_MB), "NVLS tree");
  CHECK(small.latency.value() == doctest::Approx(12 * (10e-6 + 1e6 / 20e9) + 3e-6));
}

TEST_CASE("small all-reduces carry flags and take what the tuner reckons") {
  const CrossingTask task = task_of(16, 2, 40_GBps, false, 100_kB);
  const NodeCrossing ll = crossing_by(task, "ring", "LL");
  CHECK(ll.latency.value() == doctest::Approx(6.6e-6 + 28 * 1e-6 + 2 * 2.7e-6));
  CHECK(ll.volume.value() == doctest::Approx(375e3));  // twice of 2 * 15/16
  CHECK(ll.in_node.value() == doctest::Approx(100e3 / (20e9 * 16 / 30)));
  const NodeCrossing ll128 = crossing_by(task, "tree", "LL128");
  CHECK(ll128.volume.value() == doctest::Approx(100e3 * 128 / 120));
  CHECK(ll128.reckoned == time_alone(task, ll128));
}

TEST_CASE("one algorithm alone is taken where the nodes have it") {
  const auto taken = [](int nodes, bool in_switch, std::string_view algorithm) {
    return crossing(task_of(8 * nodes, nodes, 20_GBps, in_switch), algorithm).algorithm;
  };
  CHECK(taken(2, true, "ring") == "ring");
  CHECK(taken(2, true, "tree") == "tree");
  CHECK(taken(8, false, "tree") == "tree");
  CHECK(taken(8, false, "NVLS tree") == "ring");
}

/// NVLS in a node, in calcCollChunking (src/enqueue.cc, NCCL 2.26.2), line by line.
std::uint64_t bytes_of_round(std::uint64_t payload, int heads, int channels) {
  const std::uint64_t operations = static_cast<std::uint64_t>(channels * heads);
  std::uint64_t chunk = 131072;
  if (payload < 64 * (operations * chunk) && chunk > 65536) chunk = 65536;
  if (payload < 8 * (operations * chunk) && chunk > 32768) chunk = 32768;
  if (payload < 2 * (operations * chunk) && chunk > 16384) chunk = 16384;
  return operations * chunk;
}

TEST_CASE("chunks of NVLS shrink with the payload as NCCL has it") {
  for (const int channels : {16, 32})
    for (const int heads : {3, 8, 32})
      for (std::uint64_t payload = 1 << 16; payload <= std::uint64_t{1} << 36; payload *= 2)
        for (const std::uint64_t off : {payload - 1, payload})
          CHECK(nvls_chunks(Bytes{static_cast<double>(off)}, 1, heads, channels).value() ==
                static_cast<double>(bytes_of_round(off, heads, channels)));
}

/// NVLS trees in computeCollChunkInfo (src/enqueue.cc, NCCL 2.20.5), line by line, with the defaults of NCCL_NVLS_CHUNKSIZE and
/// NCCL_NVLSTREE_MAX_CHUNKSIZE and 16 channels.
std::uint64_t bytes_at_once(std::uint64_t payload, int nodes, int heads) {
  const std::uint64_t operations = 16 * static_cast<std::uint64_t>(heads);
  std::uint64_t chunk = 131072;
  const std::uint64_t most = nodes >= 4 ? 65536 : chunk;
  chunk = std::min(chunk, most);
  if (payload < 32 * (operations * chunk) && chunk > 262144) chunk = 262144;
  if (payload < 16 * (operations * chunk) && chunk > 131072) chunk = 131072;
  if (payload < 4 * (operations * chunk) && chunk > 65536) chunk = 65536;
  if (payload < 1 * (operations * chunk) && chunk > 32768) chunk = 32768;
  return operations * chunk;
}

TEST_CASE("chunks of an NVLS tree shrink with the payload as NCCL has it") {
  for (const int nodes : {2, 3, 4, 20})
    for (const int heads : {1, 4, 8, 32})
      for (std::uint64_t payload = 1 << 16; payload <= std::uint64_t{1} << 34; payload *= 2)
        for (const std::uint64_t off : {payload - 1, payload})
          CHECK(nvls_chunks(Bytes{static_cast<double>(off)}, nodes, heads, 16).value() ==
                static_cast<double>(bytes_at_once(off, nodes, heads)));
  CHECK(nvls_chunks(1_GiB, 2, 72, 16) == nvls_chunks(1_GiB, 2, 32, 16));
  // Four NICs have 8 channels, 32 of them no more than 32.
  CHECK(tree_chunk(4) == 4_MiB);
  CHECK(tree_chunk(32) == 16_MiB);
}

TEST_CASE("faster NICs never make a way of an all-reduce slower") {
  for (const bool in_switch : {false, true})
    for (const int nodes : {2, 3, 4, 16, 256}) {
      std::vector<Seconds> before(7, Seconds{1e9});
      for (double rate = 1; rate < 2000; rate *= 1.1) {
        const CrossingTask task = task_of(8 * nodes, nodes, BytesPerSecond{rate * 1e9}, in_switch);
        const std::vector<NodeCrossing> candidates = crossings(task);
        for (std::size_t i = 0; i < candidates.size(); ++i) {
          CHECK(time_alone(task, candidates[i]) <= before[i] * (1 + 1e-12));
          before[i] = time_alone(task, candidates[i]);
        }
      }
    }
}

}  // namespace
}  // namespace windtunnel
