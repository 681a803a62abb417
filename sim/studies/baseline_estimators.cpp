#include "studies/baseline_estimators.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "core/contracts.hpp"
#include "cost/collective_cost.hpp"
#include "cost/stage_cost.hpp"
#include "memory/memory_account.hpp"
#include "plan/schedule.hpp"
#include "platform/network.hpp"
#include "simulate/memory_inputs.hpp"

namespace windtunnel {
namespace {

void expect_complete(const BaselineInputs& in) {
  WT_EXPECT(in.microbatches > 0 && in.data > 0 && !in.stages.empty());
  for (const auto& pipeline : in.hops) WT_EXPECT(pipeline.size() + 1 == in.stages.size());
}

/// F + B of the stage where it is largest.
Seconds slowest_pass(const BaselineInputs& in) {
  Seconds slowest{};
  for (const BaselineStage& stage : in.stages)
    slowest = std::max(slowest, stage.forward + stage.backward);
  return slowest;
}

/// One microbatch's messages from the first stage to the last, through the slowest pipeline.
Seconds traversal(const BaselineInputs& in) {
  Seconds slowest{};
  for (const auto& pipeline : in.hops) {
    Seconds sum{};
    for (const BytesPerSecond rate : pipeline) sum += in.message / rate;
    slowest = std::max(slowest, sum);
  }
  return slowest;
}

/// The same, averaged over the pipelines.
Seconds mean_traversal(const BaselineInputs& in) {
  Seconds sum{};
  for (const auto& pipeline : in.hops)
    for (const BytesPerSecond rate : pipeline) sum += in.message / rate;
  return in.hops.empty() ? sum : sum / static_cast<double>(in.hops.size());
}

/// 2 (n-1)/n * payload / rate
Seconds ring_time(Bytes payload, int members, BytesPerSecond rate) {
  return payload * (2.0 * (members - 1) / members) / rate;
}

BytesPerSecond pace_between_nodes(const BaselineStage& stage, RingPace pace) {
  WT_EXPECT(!stage.ring.empty());
  return pace == RingPace::last_edge ? stage.ring.back() : *std::ranges::min_element(stage.ring);
}

/// One ring through all replicas, at the pace of its slowest edge.
Seconds flat_ring(const BaselineInputs& in, const BaselineStage& stage, RingPace pace) {
  if (in.data == 1) return {};
  BytesPerSecond rate = stage.in_node_rate;
  if (!stage.ring.empty()) {
    const BytesPerSecond between = pace_between_nodes(stage, pace);
    rate = stage.data_in_node > 1 ? std::min(rate, between) : between;
  }
  return ring_time(stage.gradients, in.data, rate);
}

Seconds two_level_ring(const BaselineInputs& in, const BaselineStage& stage, RingPace pace) {
  if (in.data == 1) return {};
  Seconds time = ring_time(stage.gradients, stage.data_in_node, stage.in_node_rate);
  if (!stage.ring.empty())
    time += ring_time(stage.gradients, std::max(1, in.data / stage.data_in_node),
                      pace_between_nodes(stage, pace));
  return time;
}

template <typename Ring>
Seconds slowest_ring(const BaselineInputs& in, const Ring& ring) {
  Seconds slowest{};
  for (const BaselineStage& stage : in.stages) slowest = std::max(slowest, ring(stage));
  return slowest;
}

/// Replays one pipeline pass by pass.
class PipelineReplay {
 public:
  PipelineReplay(const BaselineInputs& in, const std::vector<BytesPerSecond>& hops)
      : in_(in), hops_(hops), stages_(in.stages.size()) {
    const auto m = static_cast<std::size_t>(in.microbatches);
    const int p = static_cast<int>(in.stages.size());
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      stages_[s].order = schedule_named("1f1b")->order({p, in.microbatches, 1}, StageId{s});
      stages_[s].activation.assign(m, s == 0 ? Seconds{0} : never);
      stages_[s].gradient.assign(m, s + 1 == stages_.size() ? Seconds{0} : never);
    }
  }

