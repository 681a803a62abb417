#include "scenario/key_table.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/contracts.hpp"
#include "core/json_build.hpp"
#include "core/json_value.hpp"
#include "core/mapped.hpp"
#include "core/text_list.hpp"
#include "cost/collective_algorithm.hpp"
#include "plan/pipeline_layout.hpp"
#include "platform/platform_json.hpp"
#include "scenario/plan_json.hpp"

namespace windtunnel {
namespace {

/// The schema of a list of some of `all`, by name; `rule`: what else holds of it.
template <class All>
std::string names_schema(const All& all, const std::string& rule = {}) {
  const std::string names =
      listed(all, [](auto each) { return '"' + std::string(name_of(each)) + '"'; });
  return R"([{"type": "array", "minItems": 1, )" + rule + R"("items": {"enum": [)" + names +
         R"(]}}, {"type": "null"}])";
}

/// Reads a list of some of `all`, by name, and gives each to `add`. `noun` and `ability` name them in messages: "module", "can be recomputed".
template <class All, class Add>
void read_names(ObjectReader& reader, const std::string& name, const All& all,
                const std::string& noun, const std::string& ability, Add add) {
  const std::string known = listed(all, [](auto each) { return name_of(each); });
  const JsonValue* const list = reader.take(name);
  if (!list->is_array() || list->array().empty())
    return reader.problem(name, "expected a list of at least one " + noun, "some of " + known);
  for (const JsonValue& value : list->array()) {
    const auto found = std::ranges::find_if(
        all, [&value](auto each) { return value.is_string() && value.string() == name_of(each); });
    if (found == all.end())
      reader.problem(name, text_for_message(value) + " is no " + noun + " that " + ability,
                     "one of " + known);
    else
      add(*found, value);
  }
}

/// `training/recompute_modules`: a list of names, which only "recompute": "selective" asks for.
void read_recomputed_modules(ObjectReader& reader, const Key& key, PlanChoice& choice) {
  if (reader.take(key.name()) == nullptr) return;
  if (reader.are_sound({"recompute"}) && choice.training.recompute != Recompute::selective)
    return reader.problem(key.name(),
                          std::string("says what selective recomputation computes again, but "
                                      "recompute is \"") +
                              name_of(choice.training.recompute) + '"',
                          R"(write "recompute": "selective", or leave recompute_modules out)");
  RecomputedModules modules;
  read_names(reader, key.name(), RecomputedModules::all, "module", "can be recomputed",
             [&](RecomputedModule module, const JsonValue&) { modules.add(module); });
  choice.training.recompute_modules = modules;
}

/// `training/recompute_layers`: {"every": n} or {"first": n}.
void read_recomputed_layers(ObjectReader& reader, const Key& key, PlanChoice& choice) {
  if (const JsonValue* value = reader.take(key.name()); value && value->is_integer()) {
    const std::string layers = canonical_text(*value);
    return reader.problem(
        key.name(), "recompute_layers is " + layers + ", which does not say which layers",
        "write {\"first\": " + layers + "}: the first " + layers +
            " of each chunk; {\"every\": " + layers + "}: those whose number is a multiple");
  }
  std::optional<ObjectReader> layers = reader.optional_child(key.name());
  if (!layers) return;
  RecomputedLayers& read = choice.training.recompute_layers;
  for (const auto& [name, number] : {std::pair{"every", &read.every}, {"first", &read.first}})
    if (layers->take(name) != nullptr) *number = layers->required_int(name, 1, most_layers);
  layers->reject_unknown_keys();
  const bool is_sound = reader.are_sound({key.name()});
  if (is_sound && (read.every > 0) == (read.first > 0))
    reader.problem(
        key.name(), "expected one of \"every\" and \"first\"",
        R"(write {"first": 4}: the first 4 layers of each chunk; {"every": 2}: every second layer)");
  else if (is_sound && reader.are_sound({"recompute"}) &&
           choice.training.recompute == Recompute::none)
    reader.problem(key.name(), "says which layers are recomputed, but recompute is \"none\"",
                   R"(write "recompute": "full", or leave recompute_layers out)");
}

/// `training/fp8_recipe`; with "mx" fp8 is the precision mxfp8.
void read_fp8_recipe(ObjectReader& reader, const Key& key, PlanChoice& choice) {
  read_value(reader, key, choice);
  Training& training = choice.training;
  if (training.fp8_recipe == Fp8Recipe::mx && training.precision == Precision::fp8)
    training.precision = Precision::mxfp8;
}

/// A share of something, from 0 to 1.
template <class Block>
decltype(Key::read) read_share(double Block::*member) {
  return [=](ObjectReader& reader, const Key& key, PlanChoice& choice) {
    double& share = detail::block_of<Block>(choice).*member;
    if (reader.has(key.name())) share = reader.optional_number(key.name(), share, 0, 1);
  };
}
const char* const share_schema =
    R"([{"type": "number", "minimum": 0, "maximum": 1}, {"type": "null"}])";

/// `training/lora_target_modules`: a list of names.
void read_lora_targets(ObjectReader& reader, const Key& key, PlanChoice& choice) {
  const std::string name = key.name();
  if (reader.take(name) == nullptr) return;
  if (reader.are_sound({"lora_rank"}) && !choice.training.lora.is_used())
    return reader.problem(name, "says which matrices have adapters, but lora_rank is 0",
                          "write \"lora_rank\": 16, or leave lora_target_modules out");
  std::vector<LoraTarget> targets;
  read_names(reader, name, Lora::all_targets, "matrix", "can have an adapter",
             [&](LoraTarget target, const JsonValue& value) {
               if (std::ranges::find(targets, target) != targets.end())
                 reader.problem(name, text_for_message(value) + " is listed twice",
                                "leave one out");
               else
                 targets.push_back(target);
             });
  choice.training.lora.targets = targets;
}

using Launch = decltype(Key::launch);

// Launch arguments that take more than the value; Megatron-LM's are of megatron/training/arguments.py, core 0.13.

bool is_uneven(const Plan& plan) {
  if (!plan.position_layers.empty()) return true;
  const std::vector<int>& layers = plan.stage_layers;
  return std::ranges::adjacent_find(layers, std::not_equal_to<>()) != layers.end();
}

/// "--tensor-model-parallel-size 8"
Launch option(const std::string& name) {
  return [=](const Plan&, int value, LaunchArguments& launch) {
    launch.arguments.push_back(name + " " + std::to_string(value));
  };
}

/// The same, where the value is more than one.
Launch option_above_one(const std::string& name) {
  return [=](const Plan&, int value, LaunchArguments& launch) {
    if (value > 1) launch.arguments.push_back(name + " " + std::to_string(value));
  };
}

/// The arguments of each value; none beyond the list.
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
  if (precision == Precision::fp8 && plan.training.fp8_recipe == Fp8Recipe::block)
    launch.arguments.emplace_back("--fp8-recipe blockwise");
  if (precision == Precision::fp8 && plan.training.fp8_recipe == Fp8Recipe::row)
    launch.notes.emplace_back("Megatron-LM has no fp8 recipe with a scale for each row");
  if (precision == Precision::mxfp8)
    for (const char* argument : {"--fp8-format e4m3", "--fp8-recipe mxfp8"})
      launch.arguments.emplace_back(argument);
  if (precision == Precision::nvfp4)
    for (const char* argument : {"--fp4-format e2m1", "--fp4-recipe nvfp4"})
      launch.arguments.emplace_back(argument);
  if (precision == Precision::tf32)
    launch.notes.emplace_back("tf32 is a setting of PyTorch, not an argument");
}

/// Megatron-LM keeps fp32 gradients with --bf16 and fp16 ones with --fp16, unless it is told otherwise.
void launch_gradient_type(const Plan& plan, int, LaunchArguments& launch) {
  const GradientType type = plan.training.gradient_type;
  const Precision base = base_precision(plan.training.precision);
  if (base == Precision::bf16 && type == GradientType::bf16)
    launch.arguments.emplace_back("--grad-reduce-in-bf16");
  if (base == Precision::fp16 && type == GradientType::fp32)
    launch.arguments.emplace_back("--accumulate-allreduce-grads-in-fp32");
  if ((base == Precision::bf16 && type == GradientType::fp16) ||
      (base == Precision::fp16 && type == GradientType::bf16))
    launch.notes.push_back(std::string("Megatron-LM has no gradients in ") + name_of(type) +
                           " with weights in " + name_of(base));
}

/// Megatron-LM's own cross entropy needs no argument; of the others it has two.
void launch_cross_entropy(const Plan& plan, int, LaunchArguments& launch) {
  const CrossEntropy kind = plan.training.cross_entropy;
  if (kind == CrossEntropy::vocab_parallel) return;
  const bool is_compiled = kind == CrossEntropy::vocab_parallel_compiled;
  if (kind != CrossEntropy::in_place && !is_compiled) {
    launch.notes.push_back(std::string("Megatron-LM has no cross entropy ") + name_of(kind) +
                           ", and runs its own");
    return;
  }
  launch.arguments.emplace_back("--cross-entropy-loss-fusion");
  if (!is_compiled) launch.arguments.emplace_back("--cross-entropy-fusion-impl te");
}

/// Types of states, which Transformer Engine's Adam has, and offloading, for which its code is used too.
void launch_states(const Plan& plan, int, LaunchArguments& launch) {
  const Training& training = plan.training;
  const MainParameters main = training.main_parameters;
  const auto name = [](MomentType type) {
    return type == MomentType::bf16 ? "bf16" : type == MomentType::fp16 ? "fp16" : "fp8";
  };
  if (main == MainParameters::none)
    launch.notes.emplace_back("Megatron-LM always keeps main parameters");
  for (const MomentType type : {training.first_moment, training.second_moment})
    if (type == MomentType::int8)
      launch.notes.emplace_back("Megatron-LM has no moments with a scale for each block");
  std::vector<std::string> arguments;
  if (main == MainParameters::fp16) arguments.emplace_back("--main-params-dtype fp16");
  const auto add_moment = [&](const char* option, MomentType type) {
    if (type != MomentType::fp32 && type != MomentType::int8)
      arguments.push_back(option + std::string(" ") + name(type));
  };
  add_moment("--exp-avg-dtype", training.first_moment);
  add_moment("--exp-avg-sq-dtype", training.second_moment);
  if (training.optimizer_offload > 0) {
    arguments.emplace_back("--optimizer-cpu-offload");
    arguments.push_back("--optimizer-offload-fraction " + exact_number(training.optimizer_offload));
    if (training.overlap_optimizer_offload)
      arguments.emplace_back("--overlap-cpu-optimizer-d2h-h2d");
  }
  if (!arguments.empty() || main == MainParameters::fp32_remainder)
    arguments.insert(arguments.begin(), "--use-precision-aware-optimizer");
  launch.arguments.insert(launch.arguments.end(), arguments.begin(), arguments.end());
}

void launch_activation_offload(const Plan& plan, int, LaunchArguments& launch) {
  if (plan.training.activation_offload == 0) return;
  launch.arguments.emplace_back("--fine-grained-activation-offloading");
  launch.notes.emplace_back(
      "Megatron-LM offloads the inputs of modules (--offload-modules), not a share of all bytes");
}

void note_adapters(const Plan& plan, int rank, LaunchArguments& launch) {
  if (rank > 0)
    launch.notes.push_back("Megatron-LM has no adapters of rank " +
                           std::to_string(plan.training.lora.rank) +
                           "; Megatron-Bridge's recipes have (LoRA in megatron/bridge/peft)");
}

void note_data(const Plan& plan, int data, LaunchArguments& launch) {
  launch.notes.push_back("the data-parallel degree follows from the number of processes: " +
                         std::to_string(plan.num_ranks()) + " make " + std::to_string(data));
}

void launch_schedule(const Plan& plan, int, LaunchArguments& launch) {
  const Schedule& schedule = *plan.parallel.schedule;
  if (const auto& own = schedule.megatron_arguments)
    launch.arguments.insert(launch.arguments.end(), own->begin(), own->end());
  else
    launch.notes.push_back("Megatron-LM has no argument for the schedule " + schedule.name);
}

/// Virtual stages, where no layout says them.
void launch_chunks(const Plan& plan, int chunks, LaunchArguments& launch) {
  if (chunks > 1 && !is_uneven(plan))
    launch.arguments.push_back("--num-virtual-stages-per-pipeline-rank " + std::to_string(chunks));
}

/// Uneven stages as --pipeline-model-parallel-layout.
void launch_layout(const Plan& plan, int, LaunchArguments& launch) {
  if (is_uneven(plan))
    launch.arguments.push_back("--pipeline-model-parallel-layout '" + pipeline_layout(plan) + "'");
}

void launch_context_method(const Plan& plan, int, LaunchArguments& launch) {
  if (plan.parallel.context == 1) return;
  const bool ring = plan.parallel.context_method == ContextMethod::ring;
  launch.arguments.emplace_back(ring ? "--cp-comm-type p2p" : "--cp-comm-type a2a");
}

void launch_recompute(const Plan& plan, int, LaunchArguments& launch) {
  const RecomputedLayers& layers = plan.training.recompute_layers;
  if (plan.training.recompute == Recompute::none) return;
  if (plan.training.recompute == Recompute::selective)
    launch.arguments.emplace_back("--recompute-granularity selective");
  else
    launch.arguments.insert(
        launch.arguments.end(),
        {"--recompute-granularity full",
         layers.first > 0 ? "--recompute-method block" : "--recompute-method uniform",
         "--recompute-num-layers " + std::to_string(std::max(layers.first, 1))});
  if (layers.every > 1 || (layers.first > 0 && plan.training.recompute == Recompute::selective))
    launch.notes.emplace_back(
        "Megatron-LM recomputes the first layers of each chunk, whole, or all layers: "
        "recompute_layers is left out");
}

/// Modules that selective recomputation has in addition to or in place of attention's core.
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

/// Megatron-LM cuts experts as all else where it is not told.
void launch_expert_tensor(const Plan& plan, int degree, LaunchArguments& launch) {
  if (degree > 1 || (plan.parallel.expert > 1 && plan.parallel.tensor > 1))
    launch.arguments.push_back("--expert-tensor-parallel-size " + std::to_string(degree));
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

constexpr int most_samples = 1'000'000'000;
constexpr int most_model_chunks = 1'000;

Names<RankOrder> rank_order_names() {
  Names<RankOrder> names;
  for (const RankOrder& order : rank_orders()) names.emplace_back(text_of(order), order);
  return names;
}

Names<std::string> collective_names() {
  Names<std::string> names;
  for (const CollectiveAlgorithm& each : collective_algorithms())
    names.emplace_back(each.name, each.name);
  return names;
}

/// A word, or a list of "node:gpu", neither of which is kept here (place_ranks).
KeyValue placement_words() {
  return {.kind = KeyValue::Kind::word,
          .words = {"megatron", "search"},
          .get = [](const PlanChoice&) { return 0; },
          .set = [](PlanChoice&, int) {}};
}

/// Default type of the moments. If the weights themselves are stepped, moments are as wide as they are.
MomentType usual_moment(const Training& training) {
  if (training.main_parameters != MainParameters::none) return MomentType::fp32;
  return training.precision == Precision::fp16 ? MomentType::fp16 : MomentType::bf16;
}

/// Only flash attention is computed by one kernel.
void read_attention_kernel(ObjectReader& reader, const Key& key, PlanChoice& choice) {
  const Training& training = choice.training;
  const FlashKernel usual = training.attention_kernel;
  read_value(reader, key, choice);
  const Problems& problems = reader.problems();
  const bool knows_usual = problems.is_sound("/software/attention_kernel") &&
                           problems.is_sound("/platform/node_types/0/device/attention");
  if (!knows_usual || !reader.are_sound({"attention_kernel", "attention", "precision"})) return;
  if (training.attention == Attention::standard && training.attention_kernel != usual)
    reader.problem("attention_kernel",
                   "attention_kernel is for attention flash, but attention is standard",
                   "leave it out");
  else if (training.attention_kernel == FlashKernel::fp8 && !is_quantized(training.precision))
    reader.problem("attention_kernel",
                   std::string("attention in fp8 takes the scales of linear layers in fp8, mxfp8 "
                               "or nvfp4, but precision is ") +
                       name_of(training.precision),
                   "write \"cudnn\", or another precision");
}

bool always(const Parallel&) { return true; }
bool has_stages(const Parallel& parallel) { return parallel.pipeline > 1; }
/// 0 is no plan, but one that is counted.
bool has_replicas(const Parallel& parallel) { return parallel.replicas() != 1; }
bool splits_tensors(const Parallel& parallel) { return parallel.tensor > 1; }
bool shares_experts(const Parallel& parallel) { return expert_group_size(parallel) > 1; }
bool cuts_sequences(const Parallel& parallel) { return parallel.context > 1; }
bool shards_weights(const Parallel& parallel) { return parallel.zero_stage == 3; }
bool shards_states(const Parallel& parallel) { return parallel.zero_stage > 0; }

JsonValue json(const std::string& text) {
  Problems problems;
  JsonValue value =
      parse_json(std::make_shared<const SourceText>(SourceText{"table of keys", text}), problems);
  WT_ENSURE(problems.empty());
  return value;
}

JsonValue type(const char* name, bool or_null) {
  return or_null ? JsonValue(JsonValue::Array{JsonValue(std::string(name)),
                                              JsonValue(std::string("null"))})
                 : JsonValue(std::string(name));
}

/// The schema of one value. Words that are listed elsewhere stand next to the reference, and null does not.
JsonValue allowed(const Key& key, bool or_null) {
  const KeyValue& value = key.value;
  JsonValue schema = empty_object();
  if (value.kind == KeyValue::Kind::flag) schema.set("type", type("boolean", or_null));
  if (value.kind == KeyValue::Kind::whole_number) {
    schema.set("type", type("integer", or_null));
    schema.set("minimum", JsonValue(std::int64_t{value.least}));
    schema.set("maximum", JsonValue(std::int64_t{value.most}));
  }
  if (value.kind != KeyValue::Kind::word) return schema;
  auto words = mapped<JsonValue>(value.words, std::identity{});
  if (!key.words_at.empty())
    schema.set("$ref", JsonValue("#/definitions/" + key.words_at));
  else if (or_null)
    words.emplace_back();
  schema.set("enum", JsonValue(std::move(words)));
  return schema;
}

/// The schema of one value, null and all other forms.
JsonValue allowed_in_all(const Key& key) {
  if (key.words_at.empty() && key.also.empty()) return allowed(key, true);
  JsonValue::Array choices;
  if (key.value.kind != KeyValue::Kind::other) choices.push_back(allowed(key, true));
  if (!key.words_at.empty()) choices.push_back(json(R"({"type": "null"})"));
  JsonValue others = json(key.also.empty() ? "[]" : key.also);
  for (JsonValue& other : others.array()) choices.push_back(std::move(other));
  JsonValue schema = empty_object();
  schema.set("anyOf", JsonValue(std::move(choices)));
  return schema;
}

JsonValue described(const std::string& meaning, const Key& key) {
  JsonValue schema = empty_object();
  schema.set("description", JsonValue(meaning));
  if (!key.unit.empty()) schema.set("x-unit", JsonValue(key.unit));
  return schema;
}

void set_example(JsonValue& schema, const std::string& example) {
  schema.set("examples", JsonValue(JsonValue::Array{json(example)}));
}

}  // namespace

KeyValue setting(const std::string& name, int least, int most) {
  return {.kind = KeyValue::Kind::whole_number,
          .least = least,
          .most = most,
          .get = [=](const PlanChoice& choice) { return choice.parallel.setting(name); },
          .set = [=](PlanChoice& choice, int value) { choice.parallel.settings[name] = value; }};
}

const std::vector<Key>& key_table() {
  static const std::vector<Key> table{
      {.pointer = "/training/global_batch",
       .meaning = "samples per iteration; a multiple of data · micro_batch",
       .unit = "samples",
       .own_label = "global batch",
       .value = whole(&Training::global_batch, 1, most_samples),
       .absent = Absent::required,
       .example = "1536",
       .launch = option("--global-batch-size")},
      {.pointer = "/training/micro_batch",
       .meaning = "samples per pass of a stage",
       .unit = "samples",
       .own_label = "microbatch",
       .value = whole(&Training::micro_batch, 1, most_samples),
       .absent = Absent::required,
       .example = "4",
       .launch = option("--micro-batch-size")},
      {.pointer = "/training/precision",
       .meaning = "number format of weights and activations; `fp8`, `mxfp8` and `nvfp4` apply to "
                  "the linear layers' products, all else is bf16",
       .value = word(&Training::precision),
       .example = R"("bf16")",
       .launch = launch_precision,
       .is_choice = always},
      {.pointer = "/training/fp8_recipe",
       .meaning = "scales with precision `fp8`: per `tensor`; per `block` of 128 values (128 x 128 "
                  "of a weight), as fast as `tensor` with delayed scaling; per `row` (torchao's "
                  "rowwise recipe); `mx`: as precision `mxfp8`",
       .value = word(&Training::fp8_recipe),
       .example = R"("row")",
       .read = read_fp8_recipe,
       .is_choice = always},
      {.pointer = "/training/gradient_dtype",
       .meaning = "format in which gradients are reduced",
       .value = word(&Training::gradient_type, {{"fp32", GradientType::fp32},
                                                {"fp16", GradientType::fp16},
                                                {"bf16", GradientType::bf16}}),
       .fallback =
           [](PlanChoice& choice, const SoftwareProfile& software) {
             choice.training.gradient_type = software.gradients_of(choice.training.precision);
           },
       .fallback_words = "the software profile's; fp32 with fp32 and tf32",
       .example = R"("fp32")",
       .launch = launch_gradient_type,
       .is_choice = has_replicas},
      {.pointer = "/training/optimizer",
       .meaning = "states and step of it",
       .value = word(&Training::optimizer),
       .example = R"("adam")",
       .launch = options({{}, {"--optimizer sgd"}, {"--optimizer muon"}}),
       .is_choice = always},
      {.pointer = "/training/recompute",
       .meaning = "activations recomputed in the backward pass: none, those of "
                  "`recompute_modules`, or all but each layer's input",
       .value = word(&Training::recompute),
       .example = R"("selective")",
       .launch = launch_recompute,
       .is_choice = always},
      {.pointer = "/training/recompute_layers",
       .meaning =
           "layers to recompute: `every` n-th of a rank (torchtitan's `selective_ac_option`), or "
           "the `first` n of each model chunk (Megatron-LM's `--recompute-method block`)",
       .unit = "layers",
       .fallback_words = "all",
       .example = R"({"first": 4})",
       .also =
           R"([{"type": "object", "additionalProperties": false, "minProperties": 1, "maxProperties": 1,
                    "properties": {"every": {"description": "each layer whose number on its rank is a multiple of it", "type": "integer", "minimum": 1, "maximum": 100000, "x-default": "none; one of `every` and `first`", "examples": [2]},
                                   "first": {"description": "number of the first layers of each model chunk", "type": "integer", "minimum": 1, "maximum": 100000, "x-default": "none; one of `every` and `first`", "examples": [4]}}}, {"type": "null"}])",
       .read = read_recomputed_layers},
      {.pointer = "/training/recompute_modules",
       .meaning = "with recompute `selective`: parts of a layer to recompute",
       .fallback_words = R"(`["attention_core"]`)",
       .example = R"(["up_projection", "expert_activation"])",
       .also = names_schema(RecomputedModules::all),
       .read = read_recomputed_modules,
       .launch = launch_recomputed_modules},
      {.pointer = "/training/attention",
       .meaning = "`flash`: scores never reach memory, and only the causal half is computed; needs "
                  "the device's `attention` or the profile's two flash efficiencies",
       .value = word(&Training::attention),
       .fallback =
           [](PlanChoice& choice, const SoftwareProfile& software) {
             const bool in_32_bits = choice.training.precision == Precision::fp32 ||
                                     choice.training.precision == Precision::tf32;
             choice.training.attention =
                 software.flash_attention && !in_32_bits ? Attention::flash : Attention::standard;
           },
       .fallback_words = "`standard`, or `flash` where the software profile and the GPU have it",
       .example = R"("flash")",
       .launch = options({{}, {"--use-flash-attn"}}),
       .is_choice = always},
      {.pointer = "/training/compile",
       .meaning = "PyTorch stacks: torch.compile fuses the operations around products; else each "
                  "is a kernel (`eager_layer_traffic`)",
       .value = flag(&Training::compile),
       .example = "false",
       .is_choice = always},
      {.pointer = "/training/cross_entropy",
       .meaning = "how the loss is computed, and how many copies of the logits it holds "
                  "(docs/memory.md, section 3)",
       .value = word(&Training::cross_entropy),
       .fallback =
           [](PlanChoice& choice, const SoftwareProfile& software) {
             const bool is_eager =
                 software.cross_entropy == CrossEntropy::fused && !choice.training.compile;
             choice.training.cross_entropy =
                 is_eager ? CrossEntropy::plain : software.cross_entropy;
           },
       .fallback_words =
           "the software profile's; `plain` where that is `fused` and `compile` is false",
       .example = R"("plain")",
       .launch = launch_cross_entropy},
      {.pointer = "/training/loss_parallel",
       .meaning = "a tensor group computes the loss on shares of the vocabulary; else each rank "
                  "gathers all logits (torchtitan's `disable_loss_parallel`)",
       .value = flag(&Training::loss_parallel),
       .example = "false",
       .idle_by_default = true},
      {.pointer = "/training/attention_kernel",
       .meaning = "with attention `flash`: FlashAttention 2 or 3, cuDNN's kernel, or cuDNN's in "
                  "fp8 (if the linear layers are quantised)",
       .value = word(&Training::attention_kernel),
       .fallback =
           [](PlanChoice& choice, const SoftwareProfile& software) {
             const bool quantized = is_quantized(choice.training.precision);
             const FlashKernel usual = software.attention_kernel;
             choice.training.attention_kernel =
                 usual == FlashKernel::fp8 && !quantized ? FlashKernel::cudnn : usual;
           },
       .fallback_words = "the software profile's, on GPUs that have it; else `cudnn`",
       .example = R"("fp8")",
       .read = read_attention_kernel},
      // Tensors kept narrower, elsewhere, or not at all, so that a run fits.
      {.pointer = "/training/main_params_dtype",
       .meaning = "copy of the weights that the optimizer steps: as in the software `profile`; "
                  "`fp32_remainder`: the 16 bits that bf16 weights lack (Megatron-Core's "
                  "precision-aware optimizer); `none`: the weights themselves",
       .value = word(&Training::main_parameters),
       .example = R"("fp32_remainder")",
       .idle_by_default = true,
       .launch = launch_states,
       .is_choice = always},
      {.pointer = "/training/exp_avg_dtype",
       .meaning = "Adam's first moment, or SGD's momentum; `int8` has an fp32 scale per 256 values",
       .value = word(&Training::first_moment),
       .fallback =
           [](PlanChoice& choice, const SoftwareProfile&) {
             choice.training.first_moment = usual_moment(choice.training);
           },
       .fallback_words = "`fp32`; the weights' format with main_params_dtype `none`",
       .example = R"("bf16")",
       .idle_by_default = true,
       .is_choice = always},
      {.pointer = "/training/exp_avg_sq_dtype",
       .meaning = "Adam's second moment",
       .value = word(&Training::second_moment),
       .fallback =
           [](PlanChoice& choice, const SoftwareProfile&) {
             choice.training.second_moment = usual_moment(choice.training);
           },
       .fallback_words = "`fp32`; the weights' format with main_params_dtype `none`",
       .example = R"("bf16")",
       .idle_by_default = true,
       .is_choice = always},
      {.pointer = "/training/optimizer_offload_fraction",
       .meaning = "share of the parameters whose states the host keeps and steps; needs `host` of "
                  "the nodes",
       .fallback_words = "0",
       .example = "0.5",
       .also = share_schema,
       .read = read_share(&Training::optimizer_offload)},
      {.pointer = "/training/overlap_optimizer_offload",
       .meaning = "gradients and weights are copied during the host's step",
       .value = flag(&Training::overlap_optimizer_offload),
       .example = "true",
       .idle_by_default = true},
      {.pointer = "/training/activation_offload_fraction",
       .meaning = "share of kept activations that is copied to the host, overlapped with kernels; "
                  "needs `host` of the nodes",
       .fallback_words = "0",
       .example = "1",
       .also = share_schema,
       .read = read_share(&Training::activation_offload),
       .launch = launch_activation_offload},
      {.pointer = "/training/lora_rank",
       .meaning = "rank of low-rank adapters, which alone are trained; 0: no adapters",
       .value = whole(&Lora::rank, 0, most_adapter_rank),
       .example = "16",
       .idle_by_default = true,
       .launch = note_adapters,
       .is_choice = always},
      {.pointer = "/training/lora_target_modules",
       .meaning = "with lora_rank: matrices that have adapters",
       .fallback_words = R"(`["q_proj", "v_proj"]`)",
       .example = R"(["q_proj", "k_proj", "v_proj", "o_proj"])",
       .also = names_schema(Lora::all_targets, R"("uniqueItems": true, )"),
       .read = read_lora_targets},
      {.pointer = "/training/lora_dropout",
       .meaning = "with lora_rank: share of the values before an adapter that is set to zero; any "
                  "but 0 runs dropout's kernels",
       .fallback_words = "0",
       .example = "0.05",
       .also = share_schema,
       .read = read_share(&Lora::dropout)},
      {.pointer = "/training/frozen_dtype",
       .meaning = "with lora_rank: format of frozen weights: as in the passes, or the layers' "
                  "matrices in four bits (QLoRA)",
       .value = word<Lora, FrozenType>(
           &Lora::frozen_type, {{"precision", FrozenType::as_passes}, {"nf4", FrozenType::nf4}}),
       .example = R"("nf4")",
       .idle_by_default = true,
       .is_choice = always},
      {.pointer = "/parallel/tensor",
       .meaning = "tensor-parallel degree",
       .value = whole(&Parallel::tensor, 1, most_ranks),
       .example = "8",
       .launch = option("--tensor-model-parallel-size")},
      {.pointer = "/parallel/pipeline",
       .meaning = "pipeline stages",
       .value = whole(&Parallel::pipeline, 1, most_ranks),
       .example = "8",
       .launch = option("--pipeline-model-parallel-size")},
      {.pointer = "/parallel/data",
       .meaning = "data-parallel replicas",
       .value = whole(&Parallel::data, 1, most_ranks),
       .absent = Absent::derived,
       .fallback_words = "GPUs of `nodes` / (tensor · pipeline); 1 without `nodes`",
       .example = "8",
       .launch = note_data},
      {.pointer = "/parallel/schedule",
       .meaning =
           "order of passes in a pipeline: a name, the path of a schedule file, or its content",
       .value = word(&Parallel::schedule, schedules_by_name()),
       .example = R"("interleaved_1f1b")",
       .words_at = "schedule_name",
       .also =
           R"([{"type": "string", "pattern": "/|\\.json$"}, {"$ref": "#/definitions/schedule"}])",
       .read = read_schedule,
       .launch = launch_schedule,
       .is_choice = always},
      {.pointer = "/parallel/virtual_pipeline",
       .meaning = "model chunks per device (interleaved)",
       .own_label = "chunks",
       .value = whole(&Parallel::virtual_pipeline, 1, most_model_chunks),
       .example = "2",
       .launch = launch_chunks},
      {.pointer = "/parallel/pipeline_send",
       .meaning = "`eager`: a message leaves when it is ready; `blocking_pairs`: Megatron-LM's "
                  "batched exchange, in which both ends wait",
       .value = word(&Parallel::pipeline_send),
       .fallback =
           [](PlanChoice& choice, const SoftwareProfile& software) {
             choice.parallel.pipeline_send = usual_send(*choice.parallel.schedule, software);
           },
       .fallback_words =
           "`eager` for schedules that split backward passes, else the software profile's",
       .example = R"("blocking_pairs")",
       .is_choice = has_stages},
      {.pointer = "/parallel/sequence_parallel",
       .meaning = "norms, dropout split over tensor ranks; each all-reduce becomes a "
                  "reduce-scatter and an all-gather",
       .own_label = "sequence",
       .value = flag(&Parallel::sequence_parallel, {"whole", "split"}),
       .fallback =
           [](PlanChoice& choice, const SoftwareProfile& software) {
             choice.parallel.sequence_parallel =
                 software.sequence_parallel && choice.parallel.tensor > 1;
           },
       .fallback_words = "`false`, or what the release of the software says; with experts and "
                         "tensor parallelism `true`",
       .example = "true",
       .launch = options({{}, {"--sequence-parallel"}}),
       .is_choice = always},
      {.pointer = "/parallel/async_tensor_parallel",
       .meaning = "with sequence_parallel: gathers and scatters of a tensor group run in pieces, "
                  "each overlapped with another piece's product (PyTorch)",
       .own_label = "asynchronous tensor parallel",
       .value = flag(&Parallel::async_tensor_parallel),
       .example = "true",
       .is_choice = splits_tensors},
      {.pointer = "/parallel/zero_stage",
       .meaning = "what replicas share: 1 optimizer states; 2 gradients too, which are then "
                  "reduced on every microbatch; 3 weights too (FSDP)",
       .own_label = "ZeRO",
       .value = whole(&Parallel::zero_stage, 0, 3),
       .example = "1",
       .launch = options({{},
                          {"--use-distributed-optimizer"},
                          {"--use-distributed-optimizer", "--use-megatron-fsdp",
                           "--data-parallel-sharding-strategy optim_grads",
                           "--no-gradient-accumulation-fusion", "--ckpt-format fsdp_dtensor"},
                          {"--use-distributed-optimizer", "--use-megatron-fsdp",
                           "--data-parallel-sharding-strategy optim_grads_params",
                           "--no-gradient-accumulation-fusion", "--ckpt-format fsdp_dtensor"}}),
       .is_choice = always},
      {.pointer = "/parallel/no_sync",
       .meaning = "gradients stay whole until the last microbatch; with zero_stage 3: no_sync() of "
                  "FSDP; `false` scatters every one's (accelerate's sync_each_batch)",
       .value = flag(&Parallel::no_sync),
       .fallback =
           [](PlanChoice& choice, const SoftwareProfile& software) {
             choice.parallel.no_sync = software.no_sync &&
                                       choice.parallel.can_scatter_in_passes() &&
                                       software.sharded_parameters != ShardedParameters::uncounted;
           },
       .fallback_words = "`false`, or with zero_stage 3 the software profile's",
       .example = "true",
       .is_choice = shards_weights},
      {.pointer = "/parallel/overlap_gradient_reduce",
       .meaning = "gradients are reduced during and after a chunk's last backward pass; with "
                  "zero_stage 2 during every one; zero_stage 3 does so anyway",
       .value = flag(&Parallel::overlap_gradient_reduce),
       .fallback =
           [](PlanChoice& choice, const SoftwareProfile& software) {
             choice.parallel.overlap_gradient_reduce =
                 choice.parallel.no_sync ||
                 (software.overlap_gradient_reduce && choice.parallel.zero_stage < 2 &&
                  !choice.parallel.schedule->is_bidirectional());
           },
       .fallback_words = "`false`, or what the release of the software says; with no_sync `true`",
       .example = "true",
       .launch = options({{}, {"--overlap-grad-reduce"}}),
       .is_choice = always},
      {.pointer = "/parallel/gradient_ring",
       .meaning = "how replicas reduce gradients",
       .value = word(&Parallel::gradient_ring, collective_names()),
       .example = R"("hierarchical")",
       .words_at = "collective_name",
       .is_choice = has_replicas},
      {.pointer = "/parallel/context",
       .meaning =
           "GPUs among which each sequence is cut; they count as replicas for gradients and states",
       .unit = "GPUs",
       .value = whole(&Parallel::context, 1, most_ranks),
       .example = "2",
       .launch = option_above_one("--context-parallel-size"),
       .is_choice = always},
      {.pointer = "/parallel/context_method",
       .meaning = "keys and values of other parts circulate in a `ring`, or an `all_to_all` trades "
                  "tokens for heads",
       .value = word(&Parallel::context_method),
       .example = R"("all_to_all")",
       .launch = launch_context_method,
       .is_choice = cuts_sequences},
      {.pointer = "/parallel/expert",
       .meaning = "ranks that share the experts of a layer; expert · expert_tensor must divide "
                  "data · context · tensor",
       .unit = "GPUs",
       .value = whole(&Parallel::expert, 1, most_ranks),
       .example = "8",
       .launch = option_above_one("--expert-model-parallel-size"),
       .is_choice = shares_experts},
      {.pointer = "/parallel/expert_tensor",
       .meaning = "ranks that divide each expert",
       .unit = "GPUs",
       .own_label = "expert tensor",
       .value = whole(&Parallel::expert_tensor, 1, most_ranks),
       .example = "1",
       .launch = launch_expert_tensor,
       .is_choice = shares_experts},
      {.pointer = "/parallel/zero_prefetch",
       .meaning = "with zero_stage 3: layers gathered ahead; 0 hides nothing",
       .unit = "layers",
       .value = whole(&Parallel::zero_prefetch, 0, most_layers),
       .fallback =
           [](PlanChoice& choice, const SoftwareProfile& software) {
             choice.parallel.zero_prefetch = software.waits_for_gathers() ? 0 : 1;
           },
       .fallback_words =
           "1; 0 where the device waits for the host (`host_gathers` of the software profile)",
       .example = "1",
       .is_choice = shards_weights},
      {.pointer = "/parallel/reshard_after_forward",
       .meaning = "with zero_stage 3: gathered parameters are dropped after the forward pass and "
                  "gathered again backward; else gathered and reduced once per iteration",
       .value = flag(&Parallel::reshard_after_forward),
       .fallback =
           [](PlanChoice& choice, const SoftwareProfile&) {
             choice.parallel.reshard_after_forward =
                 choice.parallel.zero_stage < 3 || choice.parallel.pipeline == 1;
           },
       .fallback_words = "`true`; `false` with zero_stage 3 and several stages",
       .example = "false",
       .is_choice = shards_weights},
      {.pointer = "/parallel/zero_group",
       .meaning = "with zero_stage 1 to 3: replicas that share one copy of the states (hybrid "
                  "sharding); a divisor of data · context; 0: all",
       .unit = "replicas",
       .value = whole(&Parallel::zero_group, 0, most_ranks),
       .example = "8",
       .launch = launch_zero_group,
       .is_choice = shards_states},
      {.pointer = "/parallel/rank_order",
       .meaning = "index that varies fastest, second, slowest over the nodes' GPUs",
       .value = word(&Parallel::rank_order, rank_order_names()),
       .example = R"("tensor-pipeline-data")",
       .launch = launch_rank_order,
       .is_choice = always},
      {.pointer = "/parallel/edge_layers",
       .meaning = "layers that embedding and loss count for when layers are divided",
       .unit = "layers",
       .fallback_words = "0 and 0",
       .example = R"({"embedding": 1, "loss": 1})",
       .also = R"([{"type": "object", "additionalProperties": false,
                    "properties": {"embedding": {"description": "what the embedding counts for", "type": "integer", "minimum": 0, "maximum": 100000, "default": 0, "examples": [1]},
                                   "loss": {"description": "what head and loss count for", "type": "integer", "minimum": 0, "maximum": 100000, "default": 0, "examples": [1]}}}])"},
      {.pointer = "/parallel/stage_layers",
       .meaning = "layers of each stage, or of each stage's chunks; Megatron-LM's pipeline layout; "
                  "or `balanced`: the slowest stage as fast as possible",
       .fallback_words = "evenly",
       .example = R"("Et*3|(tt|)*29,L")",
       .also = R"([{"type": "array", "minItems": 1, "maxItems": 100000,
                    "items": {"type": "integer", "minimum": 0, "maximum": 100000}},
                   {"type": "array", "minItems": 1, "maxItems": 100000,
                    "items": {"type": "array", "minItems": 1, "maxItems": 1000,
                              "items": {"type": "integer", "minimum": 0, "maximum": 100000}}},
                   {"const": "balanced"}, {"type": "string", "pattern": "^[ ,(]*E[EtL0-9*|(), ]*$"}, {"type": "null"}])",
       .launch = launch_layout},
      {.pointer = "/parallel/placement",
       .meaning = "which GPU runs which rank: in order, `\"node:gpu\"` by rank, or searched",
       .value = placement_words(),
       .example = R"("search")",
       .also = R"([{"type": "array", "items": {"type": "string", "pattern": "^[0-9]+:[0-9]+$"}}])",
       .read = read_placement,
       .is_choice = always},
  };
  return table;
}

