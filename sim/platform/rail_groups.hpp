#pragma once

#include <utility>
#include <vector>

#include "platform/platform.hpp"

namespace windtunnel {

// Rails: NIC i of every node of a group is on leaf switch i of that group. Where NVLink joins trays to a node, i counts the NICs of a tray.

/// Rails that the platform's nodes have.
int num_rails(const Platform& platform);
/// The rails of some NICs, in order.
std::vector<int> rails_of(const NodeNics& at, int num_rails);
/// By which NICs a message leaves that is first relayed over NVLink to GPUs on the receiver's rails, of the same trays: PXN of NCCL 2.12 and later
/// (Mandakolathur & Jeaugey, "Doubling all2all performance with NVIDIA Collective Communication Library 2.12", NVIDIA technical blog,
/// 2022). Empty where it is on them already. Limit: NVLink is taken to be faster than the NICs, and never full.
std::vector<int> relayed_to_rails(const Platform& platform, const NodeNics& from,
                                  const NodeNics& to);
/// What is wrong with nodes on rails, at which key; `relays`: they relay messages over NVLink.
std::pair<std::string, std::string> problem_of_rails(const Platform& platform, const char* relays);

}  // namespace windtunnel
