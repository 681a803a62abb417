// Launch scripts of Megatron-LM and Megatron-DeepSpeed.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/count_text.hpp"
#include "core/file_io.hpp"
#include "core/mapped.hpp"
#include "core/number_in.hpp"
#include "core/text_list.hpp"
#include "core/utf8.hpp"
#include "importers/launch_scenario.hpp"
#include "report/json_object.hpp"

namespace windtunnel::formats {
namespace {

/// The first of these settings that is a number above 0; 0: none is.
int first_number(const LaunchScenario& scenario, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (const int number = scenario.number(key); number > 0) return number;
  return 0;
}

/// GPUs as launchers count them: nodes times processes per node, or the ranks that srun or mpirun start. A note says what was not torchrun's own; 0: the
/// file does not say.
int num_gpus(LaunchScenario& scenario) {
  const int nodes = first_number(scenario, {"nnodes", "num-nodes", "launcher-nodes"});
  const int tasks = scenario.number("launcher-ntasks");
  const int tasks_of_node = scenario.number("launcher-ntasks-per-node");
  const bool has_torchrun = scenario.settings().find("nproc-per-node") != nullptr;
  int of_node = first_number(scenario, {"nproc-per-node", "num-gpus", "devices"});
  if (of_node == 0 && !has_torchrun && tasks > std::max(1, nodes)) {
    scenario.note("GPUs: " + std::to_string(tasks) + ", the ranks that srun or mpirun start");
    return tasks;
  }
  const std::string launched = scenario.text("nproc-per-node");
  if (of_node == 0 && !has_torchrun && tasks_of_node > 1) of_node = tasks_of_node;
  if (of_node == 0) of_node = scenario.number("launcher-gpus-per-node");
  if (of_node == 0 && (launched == "gpu" || launched == "auto")) of_node = scenario.gpus_per_node();
  if (of_node == 0 && !has_torchrun) of_node = tasks_of_node;
  if (of_node == 0) return scenario.number("launcher-gpus");
  if (nodes == 0) scenario.refuse_unread_counts({"nnodes", "num-nodes"});
  if (nodes == 0)
    scenario.note_gpus(
        "the file does not say how many nodes: 1 of " + count_text(of_node, "GPU") +
        " is assumed; " +
        scenario.how_to_give_gpus(", or --args \"NNODES=N\" for a variable of the script"));
  constexpr std::int64_t most = 1 << 28;  // more than any platform has
  return static_cast<int>(std::min(most, std::int64_t{std::max(nodes, 1)} * of_node));
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
  if (is_full && is_block && layers == 0 && scenario.text("recompute-num-layers") == "0")
    scenario.set("/training/recompute", "none");
  else if (is_full && is_block && layers > 0)
    scenario.set_from(scenario.number("recompute-num-layers") > 0
                          ? "recompute-num-layers"
                          : "activations-checkpoint-num-layers",
                      "/training/recompute_layers/first", layers);
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
  std::istringstream words(scenario.text("recompute-modules"));
  for (std::string word; words >> word;)
    if (const auto module = modules.find(word); module != modules.end())
      list.emplace_back(module->second);
    else
      scenario.warn("recompute-modules " + word + " cannot be simulated, and is left out");
  if (!list.empty() && scenario.is("/training/recompute", "selective"))
    scenario.set_from("recompute-modules", "/training/recompute_modules", JsonValue(list));
  else if (!list.empty())
    scenario.note("recompute-modules has no effect without recompute-granularity selective");
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
    scenario.set("/parallel/zero_stage", value_in(stages, strategy, 3));
  }
  const char* const instances = "num-distributed-optimizer-instances";
  const int copies = scenario.number(instances);
  if (copies > 1 && replicas % copies == 0)
    scenario.set_from(instances, "/parallel/zero_group", replicas / copies);
  // _grad_hook() of megatron/optimizer/overlapped_dist_optimizer.py in Megatron-LLaMA.
  const char* const overlapped = "overlapped-distributed-optimizer";
  if (scenario.is_on(overlapped)) {
    scenario.set_from(overlapped, "/parallel/zero_stage", 2);
    scenario.set_from(overlapped, "/parallel/overlap_gradient_reduce", true);
    scenario.note(
        "overlapped-distributed-optimizer is zero_stage 2 here: each rank adds up its share of "
        "the gradients alone, which are scattered during the backward pass of every microbatch");
  }
}

/// Options of exchanges that sequence parallelism makes without effect, as validate_args() of megatron/training/arguments.py and _communicate() of
/// p2p_communication.py have it: its own scatters overlap whatever they say, and its messages are shares anyway.
void set_exchanges(LaunchScenario& scenario) {
  for (const auto& [option, pointer] :
       {std::pair{"no-async-tensor-model-parallel-allreduce",
                  "/software/overlap_backward_tensor_collectives"},
        {"no-scatter-gather-tensors-in-pipeline", "/software/scatter_pipeline_messages"}})
    if (scenario.is_on(option) && scenario.is_on("sequence-parallel"))
      scenario.note(std::string(option) + " has no effect with sequence-parallel");
    else if (scenario.is_on(option))
      scenario.set_from(option, pointer, false);
  // User buffers of Transformer Engine (te.pytorch.module.base.initialize_ub()): other kernels in other pieces than PyTorch's.
  for (const char* const option : {"tp-comm-overlap", "ub-tp-comm-overlap"})
    if (scenario.is_on(option) && scenario.at("/parallel/tensor", 1) > 1)
      scenario.note(
          std::string(option) +
          " is not used: Transformer Engine's overlap of tensor collectives with products is not "
          "simulated; to estimate it by PyTorch's, which has other kernels, set "
          "\"async_tensor_parallel\": true in /parallel");
}

/// --cpu-offloading-num-layers (of ModelParallelConfig): activations of so many of the model's layers, which no stages share with it.
void set_activation_offload(LaunchScenario& scenario) {
  const char* const option = "cpu-offloading-num-layers";
  const int offloaded = scenario.number(option), layers = scenario.at("/model/layers", 0);
  const bool is_off = scenario.settings().find("cpu-offloading") != nullptr &&
                      !scenario.is_on("cpu-offloading");  // NeMo's configurations say both
  if (is_off) return;
  if (scenario.is_on("cpu-offloading") && offloaded < 1)
    scenario.note("cpu-offloading has no effect without cpu-offloading-num-layers");
  if (offloaded < 1) return;
  if (layers < 1)
    return scenario.warn("cpu-offloading-num-layers " + std::to_string(offloaded) +
                         " is not used, as the file does not say how many layers there are: see "
                         "/training/activation_offload_fraction");
  scenario.set_from(option, "/training/activation_offload_fraction",
                    std::min(1.0, static_cast<double>(offloaded) / layers));
}

/// --optimizer-cpu-offload: all states, unless --optimizer-offload-fraction says how many, which means nothing without it. Pai-Megatron-Patch has
/// --optimizer hybridadam for both (examples/llama3_1/run_mcore_llama3_1.sh).
void set_optimizer_offload(LaunchScenario& scenario) {
  const char* const fraction = "/training/optimizer_offload_fraction";
  const bool is_hybrid = scenario.text("optimizer") == "hybridadam";
  if (is_hybrid && !scenario.has(fraction))
    scenario.warn(
        "optimizer hybridadam chooses in the run which states the host keeps: the GPU keeps all "
        "here, see " +
        std::string(fraction));
  if (is_hybrid) return;
  if (scenario.is_on("optimizer-cpu-offload")) {
    scenario.set_default(fraction, 1);
  } else if (scenario.has(fraction)) {
    scenario.erase(fraction);
    scenario.note("optimizer-offload-fraction has no effect without optimizer-cpu-offload");
  }
}

/// Notes what a script asks of kernels that are simulated otherwise.
void note_kernels(LaunchScenario& scenario, bool has_transformer_engine) {
  const std::string family = scenario.family();
  const bool has_dropout = family != "llama";
  std::vector<std::string> dropouts;
  for (const char* key : {"hidden-dropout", "attention-dropout"}) {
    const std::string rate = scenario.text(key);
    const bool is_zero = rate.find_first_not_of("0.") == std::string::npos;
    if (!rate.empty() && is_zero == has_dropout) dropouts.push_back(key + (" " + rate));
  }
  if (!dropouts.empty())
    scenario.note(
        "not used, as models of family " + family + " are simulated " +
        (has_dropout ? "with dropout, its masks in memory and its time" : "without dropout") +
        ": " + listed(dropouts));
  if (has_transformer_engine && scenario.text("transformer-impl") == "local")
    scenario.note(
        "transformer-impl local says here how attention is computed alone: other kernels are those "
        "of Transformer Engine");
  if (scenario.is_on("reset-attention-mask"))
    scenario.warn(
        "reset-attention-mask is not used: tokens attend to all before them in their sample here, "
        "not to those of their document alone");
}

/// Sizes that follow from others, in validate_args() of megatron/training/arguments.py: a gated MLP is int(4 h 2/3 / 64) 64 wide, and groups of
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
  const std::string bias = lower_case(scenario.text("bias"));
  const bool has_biases = !scenario.is_on("disable-bias-linear") && bias != "false";
  const bool is_llama = scenario.is("/model/family", "llama");
  if (!scenario.has("/model/layers")) return;
  if (!has_biases && !scenario.has("/model/gated_mlp") && !is_llama)
    scenario.note(
        "a model without biases, but with LayerNorm, is simulated with them (family gpt)");
  if (is_megatron && has_biases && is_llama)
    scenario.note(
        "a model with biases (no disable-bias-linear), but with RMSNorm, is simulated without "
        "them (family llama)");
}

