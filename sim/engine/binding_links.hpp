#pragma once

#include <vector>

#include "platform/network.hpp"

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
