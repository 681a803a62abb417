#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/contracts.hpp"
#include "platform/network.hpp"
#include "units/quantity.hpp"

namespace windtunnel::detail {

/// The flows on each link, in the order in which they entered it.
class LinkFlows {
 public:
  explicit LinkFlows(std::size_t num_links) : flows_(num_links) {}
  void enter(LinkId link, std::uint32_t flow) { flows_[link.index()].push_back(flow); }
  void leave(LinkId link, std::uint32_t flow);
  const std::vector<std::uint32_t>& on(LinkId link) const { return flows_[link.index()]; }

 private:
  std::vector<std::vector<std::uint32_t>> flows_;
};

}  // namespace windtunnel::detail

namespace windtunnel {

/// The links of each path, by path, without those that can never be what limits a flow.
///
/// A link is left out when each path over it also passes another link, and these others together carry no more than it does: then
/// it is satisfied whenever they are, so leaving it out changes nothing in what rates are possible, and the max-min fair rates follow from
/// that alone (Bertsekas & Gallager, Data Networks, 1992, section 6.5.2). "node3 up" goes where devices of the node have NICs of their own
/// and the node has no more than their sum; it stays where they share a NIC. Links are left out one after the other, each by what is left.
/// Sums may be off by 1e-12 of themselves, their rounding.
std::vector<std::vector<LinkId>> binding_links(const Network& network);

namespace detail {

/// Rates and links of all paths, packed for the start and end of flows.
class PathTable {
 public:
  /// `links`: by path, those that can limit a flow: binding_links(network), or all.
  PathTable(const Network& network, const std::vector<std::vector<LinkId>>& links);
  /// Rate of a flow that has its links to itself: that of the slowest link. Infinite when neither path has one.
  BytesPerSecond rate(PathId up, PathId down) const {
    return std::min(row(up).rate, row(down).rate);
  }
  /// Those of the constructor.
  std::span<const LinkId> links(PathId path) const {
    return {links_.data() + row(path).first, row(path).num_links};
  }
  /// Upper bound on the links of a flow: twice those of the longest path.
  std::size_t most_links() const;

 private:
  struct Row {
    BytesPerSecond rate{};
    std::uint32_t first = 0, num_links = 0;  ///< in links_
  };
  const Row& row(PathId path) const {
    WT_EXPECT(path.index() < rows_.size());
    return rows_[path.index()];
  }

  std::vector<Row> rows_;  ///< by path
  std::vector<LinkId> links_;
};

}  // namespace detail
}  // namespace windtunnel