/// The value of a list expression in Python of numbers of one layer each: "([0]*3+[1]*58)", "[1,1,1,0]*12". Empty where it is none.
class LayerPattern {
 public:
  explicit LayerPattern(const std::string& text) {
    for (const char c : text)
      if (c != ' ' && c != '\\' && c != '"' && c != '\'') text_ += c;
  }
  std::vector<int> value() {
    std::vector<int> layers = sum(0);
    return at_ == text_.size() ? layers : std::vector<int>{};
  }

 private:
  static constexpr std::size_t most_layers = 100'000;
  static constexpr int deepest = 20;

  bool takes(char c) {
    const bool is_next = at_ < text_.size() && text_[at_] == c;
    if (is_next) ++at_;
    return is_next;
  }
  int number() {
    int value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    at_ += static_cast<std::size_t>(end - begin);
    return error == std::errc{} ? value : -1;
  }
  std::vector<int> sum(int depth) {
    std::vector<int> layers;
    do {
      const std::vector<int> some = product(depth);
      if (some.empty() || layers.size() + some.size() > most_layers) return {};
      layers.insert(layers.end(), some.begin(), some.end());
    } while (takes('+'));
    return layers;
  }
  std::vector<int> product(int depth) {
    std::vector<int> some, layers;
    if (takes('(') && depth < deepest) {
      some = sum(depth + 1);
      if (!takes(')')) return {};
    } else if (takes('[')) {
      do some.push_back(number());
      while (takes(','));
      if (!takes(']')) return {};
    }
    if (!takes('*')) return some;
    const int times = number();
    if (times < 1 || some.size() * static_cast<std::size_t>(times) > most_layers) return {};
    for (int i = 0; i < times; ++i) layers.insert(layers.end(), some.begin(), some.end());
    return layers;
  }

