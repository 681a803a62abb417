#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/id.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

struct Fabric;
struct Platform;

/// A number that a kind of fabric has of its own: a key of `platform/fabric`.
struct FabricKey {
  std::string name;   ///< "oversubscription"
  std::string label;  ///< what reports call it
  double fallback = 0, least = 0, most = 0;
  bool is_whole = false;
  /// Whether it changes anything, given the other keys. None: always.
  std::function<bool(const Fabric&)> matters = {};
};

/// A question of `explain`: what if this key had this value?
struct FabricWhatIf {
  const char* label;
  std::string key;
  double value = 0;
};

/// A link that messages between several pairs of nodes share. Links of one name are one link.
struct FabricLink {
  std::string name;
  BytesPerSecond bandwidth{};
};
/// Links that a message passes on its way, in this order; the nodes' own links are not in it.
struct FabricPath {
  std::vector<FabricLink> up, down;
};

/// Network between the NICs of nodes. The kinds are a table: fabrics.def lists them, one file of fabrics/ defines each (docs/extending.md).
struct FabricKind {
  std::string name;  ///< as platform files write it
  std::vector<FabricKey> keys = {};
  /// Between two different nodes; the job uses the first `num_nodes` of the platform.
  std::function<FabricPath(const Platform& platform, int num_nodes, NodeId from, NodeId to)> path;
  /// Why the first `num_nodes` nodes are not all equally well connected: "its leaf switches are oversubscribed". Empty where they are.
  std::function<std::string(const Fabric& fabric, int num_nodes)> unevenness;
  /// What is wrong with the values of two keys together, and at which key; none: nothing can be.
  std::function<std::pair<std::string, std::string>(const Fabric&)> problem = {};
  std::function<std::vector<FabricWhatIf>(const Fabric&)> what_ifs = {};
};

/// The table. The first is that of platforms which name none.
const std::vector<FabricKind>& fabric_kinds();

/// The network between nodes.
struct Fabric {
  Seconds latency{};             ///< per message between nodes, software included
  Seconds collective_latency{};  ///< per ring step between nodes
  const FabricKind* kind = &fabric_kinds().front();
  std::map<std::string, double, std::less<>>
      numbers;  ///< by key of the kind; one that is not there has its fallback

  /// Of a key that the kind has.
  double number(std::string_view key) const;
};

}  // namespace windtunnel
