#include "platform/platform.hpp"

#include <cstdint>

#include "core/contracts.hpp"

namespace windtunnel {

const NodeType& Platform::type_of(NodeId node) const {
  std::uint32_t first = 0;
  for (const NodeType& type : node_types) {
    const auto count = static_cast<std::uint32_t>(type.count);
    if (count == 0 || node.index() < first + count) return type;
    first += count;
  }
  WT_UNREACHABLE();
}

int Platform::available_nodes() const {
  int nodes = 0;
  for (const NodeType& type : node_types) {
    if (type.count == 0) return 0;
    nodes += type.count;
  }
  return nodes;
}

}  // namespace windtunnel