  std::string text_;
  std::size_t at_ = 0;
};

/// --moe-layer-freq: 2 is every second layer, "([0]*3+[1]*58)" the three first ones dense.
void set_dense_layers(LaunchScenario& scenario, bool is_deepspeed) {
  if (!scenario.has("/model/moe")) return;
  if (const int dense = scenario.number("first-k-dense-replace"); dense > 0)  // MindSpeed-LLM's
    scenario.set("/model/moe/dense_layers", dense);
  // Defaults of --moe-router-topk, and of --topk, --expert-interval and --moe-train-capacity-factor of Megatron-DeepSpeed.
  scenario.set_default("/model/moe/top_k", is_deepspeed ? 1 : 2);
  if (is_deepspeed) {
    scenario.set_default("/model/moe/every", 2);
    if (scenario.is_on("disable-moe-token-dropping"))
      scenario.erase("/model/moe/capacity");
    else
      scenario.set_default("/model/moe/capacity", 1);
  }
  scenario.set_default("/model/moe/ffn_hidden",
                       scenario.at("/model/ffn_hidden", 4 * scenario.at("/model/hidden", 0)));
  if (const int shared = scenario.number("n-shared-experts"); shared > 0)  // MindSpeed-LLM's
    scenario.set_default("/model/moe/shared_ffn_hidden",
                         std::int64_t{shared} * scenario.at("/model/moe/ffn_hidden", 0));
  const std::string frequency = scenario.text("moe-layer-freq");
  if (const int every = scenario.number("moe-layer-freq"); every > 1)
    scenario.set("/model/moe/every", every);
  if (frequency.find('[') == std::string::npos) return;
  const std::vector<int> layers = LayerPattern(frequency).value();
  const auto first = std::ranges::find(layers, 1);
  const auto dense = first - layers.begin();
  const auto every = first == layers.end() ? 1 : std::find(first + 1, layers.end(), 1) - first;
  bool is_regular = first != layers.end();
  for (auto i = first; i != layers.end(); ++i)
    is_regular = is_regular && (*i == 1) == ((i - first) % every == 0);
  const int of_model = scenario.at("/model/layers", 0);
  if (!is_regular || (of_model > 0 && static_cast<int>(layers.size()) != of_model))
    return scenario.warn("moe-layer-freq " + frequency +
                         " cannot be simulated: experts are in every layer here");
  if (dense > 0) scenario.set("/model/moe/dense_layers", static_cast<int>(dense));
  if (every > 1) scenario.set("/model/moe/every", static_cast<int>(every));
}

