#include "studies/baseline_preference.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "cost/collective_cost.hpp"
#include "cost/stage_cost.hpp"
#include "memory/memory_account.hpp"
#include "platform/network.hpp"
#include "simulate/memory_inputs.hpp"

namespace windtunnel {
namespace {

/// Reads a scenario the way the published tools read a profile.
class InputReader {
 public:
  InputReader(const Scenario& scenario, GradientCount gradients, LinkRate links)
      : scenario_(scenario), plan_(scenario.plan), gradients_(gradients), links_(links) {}

  BaselineInputs read() {
    BaselineInputs in;
    in.microbatches = plan_.microbatches;
    in.data = plan_.parallel.replicas();
    for (int s = 0; s < plan_.parallel.pipeline; ++s) in.stages.push_back(stage(StageId{s}));
    for (int replica = 0; replica < in.data; ++replica) {
      in.hops.emplace_back();
      for (int s = 0; s + 1 < plan_.parallel.pipeline; ++s)
        in.hops.back().push_back(
            rate(device(replica, StageId{s}), device(replica, StageId{s + 1})));
    }
    in.message = message_;
    return in;
  }

 private:
  const PlanDevice& device(int replica, StageId stage) const {
    return plan_.devices[plan_.device(replica, stage, 0).index()];
  }
  const NodeType& node(const PlanDevice& d) const { return scenario_.nodes[d.node.index()]; }

  /// One GPU to another in a node; the NICs of the weaker end, or what was measured, between nodes.
  BytesPerSecond rate(const PlanDevice& from, const PlanDevice& to) const {
    if (from.node == to.node) return node(from).interconnect.point_to_point;
    const BytesPerSecond nics = std::min(node_bandwidth(scenario_.platform, from.node),
                                         node_bandwidth(scenario_.platform, to.node));
    const auto own = own_bandwidth(scenario_.platform, from.node, to.node);
    const BytesPerSecond all = own ? std::min(*own, nics) : nics;
    const int cards = std::max({1, node(from).nics, node(to).nics});
    return links_ == LinkRate::node ? all : all / static_cast<double>(cards);
  }

  static std::pair<Seconds, Seconds> passes(const StageCost& cost) {
    Seconds forward{}, backward{};
    for (const ChunkCost& chunk : cost.chunks) {
      forward += chunk.forward.duration;
      backward += chunk.backward.duration;
    }
    return {forward, backward};
  }

  Bytes gradients(const StageCost& cost, StageId stage) const {
    if (gradients_ == GradientCount::account) return cost.gradients;
    return released_gradients(scenario_.model, plan_.stage_layers[stage.index()],
                              plan_.parallel.tensor, element_size(plan_.training.precision));
  }

  StageCost cost_on(const PlanDevice& d, const NodeType& on) const {
    DataGroup data;
    data.members = plan_.parallel.replicas();
    data.gpus_in_node = {0};
    data.nodes = data.members;
    return stage_cost({&scenario_.model,
                       &plan_,
                       &scenario_.software,
                       &on,
                       &scenario_.platform.fabric,
                       d.stage,
                       d.gpus,
                       data,
                       {},
                       {}});
  }

  /// Replicas of a stage are equal but for their kind of node, so one cost a kind is enough.
  void add_times(const PlanDevice& d, BaselineStage& stage, std::set<const NodeType*>& known) {
    if (!known.insert(kind_of(d)).second) return;
    const StageCost cost = cost_on(d, node(d));
    const auto [forward, backward] = passes(cost);
    if (forward + backward > stage.forward + stage.backward) {
      stage.forward = forward;
      stage.backward = backward;
    }
    stage.gradients = gradients(cost, d.stage);
    message_ = cost.tensor_payload;
  }

  const NodeType* kind_of(const PlanDevice& d) const { return &scenario_.platform.type_of(d.node); }

  /// The kinds of nodes of the job, with the number of its GPUs that are on each.
  std::map<const NodeType*, int> kinds() const {
    std::map<const NodeType*, int> kinds;
    for (const PlanDevice& d : plan_.devices) kinds[kind_of(d)] += d.num_gpus();
    return kinds;
  }

  Seconds mean_forward(const PlanDevice& d) const {
    Seconds sum{};
    for (const auto& [kind, gpus] : kinds())
      sum += passes(cost_on(d, *kind)).first * static_cast<double>(gpus);
    return sum / static_cast<double>(plan_.num_ranks());
  }

