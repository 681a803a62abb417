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

std::optional<PlanRejection> unsupported_gathers(const Plan& plan, const Platform& platform) {
  if (plan.parallel.zero_stage != 3 || plan.parallel.data == 1) return std::nullopt;
  const std::string reason = unevenness(platform, plan.num_nodes);
  if (reason.empty()) return std::nullopt;
  if (plan.parallel.schedule->splits_backward)
    return PlanRejection{
        "/parallel/schedule",
        "schedules that split backward passes are not simulated with zero_stage 3 on this "
        "platform: " +
            reason + ", and gathers are not played in such passes yet",
        "use " + default_schedule()->name + ": one stage has no bubble to fill"};
  if (plan.parts == 1) return std::nullopt;
  return PlanRejection{"/parallel/zero_stage",
                       "zero_stage 3 is not simulated with tensor groups across nodes on this "
                       "platform: " +
                           reason + ", and gathers are not played beside such groups yet",
                       "use a tensor that fits in a node, zero_stage 2 or less, or a platform of "
                       "equal nodes and links"};
}

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
  if (const auto gathers = unsupported_gathers(scenario.plan, scenario.platform))
    refusals.add(gathers->key, gathers->message, gathers->suggestion);
  return refusals.take();
}

}  // namespace windtunnel