/// Defaults of megatron/training/arguments.py: --expert-tensor-parallel-size is the tensor degree, though
/// Megatron-DeepSpeed cuts experts with --enable-expert-tensor-parallelism alone; --moe-token-dispatcher-type is allgather (core 0.6 to 0.14).
/// MindSpeed's --moe-tp-extend-ep spreads whole experts over the tensor group too (base_moe_init_wrapper() of mindspeed/core/transformer/moe).
void set_expert_parallelism(LaunchScenario& scenario, bool is_deepspeed) {
  const bool is_dense = !scenario.has_experts();
  if (is_dense && scenario.has("/parallel/expert_tensor"))
    scenario.note("expert-tensor-parallel-size has no effect without experts");
  if (is_dense) return scenario.erase("/parallel/expert_tensor");
  const int tensor = scenario.at("/parallel/tensor", 1);
  if (scenario.is_on("moe-tp-extend-ep")) {
    if (scenario.at("/parallel/expert_tensor", 1) > 1)
      scenario.warn("expert-tensor-parallel-size " + scenario.text("expert-tensor-parallel-size") +
                    " is not used: moe-tp-extend-ep leaves experts whole");
    scenario.set_from("moe-tp-extend-ep", "/parallel/expert",
                      tensor * scenario.at("/parallel/expert", 1));
    scenario.set("/parallel/expert_tensor", 1);
  }
  if (tensor > 1 && !scenario.has("/parallel/expert_tensor") &&
      (!is_deepspeed || scenario.is_on("enable-expert-tensor-parallelism"))) {
    scenario.set("/parallel/expert_tensor", tensor);
    if (!is_deepspeed)
      scenario.note("expert-tensor-parallel-size is the tensor degree, " + std::to_string(tensor) +
                    ", where the file does not say");
  }
  const bool is_shared =
      scenario.at("/parallel/expert", 1) * scenario.at("/parallel/expert_tensor", 1) > 1;
  if (is_deepspeed || !is_shared ||
      scenario.settings().find("moe-token-dispatcher-type") != nullptr ||
      scenario.has("/software/experts/dispatch"))
    return;
  scenario.set("/software/experts/dispatch", "all_gather");
  scenario.note(
      "moe-token-dispatcher-type is allgather where the file does not say: every token goes to "
      "every rank that shares the experts");
}

