#pragma once

#include <cmath>
#include <string>

#include "platform/network.hpp"

/// Small platforms and the text of their routes, for tests.
namespace windtunnel::testing {

/// 8 GPUs on `nics` NICs of 10 GB/s that attain half of it: 5 GB/s each.
inline Platform platform_with(int nics) {
  NodeType type;
  type.gpus = 8;
  type.nics = nics;
  type.nic_rate = 10_GBps;
  type.nic_efficiency = 0.5;
  Platform platform;
  platform.node_types = {type};
  platform.fabric.latency = 20_us;
  return platform;
}

inline Network::Endpoint gpus(int node, int first, int count) {
  Network::Endpoint endpoint{NodeId(node), {}};
  for (int i = 0; i < count; ++i) endpoint.gpus.push_back(first + i);
  return endpoint;
}

/// "node0 nic0 up 5; node0 up 20": the links of a path in order, with GB/s.
inline std::string path_text(const Network& network, PathId path) {
  std::string text;
  for (LinkId link : network.path(path)) {
    const Link& at = network.links()[link.index()];
    const long rate = std::lround(at.bandwidth / 1_GBps);
    text += (text.empty() ? "" : "; ") + at.name + " " + std::to_string(rate);
  }
  return text;
}

inline std::string route_text(Network& network, const Network::Endpoint& from,
                              const Network::Endpoint& to) {
  const Route route = network.route(from, to);
  return path_text(network, route.up) + " | " + path_text(network, route.down);
}

}  // namespace windtunnel::testing
