// Launch scripts of Megatron-LM and Megatron-DeepSpeed.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/count_text.hpp"
#include "core/file_io.hpp"
#include "importers/launch_scenario.hpp"
#include "report/json_object.hpp"

namespace windtunnel {
namespace {

/// GPUs as launchers count them: nodes times processes per node, or the ranks that srun or mpirun start. A note says what was not torchrun's own; 0: the
/// file does not say.
int num_gpus(LaunchScenario& scenario) {
  const auto first = [&](std::initializer_list<const char*> keys) {
    for (const char* key : keys)
      if (const int number = scenario.number(key); number > 0) return number;
    return 0;
  };
  const int nodes = first({"nnodes", "num-nodes", "launcher-nodes"});
  const int tasks = scenario.number("launcher-ntasks");
  const int tasks_of_node = scenario.number("launcher-ntasks-per-node");
  const bool has_torchrun = scenario.settings().find("nproc-per-node") != nullptr;
  int of_node = first({"nproc-per-node", "num-gpus", "devices"});
  if (of_node == 0 && !has_torchrun && tasks_of_node <= 1 && tasks > std::max(1, nodes)) {
    scenario.note("GPUs: " + std::to_string(tasks) + ", the ranks that srun or mpirun start");
    return tasks;
  }
  const std::string launched = scenario.text("nproc-per-node");
  if (of_node == 0 && !has_torchrun && tasks_of_node > 1) of_node = tasks_of_node;
  if (of_node == 0) of_node = first({"launcher-gpus-per-node"});
  if (of_node == 0 && (launched == "gpu" || launched == "auto")) of_node = scenario.gpus_per_node();
  if (of_node == 0 && !has_torchrun) of_node = tasks_of_node;
  if (of_node == 0) return scenario.number("launcher-gpus");
  if (nodes == 0)
    scenario.note(
        "the file does not say how many nodes: 1 of " + count_text(of_node, "GPU") +
        " is assumed; give --gpus N, or --args \"NNODES=N\" for a variable of the script");
  return std::max(nodes, 1) * of_node;
}

/// 8-bit and 4-bit formats win over --bf16, in whichever order they come.
void set_precision(LaunchScenario& scenario) {
  scenario.set_default("/training/precision", "fp32");
  const std::string recipe = scenario.text("fp8-recipe");
  if (scenario.is_on("fp8-format") || scenario.is_on("fp8"))
    scenario.set("/training/precision", recipe == "mxfp8" ? "mxfp8" : "fp8");
  if (scenario.is_on("fp4-format")) scenario.set("/training/precision", "nvfp4");
  if (recipe == "blockwise" && scenario.is("/training/precision", "fp8"))
    scenario.set("/training/fp8_recipe", "block");
}

/// _checkpointed_forward() of megatron/core/transformer/transformer_block.py: `block` recomputes the first layers of a chunk one by one, `uniform`
/// all layers in groups.
void set_recomputation(LaunchScenario& scenario) {
  const bool is_full = scenario.is("/training/recompute", "full"),
             is_block = scenario.text("recompute-method") == "block" ||
                        scenario.text("activations-checkpoint-method") == "block";
  const int layers = std::max(scenario.number("recompute-num-layers"),
                              scenario.number("activations-checkpoint-num-layers"));
  if (is_full && is_block && layers > 0)
    scenario.set("/training/recompute_layers/first", layers);
  else if (is_full && is_block)
    scenario.warn("recompute-method block needs recompute-num-layers; all layers are recomputed");
  else if (is_full && layers > 1)
    scenario.warn("recompute-num-layers " + std::to_string(layers) +
                  " of recompute-method uniform is not used: each layer is recomputed from its own "
                  "input, and not groups of layers");
  const std::map<std::string, const char*> modules{
      {"core_attn", "attention_core"},     {"layernorm", "norms"},
      {"mla_up_proj", "up_projection"},    {"mlp", "mlp"},
      {"moe_act", "expert_activation"},    {"moe", "experts"},
      {"shared_experts", "shared_experts"}};
  JsonValue::Array list;
  std::string rest = scenario.text("recompute-modules");
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (const auto module = modules.find(rest.substr(0, end)); module != modules.end())
      list.emplace_back(module->second);
    else
      scenario.warn("recompute-modules " + rest.substr(0, end) +
                    " cannot be simulated, and is left out");
    rest.erase(0, end + 1);
  }
  if (!list.empty()) scenario.set("/training/recompute_modules", JsonValue(list));
}

/// --cross-entropy-fusion-impl, "native" where it is left out, says which fusion --cross-entropy-loss-fusion asks for, and nothing alone:
/// fused_vocab_parallel_cross_entropy of megatron/core/fusions/fused_cross_entropy.py, or "te", Transformer Engine's kernel, which writes
/// gradients over the logits (compute_language_model_loss() in megatron/core/models/common/language_module/language_module.py).
void set_cross_entropy(LaunchScenario& scenario) {
  if (scenario.is_on("cross-entropy-loss-fusion"))
    scenario.set("/training/cross_entropy", scenario.text("cross-entropy-fusion-impl") == "te"
                                                ? "in_place"
                                                : "vocab_parallel_compiled");
}

/// Megatron-FSDP and FSDP2 over the distributed optimizer.
void set_sharding(LaunchScenario& scenario, int replicas) {
  const bool is_fsdp = scenario.is_on("use-megatron-fsdp") || scenario.is_on("use-custom-fsdp") ||
                       scenario.is_on("use-torch-fsdp2") || scenario.is_on("fsdp");
  if (is_fsdp) {
    const std::map<std::string, int> stages{
        {"no_shard", 0}, {"optim", 1}, {"optim_grads", 2}, {"grad", 2}};
    const std::string strategy = scenario.is_on("fsdp")
                                     ? scenario.text("fsdp-sharding-strategy")
                                     : scenario.text("data-parallel-sharding-strategy");
    const auto stage = stages.find(strategy);
    scenario.set("/parallel/zero_stage", stage == stages.end() ? 3 : stage->second);
  }
  const int copies = scenario.number("num-distributed-optimizer-instances");
  if (copies > 1 && replicas % copies == 0) scenario.set("/parallel/zero_group", replicas / copies);
}

void set_chunks(LaunchScenario& scenario) {
  const int layers = scenario.number("num-layers-per-virtual-pipeline-stage");
  if (layers == 0) return;
  const int of_stage =
      scenario.at("/model/layers", 0) / std::max(1, scenario.at("/parallel/pipeline", 1));
  if (of_stage > layers) scenario.set("/parallel/virtual_pipeline", of_stage / layers);
}

/// What follows from other sizes, in validate_args() of megatron/training/arguments.py: a gated MLP is int(4 h 2/3 / 64) 64 wide, and groups of
/// queries count with --group-query-attention alone.
void set_widths(LaunchScenario& scenario, bool is_megatron) {
  constexpr int multiple = 64;
  const int hidden = scenario.at("/model/hidden", 0);
  if (is_megatron && scenario.is_on("swiglu") && !scenario.has("/model/ffn_hidden") && hidden > 0)
    scenario.set("/model/ffn_hidden", 4 * hidden * 2 / 3 / multiple * multiple);
  if (is_megatron && scenario.number("num-query-groups") > 0 &&
      !scenario.is_on("group-query-attention")) {
    scenario.erase("/model/kv_heads");
    scenario.note("num-query-groups has no effect without group-query-attention");
  }
  if (scenario.at("/model/moe/experts", 0) == 1) scenario.erase("/model/moe");  // dense
}

/// --moe-layer-freq: 2 is every second layer, "([0]*3+[1]*58)" the three first ones dense.
void set_dense_layers(LaunchScenario& scenario) {
  if (!scenario.has("/model/moe")) return;
  scenario.set_default("/model/moe/top_k", 2);  // Megatron-LM's default
  scenario.set_default("/model/moe/ffn_hidden",
                       scenario.at("/model/ffn_hidden", 4 * scenario.at("/model/hidden", 0)));
  const std::string frequency = scenario.text("moe-layer-freq");
  if (const int every = scenario.number("moe-layer-freq"); every > 1)
    scenario.set("/model/moe/every", every);
  const std::size_t dense = frequency.find("[0]*");
  if (dense == std::string::npos) return;
  const int layers = std::atoi(frequency.c_str() + dense + 4);
  if (layers > 0 && frequency.find("[0]", dense + 1) == std::string::npos)
    scenario.set("/model/moe/dense_layers", json_of(layers));
  else
    scenario.warn("moe-layer-freq " + frequency +
                  " cannot be simulated: experts are in every layer here");
}

/// Defaults of megatron/training/arguments.py, Megatron-Core 0.12; queries have no rank of their own there.
void set_latent_attention(LaunchScenario& scenario) {
  if (!scenario.has("/model/mla") && !scenario.is_on("multi-latent-attention")) return;
  for (const auto& [pointer, size] : {std::pair{"/model/mla/key_value_rank", 32},
                                      {"/model/mla/key_size", 128},
                                      {"/model/mla/rope_size", 64},
                                      {"/model/mla/value_size", 128}})
    scenario.set_default(pointer, size);
  scenario.erase("/model/head_size");  // --kv-channels says nothing of latent attention
}

/// --decoder-first-pipeline-num-layers and --decoder-last-…: the stages between share the rest.
void set_edge_stages(LaunchScenario& scenario) {
  const int first = scenario.number("decoder-first-pipeline-num-layers");
  const int last = scenario.number("decoder-last-pipeline-num-layers");
  const int stages = scenario.at("/parallel/pipeline", 1);
  if (first + last == 0 || stages < 2) return;
  const int inner = stages - (first > 0 ? 1 : 0) - (last > 0 ? 1 : 0);
  const int rest = scenario.at("/model/layers", 0) - first - last;
  if (inner == 0 || rest < 0 || rest % inner != 0)
    return scenario.warn("the stages between the first and the last cannot share " +
                         std::to_string(rest) + " layers evenly; all stages do here");
  JsonValue::Array layers;
  for (int stage = 0; stage < stages; ++stage)
    layers.push_back(json_of(stage == 0 && first > 0           ? first
                             : stage == stages - 1 && last > 0 ? last
                                                               : rest / inner));
  scenario.set("/parallel/stage_layers", JsonValue(layers));
}

/// What Megatron-LM does unless a switch says otherwise (megatron/training/arguments.py): a script says all that is on, and a software profile's own
/// defaults are those of recipes. Gradients are fp32 with bf16 weights (validate_args()), else as the weights.
void set_unsaid_switches(LaunchScenario& scenario) {
  // Of experts with tensor ways the profile knows: no stack runs them otherwise.
  if (!scenario.has("/model/moe") || scenario.at("/parallel/tensor", 1) == 1)
    scenario.set_default("/parallel/sequence_parallel", false);
  scenario.set_default("/parallel/overlap_gradient_reduce", false);
  scenario.set_default("/training/cross_entropy", "vocab_parallel");
  if (scenario.is_on("bf16") || scenario.is_on("fp16"))
    scenario.set_default("/training/gradient_dtype", scenario.is_on("bf16") ? "fp32" : "fp16");
}

/// --optimizer-cpu-offload: all states, unless --optimizer-offload-fraction says how many, which means nothing without it.
void set_offload(LaunchScenario& scenario) {
  const char* const fraction = "/training/optimizer_offload_fraction";
  if (scenario.is_on("optimizer-cpu-offload")) return scenario.set_default(fraction, 1);
  if (!scenario.has(fraction)) return;
  scenario.erase(fraction);
  scenario.note("optimizer-offload-fraction has no effect without optimizer-cpu-offload");
}

}  // namespace