const std::vector<SearchKey>& search_keys() {
  const auto key_named = [](std::string_view name) -> const Key& {
    const auto found = std::ranges::find(key_table(), name, &Key::name);
    WT_ENSURE(found != key_table().end());
    return *found;
  };
  static const std::vector<SearchKey> table{
      {&key_named("tensor"), "degrees to try", "divisors of a node's GPUs", "[1, 2, 4, 8]", true},
      {&key_named("pipeline"), "stages to try", "divisors of all GPUs, up to the layers",
       "[4, 8, 16]", true},
      {&key_named("context"), "parts of a sequence to try", "powers of two that leave 2,048 tokens",
       "[1, 2]"},
      {&key_named("data"), "replicas to try", "what the others leave", "[8, 16]", true},
      {&key_named("micro_batch"), "sizes to try", "powers of two up to 32", "[1, 2, 4]", true},
      {&key_named("virtual_pipeline"),
       "chunks to try; more than 1 means interleaved_1f1b unless `schedule` is listed",
       "numbers that divide the layers of a stage", "[1, 2]"},
      {&key_named("schedule"), "schedules to try", "what the software supports",
       R"(["1f1b", "zero_bubble_h1"])"},
      {&key_named("precision"), "precisions to try", "the file's", R"(["bf16", "fp8"])"},
      {&key_named("recompute"), "recomputation to try", "what the software supports",
       R"(["selective", "full"])"},
      {&key_named("sequence_parallel"), "with it, without it, or both",
       "what the software supports", "[true, false]", false,
       [](const PlanChoice& choice) { return splits_tensors(choice.parallel); }},
      {&key_named("expert"), "expert-parallel degrees to try", "divisors of the experts", "[4, 8]"},
      {&key_named("expert_tensor"), "expert-tensor-parallel degrees to try", "1 and `tensor`",
       "[1, 2]"},
      {&key_named("zero_stage"), "stages of ZeRO to try", "what the software supports", "[0, 1]",
       false, [](const PlanChoice& choice) { return has_replicas(choice.parallel); }},
      {&key_named("no_sync"), "with it, without it, or both", "both where the software has it",
       "[true, false]", false,
       [](const PlanChoice& choice) {
         return choice.parallel.can_scatter_in_passes() && choice.parallel.data > 0 &&
                microbatches_of(choice.training, choice.parallel) > 1;
       }},
  };
  return table;
}

