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

/// The links of each path of a network that can limit a flow (engine/link_flows.hpp), one after the other: with thousands of paths the time goes into fetching memory.
class PathLinks {
 public:
  explicit PathLinks(const Network& network);
  std::span<const LinkId> of(PathId path) const {
    WT_EXPECT(path.index() + 1 < ends_.size());
    const std::uint32_t* const ends = ends_.data() + path.index();
    return {links_.data() + ends[0], links_.data() + ends[1]};
  }

 private:
  std::vector<std::uint32_t> ends_;  ///< of the path before
  std::vector<LinkId> links_;
};

/// The flows on each link, in the order in which they entered it. Most links carry one at most, which takes no list.
class LinkFlows {
 public:
  explicit LinkFlows(std::size_t num_links) : on_link_(num_links) {}
  void enter(LinkId link, std::uint32_t flow);
  void leave(LinkId link, std::uint32_t flow);
  template <class Visit>
  void for_each(LinkId id, const Visit& visit) const {
    const OnLink& link = on_link_[id.index()];
    if (link.first == none) return;
    visit(link.first);
    if (link.others == none) return;
    for (const std::uint32_t flow : others_[link.others]) visit(flow);
  }

 private:
  static constexpr std::uint32_t none = 0xFFFFFFFF;
  struct OnLink {
    std::uint32_t first = none;
    std::uint32_t others = none;  ///< the list of the others, once there has been one
  };
  std::vector<OnLink> on_link_;
  std::vector<std::vector<std::uint32_t>> others_;
};

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

namespace windtunnel {

/// The links of each path, by path, without those that can never be what limits a flow.
///
/// A link is left out when each path over it also passes another link, and these others together carry no more than it does: then
/// it is satisfied whenever they are, so leaving it out changes nothing in what rates are possible, and the max-min fair rates follow from
/// that alone (Bertsekas & Gallager, Data Networks, 1992, section 6.5.2). "node3 up" goes where devices of the node have NICs of their own
/// and the node has no more than their sum; it stays where they share a NIC. Links are left out one after the other, each by what is left.
/// Sums may be off by 1e-12 of themselves, their rounding.
std::vector<std::vector<LinkId>> binding_links(const Network& network);

}  // namespace windtunnel