Imported megatron_scenario(const ImportRequest& request, const Library& library,
                           LaunchSettings settings, std::string software) {
  LaunchScenario scenario(request, library, std::move(settings), detail::megatron_table);
  if (scenario.is_on("deepspeed") || scenario.is_on("deepspeed-config"))
    software = "megatron-deepspeed-2022";
  if (software == "megatron-deepspeed-2022" &&
      scenario.is_on("accumulate-allreduce-grads-in-fp32")) {
    scenario.erase("/training/gradient_dtype");
    scenario.note(
        "accumulate-allreduce-grads-in-fp32 is not used: the DeepSpeed configuration says the "
        "format of gradients");
  }
  const int gpus = scenario.gpus(request.options.gpus > 0 ? 0 : num_gpus(scenario));
  const int ways = scenario.at("/parallel/tensor", 1) * scenario.at("/parallel/pipeline", 1);
  const int replicas = std::max(1, gpus / std::max(1, ways));  // context counted
  set_precision(scenario);
  set_recomputation(scenario);
  set_cross_entropy(scenario);
  set_sharding(scenario, replicas);
  set_chunks(scenario);
  set_widths(scenario, request.kind == "megatron");
  if (scenario.number("ds-sequence-parallel-size") > 1)  // Ulysses
    scenario.set("/parallel/context_method", "all_to_all");
  if (software == "megatron-core-2026") {
    set_unsaid_switches(scenario);
    set_offload(scenario);
  }
  set_latent_attention(scenario);
  set_edge_stages(scenario);
  set_dense_layers(scenario);
  scenario.set_default("/training/micro_batch", 1);
  scenario.set_default("/training/global_batch",
                       scenario.at("/training/micro_batch", 1) * replicas /
                           std::max(1, scenario.at("/parallel/context", 1)));
  // Megatron's own layers keep scores where no flash attention is asked for; what Transformer Engine's do, the profile says.
  if (!scenario.has("/training/attention") && scenario.text("transformer-impl") == "local")
    scenario.set("/training/attention", "standard");
  return scenario.finish(software, gpus);
}

namespace {

/// The arguments of a script, or of a YAML file that lists them ("--num-layers: 32").
Imported import_megatron(const ImportRequest& request, const Library& library) {
  const auto source = read_source_or_stdin(request.inputs.front());
  const std::string extension = request.inputs.front().extension().string();
  LaunchSettings settings = extension == ".yaml" || extension == ".yml"
                                ? read_yaml_settings(*source)
                                : read_launch_script(*source, request.options.arguments);
  for (LaunchSetting& setting : settings.settings) setting.key.erase(0, setting.key.rfind('.') + 1);
  return megatron_scenario(request, library, std::move(settings), "megatron-core-2026");
}

}  // namespace

namespace formats {
Importer megatron() {
  return {"megatron",
          "a launch script of Megatron-LM or Megatron-DeepSpeed, to a scenario",
          "the shell script that starts pretrain_gpt.py, or a YAML file of its arguments",
          {"--base", "--gpus", "--model", "--args"},
          import_megatron};
}
}  // namespace formats

}  // namespace windtunnel