std::string axis_label(const std::string& pointer) {
  for (const Key& key : key_table())
    if (key.pointer == pointer)
      return key.label() + (key.unit.empty() ? "" : " (" + key.unit + ")");
  return pointer;
}

void read_value(ObjectReader& reader, const Key& key, PlanChoice& choice) {
  const KeyValue& value = key.value;
  const std::string name = key.name();
  const int fallback = value.get(choice);
  if (key.absent == Absent::derived && !reader.has(name)) {
    reader.set_default(name, nullptr);  // keeps its place until it is derived
  } else if (value.kind == KeyValue::Kind::whole_number) {
    value.set(choice, key.absent == Absent::fallback
                          ? reader.optional_int(name, fallback, value.least, value.most)
                          : reader.required_int(name, value.least, value.most));
  } else if (value.kind == KeyValue::Kind::flag) {
    value.set(choice, reader.optional_bool(name, fallback == 1) ? 1 : 0);
  } else {
    std::vector<std::pair<std::string, int>> places;
    for (const std::string& each : value.words)
      places.emplace_back(each, static_cast<int>(places.size()));
    value.set(choice, reader.optional_enum<int>(name, fallback, places));
  }
}

void read_keys(ObjectReader& reader, PlanChoice& choice, const SoftwareProfile& software) {
  for (const Key& key : key_table()) {
    if (!key.pointer.starts_with(reader.pointer() + "/")) continue;
    if (key.fallback) key.fallback(choice, software);
    if (key.read)
      key.read(reader, key, choice);
    else if (key.value.kind == KeyValue::Kind::other)
      reader.take(key.name());
    else
      read_value(reader, key, choice);
  }
}