/// --window-size "127,0": a token attends to itself and as many before it (Transformer Engine's DotProductAttention), in all layers, or in those that
/// --window-attn-skip-freq leaves: 4 is three of four, "[1,0]*18" those with 1.
void set_window(LaunchScenario& scenario) {
  std::string size = scenario.text("window-size");
  std::erase_if(size,
                [](char c) { return std::string_view("()[]\\\"' ").find(c) != std::string::npos; });
  int before = -1;
  std::from_chars(size.data(), size.data() + size.size(), before);
  constexpr int longest = 1 << 28;              // tokens; more are no window
  if (before < 0 || before >= longest) return;  // none, or without end
  const int skipped = scenario.number("window-attn-skip-freq");
  const std::vector<int> layers = LayerPattern(scenario.text("window-attn-skip-freq")).value();
  const auto with = std::ranges::count_if(layers, [](int each) { return each > 0; });
  double every = 1;
  if (skipped == 1 || (!layers.empty() && with == 0)) return;
  if (skipped > 1) every = static_cast<double>(skipped) / (skipped - 1);
  if (with > 0) every = static_cast<double>(layers.size()) / static_cast<double>(with);
  scenario.set_from("window-size", "/model/window/size", before + 1);
  if (every > 1) scenario.set("/model/window/every", every);
}

/// Layers of MindSpeed-LLM. --sliding-window: a token attends to so many, with itself, in all of them (flash_attention_forward() of
/// mindspeed_llm/core/transformer/custom_dot_product_attention.py). Of Gemma 2 and Grok, TransformerLayer of
/// mindspeed_llm/tasks/models/transformer/transformer_layer.py has --post-norm, a norm behind each half, and --interleave-sliding-window, in the
/// first layer and each second one after it.
void set_fork_layers(LaunchScenario& scenario) {
  const std::string spec = scenario.text("spec");
  const bool has_layer =
      spec.find("gemma2_spec") != std::string::npos || spec.find("grok_spec") != std::string::npos;
  if (scenario.is_on("post-norm") && has_layer) scenario.set_from("post-norm", "/model/norms", 4);
  for (const auto& [option, every] :
       {std::pair{"sliding-window", 1}, {"interleave-sliding-window", 2}}) {
    const int tokens = scenario.number(option);
    if (tokens < 1 || tokens >= scenario.at("/model/sequence", 0) || (every > 1 && !has_layer))
      continue;
    scenario.set_from(option, "/model/window/size", tokens);
    if (every > 1) scenario.set("/model/window/every", every);
  }
  for (const char* option : {"post-norm", "interleave-sliding-window"})
    if (scenario.is_on(option) && !has_layer)
      scenario.warn(std::string(option) +
                    " is not used: of MindSpeed-LLM's layers only those of gemma2_spec and "
                    "grok_spec have it; see /model/norms and /model/window");
}

/// --use-precision-aware-optimizer: Transformer Engine's Adam, which keeps of fp32 main parameters the 16 bits that bf16 weights lack
/// (store_param_remainders of OptimizerConfig). Without it formats of states are without effect. Gradients are reduced as --main-grads-dtype says.
void set_states(LaunchScenario& scenario) {
  const bool is_aware = scenario.is_on("use-precision-aware-optimizer");
  if (is_aware && scenario.is_on("bf16"))
    scenario.set_default("/training/main_params_dtype", "fp32_remainder");
  if (scenario.text("main-grads-dtype") == "bf16" &&
      !scenario.is_on("accumulate-allreduce-grads-in-fp32"))
    scenario.set("/training/gradient_dtype", "bf16");
  if (is_aware) return;
  for (const char* name : {"main_params_dtype", "exp_avg_dtype", "exp_avg_sq_dtype"}) {
    const std::string pointer = std::string("/training/") + name;
    if (scenario.has(pointer) && !scenario.is(pointer, "fp32"))
      scenario.note(launch_key(name) + " has no effect without use-precision-aware-optimizer");
    scenario.erase(pointer);
  }
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
  scenario.set_from(
      first > 0 ? "decoder-first-pipeline-num-layers" : "decoder-last-pipeline-num-layers",
      "/parallel/stage_layers", JsonValue(layers));
}

