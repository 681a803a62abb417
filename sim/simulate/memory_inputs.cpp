#include "simulate/memory_inputs.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "cost/stage_cost.hpp"
#include "lower/stage_choice.hpp"
#include "memory/memory_advice.hpp"
#include "plan/nvlink_groups.hpp"
#include "platform/fabric.hpp"
#include "scenario/key_table.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {
namespace {

std::vector<const Device*> smallest_device_of_stages(const Plan& plan,
                                                     const std::vector<NodeType>& nodes) {
  std::vector<const Device*> smallest(static_cast<std::size_t>(plan.parallel.pipeline));
  for (const PlanDevice& device : plan.devices) {
    const Device& candidate = nodes[device.node.index()].device;
    const Device*& known = smallest[device.stage.index()];
    if (known == nullptr || candidate.usable_memory < known->usable_memory) known = &candidate;
  }
  return smallest;
}

/// Launch-bound stages, judged on the first replica's nodes. Needed only if the order of allocations is simulated.
std::vector<bool> launch_bound_stages(const Scenario& scenario, const Plan& plan) {
  if (scenario.software.waiting_collectives == 0) return {};
  std::vector<bool> found(static_cast<std::size_t>(plan.parallel.pipeline));
  for (const PlanDevice& device : plan.devices) {
    if (device.replica > 0 || device.group_node > 0) continue;
    const NodeType& node = scenario.nodes[device.node.index()];
    const StageCost cost = stage_cost({&scenario.model,
                                       &plan,
                                       &scenario.software,
                                       &node,
                                       &scenario.platform.fabric,
                                       device.stage,
                                       device.gpus,
                                       {},
                                       {},
                                       {}});
    Seconds lead{};
    for (const ChunkCost& chunk : cost.chunks)
      for (const PassCost* pass : {&chunk.forward, &chunk.backward})
        lead += pass->floor.launch - pass->of(Part::compute) - pass->of(Part::tensor_comm);
    found[device.stage.index()] = lead > Seconds{};
  }
  return found;
}

}  // namespace

MemoryInputs memory_inputs(const Scenario& scenario, const Plan& plan,
                           const InFlightOfStages& in_flight) {
  MemoryInputs result;
  result.model = &scenario.model;
  result.plan = &plan;
  result.software = &scenario.software;
  result.device_of_stage = smallest_device_of_stages(plan, scenario.nodes);
  result.has_host = std::all_of(scenario.nodes.begin(), scenario.nodes.end(),
                                [](const NodeType& node) { return node.host.has_value(); });
  result.is_launch_bound = launch_bound_stages(scenario, plan);
  result.in_flight = in_flight.all;
  result.in_flight_with_gradients = in_flight.with_gradients;
  result.correction = scenario.memory_correction.get();
  return result;
}

MemoryAccount account_memory(const Scenario& scenario, const Plan& plan,
                             const InFlightOfStages& in_flight) {
  return account_memory(memory_inputs(scenario, plan, in_flight));
}

namespace {

/// Puts `changed` on the first nodes of the scenario's machine for so many GPUs; false where it has too few.
bool lay_out(Scenario& changed, const Scenario& scenario, std::int64_t gpus) {
  changed.platform = scenario.platform;
  changed.nodes = scenario.nodes;
  if (gpus == scenario.plan.num_ranks()) return true;
  const Platform machine = machine_of(scenario.platform);
  std::optional<int> nodes = nodes_needed(machine, gpus);
  if (!nodes) return false;
  if (machine.domain_nodes > 1) {
    changed.platform = in_segments(machine, *nodes, scenario.nodes.front().trays);
    nodes = changed.platform.available_nodes();
  }
  if (!why_not_joined(changed.platform, *nodes).empty()) return false;
  changed.nodes = types_of_nodes(changed.platform, *nodes);
  return true;
}

/// True if the stack is known to run each value that the file does not have already.
bool is_supported(const SearchLists& supported, const PlanChoice& choice, const PlanChoice& own) {
  return std::ranges::all_of(search_keys(), [&](const SearchKey& searched) {
    const auto listed = supported.find(searched.key->name());
    const int value = searched.key->value.get(choice);
    return listed == supported.end() || value == searched.key->value.get(own) ||
           std::ranges::count(listed->second, value) > 0;
  });
}

ClusterShape shape_of(const std::vector<NodeType>& nodes) {
  ClusterShape cluster;
  for (const NodeType& node : nodes) cluster.gpus_by_node.push_back(node.gpus);
  return cluster;
}

}  // namespace

std::string memory_advice(const Scenario& scenario, const Plan& plan,
                          const MemoryAccount& account) {
  Scenario changed = scenario;
  // What the file does not say follows the tensor degree; no stack runs experts in tensor groups without (read_parallel()).
  const JsonValue* const sequence = find_at(scenario.resolved, "/parallel/sequence_parallel");
  const bool is_said = sequence == nullptr || sequence->origin.kind != OriginKind::defaulted;
  const SearchLists supported = supported_values(scenario);
  const PlanChoice own{scenario.plan.training, scenario.plan.parallel};
  const auto account_of = [&](PlanChoice choice) -> std::optional<MemoryAccount> {
    if (!is_said)
      choice.parallel.sequence_parallel =
          (scenario.software.sequence_parallel || scenario.model.moe) && choice.parallel.tensor > 1;
    if (!is_supported(supported, choice, own)) return std::nullopt;
    const auto ranks = static_cast<std::size_t>(choice.parallel.num_ranks());
    std::vector<int>& placement = choice.parallel.placement;
    if (!scenario.placement_note.empty()) placement.clear();  // a search finds another one
    if ((!placement.empty() && placement.size() != ranks) ||
        !lay_out(changed, scenario, choice.parallel.num_ranks()))
      return std::nullopt;
    auto made = make_plan(scenario.model, choice.training, choice.parallel, shape_of(changed.nodes),
                          scenario.software, scenario.plan.compression);
    if (!std::holds_alternative<Plan>(made)) return std::nullopt;
    changed.plan = std::get<Plan>(std::move(made));
    const PlanWithStages with_stages(
        {&changed.model, &changed.platform, &changed.nodes, &changed.software, &changed.plan});
    return account_memory(changed, with_stages.plan(), count_in_flight(with_stages.plan()));
  };
  return memory_advice(memory_inputs(scenario, plan, {}), account, account_of);
}

}  // namespace windtunnel
