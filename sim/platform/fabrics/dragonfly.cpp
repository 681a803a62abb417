#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "platform/fabric_parts.hpp"
#include "platform/network.hpp"

namespace windtunnel::fabrics {
namespace {

constexpr const char* nodes_per_router = "nodes_per_router";
constexpr const char* routers_per_group = "routers_per_group";
constexpr const char* global_links = "global_links";
constexpr const char* groups = "groups";
constexpr const char* local_rate = "local_rate";
constexpr const char* global_rate = "global_rate";

/// Numbers of a dragonfly as Kim et al. call them.
struct Shape {
  int p, a, h, g;  ///< nodes of a router, routers of a group, global cables of a router, groups
  BytesPerSecond local, global;
  bool is_valiant;
  int seed;

  explicit Shape(const Fabric& fabric)
      : p(fabric.whole(nodes_per_router)),
        a(fabric.whole(routers_per_group)),
        h(fabric.whole(global_links)),
        g(fabric.whole(groups)),
        local(fabric.rate(local_rate)),
        global(fabric.rate(global_rate)),
        is_valiant(fabric.is_set(routing)),
        seed(fabric.whole(routing_seed)) {}

  /// Cables between two groups.
  int between_groups() const { return a * h / (g - 1); }
  /// The router of group `here`, counted within it, that has this cable to group `there`: cables to the other groups are dealt out in order.
  int gateway(int here, int there, int cable) const {
    return ((there < here ? there : there - 1) * between_groups() + cable) / h;
  }
};

/// The way of one part of a message.
class PartRoute {
 public:
  using Hops = std::vector<std::vector<Network::Hop>>;  ///< of all parts, by stage
  static constexpr std::size_t num_stages = 5;          ///< local, global, local, global, local

  PartRoute(const Shape& shape, NodeId node, Hops& hops)
      : shape_(shape), hops_(hops), router_(static_cast<int>(node.index()) / shape.p) {}

  int group() const { return router_ / shape_.a; }

  /// To a router of its group, at this stage.
  void go_to(int router, std::size_t stage) {
    if (router == router_) return;
    hops_[stage].push_back(
        {"router" + std::to_string(router_) + "->router" + std::to_string(router), shape_.local});
    router_ = router;
  }
  /// To another group, by this one of the cables to it: a local hop and a global one.
  void cross(int to_group, int cable, std::size_t stage) {
    const int here = group();
    go_to(here * shape_.a + shape_.gateway(here, to_group, cable), stage);
    hops_[stage + 1].push_back({"group" + std::to_string(here) + "->group" +
                                    std::to_string(to_group) + " cable" + std::to_string(cable),
                                shape_.global});
    router_ = to_group * shape_.a + shape_.gateway(to_group, here, cable);
  }

