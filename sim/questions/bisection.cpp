#include "questions/bisection.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "core/contracts.hpp"
#include "core/count_text.hpp"
#include "engine/engine.hpp"
#include "platform/network.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {

Seconds time_of_flows(const Network& network, const std::vector<RoutedFlow>& flows) {
  /// Nothing happens when a message is through: the engine says when the last one was.
  class NoEvents final : public EventHandler {
    void on_event(std::uint64_t) override {}
  };
  const std::unique_ptr<Engine> engine = make_native_engine(network);
  for (const RoutedFlow& flow : flows)
    engine->start_flow(flow.route.up, flow.route.down, flow.bytes, 0);
  NoEvents events;
  engine->run(events);
  return engine->now();
}

Bisection play_bisection(const Platform& job, int nodes) {
  constexpr Bytes of_each = 1_GB;  // any: latencies are left out
  WT_EXPECT(nodes > 1);
  Bisection found;
  Network network(job, nodes);
  const int senders = nodes / 2;
  std::vector<RoutedFlow> flows;
  for (int node = 0; node < senders; ++node) {
    const int partner = node + nodes - senders;
    found.nics += node_bandwidth(job, NodeId(node));
    const int gpus = std::min(job.type_of(NodeId(node)).gpus, job.type_of(NodeId(partner)).gpus);
    for (int gpu = 0; gpu < gpus; ++gpu)
      flows.push_back({network.route(Network::Endpoint{NodeId(node), {gpu}},
                                     Network::Endpoint{NodeId(partner), {gpu}}),
                       of_each});
  }
  std::vector<Bytes> over_link(network.links().size());
  for (const RoutedFlow& flow : flows)
    for (const PathId path : {flow.route.up, flow.route.down})
      for (const LinkId link : network.path(path)) over_link[link.index()] += of_each;
  found.carried = of_each * static_cast<double>(flows.size()) / time_of_flows(network, flows);
  Seconds longest{};
  for (std::size_t i = 0; i < over_link.size(); ++i) {
    const Link& link = network.links()[i];
    if (over_link[i] / link.bandwidth <= longest) continue;
    longest = over_link[i] / link.bandwidth;
    found.fullest = link.name;
    found.fullest_bandwidth = link.bandwidth;
  }
  return found;
}

std::string network_text(const Scenario& scenario) {
  constexpr int digits = 3;
  const FabricKind& kind = *scenario.platform.fabric.kind;
  const NodeType& node = scenario.nodes.front();
  std::string text = "fabric     " + kind.name + ": " + kind.about + "\nnodes      " +
                     std::to_string(scenario.nodes.size()) + " of " + count_text(node.gpus, "GPU") +
                     " and " + count_text(node.nics, "NIC") + " of " +
                     to_text(node.effective_nic_rate()) + "\n";
  const auto num_nodes = static_cast<int>(scenario.nodes.size());
  if (num_nodes < 2) return text;
  const Bisection half = play_bisection(scenario.platform, num_nodes);
  return text + "bisection  " + to_text(half.carried) + " of " + to_text(half.nics) +
         " of the NICs, a taper of " + significant_text(half.taper(), digits) + "; " +
         half.fullest + " (" + to_text(half.fullest_bandwidth) + ") takes longest\n";
}

JsonValue network_json(const Scenario& scenario) {
  const auto num_nodes = static_cast<int>(scenario.nodes.size());
  JsonValue network =
      object_of({{"fabric", scenario.platform.fabric.kind->name}, {"nodes", num_nodes}});
  if (num_nodes < 2) return network;
  const Bisection half = play_bisection(scenario.platform, num_nodes);
  const auto number = [](BytesPerSecond rate) { return rate / BytesPerSecond{1}; };
  network.set("bisection",
              object_of({{"bytes_per_s", number(half.carried)},
                         {"nics_bytes_per_s", number(half.nics)},
                         {"taper", half.taper()},
                         {"fullest_link", half.fullest},
                         {"fullest_link_bytes_per_s", number(half.fullest_bandwidth)}}));
  return network;
}

}  // namespace windtunnel
