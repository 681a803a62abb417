#pragma once

#include <algorithm>
#include <vector>

#include "core/contracts.hpp"
#include "platform/network.hpp"
#include "units/quantity.hpp"

namespace windtunnel::detail {

/// The rate of a flow that has its links to itself: that of the slowest link on its way.
class PathRates {
 public:
  explicit PathRates(const Network& network);
  /// Infinite when neither path has a link.
  BytesPerSecond rate(PathId up, PathId down) const {
    WT_EXPECT(up.index() < by_path_.size() && down.index() < by_path_.size());
    return std::min(by_path_[up.index()], by_path_[down.index()]);
  }

 private:
  std::vector<BytesPerSecond> by_path_;
};

}  // namespace windtunnel::detail