 private:
  const Shape& shape_;
  Hops& hops_;
  int router_;
};

/// A group that is neither of both.
int group_between(const Shape& shape, int source, int target, const NodeNics& from,
                  const NodeNics& to) {
  int middle = hashed_choice(shape.g - 2, shape.seed, from, to, 0);
  for (const int end : {std::min(source, target), std::max(source, target)})
    if (middle >= end) ++middle;
  return middle;
}

FabricPath path_of(const Shape& shape, Network& network, const NodeNics& from, const NodeNics& to) {
  PartRoute::Hops hops(PartRoute::num_stages);
  const std::vector<MessagePart> parts = message_parts(from, to);
  const int last = static_cast<int>(to.node.index()) / shape.p, target = last / shape.a;
  for (const MessagePart& part : parts) {
    PartRoute route(shape, from.node, hops);
    const int source = route.group();
    const auto cable = [&](int salt) {
      return hashed_choice(shape.between_groups(), shape.seed, part.from, part.to, salt);
    };
    if (source != target && shape.is_valiant && shape.g > 2)
      route.cross(group_between(shape, source, target, part.from, part.to), cable(1), 0);
    if (source != target) route.cross(target, cable(2), 2);
    route.go_to(last, PartRoute::num_stages - 1);
  }
  FabricPath path;
  for (const std::vector<Network::Hop>& stage : hops)
    network.pass(path.up, stage, static_cast<int>(parts.size()));
  return path;
}

FabricPaths paths(const Platform& platform, int /*num_nodes*/) {
  return
      [shape = Shape(platform.fabric)](Network& network, const NodeNics& from, const NodeNics& to) {
        return path_of(shape, network, from, to);
      };
}

std::string unevenness(const Fabric& fabric, int num_nodes) {
  return num_nodes > fabric.number(nodes_per_router) ? "its routers are joined in a dragonfly" : "";
}

std::pair<std::string, std::string> problem(const Platform& platform) {
  const Fabric& fabric = platform.fabric;
  for (const auto& [key, meaning] :
       {std::pair{nodes_per_router, "the nodes on each router"},
        {routers_per_group, "the routers of each group, joined each to each"},
        {global_links, "the cables of each router to other groups"},
        {groups, "the number of groups"},
        {local_rate, "what a cable between routers of a group carries one way"},
        {global_rate, "what a cable between groups carries one way"}})
    if (!fabric.is_set(key)) return {key, std::string("a dragonfly needs ") + key + ": " + meaning};
  const int cables = fabric.whole(routers_per_group) * fabric.whole(global_links);
  const int others = fabric.whole(groups) - 1;
  if (others < 1) return {groups, "a dragonfly has at least two groups"};
  if (cables % others != 0)
    return {groups, "each group has " + std::to_string(cables) +
                        " cables to others (routers_per_group * global_links), which do not divide "
                        "among " +
                        std::to_string(others) + " other groups"};
  return {};
}

std::optional<int> most_nodes(const Platform& platform) {
  const Shape shape(platform.fabric);
  return shape.p * shape.a * shape.g;
}

std::vector<SwitchTier> switches(const Fabric& fabric) {
  const Shape shape(fabric);
  return {{"router", shape.p}, {"group", shape.p * shape.a}};
}

std::vector<FabricWhatIf> what_ifs(const Fabric& fabric) {
  return {{"twice the rate between groups", global_rate, 2 * fabric.number(global_rate)},
          fabric.is_set(routing) ? FabricWhatIf{"minimal routing", routing, 0.0}
                                 : FabricWhatIf{"Valiant's routing", routing, 1.0}};
}

FabricKey counted(const char* name, const char* label, bool counts_nodes = false) {
  return {.name = name,
          .label = label,
          .type = FabricKey::Type::whole,
          .least = 0,
          .most = 1e4,
          .counts_nodes = counts_nodes};
}

}  // namespace

/// A dragonfly (J. Kim, W. J. Dally, S. Scott & D. Abts, "Technology-driven, highly-scalable dragonfly topology", ISCA 2008, sections 3
/// and 4): p nodes on a router, a routers in a group, joined each to each, and h cables of each router to other groups; a h cables of a group
/// are dealt out to the g - 1 others in order, as many to each. A minimal route is at most a local hop, a global and a local one; the hash of its
/// ends picks one of several cables between two groups. Valiant's goes by an intermediate group that a hash picks (L. G. Valiant, "A scheme
/// for fast parallel communication", SIAM J. Comput. 11(2), 350-361, 1982), so that no pattern fills one cable at twice the load of all.
/// Limit: routes do not avoid full cables (UGAL).
FabricKind dragonfly() {
  return {.name = "dragonfly",
          .about = "groups of routers joined each to each; minimal routing or Valiant's",
          .keys = {counted(nodes_per_router, "nodes per router", true),
                   counted(routers_per_group, "routers per group"),
                   counted(global_links, "cables of a router to other groups"),
                   counted(groups, "groups of the dragonfly"),
                   {.name = local_rate,
                    .label = "rate between routers of a group",
                    .type = FabricKey::Type::data_rate},
                   {.name = global_rate,
                    .label = "rate between groups",
                    .type = FabricKey::Type::data_rate},
                   routing_key({"minimal", "valiant"}),
                   routing_seed_key()},
          .paths = paths,
          .unevenness = unevenness,
          .problem = problem,
          .most_nodes = most_nodes,
          .what_ifs = what_ifs,
          .switches = switches};
}

}  // namespace windtunnel::fabrics
