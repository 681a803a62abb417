#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/stoer_wagner_min_cut.hpp>
#include <cstddef>
#include <numeric>

#include "core/contracts.hpp"
#include "platform/network.hpp"

namespace windtunnel {
namespace {

using LaneGraph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, boost::no_property,
                          boost::property<boost::edge_weight_t, int>>;

/// Arcs between the members of a group: a lane is one in each direction.
using Arcs = std::vector<std::vector<int>>;

Arcs arcs_between(const Interconnect& interconnect, const std::vector<int>& gpus) {
  Arcs arcs;
  for (const int from : gpus) {
    std::vector<int>& row = arcs.emplace_back();
    for (const int to : gpus)
      row.push_back(from == to ? 0
                               : interconnect.lanes.at(static_cast<std::size_t>(from))
                                     .at(static_cast<std::size_t>(to)));
  }
  return arcs;
}

/// Whether so many cycles that share no arc can be packed into a group. All of them leave the GPU with the fewest lanes, each by
/// another arc, so the search goes over its arcs.
class CyclePacking {
 public:
  explicit CyclePacking(Arcs arcs) : free_(std::move(arcs)), visited_(free_.size()) {
    const auto degree = [this](std::size_t gpu) {
      return std::accumulate(free_[gpu].begin(), free_[gpu].end(), 0);
    };
    for (std::size_t gpu = 1; gpu < free_.size(); ++gpu)
      if (degree(gpu) < degree(start_)) start_ = gpu;
    most_ = degree(start_);
  }

  int most_cycles() {
    for (int cycles = most_; cycles > 0; --cycles)
      if (packs(0, cycles)) return cycles;
    return 0;
  }

 private:
  /// So many more cycles, none of which begins with an arc to a GPU before `next`.
  bool packs(std::size_t next, int cycles) {
    if (cycles == 0) return true;
    for (std::size_t to = next; to < free_.size(); ++to)
      if (free_[start_][to] > 0) {
        visited_[start_] = true;
        const bool done = extends(start_, to, 1, cycles);
        visited_[start_] = false;
        if (done) return true;
      }
    return false;
  }

  /// Takes the arc `from` -> `to` as the next of the current cycle, and goes on.
  bool extends(std::size_t from, std::size_t to, std::size_t length, int cycles) {
    --free_[from][to];
    const bool done = to == start_ ? closes(length, cycles) : visits(to, length, cycles);
    if (!done) ++free_[from][to];
    return done;
  }

  bool visits(std::size_t gpu, std::size_t length, int cycles) {
    if (length == 1) first_ = gpu;
    visited_[gpu] = true;
    const bool last = length + 1 == free_.size();
    bool done = false;
    for (std::size_t to = 0; to < free_.size() && !done; ++to)
      if (free_[gpu][to] > 0 && (last ? to == start_ : !visited_[to]))
        done = extends(gpu, to, length + 1, cycles);
    visited_[gpu] = false;
    return done;
  }

  bool closes(std::size_t length, int cycles) {
    if (length != free_.size()) return false;
    const std::size_t first = first_;
    std::vector<bool> of_this_cycle(free_.size());
    of_this_cycle.swap(visited_);
    const bool done = packs(first, cycles - 1);
    of_this_cycle.swap(visited_);
    first_ = first;
    return done;
  }

  Arcs free_;
  std::vector<bool> visited_;
  std::size_t start_ = 0, first_ = 0;
  int most_ = 0;
};

}  // namespace

int num_rings(const Interconnect& interconnect, const std::vector<int>& gpus) {
  WT_EXPECT(gpus.size() >= 2);
  if (gpus.size() > most_counted) return num_relayed_rings(interconnect, gpus);
  return CyclePacking(arcs_between(interconnect, gpus)).most_cycles();
}

int num_relayed_rings(const Interconnect& interconnect, const std::vector<int>& gpus) {
  WT_EXPECT(gpus.size() >= 2);
  const Arcs arcs = arcs_between(interconnect, gpus);
  LaneGraph graph(gpus.size());
  for (std::size_t i = 0; i < gpus.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (arcs[i][j] > 0) boost::add_edge(i, j, arcs[i][j], graph);
  return boost::stoer_wagner_min_cut(graph, boost::get(boost::edge_weight, graph));
}

}  // namespace windtunnel
