#include "platform/rail_groups.hpp"

#include <algorithm>
#include <iterator>
#include <string>

namespace windtunnel {

int num_rails(const Platform& platform) {
  const NodeType& type = platform.node_types.front();
  return type.nics / type.trays;
}

namespace {

/// Each once, in order.
void sort_out(std::vector<int>& numbers) {
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

}  // namespace

std::vector<int> rails_of(const NodeNics& at, int num_rails) {
  std::vector<int> rails;
  rails.reserve(at.nics.size());
  for (const int nic : at.nics) rails.push_back(nic % num_rails);
  sort_out(rails);
  return rails;
}

std::vector<int> relayed_to_rails(const Platform& platform, const NodeNics& from,
                                  const NodeNics& to) {
  const int count = num_rails(platform);
  const std::vector<int> rails = rails_of(to, count);
  if (rails == rails_of(from, count)) return {};
  std::vector<int> nics;
  for (const int nic : from.nics)
    for (const int rail : rails) nics.push_back(nic - nic % count + rail);
  sort_out(nics);
  return nics;
}

std::pair<std::string, std::string> problem_of_rails(const Platform& platform, const char* relays) {
  for (const NodeType& type : platform.node_types) {
    if (type.nics != platform.node_types.front().nics)
      return {"kind", "rails join nodes with equal numbers of NICs"};
    if (relays != nullptr && type.interconnect.kind == Interconnect::Kind::pcie)
      return {relays,
              "a message is relayed over NVLink, and the GPUs of a node are joined by PCIe"};
  }
  return {};
}

}  // namespace windtunnel
