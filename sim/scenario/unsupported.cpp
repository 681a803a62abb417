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

std::optional<PlanRejection> unsupported_gathers(const Parallel& parallel, const Platform& platform,
                                                 int nodes) {
  if (parallel.zero_stage != 3 || parallel.data == 1) return std::nullopt;
  const std::string reason = unevenness(platform, nodes);
  if (reason.empty()) return std::nullopt;
  return PlanRejection{"/parallel/zero_stage",
                       "zero_stage 3 is not simulated on this platform: " + reason +
                           ", and its gathers and scatters are not played on links yet",
                       "use zero_stage 2 or less, or a platform of equal nodes and links"};
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
  if (scenario.plan.training.attention == Attention::flash &&
      !(scenario.software.flash_forward_efficiency && scenario.software.flash_backward_efficiency))
    refusals.add("/training/attention", "software profile \"" + scenario.software.name +
                                            "\" has no flash-attention efficiency, so flash "
                                            "attention is not simulated with it");
  if (const auto gathers =
          unsupported_gathers(scenario.plan.parallel, scenario.platform, scenario.plan.num_nodes))
    refusals.add(gathers->key, gathers->message, gathers->suggestion);
  return refusals.take();
}

}  // namespace windtunnel
