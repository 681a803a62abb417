#include <algorithm>
#include <cmath>
#include <cstddef>

#include "platform/fabric_parts.hpp"

namespace windtunnel::fabrics {
namespace {

constexpr const char* nodes_per_switch = "nodes_per_switch";
constexpr const char* taper = "taper";
constexpr const char* uplinks = "uplinks";

bool hashes(const Fabric& fabric) { return fabric.is_set(routing); }

std::vector<SwitchTier> tiers_of(const Fabric& fabric) {
  const std::vector<double>&tapers = fabric.list(taper), &parallel = fabric.list(uplinks);
  std::vector<SwitchTier> tiers;
  for (const double nodes : fabric.list(nodes_per_switch)) {
    const std::size_t i = tiers.size();
    tiers.push_back({i == 0 ? "leaf" : "tier" + std::to_string(i + 1) + " switch",
                     static_cast<int>(nodes), tapers.empty() ? 1 : tapers[i],
                     hashes(fabric) ? static_cast<int>(parallel[i]) : 0});
  }
  return tiers;
}

FabricPaths paths(const Platform& platform, int num_nodes) {
  const Fabric& fabric = platform.fabric;
  return tree_paths(platform, num_nodes, tiers_of(fabric), fabric.whole(routing_seed));
}

std::string unevenness(const Fabric& fabric, int num_nodes) {
  if (!can_fill(tiers_of(fabric), num_nodes)) return {};
  return hashes(fabric) ? "messages meet on uplinks that a hash picks"
                        : "its fat tree is oversubscribed";
}

/// "a fat tree of 2 tiers has a taper for each of them, these are 3"
std::pair<std::string, std::string> wrong_length(const char* key, std::size_t tiers,
                                                 std::size_t given) {
  return {key, "a fat tree of " + std::to_string(tiers) + (tiers == 1 ? " tier" : " tiers") +
                   " has one number in " + key + " for each, and this is a list of " +
                   std::to_string(given)};
}

std::pair<std::string, std::string> problem(const Platform& platform) {
  const Fabric& fabric = platform.fabric;
  const std::vector<double>&nodes = fabric.list(nodes_per_switch), &tapers = fabric.list(taper),
        &parallel = fabric.list(uplinks);
  if (nodes.empty())
    return {
        nodes_per_switch,
        "a fat tree needs nodes_per_switch: how many nodes are below one switch of each tier, as "
        "[16, 128]"};
  for (std::size_t i = 1; i < nodes.size(); ++i)
    if (nodes[i] <= nodes[i - 1] || std::fmod(nodes[i], nodes[i - 1]) != 0)
      return {nodes_per_switch,
              "a switch of a tier has several of the tier below it, so each number "
              "of nodes is a multiple of the one before"};
  if (!tapers.empty() && tapers.size() != nodes.size())
    return wrong_length(taper, nodes.size(), tapers.size());
  if (!parallel.empty() && parallel.size() != nodes.size())
    return wrong_length(uplinks, nodes.size(), parallel.size());
  if (hashes(fabric) && parallel.empty())
    return {routing, "ecmp picks one of the uplinks of a switch, which needs \"uplinks\""};
  return {};
}

std::vector<FabricWhatIf> what_ifs(const Fabric& fabric) {
  std::vector<FabricWhatIf> questions;
  const std::vector<double>& tapers = fabric.list(taper);
  for (std::size_t i = 0; i < tapers.size(); ++i) {
    if (tapers[i] <= 1) continue;
    std::vector<double> changed = tapers;
    changed[i] = std::max(1.0, tapers[i] / 2);
    questions.push_back({"twice the uplinks of tier " + std::to_string(i + 1) + " of the fat tree",
                         taper, changed});
  }
  if (!questions.empty())
    questions.push_back(
        {"no oversubscription of the fat tree", taper, std::vector<double>(tapers.size(), 1)});
  if (hashes(fabric)) questions.push_back({"adaptive routing in the fat tree", routing, 0.0});
  return questions;
}

}  // namespace

/// A tree of switches of any number of tiers (C. E. Leiserson, "Fat-trees: universal networks for hardware-efficient supercomputing", IEEE
/// Trans. Comput. C-34(10), 892-901, 1985), as InfiniBand and Clos networks are built: a switch of tier i with N_i nodes below it has
/// uplinks of
///   sum of its nodes' NICs / (taper_1 * ... * taper_i)   bytes per second, each way.
/// Above the last tier nothing is ever full. Routing is adaptive, which makes the uplinks of a switch one pool; or by ECMP, where a hash of
/// the two ends picks one of `uplinks` equal ones (C. Hopps, RFC 2992, 2000; collisions in training: Gangidi et al., "RDMA over Ethernet
/// for distributed AI training at Meta scale", SIGCOMM 2024, section 5). Limits: buffers and congestion control are ideal; a message is
/// one flow however many queue pairs it has, unless it has several NICs, each of which is hashed by itself.
FabricKind fat_tree() {
  return {.name = "fat_tree",
          .about =
              "switches in any number of tiers, each with an oversubscription; adaptive routing or "
              "ECMP",
          .keys = {{.name = nodes_per_switch,
                    .label = "nodes below a switch",
                    .type = FabricKey::Type::wholes,
                    .fallback = std::vector<double>{},
                    .least = 1,
                    .most = 1e6,
                    .counts_nodes = true},
                   {.name = taper,
                    .label = "oversubscription of the fat tree",
                    .type = FabricKey::Type::numbers,
                    .fallback = std::vector<double>{},
                    .least = 1,
                    .most = 1e3},
                   {.name = uplinks,
                    .label = "parallel uplinks of a switch",
                    .type = FabricKey::Type::wholes,
                    .fallback = std::vector<double>{},
                    .least = 1,
                    .most = 1e4,
                    .matters = hashes},
                   routing_key({"adaptive", "ecmp"}),
                   routing_seed_key(hashes)},
          .paths = paths,
          .unevenness = unevenness,
          .problem = problem,
          .what_ifs = what_ifs,
          .switches = tiers_of};
}

}  // namespace windtunnel::fabrics
