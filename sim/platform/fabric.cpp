#include "platform/fabric.hpp"

#include "core/contracts.hpp"

namespace windtunnel {

namespace fabrics {
#define WT_FABRIC(name) FabricKind name();
#include "platform/fabrics.def"
#undef WT_FABRIC
}  // namespace fabrics

const std::vector<FabricKind>& fabric_kinds() {
  static const std::vector<FabricKind> table{
#define WT_FABRIC(name) fabrics::name(),
#include "platform/fabrics.def"
#undef WT_FABRIC
  };
  return table;
}

double Fabric::number(std::string_view key) const {
  if (const auto found = numbers.find(key); found != numbers.end()) return found->second;
  for (const FabricKey& known : kind->keys)
    if (known.name == key) return known.fallback;
  WT_UNREACHABLE();
}

}  // namespace windtunnel
