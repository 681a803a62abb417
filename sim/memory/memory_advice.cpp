#include "memory/memory_advice.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <vector>

#include "plan/plan_check.hpp"
#include "schedule/in_flight.hpp"

namespace windtunnel {
namespace {

constexpr std::size_t most_suggestions = 2;

/// A change of the plan, as the scenario's author would write it.
struct Change {
  std::string text;
  Plan plan;
};

/// A change and what it would need.
struct TriedChange {
  std::string text;
  Bytes required{};
  bool fits = true;
};

std::string gib_text(Bytes bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB", bytes / 1_GiB);
  return text;
}

std::string tenths_text(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", share);
  return text;
}

Change recompute_change(const Plan& plan, Recompute recompute, const char* name) {
  Change change{.text = std::string("recompute \"") + name + "\"", .plan = plan};
  change.plan.training.recompute = recompute;
  change.plan.training.recompute_layers = {};
  return change;
}

void add_recompute(const Plan& plan, std::vector<Change>& changes) {
  const Training& training = plan.training;
  // With flash attention there are no scores to compute again.
  if (training.recompute == Recompute::none && training.attention == Attention::standard)
    changes.push_back(recompute_change(plan, Recompute::selective, "selective"));
  if (training.recompute != Recompute::full || !training.recompute_layers.are_all())
    changes.push_back(recompute_change(plan, Recompute::full, "full"));
}

void add_micro_batch(const Plan& plan, std::vector<Change>& changes) {
  Change change{.text = "", .plan = plan};
  while (change.plan.training.micro_batch % 2 == 0) {
    change.plan.training.micro_batch /= 2;
    change.plan.microbatches *= 2;
    change.text = "micro_batch " + std::to_string(change.plan.training.micro_batch);
    changes.push_back(change);
  }
}

/// Pays for twice as many GPUs a replica with half as many replicas, where their number is even.
void halve_replicas(Change& change) {
  if (change.plan.parallel.data % 2 != 0) {
    change.text += " on twice the GPUs";
    return;
  }
  change.plan.parallel.data /= 2;
  change.plan.microbatches *= 2;
  change.text += " and data " + std::to_string(change.plan.parallel.data);
}

void add_pipeline(const Transformer& model, const Plan& plan, std::vector<Change>& changes) {
  const int stages = 2 * plan.parallel.pipeline;
  if (plan.parallel.schedule->is_both_ways()) return;
  if (model.layers % (stages * plan.parallel.virtual_pipeline) != 0) return;
  Change change{.text = "pipeline " + std::to_string(stages), .plan = plan};
  change.plan.parallel.pipeline = stages;
  change.plan.stage_layers.assign(static_cast<std::size_t>(stages), model.layers / stages);
  halve_replicas(change);
  changes.push_back(change);
}

void add_zero(const Plan& plan, std::vector<Change>& changes) {
  if (plan.parallel.zero_stage != 0 || plan.parallel.replicas() == 1) return;
  Change change{.text = "zero_stage 1", .plan = plan};
  change.plan.parallel.zero_stage = 1;
  changes.push_back(change);
}

void add_tensor(const Transformer& model, const Plan& plan, std::vector<Change>& changes) {
  const int ways = 2 * plan.parallel.tensor;
  if (ways > plan.gpus_per_node || model.heads % ways != 0 || model.kv_heads % ways != 0 ||
      model.ffn_hidden % ways != 0)
    return;
  Change change{.text = "tensor " + std::to_string(ways), .plan = plan};
  change.plan.parallel.tensor = ways;
  halve_replicas(change);
  changes.push_back(change);
}

void add_moments(const Plan& plan, std::vector<Change>& changes) {
  const Training& training = plan.training;
  if (training.optimizer != Optimizer::adam || training.first_moment != MomentType::fp32 ||
      training.second_moment != MomentType::fp32)
    return;
  Change change{.text = "exp_avg_dtype and exp_avg_sq_dtype \"bf16\"", .plan = plan};
  change.plan.training.first_moment = change.plan.training.second_moment = MomentType::bf16;
  changes.push_back(change);
}

/// The share of `held` that has to go to make room for what is missing, in whole tenths, beside the share that is gone already.
double share_to_go(const StageMemory& worst, const SoftwareProfile& software, Bytes held,
                   double gone) {
  constexpr double tenths = 10;
  const Bytes missing = (worst.required - worst.usable) / software.fragmentation;
  if (held == Bytes{}) return 1;
  const double share = gone + (1 - gone) * (missing / held);
  return std::min(1.0, std::ceil(share * tenths) / tenths);
}

/// The host takes the least that makes room.
void add_offload(const MemoryInputs& inputs, const StageMemory& worst,
                 std::vector<Change>& changes) {
  if (!inputs.has_host) return;
  const auto add = [&](const char* name, double Training::*share, Bytes held) {
    Change change{.text = name, .plan = *inputs.plan};
    double& offloaded = change.plan.training.*share;
    if (offloaded == 1) return;
    offloaded = share_to_go(worst, *inputs.software, held, offloaded);
    change.text += " " + tenths_text(offloaded);
    changes.push_back(change);
  };
  add("optimizer_offload_fraction", &Training::optimizer_offload, worst.optimizer);
  add("activation_offload_fraction", &Training::activation_offload, worst.activations);
}

/// Whether the changed plan passes the checks of make_plan(); its GPUs are not counted, as a change may ask for more of them.
bool is_legal(const MemoryInputs& inputs, const Plan& plan) {
  const PlanInputs made_of{*inputs.model, plan.training, plan.parallel, *inputs.software};
  RejectionList rejections;
  if (plan.parallel.stage_layers.empty()) check_even_stages(made_of, rejections);
  for (const auto check : {check_tensor, check_pairs, check_context, check_experts, check_recompute,
                           check_states, check_adapters, check_work})
    check(made_of, rejections);
  return rejections.all().empty();
}

/// The changes worth trying, those that cost the least time first.
std::vector<Change> changes_of(const MemoryInputs& inputs, const StageMemory& worst) {
  std::vector<Change> changes;
  add_recompute(*inputs.plan, changes);
  add_micro_batch(*inputs.plan, changes);
  add_pipeline(*inputs.model, *inputs.plan, changes);
  add_zero(*inputs.plan, changes);
  add_tensor(*inputs.model, *inputs.plan, changes);
  add_moments(*inputs.plan, changes);
  add_offload(inputs, worst, changes);
  std::erase_if(changes, [&](const Change& change) { return !is_legal(inputs, change.plan); });
  return changes;
}

/// The inputs as the change leaves them. New stages play on the devices of the stages they were cut
/// from. There are no programs for another depth or number of microbatches: what is in flight is
/// then counted in the order of the schedule.
MemoryInputs inputs_after(const MemoryInputs& inputs, const Plan& plan) {
  MemoryInputs after = inputs;
  after.plan = &plan;
  after.known_roles.clear();
  after.is_launch_bound.clear();  // of the plan as it was
  if (plan.parallel.pipeline == inputs.plan->parallel.pipeline &&
      plan.microbatches == inputs.plan->microbatches)
    return after;
  after.device_of_stage.clear();
  const InFlightOfStages held = count_in_flight(plan);
  after.in_flight = held.all;
  after.in_flight_with_gradients = held.with_gradients;
  for (int stage = 0; stage < plan.parallel.pipeline; ++stage) {
    const int old = stage * inputs.plan->parallel.pipeline / plan.parallel.pipeline;
    after.device_of_stage.push_back(inputs.device_of_stage[static_cast<std::size_t>(old)]);
  }
  return after;
}

TriedChange tried(const MemoryInputs& inputs, const Change& change) {
  const MemoryInputs after = inputs_after(inputs, change.plan);
  TriedChange result{.text = change.text};
  for (int stage = 0; stage < change.plan.parallel.pipeline; ++stage) {
    const StageMemory memory = account_stage(after, StageId{stage});
    result.required = std::max(result.required, memory.required);
    result.fits = result.fits && memory.verdict != MemoryVerdict::does_not_fit;
  }
  return result;
}

std::string with_figure(const TriedChange& change) {
  return change.text + " (" + gib_text(change.required) + ")";
}

std::string suggestion_text(const std::vector<TriedChange>& changes) {
  std::string text;
  std::size_t count = 0;
  for (const TriedChange& change : changes) {
    if (!change.fits || count == most_suggestions) continue;
    text += (count++ == 0 ? "fits with " : " or ") + with_figure(change);
  }
  if (count > 0) return text;
  if (changes.empty()) return "nothing is left to try: more tensor parallelism or a smaller model";
  const auto nearest = std::min_element(
      changes.begin(), changes.end(),
      [](const TriedChange& a, const TriedChange& b) { return a.required < b.required; });
  return "no single change fits; nearest is " + with_figure(*nearest);
}

}  // namespace

std::string memory_advice(const MemoryInputs& inputs, const StageMemory& worst) {
  std::vector<TriedChange> changes;
  for (const Change& change : changes_of(inputs, worst)) changes.push_back(tried(inputs, change));
  return "stage " + std::to_string(worst.stage.index()) + " needs " + gib_text(worst.required) +
         ", the GPU has " + gib_text(worst.usable) + ": " +
         gib_text(worst.required - worst.usable) + " too much; " + suggestion_text(changes);
}

}  // namespace windtunnel
