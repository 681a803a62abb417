#include "platform/mesh_rings.hpp"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/stoer_wagner_min_cut.hpp>
#include <cstddef>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

using LaneGraph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, boost::no_property,
                          boost::property<boost::edge_weight_t, int>>;

}  // namespace

int num_rings(const Interconnect& interconnect, const std::vector<int>& gpus) {
  WT_EXPECT(gpus.size() >= 2);
  LaneGraph graph(gpus.size());
  for (std::size_t i = 0; i < gpus.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const auto a = static_cast<std::size_t>(gpus[i]);
      const auto b = static_cast<std::size_t>(gpus[j]);
      if (const int lanes = interconnect.lanes.at(a).at(b); lanes > 0)
        boost::add_edge(i, j, lanes, graph);
    }
  return boost::stoer_wagner_min_cut(graph, boost::get(boost::edge_weight, graph));
}

}  // namespace windtunnel
