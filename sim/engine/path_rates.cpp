#include "engine/path_rates.hpp"

#include <cstddef>

#include "core/contracts.hpp"

namespace windtunnel::detail {

PathRates::PathRates(const Network& network) {
  by_path_.reserve(network.paths().size());
  for (std::size_t path = 0; path < network.paths().size(); ++path) {
    by_path_.push_back(network.rate_alone({PathId(path)}));
    WT_EXPECT(by_path_.back() > BytesPerSecond{0});
  }
}

}  // namespace windtunnel::detail
