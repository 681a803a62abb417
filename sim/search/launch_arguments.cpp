#include "search/launch_arguments.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/count_text.hpp"
#include "report/json_object.hpp"

namespace windtunnel {
namespace {

/// Parts of a plan that DeepSpeed's JSON has no keys for, as Megatron-DeepSpeed's arguments (megatron/arguments.py).
std::string megatron_deepspeed_arguments(const Plan& plan) {
  const Parallel& parallel = plan.parallel;
  const Training& training = plan.training;
  std::string arguments;
  const auto add = [&](bool is_needed, const std::string& argument) {
    if (is_needed) arguments += (arguments.empty() ? "" : " ") + argument;
  };
  const auto add_degree = [&](const char* name, int degree) {
    add(degree > 1, std::string(name) + " " + std::to_string(degree));
  };
  add_degree("--tensor-model-parallel-size", parallel.tensor);
  add_degree("--pipeline-model-parallel-size", parallel.pipeline);
  add_degree("--moe-expert-parallel-size", parallel.expert);
  if (parallel.context_method == ContextMethod::all_to_all)
    add_degree("--ds-sequence-parallel-size", parallel.context);
  add(parallel.tensor > 1 && parallel.sequence_parallel, "--sequence-parallel");
  add(training.recompute == Recompute::full,
      "--checkpoint-activations --deepspeed-activation-checkpointing");
  add(training.attention == Attention::flash, "--use-flash-attn-v2");
  add(training.optimizer != Optimizer::adam,
      std::string("--optimizer ") + name_of(training.optimizer));
  return arguments;
}

/// Features of the plan that DeepSpeed does differently, or not at all.
std::vector<std::string> deepspeed_lacks(const Plan& plan) {
  const Parallel& parallel = plan.parallel;
  const Training& training = plan.training;
  const int stage = parallel.zero_stage;
  std::vector<std::string> lacks;
  const auto add = [&](bool is_lacking, const std::string& what) {
    if (is_lacking) lacks.push_back(what);
  };
  add(stage >= 2 && parallel.pipeline > 1,
      "DeepSpeed's pipeline engine refuses zero_stage " + std::to_string(stage) +
          ": with pipelines it shards the optimizer alone, zero_stage 1");
  add(stage > 0 && parallel.zero_group > 0,
      "DeepSpeed's configuration has no zero_group: states are written as shared out among all "
      "replicas");
  add(parallel.pipeline > 1 && !parallel.schedule->is_deepspeeds,
      "DeepSpeed's pipeline engine does not run the schedule " + parallel.schedule->name);
  add(parallel.virtual_pipeline > 1,
      "DeepSpeed's pipeline engine has no model chunks: "
      "virtual_pipeline is left out");
  add(std::ranges::adjacent_find(plan.stage_layers, std::not_equal_to<>()) !=
          plan.stage_layers.end(),
      "DeepSpeed's pipeline engine divides the layers itself: stage_layers are left out");
  add(parallel.context > 1 && parallel.context_method == ContextMethod::ring,
      "DeepSpeed has no ring attention: context is left out");
  add(parallel.expert_tensor > 1,
      "Megatron-DeepSpeed cuts experts as all else: expert_tensor is "
      "left out");
  add(stage == 3 && !parallel.reshard_after_forward,
      "DeepSpeed drops gathered parameters after the forward pass: reshard_after_forward is left "
      "out");
  add(parallel.no_sync,
      "DeepSpeed scatters the gradients of every microbatch: no_sync is left out");
  add(parallel.rank_order != default_rank_order,
      "DeepSpeed has no argument for the rank order " + text_of(parallel.rank_order));
  add(training.recompute == Recompute::selective,
      "Megatron-DeepSpeed recomputes whole layers: selective recomputation is left out");
  add(training.recompute == Recompute::full && !training.recompute_layers.are_all(),
      "Megatron-DeepSpeed recomputes all layers: recompute_layers is left out");
  add(is_quantized(training.precision) || training.precision == Precision::tf32,
      std::string("DeepSpeed's configuration has no ") + name_of(training.precision));
  add(training.main_parameters != MainParameters::profile ||
          training.first_moment != MomentType::fp32 || training.second_moment != MomentType::fp32,
      "DeepSpeed's configuration has no formats of the optimizer's states: they are left out");
  const double offloaded = training.optimizer_offload;
  add(offloaded > 0 && stage == 0,
      "with zero_stage 0 DeepSpeed offloads nothing: offload_optimizer has no effect");
  add(offloaded > 0 && offloaded < 1 && stage > 0 && stage < 3,
      "DeepSpeed offloads a share with zero_stage 3 only: all states go to the host");
  add(training.activation_offload > 0, "a share of offloaded activations is left out");
  add(training.lora.rank > 0, "adapters belong to the model, and are left out");
  add(has_codecs(plan.compression), "the plan's compression is left out");
  return lacks;
}

/// Its name in torch.distributed.pipelining, which torchtitan takes.
std::optional<std::string> schedule_of(const Schedule& schedule) {
  if (schedule.name == "1f1b") return "1F1B";
  if (schedule.name == "interleaved_1f1b") return "Interleaved1F1B";
  if (schedule.name == "gpipe") return "GPipe";
  if (schedule.name == "zero_bubble_v") return "ZBVZeroBubble";
  if (schedule.name == "dualpipe_v") return "DualPipeV";
  return std::nullopt;
}

/// Statements of a Python function, indented.
class Statements {
 public:
  void set(const std::string& name, int value) { add(name + " = " + std::to_string(value)); }
  void set(const std::string& name, const std::string& word) { add(name + " = \"" + word + "\""); }
  void set(const std::string& name, bool value) { add(name + (value ? " = True" : " = False")); }
  void add(const std::string& statement) { text += "    " + statement + "\n"; }
  std::string text;
};

void add_parallelism(Statements& code, const Plan& plan) {
  const Parallel& parallel = plan.parallel;
  // Replicas that hold a whole copy, and those that share one: the data-parallel degree alone, without context.
  const int sharded = parallel.zero_stage == 0 ? 1
                      : parallel.zero_group == 0
                          ? parallel.data
                          : std::max(1, parallel.zero_group / parallel.context);
  code.set("parallelism.data_parallel_replicate_degree", parallel.data / sharded);
  code.set("parallelism.data_parallel_shard_degree", sharded);
  // Left to itself, torchtitan gathers again in the backward pass without pipelines, and not with them.
  if (parallel.zero_stage > 0)
    code.set("parallelism.fsdp_reshard_after_forward",
             std::string(parallel.zero_stage == 3 && parallel.reshard_after_forward ? "always"
                                                                                    : "never"));
  code.set("parallelism.tensor_parallel_degree", parallel.tensor);
  if (parallel.tensor > 1)
    code.set("parallelism.enable_sequence_parallel", parallel.sequence_parallel);
  code.set("parallelism.context_parallel_degree", parallel.context);
  if (parallel.expert > 1) code.set("parallelism.expert_parallel_degree", parallel.expert);
  code.set("parallelism.pipeline_parallel_degree", parallel.pipeline);
  if (parallel.pipeline == 1) return;
  if (const auto schedule = schedule_of(*parallel.schedule))
    code.set("parallelism.pipeline_parallel_schedule", *schedule);
  code.set("parallelism.num_pp_microbatches", plan.microbatches);
  // Layers of the parts of the model, in its order, as names of modules: _generate_llm_fqn_per_model_part would divide them anew.
  const ChunkMap chunks = plan.chunk_map();
  std::string layers;
  for (int position = 0; position < chunks.num_positions(); ++position)
    layers += (position > 0 ? ", " : "") + std::to_string(plan.chunk_layers(chunks.at(position)));
  code.add("layers = [" + layers + "]  # of each part, from the embedding on");
  code.add("begins = [sum(layers[:part]) for part in range(len(layers))]");
  code.add(
      "parts = [[f\"layers.{begin + i}\" for i in range(count)] for begin, count in zip(begins, "
      "layers)]");
  code.add("parts[0].insert(0, \"tok_embeddings\")");
  code.add("parts[-1] += [\"norm\", \"lm_head\"]");
  code.add("parallelism.module_fqns_per_model_part = parts");
}

void add_notes(const Plan& plan, LaunchArguments& launch) {
  const Parallel& parallel = plan.parallel;
  launch.notes.emplace_back(
      "written for torchtitan of August 2026, whose configurations are Python; releases up to 0.2 "
      "read TOML with other keys");
  if (parallel.zero_stage == 1)
    launch.notes.emplace_back(
        "torchtitan has no ZeRO 1: gradients are sharded too, and reduced on every microbatch");
  if (parallel.pipeline > 1 && !schedule_of(*parallel.schedule))
    launch.notes.push_back("torchtitan does not run the schedule " + parallel.schedule->name);
  if (parallel.expert_tensor > 1)
    launch.notes.emplace_back("torchtitan does not cut experts: expert_tensor is left out");
  if (plan.training.recompute != Recompute::none && !plan.training.recompute_layers.are_all())
    launch.notes.emplace_back(
        "torchtitan checkpoints all layers alike: recompute_layers is left out");
  // The converter of a model's linear layers that computes in a format, in torchtitan/components/quantization.
  for (const auto& [precision, converter] : {std::pair{Precision::fp8, "Float8"},
                                             {Precision::mxfp8, "MXFP8"},
                                             {Precision::nvfp4, "NVFP4"}})
    if (plan.training.precision == precision)
      launch.notes.push_back("the precision belongs to the model: model_registry(…, converters=[" +
                             std::string(converter) + "LinearConverter.Config()])");
  if (plan.training.precision == Precision::fp16)
    launch.notes.emplace_back("torchtitan has no fp16: it trains in bfloat16");
  if (parallel.no_sync)
    launch.notes.emplace_back(
        "torchtitan scatters the gradients of every microbatch: no_sync is left out");
  if (plan.training.lora.rank > 0)
    launch.notes.emplace_back("adapters belong to the model, and are left out");
  if (has_codecs(plan.compression))
    launch.notes.emplace_back("torchtitan has no codecs: the plan's compression is left out");
}

}  // namespace

LaunchArguments megatron_arguments(const Plan& plan) {
  LaunchArguments launch;
  const PlanChoice choice{plan.training, plan.parallel};
  for (const char* block : {"/parallel/", "/training/"})
    for (const Key& key : key_table())
      if (key.launch && key.pointer.starts_with(block))
        key.launch(plan, key.value.get ? key.value.get(choice) : 0, launch);
  if (has_codecs(plan.compression))
    launch.notes.emplace_back("Megatron-LM has no codecs: the plan's compression is left out");
  return launch;
}

LaunchArguments deepspeed_config(const Plan& plan) {
  const Training& training = plan.training;
  const Precision base = base_precision(training.precision);
  const auto enabled_if = [](bool is_enabled) {
    return only_if(is_enabled, object_of({{"enabled", true}}));
  };
  const double share = training.optimizer_offload;
  const bool wide_weights = base == Precision::fp32 || base == Precision::tf32;
  const bool wide_gradients = training.gradient_type == GradientType::fp32;
  LaunchArguments launch;
  launch.arguments.push_back(
      pretty_text(object_of(
          {{"train_batch_size", training.global_batch},
           {"train_micro_batch_size_per_gpu", training.micro_batch},
           {"gradient_accumulation_steps", plan.microbatches},
           {"zero_optimization",
            object_of(
                {{"stage", plan.parallel.zero_stage},
                 {"overlap_comm",
                  plan.parallel.zero_stage == 3 || plan.parallel.overlap_gradient_reduce},
                 {"offload_optimizer",
                  only_if(share > 0,
                          object_of({{"device", "cpu"},
                                     {"ratio", only_if(share < 1 && plan.parallel.zero_stage == 3,
                                                       share)}}))}})},
           {"communication_data_type",
            only_if(wide_gradients != wide_weights, name_of(training.gradient_type))},
           {"fp16", enabled_if(base == Precision::fp16)},
           {"bf16", enabled_if(base == Precision::bf16)}})) +
      "\n");
  launch.notes.push_back("the data-parallel degree follows from the number of processes: " +
                         std::to_string(plan.num_ranks()) + " make " +
                         std::to_string(plan.parallel.data));
  if (const std::string arguments = megatron_deepspeed_arguments(plan); !arguments.empty())
    launch.notes.push_back("no key of the JSON says these; Megatron-DeepSpeed's arguments do: " +
                           arguments);
  for (std::string& lack : deepspeed_lacks(plan)) launch.notes.push_back(std::move(lack));
  return launch;
}

std::string host_map(const Plan& plan, const Platform& platform) {
  std::string map = "# rank node gpu\n";
  for (std::size_t rank = 0; rank < plan.places.size(); ++rank)
    map += std::to_string(rank) + " node" +
           std::to_string(platform.in_cluster(plan.places[rank].node).index()) + " " +
           std::to_string(plan.places[rank].gpu) + "\n";
  return map;
}

LaunchArguments torchtitan_config(const Plan& plan, int sequence) {
  const Training& training = plan.training;
  Statements code;
  code.add("training, parallelism = config.training, config.parallelism");
  code.set("training.max_context_length", sequence);
  code.add("training.num_tokens_per_microbatch_per_dp_rank = " +
           std::to_string(std::int64_t{training.micro_batch} * sequence) + "  # " +
           count_text(training.micro_batch, "sequence"));
  code.add("training.num_tokens_per_train_step = " +
           std::to_string(std::int64_t{training.global_batch} * sequence) + "  # " +
           count_text(training.global_batch, "sequence"));
  if (training.precision == Precision::fp32)
    code.set("training.mixed_precision_param", std::string("float32"));
  add_parallelism(code, plan);
  const char* checkpoint = training.recompute == Recompute::full        ? "FullAC.Config()"
                           : training.recompute == Recompute::selective ? "SelectiveAC.Config()"
                                                                        : "None";
  code.add(std::string("config.activation_checkpoint = ") + checkpoint);
  code.add("return config");
  std::string text;
  if (training.recompute != Recompute::none)
    text += std::string("from torchtitan.distributed.activation_checkpoint import ") +
            (training.recompute == Recompute::full ? "FullAC" : "SelectiveAC") + "\n\n\n";
  LaunchArguments launch;
  launch.arguments.push_back(text + "def with_plan(config):\n" + code.text);
  add_notes(plan, launch);
  return launch;
}

}  // namespace windtunnel
