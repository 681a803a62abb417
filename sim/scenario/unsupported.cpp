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

/// The first device in use on which flash attention runs at no known rate; empty where there is none.
std::string device_without_flash(const Scenario& scenario) {
  const Training& training = scenario.plan.training;
  if (training.attention != Attention::flash) return {};
  for (const NodeType& node : scenario.nodes)
    if (!scenario.software.overrides_flash(node.device) &&
        !node.device.has_attention(base_precision(training.precision)))
      return node.device.name;
  return {};
}

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
      parallel.replicas() > 1 && !unevenness(scenario.platform, scenario.plan.num_nodes).empty())
    refusals.add("/parallel/placement",
                 "a placement is not searched for zero_stage 3: the search does not weigh gathers "
                 "yet",
                 "leave placement out, or give a permutation of nodes");
  if (parallel.schedule->is_both_ways()) {
    const std::string of = " under schedule " + parallel.schedule->name +
                           ", where two stages hold each part of the model";
    if (scenario.placement_request == PlacementRequest::search)
      refusals.add("/parallel/placement", "a placement is not searched" + of,
                   "leave placement out, or give a permutation of nodes");
    if (scenario.plan.compression.data_gradients)
      refusals.add("/compression/data_gradients", "gradients are not compressed" + of,
                   "leave data_gradients out");
  }
  if (const std::string device = device_without_flash(scenario); !device.empty())
    refusals.add("/training/attention", "neither device \"" + device +
                                            "\" nor software profile \"" + scenario.software.name +
                                            "\" knows the rate of flash attention, so it is not "
                                            "simulated with them");
  return refusals.take();
}

}  // namespace windtunnel
