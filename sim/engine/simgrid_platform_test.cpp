#include "platform/simgrid_platform.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

#include "core/testing.hpp"
#include "engine/testing.hpp"
#include "platform/network_fixtures.hpp"

namespace windtunnel {
namespace {

namespace s4u = simgrid::s4u;

/// Four nodes of 8 GPUs and 4 NICs in two groups below leaf switches that carry half.
Platform tapered_platform() {
  Platform platform = testing::platform_with(4);
  platform.name = "four <nodes>";
  platform.fabric.values = {{"nodes_per_leaf", 2.0}, {"oversubscription", 2.0}};
  NodeType& node = platform.node_types.front();
  node.device.peak = {{Precision::bf16, 1000_TFLOPS}};
  node.device.gemm.peak_fraction = 0.75;
  node.interconnect.point_to_point = 100_GBps;
  node.interconnect.point_to_point_latency = 3_us;
  return platform;
}

std::string host(int node, int gpu) {
  return "node" + std::to_string(node) + "-gpu" + std::to_string(gpu);
}

/// SimGrid on the written file, set as the file's header asks.
class WrittenPlatform {
 public:
  explicit WrittenPlatform(const Platform& platform, int nodes) {
    std::vector<std::string> words{"test", "--cfg=network/model:CM02", "--cfg=network/weight-S:0",
                                   "--cfg=network/crosstraffic:0", "--cfg=network/TCP-gamma:1e30"};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    int count = static_cast<int>(arguments.size());
    arguments.push_back(nullptr);
    engine_ = new s4u::Engine(&count, arguments.data());  // its signals outlive it
    engine_->load_platform(
        folder_.write("platform.xml", simgrid_platform(platform, nodes, Precision::bf16)));
  }
  /// Seconds until the last of these messages, each of a gigabyte, has arrived.
  double time_of(const std::vector<std::pair<std::string, std::string>>& messages) {
    std::vector<s4u::CommPtr> sent;
    for (const auto& [from, to] : messages)
      sent.push_back(
          s4u::Comm::sendto_async(s4u::Host::by_name(from), s4u::Host::by_name(to), 1'000'000'000));
    const double begun = s4u::Engine::get_clock();
    engine_->run();
    return s4u::Engine::get_clock() - begun;
  }

 private:
  TemporaryFolder folder_;
  s4u::Engine* engine_ = nullptr;
};

TEST_CASE(
    "SimGrid finds each route of the written platform as long, as slow and over as many links as "
    "ours") {
  const Platform platform = tapered_platform();
  constexpr int nodes = 4, gpus = 8;
  const std::vector<double> read = testing::in_child_process([&] {
    const WrittenPlatform written(platform, nodes);
    std::vector<double> numbers{s4u::Host::by_name(host(0, 0))->get_speed()};
    for (int from = 0; from < nodes * gpus; ++from)
      for (int to = 0; to < nodes * gpus; ++to) {
        if (from == to) continue;
        std::vector<s4u::Link*> links;
        double latency = 0, bandwidth = std::numeric_limits<double>::max();
        s4u::Host::by_name(host(from / gpus, from % gpus))
            ->route_to(s4u::Host::by_name(host(to / gpus, to % gpus)), links, &latency);
        for (const s4u::Link* const link : links)
          bandwidth = std::min(bandwidth, link->get_bandwidth());
        numbers.insert(numbers.end(), {latency, bandwidth, static_cast<double>(links.size())});
      }
    return numbers;
  });
  REQUIRE(read.size() == 1 + 3 * 32 * 31);
  CHECK(read[0] == doctest::Approx(0.75e15));
  Network network(platform, nodes);
  std::size_t at = 1;
  for (int from = 0; from < nodes * gpus; ++from)
    for (int to = 0; to < nodes * gpus; ++to) {
      if (from == to) continue;
      double latency = 3e-6, bandwidth = 100e9;
      std::size_t links = 1;
      if (from / gpus != to / gpus) {
        const Route route = network.route(testing::gpus(from / gpus, from % gpus, 1),
                                          testing::gpus(to / gpus, to % gpus, 1));
        latency = route.latency.value();
        bandwidth = network.rate_alone({route.up, route.down}).value();
        links = network.path(route.up).size() + network.path(route.down).size() + 1;
      }
      CHECK(read[at] == doctest::Approx(latency).epsilon(1e-12));
      CHECK(read[at + 1] == doctest::Approx(bandwidth).epsilon(1e-12));
      CHECK(read[at + 2] == static_cast<double>(links));
      at += 3;
    }
}

TEST_CASE("messages share the links of the written platform") {
  const Platform platform = tapered_platform();
  const std::vector<double> times = testing::in_child_process([&] {
    WrittenPlatform written(platform, 4);
    std::vector<std::pair<std::string, std::string>> all;
    for (int node : {0, 1})
      for (int gpu = 0; gpu < 8; ++gpu) all.emplace_back(host(node, gpu), host(node + 2, gpu));
    return std::vector{written.time_of({{host(0, 0), host(0, 1)}}),
                       written.time_of({{host(0, 0), host(1, 0)}}),
                       written.time_of({{host(0, 0), host(1, 0)}, {host(0, 1), host(1, 1)}}),
                       written.time_of(all)};
  });
  REQUIRE(times.size() == 4);
  CHECK(times[0] == doctest::Approx(3e-6 + 0.01));        // 1 GB in the node at 100 GB/s
  CHECK(times[1] == doctest::Approx(20e-6 + 0.2));        // over a NIC of 5 GB/s
  CHECK(times[2] == doctest::Approx(20e-6 + 0.4));        // two over one NIC
  CHECK(times[3] == doctest::Approx(20e-6 + 16.0 / 20));  // sixteen over an uplink of 20 GB/s
}

}  // namespace
}  // namespace windtunnel