  Seconds end() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < stages_.size(); ++s)
        while (step(s)) moved = true;
    }
    Seconds end{};
    for (const Stage& stage : stages_) {
      WT_ENSURE(stage.next == stage.order.size());
      end = std::max(end, stage.free);
    }
    return end;
  }

 private:
  static constexpr Seconds never{-1};
  static constexpr std::size_t sends_on_their_way = 4;  // Varuna's simulator, for each stage

  struct Stage {
    std::vector<Step> order;
    std::size_t next = 0;
    Seconds free{};
    std::vector<Seconds> activation, gradient;  ///< when each microbatch's input is there
    std::vector<Seconds> arrivals;              ///< of what this stage has sent, in order
  };

  /// When a message that is ready now is there: it waits until fewer than four are on their way.
  Seconds send(Stage& from, Seconds ready, BytesPerSecond rate) {
    if (from.arrivals.size() >= sends_on_their_way)
      ready = std::max(ready, from.arrivals[from.arrivals.size() - sends_on_their_way]);
    from.arrivals.push_back(ready + in_.message / rate);
    return from.arrivals.back();
  }

  /// Runs the stage's next pass, if its input has been computed.
  bool step(std::size_t s) {
    Stage& stage = stages_[s];
    if (stage.next == stage.order.size()) return false;
    const Step pass = stage.order[stage.next];
    const bool forward = pass.phase == Phase::forward;
    const Seconds input = (forward ? stage.activation : stage.gradient)[pass.microbatch];
    if (input == never) return false;
    ++stage.next;
    stage.free =
        std::max(stage.free, input) + (forward ? in_.stages[s].forward : in_.stages[s].backward);
    if (forward && s + 1 < stages_.size())
      stages_[s + 1].activation[pass.microbatch] = send(stage, stage.free, hops_[s]);
    if (!forward && s > 0)
      stages_[s - 1].gradient[pass.microbatch] = send(stage, stage.free, hops_[s - 1]);
    return true;
  }

  const BaselineInputs& in_;
  const std::vector<BytesPerSecond>& hops_;
  std::vector<Stage> stages_;
};

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
    const int replicas = plan_.parallel.replicas();
    return stage_cost({&scenario_.model,
                       &plan_,
                       &scenario_.software,
                       &on,
                       &scenario_.platform.fabric,
                       d.stage,
                       d.gpus,
                       {{0}, replicas, replicas},
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

/// Microbatches counted as in flight when asking if a plan fits.
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

Seconds amp_estimate(const BaselineInputs& in, const BaselineOptions& options) {
  expect_complete(in);
  constexpr double passes = 3;  // forward, and a backward pass taken for two
  Seconds slowest{}, sum{};
  for (const BaselineStage& stage : in.stages) {
    slowest = std::max(slowest, stage.mean_forward * passes);
    sum += stage.mean_forward * passes;
  }
  const double directions = options.amp_hops == AmpHops::once ? 1 : 2;
  return slowest * static_cast<double>(in.microbatches - 1) + sum +
         mean_traversal(in) * directions + slowest_ring(in, [&](const BaselineStage& stage) {
           return flat_ring(in, stage, options.ring_pace);
         });
}

Seconds pipette_estimate(const BaselineInputs& in, const BaselineOptions& options) {
  expect_complete(in);
  const auto p = static_cast<double>(in.stages.size());
  const double m = in.microbatches;
  const Seconds pass = slowest_pass(in), round = pass * p + traversal(in) * 2;
  const auto whole = static_cast<double>(in.microbatches / static_cast<int>(in.stages.size()));
  const double rounds = options.rounds == Rounds::truncated ? whole : m / p;
  const Seconds pipeline = whole >= 1 ? round * rounds + pass * (p - 1) : round + pass * (m - 1);
  const BaselineStage& first = in.stages.front();
  return pipeline + (options.pipette_ring == RingLevels::one
                         ? flat_ring(in, first, options.ring_pace)
                         : two_level_ring(in, first, options.ring_pace));
}

Seconds varuna_estimate(const BaselineInputs& in, const BaselineOptions& options) {
  expect_complete(in);
  Seconds slowest{};
  for (const auto& pipeline : in.hops)
    slowest = std::max(slowest, PipelineReplay(in, pipeline).end());
  return slowest + slowest_ring(in, [&](const BaselineStage& stage) {
           return flat_ring(in, stage, options.ring_pace);
         });
}

Seconds megatron_estimate(const BaselineInputs& in) {
  expect_complete(in);
  return slowest_pass(in) * (in.microbatches + static_cast<double>(in.stages.size()) - 1);
}

Seconds baseline_estimate(Baseline baseline, const BaselineInputs& inputs,
                          const BaselineOptions& options) {
  switch (baseline) {
    case Baseline::amp:
      return amp_estimate(inputs, options);
    case Baseline::varuna:
      return varuna_estimate(inputs, options);
    case Baseline::pipette:
      return pipette_estimate(inputs, options);
    case Baseline::megatron:
      break;
  }
  return megatron_estimate(inputs);
}

Bytes released_gradients(const Transformer& model, int stage_layers, int tensor_parallel,
                         Bytes element) {
  constexpr double released_weight = 16;  // of h^2 a layer
  const double h = model.hidden;
  return element * ((model.vocab * h + released_weight * h * h * stage_layers) / tensor_parallel);
}

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
    preference.model_parallel = static_cast<int>(parallel.ranks_of_replica());
    preference.fewer_tensor = -parallel.tensor;
  }
  return preference;
}

}  // namespace windtunnel
