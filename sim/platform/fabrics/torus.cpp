#include <cstddef>
#include <functional>
#include <numeric>

#include "platform/network.hpp"

namespace windtunnel::fabrics {
namespace {

constexpr const char* dimensions = "dimensions";
constexpr const char* link_rate = "link_rate";
constexpr std::size_t fewest_dimensions = 2, most_dimensions = 3;

std::vector<int> sizes_of(const Fabric& fabric) {
  const std::vector<double>& sizes = fabric.list(dimensions);
  return {sizes.begin(), sizes.end()};
}

FabricPaths paths(const Platform& platform, int /*num_nodes*/) {
  const Fabric& fabric = platform.fabric;
  return [sizes = sizes_of(fabric), rate = fabric.rate(link_rate), links = CountedLinks()](
             Network& network, const NodeNics& from, const NodeNics& to) mutable {
    FabricPath path;
    int at = static_cast<int>(from.node.index());
    const int target = static_cast<int>(to.node.index());
    int stride = 1;  // between neighbours along this dimension
    for (std::size_t dimension = 0; dimension < sizes.size(); ++dimension) {
      const int size = sizes[dimension], wanted = target / stride % size;
      const auto place = [&] { return at / stride % size; };
      const bool is_ahead = 2 * ((wanted - place() + size) % size) <= size;
      while (place() != wanted) {
        const std::size_t number =
            2 * (static_cast<std::size_t>(at) * sizes.size() + dimension) + (is_ahead ? 0 : 1);
        path.up.push_back(links.at(number, [&] {
          return network.add_link(rate, "torus node" + std::to_string(at) +
                                            (is_ahead ? " +" : " -") + "xyz"[dimension]);
        }));
        at += ((place() + (is_ahead ? 1 : size - 1)) % size - place()) * stride;
      }
      stride *= size;
    }
    return path;
  };
}

std::string unevenness(const Fabric& /*fabric*/, int num_nodes) {
  return num_nodes > 2 ? "its nodes are joined in a torus" : "";
}

std::pair<std::string, std::string> problem(const Platform& platform) {
  const std::size_t count = platform.fabric.list(dimensions).size();
  if (count < fewest_dimensions || count > most_dimensions)
    return {dimensions,
            "a torus needs the nodes along each of its two or three dimensions, as [8, 8, 4]"};
  if (!platform.fabric.is_set(link_rate))
    return {link_rate, "a torus needs link_rate: what a cable between neighbours carries one way"};
  return {};
}

std::optional<int> most_nodes(const Platform& platform) {
  const std::vector<int> sizes = sizes_of(platform.fabric);
  return std::accumulate(sizes.begin(), sizes.end(), 1, std::multiplies<>());
}

std::vector<FabricWhatIf> what_ifs(const Fabric& fabric) {
  return {{"twice the rate of the torus", link_rate, 2 * fabric.number(link_rate)}};
}

}  // namespace

/// A 2-D or 3-D torus: node n is at (n mod X, n / X mod Y, ...), and has a cable to the next node and to the one before along each
/// dimension, each way of `link_rate` bytes per second. Messages go along x, then y, then z (dimension-order routing; W. J. Dally & C. L.
/// Seitz, "Deadlock-free message routing in multiprocessor interconnection networks", IEEE Trans. Comput. C-36(5), 547-553, 1987), the
/// shorter way around, and ahead where both are as long. They enter and leave by the NICs of both ends; nodes on the way only pass them
/// on. Nodes are NVLink domains where there are any. Limit: routes do not avoid full cables.
FabricKind torus() {
  return {
      .name = "torus",
      .about = "each node cabled to its neighbours in 2 or 3 dimensions; dimension-order routing",
      .keys = {{.name = dimensions,
                .label = "nodes along a dimension of the torus",
                .type = FabricKey::Type::wholes,
                .fallback = std::vector<double>{},
                .least = 1,
                .most = 1e3},
               {.name = link_rate,
                .label = "rate of the torus",
                .type = FabricKey::Type::data_rate}},
      .paths = paths,
      .unevenness = unevenness,
      .problem = problem,
      .most_nodes = most_nodes,
      .what_ifs = what_ifs};
}

}  // namespace windtunnel::fabrics