/// MindSpeed's --num-layer-list "4,4,3", and --noop-layers "0,15": layers of --num-layers, counted from 0, that do nothing, so that the others need not
/// share the stages evenly. The list has no effect then (mindspeed_llm).
void set_uneven_stages(LaunchScenario& scenario) {
  const auto numbers = [&](const char* key) {
    return LayerPattern("[" + scenario.text(key) + "]").value();
  };
  std::vector<int> parts = numbers("num-layer-list");
  if (const std::string noops = scenario.text("noop-layers"); !noops.empty()) {
    const int layers = scenario.at("/model/layers", 0);
    const int stages = scenario.at("/parallel/pipeline", 1);
    const int num_parts = stages * scenario.at("/parallel/virtual_pipeline", 1);
    if (layers < 1 || num_parts < 1 || layers % num_parts != 0)
      return scenario.warn("noop-layers " + noops + " is not used: the stages of " +
                           std::to_string(layers) + " layers cannot be told");
    parts.assign(static_cast<std::size_t>(num_parts), layers / num_parts);
    for (const int layer : numbers("noop-layers"))
      if (layer >= 0 && layer < layers)
        --parts[static_cast<std::size_t>(layer / (layers / num_parts))];
    scenario.set("/model/layers", std::accumulate(parts.begin(), parts.end(), 0));
    if (const int dense = scenario.at("/model/moe/dense_layers", 0); dense > 0)
      scenario.set("/model/moe/dense_layers",
                   dense - std::ranges::count_if(numbers("noop-layers"), [&](int layer) {
                     return layer >= 0 && layer < dense;
                   }));
  }
  if (parts.size() < 2) return;
  std::string layout = "E";
  for (const int part : parts) layout += (part > 0 ? "t*" + std::to_string(part) : "") + "|";
  layout.back() = ',';
  if (const int depths = scenario.at("/model/mtp_layers", 0); depths > 0)
    layout += "m*" + std::to_string(depths);
  scenario.set_from(scenario.text("noop-layers").empty() ? "num-layer-list" : "noop-layers",
                    "/parallel/stage_layers", layout + "L");
}

/// Adapters of MindSpeed-LLM, which --lora-target-modules turns on, under Megatron's names of modules: _add_lora_args() in
/// mindspeed_llm/training/arguments.py.
void set_adapters(LaunchScenario& scenario) {
  constexpr int default_rank = 16;
  std::map<std::string, std::vector<const char*>> matrices{
      {"linear_qkv", {"q_proj", "k_proj", "v_proj"}},
      {"linear_proj", {"o_proj"}},
      {"linear_fc1", {"up_proj"}},
      {"linear_fc2", {"down_proj"}}};
  if (scenario.has_gated_mlp()) matrices["linear_fc1"] = {"gate_proj", "up_proj"};
  JsonValue::Array targets;
  std::istringstream modules(scenario.text("lora-target-modules"));
  for (std::string module; modules >> module;) {
    const auto found = matrices.find(module);
    if (found == matrices.end()) {
      scenario.warn("lora-target-modules " + module +
                    " is not one of linear_qkv, linear_proj, "
                    "linear_fc1 and linear_fc2, and is left out");
      continue;
    }
    for (const char* name : found->second) targets.emplace_back(name);
    matrices[module].clear();  // given twice, it has one adapter
  }
  if (targets.empty()) {
    if (!scenario.text("lora-target-modules").empty())
      scenario.warn("no adapters are left: all parameters are trained");
    return;
  }
  const int rank = scenario.number("lora-r");
  scenario.set_from("lora-r", "/training/lora_rank", rank > 0 ? rank : default_rank);
  scenario.set_from("lora-target-modules", "/training/lora_target_modules", JsonValue(targets));
  if (const auto dropout = number_in(scenario.text("lora-dropout")))
    scenario.set_from("lora-dropout", "/training/lora_dropout", JsonValue(*dropout));
  if (scenario.is_on("qlora")) scenario.set_from("qlora", "/training/frozen_dtype", "nf4");
}

/// Release 0 of its profile is Megatron-LM with its own scripts; later ones have the settings of Megatron-Bridge's recipes (gradients in bf16, Transformer
/// Engine's cross entropy, DeepEP), which no script has that does not ask for them.
constexpr const char* megatron_core = "megatron-core-2026@0";
constexpr const char* megatron_deepspeed = "megatron-deepspeed-2022";

