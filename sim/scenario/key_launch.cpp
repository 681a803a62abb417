#include "scenario/key_launch.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "plan/pipeline_layout.hpp"

namespace windtunnel {
namespace {

bool is_uneven(const Plan& plan) {
  if (!plan.position_layers.empty()) return true;
  const std::vector<int>& layers = plan.stage_layers;
  return std::adjacent_find(layers.begin(), layers.end(), std::not_equal_to<>()) != layers.end();
}

}  // namespace

Launch option(const std::string& name) {
  return [=](const Plan&, int value, LaunchArguments& launch) {
    launch.arguments.push_back(name + " " + std::to_string(value));
  };
}

Launch option_above_one(const std::string& name) {
  return [=](const Plan&, int value, LaunchArguments& launch) {
    if (value > 1) launch.arguments.push_back(name + " " + std::to_string(value));
  };
}

Launch options(std::vector<std::vector<std::string>> by_value) {
  return [by_value = std::move(by_value)](const Plan&, int value, LaunchArguments& launch) {
    const auto place = static_cast<std::size_t>(value);
    if (place < by_value.size())
      launch.arguments.insert(launch.arguments.end(), by_value[place].begin(),
                              by_value[place].end());
  };
}

void launch_precision(const Plan& plan, int, LaunchArguments& launch) {
  const Precision precision = plan.training.precision;
  const Precision base = base_precision(precision);
  if (base == Precision::fp16 || base == Precision::bf16)
    launch.arguments.push_back(std::string("--") + name_of(base));
  if (precision == Precision::fp8) launch.arguments.emplace_back("--fp8-format hybrid");
  if (precision == Precision::mxfp8)
    for (const char* argument : {"--fp8-format e4m3", "--fp8-recipe mxfp8"})
      launch.arguments.emplace_back(argument);
  if (precision == Precision::nvfp4)
    for (const char* argument : {"--fp4-format e2m1", "--fp4-recipe nvfp4"})
      launch.arguments.emplace_back(argument);
  if (precision == Precision::tf32)
    launch.notes.emplace_back("tf32 is a setting of PyTorch, not an argument");
}

void note_data(const Plan& plan, int data, LaunchArguments& launch) {
  launch.notes.push_back("data parallel ways follow from the number of processes: " +
                         std::to_string(plan.num_ranks()) + " make " + std::to_string(data));
}

void launch_schedule(const Plan& plan, int, LaunchArguments& launch) {
  const Schedule& schedule = *plan.parallel.schedule;
  if (const auto& own = schedule.megatron_arguments)
    launch.arguments.insert(launch.arguments.end(), own->begin(), own->end());
  else
    launch.notes.push_back("Megatron-LM has no argument for the schedule " + schedule.name);
}

void launch_chunks(const Plan& plan, int chunks, LaunchArguments& launch) {
  if (chunks > 1 && !is_uneven(plan))
    launch.arguments.push_back("--num-virtual-stages-per-pipeline-rank " + std::to_string(chunks));
}

void launch_layout(const Plan& plan, int, LaunchArguments& launch) {
  if (is_uneven(plan))
    launch.arguments.push_back("--pipeline-model-parallel-layout '" + pipeline_layout(plan) + "'");
}

void launch_context_method(const Plan& plan, int, LaunchArguments& launch) {
  if (plan.parallel.context == 1) return;
  const bool ring = plan.parallel.context_method == ContextMethod::ring;
  launch.arguments.emplace_back(ring ? "--cp-comm-type p2p" : "--cp-comm-type a2a");
}

void launch_recomputed_modules(const Plan& plan, int, LaunchArguments& launch) {
  const Training& training = plan.training;
  if (training.recompute != Recompute::selective ||
      training.recompute_modules == RecomputedModules::of_selective())
    return;
  const std::map<RecomputedModule, const char*> names{
      {RecomputedModule::attention_core, "core_attn"},
      {RecomputedModule::norms, "layernorm"},
      {RecomputedModule::up_projection, "mla_up_proj"},
      {RecomputedModule::mlp, "mlp"},
      {RecomputedModule::shared_experts, "shared_experts"},
      {RecomputedModule::expert_activation, "moe_act"},
      {RecomputedModule::experts, "moe"}};
  std::string argument = "--recompute-modules";
  for (const auto& [module, name] : names)
    if (training.recompute_modules.has(module)) argument += std::string(" ") + name;
  launch.arguments.push_back(argument);
}

void launch_zero_group(const Plan& plan, int group, LaunchArguments& launch) {
  if (group > 0 && group < plan.parallel.replicas())
    launch.arguments.push_back("--num-distributed-optimizer-instances " +
                               std::to_string(plan.parallel.replicas() / group));
}

void launch_rank_order(const Plan& plan, int, LaunchArguments& launch) {
  constexpr RankOrder second{AxisName::tensor, AxisName::pipeline, AxisName::data};
  const RankOrder& order = plan.parallel.rank_order;
  if (order == second)
    launch.arguments.emplace_back("--use-tp-pp-dp-mapping");
  else if (order != default_rank_order)
    launch.notes.push_back("Megatron-LM has no argument for the rank order " + text_of(order));
}

}  // namespace windtunnel
