#include "platform/simgrid_platform.hpp"

#include <map>
#include <vector>

#include "core/contracts.hpp"
#include "core/json_value.hpp"
#include "core/markup_text.hpp"
#include "platform/network.hpp"

namespace windtunnel {
namespace {

/// A host, and where it is attached to the network.
struct SimGridHost {
  std::string name;
  Network::Attachment at;
};

class SimGridWriter {
 public:
  SimGridWriter(const Platform& platform, int nodes, Precision precision)
      : platform_(platform), network_(platform, nodes) {
    for (int i = 0; i < nodes; ++i) add_node(NodeId{i}, precision);
    for (const SimGridHost& from : hosts_)
      for (const SimGridHost& to : hosts_)
        if (from.name != to.name) add_route(from, to);
  }

  std::string text() const {
    std::string text =
        "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
        "<!-- Run with cfg=network/model:CM02, cfg=network/weight-S:0, cfg=network/crosstraffic:0 "
        "and cfg=network/TCP-gamma:1e30. -->\n"
        "<platform version=\"4.1\">\n  <zone id=\"" +
        markup_text(platform_.name) + "\" routing=\"Full\">\n" + host_lines_;
    for (const Link& link : network_.links())
      text += "    <link id=\"" + markup_text(link.name) + "\" bandwidth=\"" +
              exact_number(link.bandwidth.value()) + "Bps\" latency=\"0s\"/>\n";
    for (const auto& [name, line] : unshared_) text += line;
    return text + route_lines_ + "  </zone>\n</platform>\n";
  }

 private:
  void add_node(NodeId node, Precision precision) {
    const NodeType& type = platform_.type_of(node);
    const Device& gpu = type.device;
    const FlopsPerSecond rate =
        gpu.peak.at(precision) * (gpu.gemm.peak_fraction_of(precision) * type.compute_efficiency);
    for (int i = 0; i < type.gpus; ++i) {
      hosts_.push_back({"node" + std::to_string(node.index()) + "-gpu" + std::to_string(i),
                        network_.attach(node, {i})});
      host_lines_ += "    <host id=\"" + hosts_.back().name + "\" speed=\"" +
                     exact_number(rate.value()) + "f\"/>\n";
    }
    WT_EXPECT(hosts_.size() <= most_simgrid_hosts);
  }

  void add_route(const SimGridHost& from, const SimGridHost& to) {
    std::string links;
    const auto pass = [&links](const std::string& name) {
      links += "<link_ctn id=\"" + markup_text(name) + "\"/>";
    };
    if (from.at.node == to.at.node) {
      const Interconnect& wires = platform_.type_of(from.at.node).interconnect;
      pass(unshared(wires.point_to_point, wires.point_to_point_latency));
    } else {
      const Route route = network_.route(from.at, to.at);
      for (const PathId path : {route.up, route.down})
        for (const LinkId link : network_.path(path)) pass(network_.links()[link.index()].name);
      if (route.latency > Seconds{0}) pass(unshared(unlimited, route.latency));
    }
    route_lines_ += "    <route src=\"" + from.name + "\" dst=\"" + to.name +
                    "\" symmetrical=\"NO\">" + links + "</route>\n";
  }

  /// The name of a link that nothing shares; made when it is first asked for.
  std::string unshared(BytesPerSecond bandwidth, Seconds latency) {
    const std::string name =
        (bandwidth == unlimited ? "" : exact_number(bandwidth.value()) + " B/s, ") + "latency " +
        exact_number(latency.value()) + " s";
    unshared_.try_emplace(name, "    <link id=\"" + name + "\" bandwidth=\"" +
                                    exact_number(bandwidth.value()) + "Bps\" latency=\"" +
                                    exact_number(latency.value()) +
                                    "s\" sharing_policy=\"FATPIPE\"/>\n");
    return name;
  }

  static constexpr BytesPerSecond unlimited{
      1e18};  ///< what SimGrid takes for a link that limits nothing
  const Platform& platform_;
  Network network_;
  std::vector<SimGridHost> hosts_;
  std::map<std::string, std::string> unshared_;
  std::string host_lines_, route_lines_;
};

}  // namespace

std::string simgrid_platform(const Platform& platform, int nodes, Precision precision) {
  return SimGridWriter(platform, nodes, precision).text();
}

}  // namespace windtunnel
