#include "engine/link_flows.hpp"

#include <algorithm>
#include <cstddef>

#include "core/contracts.hpp"

namespace windtunnel::detail {

void LinkFlows::leave(LinkId link, std::uint32_t flow) {
  std::vector<std::uint32_t>& flows = flows_[link.index()];
  const auto place = std::ranges::find(flows, flow);
  WT_EXPECT(place != flows.end());
  flows.erase(place);
}

PathTable::PathTable(const Network& network, const std::vector<std::vector<LinkId>>& links) {
  for (const std::vector<LinkId>& of_path : links) {
    const BytesPerSecond rate = network.rate_alone({PathId(rows_.size())});
    WT_EXPECT(rate > BytesPerSecond{0});
    rows_.push_back({rate, static_cast<std::uint32_t>(links_.size()),
                     static_cast<std::uint32_t>(of_path.size())});
    links_.insert(links_.end(), of_path.begin(), of_path.end());
  }
}

std::size_t PathTable::most_links() const {
  std::uint32_t most = 0;
  for (const Row& row : rows_) most = std::max(most, row.num_links);
  return 2 * std::size_t{most};  // up and down
}

}  // namespace windtunnel::detail

namespace windtunnel {
namespace {

using Paths = std::vector<std::vector<LinkId>>;

/// Drops links that can never limit a flow, until none is left.
class BindingLinkFilter {
 public:
  explicit BindingLinkFilter(const Network& network)
      : network_(&network), paths_(network.paths()), paths_over_(network.links().size()) {
    for (std::size_t path = 0; path < paths_.size(); ++path)
      for (const LinkId link : paths_[path]) paths_over_[link.index()].push_back(path);
  }

  Paths filter() {
    for (std::size_t i = 0; i < paths_over_.size(); ++i) {
      const LinkId link{i};
      if (!never_limits(link)) continue;
      for (const std::size_t path : paths_over_[i])
        paths_[path].erase(std::find(paths_[path].begin(), paths_[path].end(), link));
    }
    return std::move(paths_);
  }

 private:
  BytesPerSecond bandwidth(LinkId link) const { return network_->links()[link.index()].bandwidth; }

  bool never_limits(LinkId link) {
    constexpr double rounding = 1e-12;
    others_.clear();
    for (const std::size_t path : paths_over_[link.index()]) {
      const LinkId other = narrowest_other(paths_[path], link);
      if (other == link) return false;
      others_.push_back(other);
    }
    std::sort(others_.begin(), others_.end());
    others_.erase(std::unique(others_.begin(), others_.end()), others_.end());
    BytesPerSecond sum{};
    for (const LinkId other : others_) sum += bandwidth(other);
    return !others_.empty() && sum <= bandwidth(link) * (1 + rounding);
  }

  /// The link itself where the path has no other.
  LinkId narrowest_other(const std::vector<LinkId>& path, LinkId link) const {
    LinkId narrowest = link;
    for (const LinkId other : path)
      if (other != link && (narrowest == link || bandwidth(other) < bandwidth(narrowest)))
        narrowest = other;
    return narrowest;
  }

  const Network* network_;
  Paths paths_;
  std::vector<std::vector<std::size_t>> paths_over_;  ///< by link
  std::vector<LinkId> others_;
};

}  // namespace

std::vector<std::vector<LinkId>> binding_links(const Network& network) {
  return BindingLinkFilter(network).filter();
}

}  // namespace windtunnel
