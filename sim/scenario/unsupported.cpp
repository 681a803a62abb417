#include "scenario/unsupported.hpp"

#include <string>

namespace windtunnel {
namespace {

class Refusals {
 public:
  explicit Refusals(JsonValue& tree) : tree_(&tree) {}

  void add(const std::string& pointer, const std::string& what,
           const std::string& suggestion = {}) {
    const JsonValue* value = find_at(*tree_, pointer);
    problems_.add({value == nullptr ? Origin{} : value->origin, pointer, what, suggestion});
  }
  Problems take() { return problems_; }

 private:
  JsonValue* tree_;
  Problems problems_;
};

}  // namespace

Problems unsupported_requests(const Scenario& scenario, JsonValue& tree,
                              const ReadOptions& options) {
  Refusals refusals(tree);
  if (scenario.placement_request == PlacementRequest::search &&
      options.placement_search == PlacementSearch::refused)
    refusals.add(
        "/parallel/placement",
        "a placement is searched by run, show and explain only, not where many scenarios are "
        "simulated");
  const Parallel& parallel = scenario.plan.parallel;
  if (scenario.placement_request == PlacementRequest::search && parallel.zero_stage == 3 &&
      parallel.data > 1 && !unevenness(scenario.platform, scenario.plan.num_nodes).empty())
    refusals.add("/parallel/placement",
                 "a placement is not searched for zero_stage 3: the search does not weigh gathers "
                 "yet",
                 "leave placement out, or give a permutation of nodes");
  if (scenario.plan.training.attention == Attention::flash &&
      !(scenario.software.flash_forward_efficiency && scenario.software.flash_backward_efficiency))
    refusals.add("/training/attention", "software profile \"" + scenario.software.name +
                                            "\" has no flash-attention efficiency, so flash "
                                            "attention is not simulated with it");
  return refusals.take();
}

}  // namespace windtunnel
