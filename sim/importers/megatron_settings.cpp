#include "importers/megatron_settings.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "importers/launch_scenario.hpp"
#include "report/json_object.hpp"

namespace windtunnel {
namespace {

/// What a switch says where it is there, and not false.
LaunchKey::Words switched(const char* on, const char* off = nullptr) {
  return {{"false", off}, {"False", off}, {"*", on}};
}

/// Options of megatron/training/arguments.py (Megatron-LM, core 0.12 to 0.16), of Megatron-DeepSpeed, and keys of `model` of NeMo's
/// megatron_gpt_config.yaml (NeMo 1.23).
const std::vector<LaunchKey>& megatron_keys() {
  static const LaunchKey::Words granularity{{"full", R"("full")"}, {"selective", R"("selective")"}};
  static const std::vector<LaunchKey> keys{
      {"num-layers", "/model/layers"},
      {"hidden-size", "/model/hidden"},
      {"num-attention-heads", "/model/heads"},
      {"seq-length", "/model/sequence"},
      {"encoder-seq-length", "/model/sequence"},
      {"ffn-hidden-size", "/model/ffn_hidden"},
      {"num-query-groups", "/model/kv_heads"},
      {"num-key-value-heads", "/model/kv_heads"},
      {"group-query-attention", ""},
      {"kv-channels", "/model/head_size"},
      {"vocab-size", "/model/vocab"},
      {"padded-vocab-size", "/model/vocab"},
      {"pad-vocab-size-to", "/model/vocab"},
      {"embed-layernorm", "/model/family", switched(R"("bloom")")},
      {"swiglu", "/model/gated_mlp", switched("true")},
      {"activation",
       "/model/gated_mlp",
       {{"swiglu", "true"},
        {"fast-swiglu", "true"},
        {"geglu", "true"},
        {"fast-geglu", "true"},
        {"*", nullptr}}},
      {"untie-embeddings-and-output-weights", "/model/tied_embeddings", switched("false")},
      {"share-embeddings-and-output-weights", "/model/tied_embeddings", switched("true", "false")},
      {"normalization",
       "/model/family",
       {{"RMSNorm", R"("llama")"}, {"rmsnorm", R"("llama")"}, {"*", nullptr}}},
      {"use-rotary-position-embeddings", "/model/rotary", switched("true")},
      {"position-embedding-type", "/model/rotary", {{"rope", "true"}, {"*", nullptr}}},
      {"qk-layernorm", "/model/qk_norm", switched("true")},
      {"mtp-num-layers", "/model/mtp_layers"},
      {"num-experts", "/model/moe/experts"},
      {"num-moe-experts", "/model/moe/experts"},
      {"moe-router-topk", "/model/moe/top_k"},
      {"moe-expert-capacity-factor", "/model/moe/capacity"},
      {"moe-ffn-hidden-size", "/model/moe/ffn_hidden"},
      {"moe-shared-expert-intermediate-size", "/model/moe/shared_ffn_hidden"},
      {"multi-latent-attention", ""},
      {"q-lora-rank", "/model/mla/query_rank"},
      {"kv-lora-rank", "/model/mla/key_value_rank"},
      {"qk-head-dim", "/model/mla/key_size"},
      {"qk-nope-head-dim", "/model/mla/key_size"},
      {"qk-rope-head-dim", "/model/mla/rope_size"},
      {"qk-pos-emb-head-dim", "/model/mla/rope_size"},
      {"v-head-dim", "/model/mla/value_size"},
      {"micro-batch-size", "/training/micro_batch"},
      {"global-batch-size", "/training/global_batch"},
      {"bf16", "/training/precision", switched(R"("bf16")")},
      {"fp16", "/training/precision", switched(R"("fp16")")},
      {"precision",
       "/training/precision",
       {{"bf16", R"("bf16")"},
        {"bf16-mixed", R"("bf16")"},
        {"16", R"("fp16")"},
        {"16-mixed", R"("fp16")"},
        {"32", R"("fp32")"}}},
      {"recompute-granularity", "/training/recompute", granularity},
      {"activations-checkpoint-granularity", "/training/recompute", granularity},
      {"recompute-activations", "/training/recompute", switched(R"("selective")")},
      {"checkpoint-activations", "/training/recompute", switched(R"("full")")},
      {"deepspeed-activation-checkpointing", "/training/recompute", switched(R"("full")")},
      {"use-flash-attn", "/training/attention", switched(R"("flash")")},
      {"use-flash-attn-v2", "/training/attention", switched(R"("flash")")},
      {"use-flash-attention", "/training/attention", switched(R"("flash")", R"("standard")")},
      {"attention-backend",
       "/training/attention",
       {{"flash", R"("flash")"},
        {"fused", R"("flash")"},
        {"auto", R"("flash")"},
        {"unfused", R"("standard")"},
        {"local", R"("standard")"}}},
      {"optimizer",
       "/training/optimizer",
       {{"adam", R"("adam")"},
        {"sgd", R"("sgd")"},
        {"muon", R"("muon")"},
        {"dist_muon", R"("muon")"}}},
      {"optim.name",
       "/parallel/zero_stage",
       {{"distributed_fused_adam", "1"}, {"mcore_distributed_optim", "1"}, {"*", nullptr}}},
      {"exp-avg-dtype", "/training/exp_avg_dtype"},
      {"exp-avg-sq-dtype", "/training/exp_avg_sq_dtype"},
      {"optimizer-offload-fraction", "/training/optimizer_offload_fraction"},
      {"overlap-cpu-optimizer-d2h-h2d", "/training/overlap_optimizer_offload", switched("true")},
      {"tensor-model-parallel-size", "/parallel/tensor"},
      {"pipeline-model-parallel-size", "/parallel/pipeline"},
      {"context-parallel-size", "/parallel/context"},
      {"ds-sequence-parallel-size", "/parallel/context"},
      {"grad-reduce-in-bf16", "/training/gradient_dtype", switched(R"("bf16")")},
      {"optim.grad-sync-dtype",
       "/training/gradient_dtype",
       {{"bf16", R"("bf16")"}, {"fp32", R"("fp32")"}}},
      {"cp-comm-type",
       "/parallel/context_method",
       {{"p2p", R"("ring")"}, {"a2a", R"("all_to_all")"}}},
      {"num-virtual-stages-per-pipeline-rank", "/parallel/virtual_pipeline"},
      {"virtual-pipeline-model-parallel-size", "/parallel/virtual_pipeline"},
      {"sequence-parallel", "/parallel/sequence_parallel", switched("true", "false")},
      {"use-distributed-optimizer", "/parallel/zero_stage", switched("1")},
      {"zero-stage", "/parallel/zero_stage"},
      {"overlap-grad-reduce", "/parallel/overlap_gradient_reduce", switched("true", "false")},
      {"optim.overlap-grad-sync", "/parallel/overlap_gradient_reduce", switched("true", "false")},
      {"expert-model-parallel-size", "/parallel/expert"},
      {"expert-tensor-parallel-size", "/parallel/expert_tensor"},
      {"use-tp-pp-dp-mapping", "/parallel/rank_order", switched(R"("tensor-pipeline-data")")},
      {"account-for-embedding-in-pipeline-split", "/parallel/edge_layers/embedding", switched("1")},
      {"account-for-loss-in-pipeline-split", "/parallel/edge_layers/loss", switched("1")},
      {"pipeline-model-parallel-layout", "/parallel/stage_layers"},
  };
  return keys;
}

/// Beginnings of options that change no time, or that the importer reads itself.
const std::vector<std::string>& harmless_megatron_keys() {
  static const std::vector<std::string> beginnings{
      // clang-format off
      "abort", "accelerator", "accumulate-grad", "adam-", "add-", "apex", "apply-", "async-save",
      "attention-dropout", "attention-softmax", "attention-type", "auto-detect", "bias",
      "calculate-per-token", "ckpt", "clip-grad", "create-", "data", "decoder-first",
      "decoder-last", "decoupled", "deepspeed", "defaults", "deterministic", "devices", "dir",
      "disable-bias", "dist", "do-layer", "enable-checkpointing", "eod", "eval", "exit",
      "exp-manager", "ffn-dropout", "fp16-lm", "fp8", "fsdp", "gc", "get-attention-mask", "grad-",
      "gradient-as-bucket", "gradient-clip", "headscale", "hidden-dropout", "hydra", "hysteresis",
      "init", "kill-switch", "kv-channels", "layernorm-eps", "limit", "load", "log", "loss-scale",
      "lr", "make-vocab", "manual-gc", "masked-softmax", "master", "max-epochs", "max-position",
      "max-restarts", "max-steps", "max-time", "mcore", "megatron-amp", "merge", "min-l", "mock",
      "moe-aux", "moe-layer-freq", "moe-router-bias", "moe-router-dtype", "moe-router-enable",
      "moe-router-load", "moe-router-pre", "moe-router-score", "moe-router-topk-scal", "moe-z-loss",
      "name", "native-amp", "nnodes", "no-check", "no-create", "no-load", "no-mmap", "no-pos",
      "no-query", "no-save", "node-rank", "norm-epsilon", "normalize-attention", "nproc", "nsys",
      "num-distributed", "num-gpus", "num-layers-per-virtual", "num-nodes", "num-workers", "onnx",
      "openai", "optim.", "optimizer-cpu", "override", "persist", "post-process", "pre-process",
      "precision", "profile", "rdzv", "recompute-m", "recompute-num", "reduce-amax", "reset-",
      "resume", "rotary-base", "rotary-p", "rotary-scal", "run.", "save", "sbatch-", "scale-pos",
      "seconds-", "seed", "skip-warmup", "special-tokens", "split", "standalone", "step-batch",
      "strategy", "sync-batch", "tee", "tensorboard", "test-", "tiktoken", "tokenizer", "train-",
      "transformer-block", "transformer-engine", "transformer-impl", "use-cpu-init",
      "use-custom-fsdp", "use-dist-ckpt", "use-distributed-sampler", "use-emha", "use-fused",
      "use-mcore", "use-megatron-fsdp", "use-precision-aware", "use-scaled", "use-torch-fsdp2",
      "val", "vocab-file", "wandb", "weight-decay", "whitened"
      // clang-format on
  };
  return beginnings;
}

/// GPUs as launchers count them: nodes times processes per node, or what Slurm is asked for.
int num_gpus(const LaunchScenario& scenario) {
  const auto first = [&](std::initializer_list<const char*> keys) {
    for (const char* key : keys)
      if (const int number = scenario.settings().number(key); number > 0) return number;
    return 0;
  };
  const int nodes = first({"nnodes", "num-nodes", "sbatch-nodes"});
  const int of_node = first(
      {"nproc-per-node", "num-gpus", "devices", "sbatch-gpus-per-node", "sbatch-ntasks-per-node"});
  return of_node == 0 ? first({"sbatch-gpus"}) : std::max(nodes, 1) * of_node;
}

/// 8-bit and 4-bit formats win over --bf16, in whichever order they come.
void set_precision(LaunchScenario& scenario) {
  if (!scenario.has("/training/precision")) scenario.set("/training/precision", JsonValue("fp32"));
  const std::string recipe = scenario.settings().text("fp8-recipe");
  if (scenario.settings().is_on("fp8-format") || scenario.settings().is_on("fp8"))
    scenario.set("/training/precision", JsonValue(recipe == "mxfp8" ? "mxfp8" : "fp8"));
  if (recipe == "blockwise" && scenario.is("/training/precision", "fp8"))
    scenario.set("/training/fp8_recipe", JsonValue("block"));
  if (scenario.settings().is_on("fp4-format"))
    scenario.set("/training/precision", JsonValue("nvfp4"));
}

void set_recomputation(LaunchScenario& scenario) {
  if (scenario.settings().text("recompute-granularity") == "full" &&
      scenario.settings().text("recompute-method") == "block") {
    // None of them: arguments.py has no default.
    const int first = scenario.settings().number("recompute-num-layers");
    if (first > 0)
      scenario.set("/training/recompute_layers/first", json_of(first));
    else
      scenario.set("/training/recompute", JsonValue("none"));
  }
  const std::map<std::string, const char*> modules{
      {"core_attn", "attention_core"},     {"layernorm", "norms"},
      {"mla_up_proj", "up_projection"},    {"mlp", "mlp"},
      {"moe_act", "expert_activation"},    {"moe", "experts"},
      {"shared_experts", "shared_experts"}};
  JsonValue::Array list;
  std::string rest = scenario.settings().text("recompute-modules");
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

/// Megatron-FSDP and FSDP2 over the distributed optimizer.
void set_sharding(LaunchScenario& scenario, int replicas) {
  const bool is_fsdp = scenario.settings().is_on("use-megatron-fsdp") ||
                       scenario.settings().is_on("use-custom-fsdp") ||
                       scenario.settings().is_on("use-torch-fsdp2") ||
                       scenario.settings().is_on("fsdp");
  if (is_fsdp) {
    const std::map<std::string, int> stages{
        {"no_shard", 0}, {"optim", 1}, {"optim_grads", 2}, {"grad", 2}};
    const std::string strategy = scenario.settings().is_on("fsdp")
                                     ? scenario.settings().text("fsdp-sharding-strategy")
                                     : scenario.settings().text("data-parallel-sharding-strategy");
    const auto stage = stages.find(strategy);
    scenario.set("/parallel/zero_stage", json_of(stage == stages.end() ? 3 : stage->second));
  }
  const int copies = scenario.settings().number("num-distributed-optimizer-instances");
  if (copies > 1 && replicas % copies == 0)
    scenario.set("/parallel/zero_group", json_of(replicas / copies));
}

void set_chunks(LaunchScenario& scenario) {
  const int layers = scenario.settings().number("num-layers-per-virtual-pipeline-stage");
  if (layers == 0) return;
  const int of_stage =
      scenario.at("/model/layers", 0) / std::max(1, scenario.at("/parallel/pipeline", 1));
  if (of_stage > layers) scenario.set("/parallel/virtual_pipeline", json_of(of_stage / layers));
}

/// What follows from other sizes, in validate_args() of megatron/training/arguments.py: a gated MLP is int(4 h 2/3 / 64) 64 wide, and groups of
/// queries count with --group-query-attention alone.
void set_widths(LaunchScenario& scenario, bool is_megatron) {
  constexpr int multiple = 64;
  const int hidden = scenario.at("/model/hidden", 0);
  if (is_megatron && scenario.settings().is_on("swiglu") && !scenario.has("/model/ffn_hidden") &&
      hidden > 0)
    scenario.set("/model/ffn_hidden", json_of(4 * hidden * 2 / 3 / multiple * multiple));
  if (is_megatron && scenario.settings().number("num-query-groups") > 0 &&
      !scenario.settings().is_on("group-query-attention")) {
    scenario.erase("/model/kv_heads");
    scenario.note("num-query-groups has no effect without group-query-attention");
  }
  if (scenario.at("/model/moe/experts", 0) == 1) scenario.erase("/model/moe");  // dense
}

/// --moe-layer-freq: 2 is every second layer, "([0]*3+[1]*58)" the three first ones dense.
void set_dense_layers(LaunchScenario& scenario) {
  if (!scenario.has("/model/moe")) return;
  if (!scenario.has("/model/moe/top_k"))
    scenario.set("/model/moe/top_k", json_of(2));  // Megatron-LM's default
  if (!scenario.has("/model/moe/ffn_hidden"))
    scenario.set("/model/moe/ffn_hidden",
                 json_of(scenario.at("/model/ffn_hidden", 4 * scenario.at("/model/hidden", 0))));
  const std::string frequency = scenario.settings().text("moe-layer-freq");
  if (const int every = scenario.settings().number("moe-layer-freq"); every > 1)
    scenario.set("/model/moe/every", json_of(every));
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
  if (!scenario.has("/model/mla") && !scenario.settings().is_on("multi-latent-attention")) return;
  for (const auto& [pointer, size] : {std::pair{"/model/mla/key_value_rank", 32},
                                      {"/model/mla/key_size", 128},
                                      {"/model/mla/rope_size", 64},
                                      {"/model/mla/value_size", 128}})
    if (!scenario.has(pointer)) scenario.set(pointer, json_of(size));
  scenario.erase("/model/head_size");  // --kv-channels says nothing of latent attention
}

/// --decoder-first-pipeline-num-layers and --decoder-last-…: the stages between share the rest.
void set_edge_stages(LaunchScenario& scenario) {
  const int first = scenario.settings().number("decoder-first-pipeline-num-layers");
  const int last = scenario.settings().number("decoder-last-pipeline-num-layers");
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

}  // namespace

Imported megatron_scenario(const ImportRequest& request, const Library& library,
                           LaunchSettings settings, std::string software) {
  LaunchScenario scenario(request, library, std::move(settings), megatron_keys(),
                          harmless_megatron_keys());
  if (scenario.settings().is_on("deepspeed") || scenario.settings().is_on("deepspeed-config"))
    software = "megatron-deepspeed-2022";
  const int gpus = scenario.gpus(num_gpus(scenario));
  const int ways = scenario.at("/parallel/tensor", 1) * scenario.at("/parallel/pipeline", 1);
  const int replicas = std::max(1, gpus / std::max(1, ways));  // context counted
  set_precision(scenario);
  set_recomputation(scenario);
  set_sharding(scenario, replicas);
  set_chunks(scenario);
  set_widths(scenario, request.kind == "megatron");
  if (scenario.settings().number("ds-sequence-parallel-size") > 1)  // Ulysses
    scenario.set("/parallel/context_method", JsonValue("all_to_all"));
  set_latent_attention(scenario);
  set_edge_stages(scenario);
  set_dense_layers(scenario);
  if (!scenario.has("/training/micro_batch")) scenario.set("/training/micro_batch", json_of(1));
  if (!scenario.has("/training/global_batch"))
    scenario.set("/training/global_batch",
                 json_of(scenario.at("/training/micro_batch", 1) * replicas /
                         std::max(1, scenario.at("/parallel/context", 1))));
  // Megatron's own layers keep scores where no flash attention is asked for; what Transformer Engine's do, the profile says.
  if (!scenario.has("/training/attention") &&
      scenario.settings().text("transformer-impl") == "local")
    scenario.set("/training/attention", JsonValue("standard"));
  return scenario.finish(software, gpus);
}

}  // namespace windtunnel
