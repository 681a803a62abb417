#include "schedule/pass_groups.hpp"

#include <algorithm>

namespace windtunnel {
namespace {

/// True if `order` alternates between the directions, instead of running all forwards before the first backward.
bool has_steady_phase(const std::vector<Step>& order) {
  return !std::is_partitioned(order.begin(), order.end(),
                              [](const Step& step) { return step.phase == Phase::forward; });
}

}  // namespace

std::vector<PassGroup> pass_groups(const std::vector<Step>& order, int chunks) {
  const bool pairs = chunks > 1 && has_steady_phase(order);
  std::vector<PassGroup> groups;
  groups.reserve(order.size());
  for (std::size_t first = 0; first < order.size(); first += groups.back().size()) {
    const bool pair = pairs && first + 1 < order.size() && order[first].phase == Phase::forward &&
                      order[first + 1].phase == Phase::backward;
    groups.emplace_back(&order[first], pair ? 2 : 1);
  }
  return groups;
}

}  // namespace windtunnel
