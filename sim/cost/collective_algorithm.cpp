#include "cost/collective_algorithm.hpp"

#include "core/contracts.hpp"

namespace windtunnel {

namespace collectives {
#define WT_COLLECTIVE(name) CollectiveAlgorithm name();
#include "cost/collectives.def"
#undef WT_COLLECTIVE
}  // namespace collectives

double share_of(RingWork work) { return work == RingWork::all_reduce ? 1.0 : 0.5; }

const std::vector<CollectiveAlgorithm>& collective_algorithms() {
  static const std::vector<CollectiveAlgorithm> table{
#define WT_COLLECTIVE(name) collectives::name(),
#include "cost/collectives.def"
#undef WT_COLLECTIVE
  };
  return table;
}

const CollectiveAlgorithm& collective_algorithm(std::string_view name) {
  for (const CollectiveAlgorithm& algorithm : collective_algorithms())
    if (algorithm.name == name) return algorithm;
  WT_UNREACHABLE();
}

}  // namespace windtunnel