void reject_misplaced_keys(ObjectReader& reader) {
  const std::string block = reader.pointer() + "/";
  const auto check = [&](const std::string& pointer, const std::string& name) {
    if (pointer == block + name || reader.written(name) == nullptr) return;
    reader.take(name);
    reader.problem(name, "unknown key \"" + name + "\"", "did you mean " + pointer + "?");
  };
  for (const Key& key : key_table()) check(key.pointer, key.name());
  check("/nodes", "nodes");
  for (const char* of_model : {"sequence", "layers", "hidden", "heads", "vocab"})
    check(std::string("/model/") + of_model, of_model);
  check("/training/cross_entropy", "loss");  // its name before the third edition
}

std::string text_of(const Key& key, int value) {
  if (key.value.kind == KeyValue::Kind::whole_number) return std::to_string(value);
  if (key.value.kind == KeyValue::Kind::flag) return value == 1 ? "true" : "false";
  return value < 0 ? "as the file has it" : key.value.words.at(static_cast<std::size_t>(value));
}

std::string shown_text(const Key& key, int value) {
  const bool has_words = key.value.kind == KeyValue::Kind::flag && !key.value.words.empty();
  return has_words ? key.value.words.at(static_cast<std::size_t>(value)) : text_of(key, value);
}

JsonValue default_of(const Key& key) {
  const int value = key.value.get({});
  const std::string text = text_of(key, value);
  return key.value.kind == KeyValue::Kind::word ? JsonValue(text) : json(text);
}

JsonValue schema_of(const Key& key) {
  JsonValue schema = described(key.meaning, key);
  merge_json(schema, allowed_in_all(key));
  if (!key.fallback_words.empty())
    schema.set("x-default", JsonValue(key.fallback_words));
  else if (key.absent == Absent::fallback)
    schema.set("default", default_of(key));
  set_example(schema, key.example);
  return schema;
}

JsonValue schema_of(const SearchKey& key) {
  JsonValue schema = described(key.meaning, *key.key);
  schema.set("type", type("array", true));
  schema.set("minItems", JsonValue(std::int64_t{1}));
  schema.set("items", allowed(*key.key, false));
  schema.set("x-default", JsonValue(key.fallback_words));
  set_example(schema, key.example);
  return schema;
}

}  // namespace windtunnel