/// Settings of recipes which that release still has, and which a script must ask for (megatron/training/arguments.py): CUDA graphs, scales
/// of fp8 from the tensor itself, and parameters kept in fp8.
void set_stack(LaunchScenario& scenario) {
  const std::string graphs = scenario.text("cuda-graph-impl");
  const bool has_graphs = scenario.is_on("enable-cuda-graph") ||
                          scenario.is_on("external-cuda-graph") ||
                          (!graphs.empty() && graphs != "none");
  if (!has_graphs)
    scenario.set("/software/launch",
                 object_of({{"kernel", "8 us"},
                            {"collective", "20 us"},
                            {"source",
                             "assumed: as megatron-core-2024, a script that asks for no "
                             "CUDA graphs"}}));
  if (!scenario.is("/training/precision", "fp8")) return;
  const std::string recipe = scenario.text("fp8-recipe");
  if (recipe.empty() || recipe == "delayed") scenario.set("/software/fp8_scaling", "delayed");
  if (!scenario.is_on("fp8-param-gather") && !scenario.is_on("fp8-param"))
    scenario.set("/software/fp8_parameters", false);
}

/// The arguments of a script, or of a YAML file that lists them ("--num-layers: 32").
Imported import_megatron(const ImportRequest& request, const Library& library) {
  const auto source = read_source_or_stdin(request.inputs.front());
  const std::string extension = request.inputs.front().extension().string();
  LaunchSettings settings = extension == ".yaml" || extension == ".yml"
                                ? read_yaml_settings(*source, request.options.arguments)
                                : read_launch_script(*source, request.options.arguments);
  for (LaunchSetting& setting : settings.settings)
    setting.drop_beginning(setting.key.rfind('.') + 1);
  return megatron_scenario(request, library, std::move(settings), megatron_core);
}

}  // namespace

