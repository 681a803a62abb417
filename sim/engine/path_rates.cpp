#include "engine/path_rates.hpp"

#include <algorithm>
#include <limits>

#include "core/contracts.hpp"

namespace windtunnel::detail {

PathRates::PathRates(const Network& network) {
  by_path_.reserve(network.paths().size());
  for (const auto& path : network.paths()) {
    BytesPerSecond slowest{std::numeric_limits<double>::infinity()};
    for (const LinkId link : path) {
      slowest = std::min(slowest, network.links()[link.index()].bandwidth);
    }
    WT_EXPECT(slowest > BytesPerSecond{0});
    by_path_.push_back(slowest);
  }
}

}  // namespace windtunnel::detail