  void add_ring(StageId id, BaselineStage& stage) const {
    std::vector<const PlanDevice*> first_in_node;
    std::map<NodeId, std::vector<int>> members;
    for (int replica = 0; replica < plan_.parallel.replicas(); ++replica) {
      const PlanDevice& d = device(replica, id);
      if (members[d.node].empty()) first_in_node.push_back(&d);
      members[d.node].push_back(d.gpus.front());
    }
    const auto fullest = std::ranges::max_element(
        members, [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    stage.data_in_node = static_cast<int>(fullest->second.size());
    if (stage.data_in_node > 1)
      stage.in_node_rate = saturated_bus_bandwidth(
          scenario_.nodes[fullest->first.index()].interconnect, fullest->second);
    for (std::size_t i = 0; first_in_node.size() > 1 && i < first_in_node.size(); ++i)
      stage.ring.push_back(rate(*first_in_node[i], *first_in_node[(i + 1) % first_in_node.size()]));
  }

  BaselineStage stage(StageId id) {
    BaselineStage stage;
    std::set<const NodeType*> known;
    for (int replica = 0; replica < plan_.parallel.replicas(); ++replica)
      add_times(device(replica, id), stage, known);
    stage.mean_forward = kinds().size() == 1 ? stage.forward : mean_forward(device(0, id));
    add_ring(id, stage);
    return stage;
  }

  const Scenario& scenario_;
  const Plan& plan_;
  GradientCount gradients_;
  LinkRate links_;
  Bytes message_{};
};

/// What is counted as in flight when asking whether a plan fits.
enum class Counted { schedule, one_microbatch };

bool fits(const Scenario& scenario, Counted counted) {
  const std::vector<double> one(static_cast<std::size_t>(scenario.plan.parallel.pipeline), 1);
  const InFlightOfStages held =
      counted == Counted::schedule ? count_in_flight(scenario.plan) : InFlightOfStages{one, one};
  return account_memory(scenario, scenario.plan, held).fits;
}

/// The loops of llm_train_strategy_assignment_total_v3.py: tp_range, micro_range, and pp from the number of servers down, of which it
/// takes what divides servers and layers. Its m // p then drops microbatches only where a batch is no multiple of them.
bool is_in_space_of_pipette(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  const auto is_tried = [](int value) {
    const std::array<int, 4> tried{1, 2, 4, 8};
    return std::ranges::find(tried, value) != tried.end();
  };
  return is_tried(plan.parallel.tensor) && is_tried(plan.training.micro_batch) &&
         plan.num_nodes % plan.parallel.pipeline == 0;
}

bool is_left_out(Baseline baseline, const Scenario& scenario) {
  const bool across_nodes = scenario.plan.nodes_per_tensor_group > 1;
  switch (baseline) {
    case Baseline::amp:
      return false;
    case Baseline::varuna:
      return scenario.plan.parallel.tensor > 1 || !fits(scenario, Counted::one_microbatch);
    case Baseline::pipette:
      if (!is_in_space_of_pipette(scenario)) return true;
      break;
    case Baseline::megatron:
      break;
  }
  return across_nodes || !fits(scenario, Counted::schedule);
}

}  // namespace

BaselineInputs baseline_inputs(const Scenario& scenario, GradientCount gradients, LinkRate links) {
  return InputReader(scenario, gradients, links).read();
}

Seconds baseline_estimate(Baseline baseline, const Scenario& scenario,
                          const BaselineOptions& options) {
  const bool is_pipette = baseline == Baseline::pipette;
  const BaselineInputs inputs =
      is_pipette ? baseline_inputs(scenario, options.pipette_gradients, options.pipette_links)
                 : baseline_inputs(scenario);
  return baseline_estimate(baseline, inputs, options);
}

std::optional<BaselinePreference> baseline_preference(Baseline baseline, const Scenario& scenario,
                                                      const BaselineOptions& options) {
  if (is_left_out(baseline, scenario)) return std::nullopt;
  BaselinePreference preference;
  preference.estimate = baseline_estimate(baseline, scenario, options);
  if (baseline == Baseline::megatron) {
    const Parallel& parallel = scenario.plan.parallel;
    preference.model_ways = static_cast<int>(parallel.ranks_of_replica());
    preference.fewer_tensor = -parallel.tensor;
  }
  return preference;
}

}  // namespace windtunnel
