#include "engine/link_flows.hpp"

#include <algorithm>

#include "core/contracts.hpp"
#include "engine/binding_links.hpp"

namespace windtunnel::detail {

PathLinks::PathLinks(const Network& network) {
  ends_.push_back(0);
  for (const auto& path : binding_links(network)) {
    links_.insert(links_.end(), path.begin(), path.end());
    ends_.push_back(static_cast<std::uint32_t>(links_.size()));
  }
}

void LinkFlows::enter(LinkId id, std::uint32_t flow) {
  OnLink& link = on_link_[id.index()];
  if (link.first == none) {
    link.first = flow;
    return;
  }
  if (link.others == none) {
    link.others = static_cast<std::uint32_t>(others_.size());
    others_.emplace_back();
  }
  others_[link.others].push_back(flow);
}

void LinkFlows::leave(LinkId id, std::uint32_t flow) {
  OnLink& link = on_link_[id.index()];
  if (link.others == none) {
    WT_EXPECT(link.first == flow);
    link.first = none;
    return;
  }
  std::vector<std::uint32_t>& others = others_[link.others];
  if (link.first == flow) {
    link.first = others.empty() ? none : others.front();
    if (!others.empty()) others.erase(others.begin());
    return;
  }
  const auto place = std::find(others.begin(), others.end(), flow);
  WT_EXPECT(place != others.end());
  others.erase(place);
}

}  // namespace windtunnel::detail
