#pragma once

#include <vector>

#include "platform/network.hpp"
#include "units/quantity.hpp"

namespace windtunnel::detail {

/// The rate of a flow that has its links to itself: that of the slowest link on its way.
class PathRates {
 public:
  explicit PathRates(const Network& network);
  /// Infinite when neither path has a link.
  BytesPerSecond rate(PathId up, PathId down) const;

 private:
  std::vector<BytesPerSecond> by_path_;
};

}  // namespace windtunnel::detail
