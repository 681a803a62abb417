#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "platform/network.hpp"
#include "platform/testing.hpp"

using namespace windtunnel;

namespace {

std::vector<int> first_gpus(int count) {
  std::vector<int> gpus(static_cast<std::size_t>(count));
  std::iota(gpus.begin(), gpus.end(), 0);
  return gpus;
}

using Lanes = std::vector<std::vector<int>>;

/// The most of `cycles` from number `next` on that the lanes left over have room for: every choice is tried.
int most_packed(const std::vector<std::vector<int>>& cycles, std::size_t next, Lanes& lanes) {
  const auto on_each_arc = [&](const std::vector<int>& cycle, int change) {
    bool fits = true;
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      int& free = lanes[static_cast<std::size_t>(cycle[i])]
                       [static_cast<std::size_t>(cycle[(i + 1) % cycle.size()])];
      free += change;
      fits = fits && free >= 0;
    }
    return fits;
  };
  int most = 0;
  for (std::size_t i = next; i < cycles.size(); ++i) {
    if (on_each_arc(cycles[i], -1)) most = std::max(most, 1 + most_packed(cycles, i, lanes));
    on_each_arc(cycles[i], 1);
  }
  return most;
}

/// The same number as num_rings(), from all orders of the group.
int rings_by_trying(const Interconnect& mesh, std::vector<int> gpus) {
  std::vector<std::vector<int>> cycles;
  Lanes lanes = mesh.lanes;
  do {
    bool exists = true;
    for (std::size_t i = 0; i < gpus.size(); ++i)
      exists = exists && lanes[static_cast<std::size_t>(gpus[i])]
                              [static_cast<std::size_t>(gpus[(i + 1) % gpus.size()])] > 0;
    if (exists) cycles.push_back(gpus);
  } while (std::next_permutation(gpus.begin() + 1, gpus.end()));
  return most_packed(cycles, 0, lanes);
}

}  // namespace

TEST_CASE("the first 2 to 8 GPUs of a DGX-1 have 1, 2, 4, 0, 2, 4 and 6 rings") {
  const Interconnect mesh = testing::shipped_platform("dgx1-v100").node_types[0].interconnect;
  const std::vector<int> rings = {1, 2, 4, 0, 2, 4, 6};
  for (int count = 2; count <= 8; ++count) {
    CAPTURE(count);
    CHECK(num_rings(mesh, first_gpus(count)) == rings[static_cast<std::size_t>(count - 2)]);
  }
  CHECK(num_rings(mesh, {4, 5, 6, 7}) == 4);  // the other half is the same
  CHECK(num_rings(mesh, {3, 4}) == 0);        // GPUs 3 and 4 share no lane
  CHECK(num_relayed_rings(mesh, first_gpus(5)) == 2);
}

TEST_CASE("rings of every group of a DGX-1") {
  const Interconnect mesh = testing::shipped_platform("dgx1-v100").node_types[0].interconnect;
  constexpr int gpus_in_node = 8, most_tried = 5;
  for (int set = 0; set < 1 << gpus_in_node; ++set) {
    std::vector<int> group;
    for (int gpu = 0; gpu < gpus_in_node; ++gpu)
      if ((set >> gpu & 1) == 1) group.push_back(gpu);
    if (group.size() < 2) continue;
    CAPTURE(set);
    const int rings = num_rings(mesh, group);
    CHECK(rings <= num_relayed_rings(mesh, group));
    if (group.size() <= most_tried) CHECK(rings == rings_by_trying(mesh, group));
    // The order in which the GPUs are named changes nothing.
    std::vector<int> reversed(group.rbegin(), group.rend());
    CHECK(num_rings(mesh, reversed) == rings);
  }
}

TEST_CASE("rings of the four-GPU nodes") {
  const Interconnect jean_zay =
      testing::shipped_platform("jean-zay-v100").node_types[0].interconnect;
  CHECK(num_rings(jean_zay, {0, 1}) == 2);
  CHECK(num_rings(jean_zay, {0, 1, 2, 3}) == 6);
  // 6 rings * 20.67 GB/s = 124.02 GB/s; the benchmark shows 124 at 4 GB.
  CHECK(6 * jean_zay.saturated_bandwidth / 124_GBps == doctest::Approx(1).epsilon(1e-3));
  const Interconnect lassen = testing::shipped_platform("lassen-v100").node_types[0].interconnect;
  CHECK(num_rings(lassen, {0, 1}) == 3);
  // What crosses the sockets, not the 3 lanes of a GPU, and that only there and back again.
  CHECK(num_rings(lassen, {0, 1, 2, 3}) == 0);
  CHECK(num_relayed_rings(lassen, {0, 1, 2, 3}) == 1);
}
