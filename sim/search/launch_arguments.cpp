#include "search/launch_arguments.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>

namespace windtunnel {
namespace {

/// Megatron-LM's second order of ranks.
constexpr RankOrder pipeline_before_data{AxisName::tensor, AxisName::pipeline, AxisName::data};

std::string text(int number) { return std::to_string(number); }

bool is_uneven(const std::vector<int>& layers) {
  return std::adjacent_find(layers.begin(), layers.end(), std::not_equal_to<>()) != layers.end();
}

void add_ways(const Plan& plan, std::vector<std::string>& arguments) {
  const Parallel& parallel = plan.parallel;
  arguments.push_back("--tensor-model-parallel-size " + text(parallel.tensor));
  arguments.push_back("--pipeline-model-parallel-size " + text(parallel.pipeline));
  if (is_uneven(plan.stage_layers))  // it says the virtual stages as well
    arguments.push_back("--pipeline-model-parallel-layout '" + pipeline_layout(plan) + "'");
  else if (parallel.virtual_pipeline > 1)
    arguments.push_back("--num-virtual-stages-per-pipeline-rank " +
                        text(parallel.virtual_pipeline));
  if (const auto& of_schedule = parallel.schedule->megatron_arguments)
    arguments.insert(arguments.end(), of_schedule->begin(), of_schedule->end());
  if (parallel.sequence_parallel) arguments.emplace_back("--sequence-parallel");
  if (parallel.rank_order == pipeline_before_data) arguments.emplace_back("--use-tp-pp-dp-mapping");
}

void add_training(const Training& training, std::vector<std::string>& arguments) {
  arguments.push_back("--micro-batch-size " + text(training.micro_batch));
  arguments.push_back("--global-batch-size " + text(training.global_batch));
  if (training.precision == Precision::fp16) arguments.emplace_back("--fp16");
  if (training.precision == Precision::bf16) arguments.emplace_back("--bf16");
  if (training.attention == Attention::flash) arguments.emplace_back("--use-flash-attn");
  if (training.recompute == Recompute::selective)
    arguments.emplace_back("--recompute-granularity selective");
  if (training.recompute == Recompute::full)
    for (const char* argument :
         {"--recompute-granularity full", "--recompute-method uniform", "--recompute-num-layers 1"})
      arguments.emplace_back(argument);
}

void add_sharding(const Parallel& parallel, std::vector<std::string>& arguments) {
  if (parallel.zero_stage > 0) arguments.emplace_back("--use-distributed-optimizer");
  if (parallel.zero_stage > 1) {
    arguments.emplace_back("--use-megatron-fsdp");
    arguments.emplace_back(parallel.zero_stage == 2
                               ? "--data-parallel-sharding-strategy optim_grads"
                               : "--data-parallel-sharding-strategy optim_grads_params");
    arguments.emplace_back("--no-gradient-accumulation-fusion");
    arguments.emplace_back("--ckpt-format fsdp_dtensor");
  }
  if (parallel.overlap_gradient_reduce) arguments.emplace_back("--overlap-grad-reduce");
}

std::vector<std::string> notes_of(const Plan& plan) {
  std::vector<std::string> notes{"data parallel ways follow from the number of processes: " +
                                 text(plan.num_ranks()) + " make " + text(plan.parallel.data)};
  const Schedule& schedule = *plan.parallel.schedule;
  if (!schedule.megatron_arguments)
    notes.push_back("Megatron-LM has no argument for the schedule " + schedule.name);
  const RankOrder order = plan.parallel.rank_order;
  if (order != default_rank_order && order != pipeline_before_data)
    notes.push_back("Megatron-LM has no argument for the rank order " + text_of(order));
  if (plan.training.precision == Precision::tf32)
    notes.emplace_back("tf32 is a setting of PyTorch, not an argument");
  return notes;
}

/// "t*6", "t" or nothing.
std::string layers_text(int layers) {
  if (layers == 0) return "";
  return layers == 1 ? "t" : "t*" + text(layers);
}

}  // namespace

std::string pipeline_layout(const Plan& plan) {
  const int p = plan.parallel.pipeline, parts = p * plan.parallel.virtual_pipeline;
  std::string layout = "E";
  for (int part = 0; part < parts; ++part) {
    if (part > 0) layout += "|";
    layout += layers_text(plan.chunk_layers(StageId{part % p}));
  }
  return layout + "L";
}

LaunchArguments megatron_arguments(const Plan& plan) {
  LaunchArguments launch;
  add_ways(plan, launch.arguments);
  add_training(plan.training, launch.arguments);
  add_sharding(plan.parallel, launch.arguments);
  launch.notes = notes_of(plan);
  return launch;
}

std::string host_map(const Plan& plan) {
  std::string map = "# rank node gpu\n";
  for (std::size_t rank = 0; rank < plan.places.size(); ++rank)
    map += std::to_string(rank) + " node" + std::to_string(plan.places[rank].node.index()) + " " +
           text(plan.places[rank].gpu) + "\n";
  return map;
}

}  // namespace windtunnel