Imported megatron_scenario(const ImportRequest& request, const Library& library,
                           LaunchSettings settings, std::string software) {
  LaunchScenario scenario(request, library, std::move(settings), detail::megatron_table);
  if (scenario.is_on("deepspeed") || scenario.is_on("deepspeed-config"))
    software = megatron_deepspeed;
  if (software == megatron_deepspeed && scenario.is_on("accumulate-allreduce-grads-in-fp32")) {
    scenario.erase("/training/gradient_dtype");
    scenario.note(
        "accumulate-allreduce-grads-in-fp32 is not used: the DeepSpeed configuration says the "
        "format of gradients");
  }
  // BF16_Optimizer of deepspeed/runtime/bf16_optimizer.py, which is what --zero-stage 0 has with bf16, shards its states.
  if (scenario.is("/training/precision", "bf16") && scenario.at("/parallel/zero_stage", 1) == 0) {
    scenario.set("/parallel/zero_stage", 1);
    scenario.note("zero_stage is 1: DeepSpeed's bf16 optimizer shards its states in stage 0, too");
  }
  if (const int encoder = scenario.number("encoder-seq-length"),
      data = scenario.number("seq-length");
      encoder > 0 && data > 0 && encoder != data)
    scenario.warn("seq-length of the data is " + std::to_string(data) +
                  ", and encoder-seq-length of the model " + std::to_string(encoder) +
                  ": samples of " + count_text(scenario.at("/model/sequence", 0), "token") +
                  " are assumed, see /model/sequence");
  if (const std::string config = scenario.text("deepspeed-config"); !config.empty())
    scenario.note("deepspeed_config " + config +
                  " is not read: import deepspeed reads such a file, and /parallel/zero_stage says "
                  "its stage here");
  const int gpus = scenario.gpus(request.options.gpus > 0 ? 0 : num_gpus(scenario));
  const int ranks = scenario.at("/parallel/tensor", 1) * scenario.at("/parallel/pipeline", 1);
  const int replicas = std::max(1, gpus / std::max(1, ranks));  // context counted
  set_precision(scenario);
  set_recomputation(scenario);
  // --cross-entropy-fusion-impl, "native" where it is left out, says which fusion --cross-entropy-loss-fusion asks for, and nothing alone:
  // fused_vocab_parallel_cross_entropy of megatron/core/fusions/fused_cross_entropy.py, or "te", Transformer Engine's kernel, which writes
  // gradients over the logits (compute_language_model_loss() in megatron/core/models/common/language_module/language_module.py).
  if (scenario.is_on("cross-entropy-loss-fusion"))
    scenario.set("/training/cross_entropy", scenario.text("cross-entropy-fusion-impl") == "te"
                                                ? "in_place"
                                                : "vocab_parallel_compiled");
  set_sharding(scenario, replicas);
  if (const int layers = scenario.number("num-layers-per-virtual-pipeline-stage"); layers > 0) {
    const std::int64_t shared = std::int64_t{scenario.at("/model/layers", 0)} +
                                scenario.has("/parallel/edge_layers/embedding") +
                                scenario.has("/parallel/edge_layers/loss");
    const std::int64_t of_stage = shared / std::max(1, scenario.at("/parallel/pipeline", 1));
    if (of_stage > layers)
      scenario.set_from("num-layers-per-virtual-pipeline-stage", "/parallel/virtual_pipeline",
                        of_stage / layers);
  }
  if (scenario.is("/parallel/schedule", "dualpipe_v")) {  // two chunks per stage, in a V
    if (scenario.at("/parallel/pipeline", 1) > 1)
      scenario.set_from("schedules-method", "/parallel/virtual_pipeline", 2);
    else
      scenario.erase("/parallel/schedule");
  }
  set_window(scenario);
  set_fork_layers(scenario);
  set_widths(scenario, request.kind == "megatron");
  set_adapters(scenario);
  if (scenario.number("ds-sequence-parallel-size") > 1)  // Ulysses
    scenario.set("/parallel/context_method", "all_to_all");
  if (software == megatron_core) {
    set_stack(scenario);
    set_states(scenario);
    // Defaults of Megatron-LM's switches (megatron/training/arguments.py): a script says all that is on, and stays as it is
    // when the scenario is given another profile. Experts with a tensor degree have sequence parallelism on: no stack runs them otherwise.
    // Gradients are fp32 with bf16 weights (validate_args()), else as the weights.
    if (!scenario.has_experts() || scenario.at("/parallel/tensor", 1) == 1)
      scenario.set_default("/parallel/sequence_parallel", false);
    scenario.set_default("/parallel/overlap_gradient_reduce", false);
    scenario.set_default("/training/cross_entropy", "vocab_parallel");
    if (scenario.is_on("bf16") || scenario.is_on("fp16"))
      scenario.set_default("/training/gradient_dtype", scenario.is_on("bf16") ? "fp32" : "fp16");
    set_optimizer_offload(scenario);
  }
  set_exchanges(scenario);
  set_latent_attention(scenario);
  set_edge_stages(scenario);
  set_dense_layers(scenario, software == megatron_deepspeed);
  set_uneven_stages(scenario);
  set_activation_offload(scenario);
  set_expert_parallelism(scenario, software == megatron_deepspeed);
  if (!scenario.has("/training/micro_batch"))
    scenario.note("the file does not say the microbatch: 1 sample is assumed");
  scenario.set_default("/training/micro_batch", 1);
  scenario.set_default("/training/global_batch",
                       scenario.at("/training/micro_batch", 1) * replicas /
                           std::max(1, scenario.at("/parallel/context", 1)));
  // Megatron's own layers keep scores where no flash attention is asked for; what Transformer Engine's do, the profile says.
  if (!scenario.has("/training/attention") && scenario.text("transformer-impl") == "local")
    scenario.set("/training/attention", "standard");
  note_kernels(scenario, software != megatron_deepspeed);
  const int tasks = scenario.number("launcher-ntasks-per-node");  // 1: of a launcher of several
  const int of_node =
      first_number(scenario, {"nproc-per-node", "num-gpus", "devices", "launcher-gpus-per-node"});
  scenario.note_other_nodes(of_node == 0 && tasks > 1 ? tasks : of_node, gpus);
  return scenario.finish(software, gpus);
}

Importer megatron() {
  return {"megatron",
          "a launch script of Megatron-LM or Megatron-DeepSpeed, to a scenario",
          "the shell script that starts pretrain_gpt.py, or a YAML file of its arguments",
          {"--base", "--gpus", "--model", "--args"},
          import_megatron};
}

}  // namespace windtunnel::formats
