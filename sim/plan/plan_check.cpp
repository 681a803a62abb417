#include "plan/plan_check.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/count_text.hpp"
#include "core/problem.hpp"
#include "plan/compression.hpp"

namespace windtunnel {

using namespace plan_keys;

namespace {

std::string text(std::int64_t number) { return std::to_string(number); }

/// Samples that all replicas take in at once.
std::int64_t samples_per_round(const PlanInputs& plan) {
  return std::int64_t{plan.parallel.data} * plan.training.micro_batch;
}

std::int64_t microbatches_of(const PlanInputs& plan) {
  return plan.training.global_batch / samples_per_round(plan);
}

void check_batch(const PlanInputs& plan, PlanFindings& findings) {
  if (!findings.are_sound({global_batch, micro_batch})) return;
  const std::int64_t batch = plan.training.global_batch;
  if (!findings.is_sound(data)) {
    if (batch % plan.training.micro_batch != 0)
      findings.reject({global_batch,
                       "global_batch " + text(batch) + " is no multiple of micro_batch " +
                           text(plan.training.micro_batch),
                       {}});
    return;
  }
  const std::int64_t per_round = samples_per_round(plan);
  if (batch % per_round == 0) return;
  const std::int64_t below = batch / per_round * per_round;
  findings.reject(
      {global_batch,
       "global_batch " + text(batch) +
           " is no multiple of data * micro_batch = " + text(plan.parallel.data) + " * " +
           text(plan.training.micro_batch) + " = " + text(per_round),
       "nearest: " + (below > 0 ? text(below) + " or " : "") + text(below + per_round)});
}

void check_stage_layers(const PlanInputs& plan, PlanFindings& findings) {
  const std::vector<int>& stages = plan.parallel.stage_layers;
  if (stages.empty()) return;
  if (findings.are_sound({stage_layers, pipeline}) &&
      static_cast<int>(stages.size()) != plan.parallel.pipeline)
    findings.reject({stage_layers,
                     "stage_layers names " + count_text(stages.size(), "stage") +
                         ", but pipeline is " + text(plan.parallel.pipeline),
                     "one number a stage"});
  const std::int64_t sum = std::accumulate(stages.begin(), stages.end(), std::int64_t{0});
  if (findings.are_sound({stage_layers, layers}) && sum != plan.model.layers)
    findings.reject({stage_layers,
                     "stage_layers adds up to " + count_text(sum, "layer") +
                         ", but the model has " + text(plan.model.layers),
                     "the sum must be " + text(plan.model.layers)});
}

/// A schedule that the user wrote is for so many stages, microbatches and chunks, and no others.
void check_orders(const PlanInputs& plan, PlanFindings& findings) {
  if (!plan.parallel.schedule->written || !findings.is_sound(schedule)) return;
  const OrderShape& written = plan.parallel.schedule->written->shape;
  std::vector<PlanRejection> found;
  const auto must_agree = [&](std::int64_t in_file, std::int64_t in_plan, const std::string& what,
                              const std::string& key) {
    if (in_file != in_plan)
      found.push_back({schedule,
                       "the schedule file is for " + count_text(in_file, what) + ", but " + key +
                           " is " + text(in_plan),
                       {}});
  };
  if (findings.is_sound(pipeline))
    must_agree(written.stages, plan.parallel.pipeline, "stage", "pipeline");
  if (findings.are_sound({global_batch, data, micro_batch}))
    must_agree(written.microbatches, microbatches_of(plan), "microbatch",
               "global_batch / (data * micro_batch)");
  if (findings.is_sound(chunks))
    must_agree(written.chunks, plan.parallel.virtual_pipeline, "chunk", "virtual_pipeline");
  for (PlanRejection& each : found) findings.reject(std::move(each));
}

/// A plan that nobody would run, and that could not be simulated: each pass of each stage is an op of its program.
void check_size(const PlanInputs& plan, PlanFindings& findings) {
  if (!findings.are_sound({global_batch, micro_batch, data, pipeline, chunks})) return;
  constexpr double most_passes = 20e6;  // forward passes of one pipeline; about 1 GB of program
  const double microbatches = static_cast<double>(plan.training.global_batch) /
                              static_cast<double>(samples_per_round(plan));
  const double passes = microbatches * plan.parallel.pipeline * plan.parallel.virtual_pipeline;
  if (passes <= most_passes) return;
  findings.reject({global_batch,
                   text(static_cast<std::int64_t>(microbatches)) + " microbatches through " +
                       count_text(plan.parallel.pipeline, "stage") +
                       " are more than the 20 million passes of a pipeline that can be simulated",
                   "use a smaller global_batch, or a larger micro_batch or data"});
}

/// Checks what several chunks per device require of the schedule and the number of stages.
void check_chunked_schedule(const PlanInputs& plan, PlanFindings& findings) {
  const int v = plan.parallel.virtual_pipeline;
  if (!findings.are_sound({chunks, schedule})) return;
  const Schedule& chosen = *plan.parallel.schedule;
  if (chosen.fewest_chunks() > 1 && !chosen.takes(v))
    return findings.reject({chunks,
                            "schedule " + chosen.name + " has " +
                                count_text(chosen.fewest_chunks(), "chunk") +
                                " per device, but virtual_pipeline is " + text(v),
                            "write \"virtual_pipeline\": " + text(chosen.fewest_chunks())});
  if (v == 1) return;
  if (!chosen.takes(v))
    findings.reject(
        {chunks,
         "virtual_pipeline " + text(v) + " needs schedule " + names_of_chunked_schedules(v) +
             ", but schedule is " + chosen.name,
         "write \"schedule\": \"" + default_schedule(v)->name + "\", or virtual_pipeline 1"});
  else if (!chosen.written && findings.is_sound(pipeline) && plan.parallel.pipeline == 1)
    findings.reject({chunks, "interleaving " + text(v) + " chunks needs more than one stage",
                     chosen.takes(1)
                         ? "use virtual_pipeline 1"
                         : "use virtual_pipeline 1 and schedule " + default_schedule()->name});
}

void check_sends(const PlanInputs& plan, PlanFindings& findings) {
  const Schedule& chosen = *plan.parallel.schedule;
  if (chosen.sends != ScheduleSends::only_eager ||
      plan.parallel.pipeline_send == PipelineSend::eager ||
      !findings.are_sound({schedule, "/parallel/pipeline_send", "/software/pipeline_send"}))
    return;
  findings.reject(
      {schedule,
       "schedule " + chosen.name +
           " never finishes with pipeline_send \"blocking_pairs\": two stages would wait "
           "to send to each other",
       R"(write "pipeline_send": "eager")"});
}

void check_microbatch_groups(const PlanInputs& plan, PlanFindings& findings) {
  const int p = plan.parallel.pipeline;
  const Schedule& chosen = *plan.parallel.schedule;
  const int group = chosen.microbatch_group(p, plan.parallel.virtual_pipeline);
  if ((group == 1 && chosen.fewest_microbatches_of_stage == 0) ||
      !findings.are_sound({chunks, schedule, pipeline, global_batch, micro_batch, data}))
    return;
  const int v = plan.parallel.virtual_pipeline;
  const auto microbatches = static_cast<int>(microbatches_of(plan));
  OrderShape shape{p, microbatches, v, chosen.chunk_path};
  if (chosen.is_bidirectional()) shape.stages += shape.stages % 2;  // check_bidirectional
  const std::string why = chosen.misfit(shape);
  if (why.empty()) return;
  const int fewest = chosen.fewest_microbatches(p, v);
  const std::int64_t samples = samples_per_round(plan);
  std::string suggestion =
      "use a global_batch in multiples of data * micro_batch * pipeline = " + text(samples * p);
  if (microbatches < fewest && chosen.fewest_microbatches_of_stage > 0)
    suggestion = "use a global_batch of at least " + text(samples * fewest);
  else if (chosen.is_bidirectional())
    suggestion =
        "use a global_batch in multiples of 2 * data * micro_batch = " + text(samples * group);
  findings.reject({global_batch, why, suggestion});
}

/// Checks what a bidirectional schedule, with two copies of the model, requires of stages and gradients.
void check_bidirectional(const PlanInputs& plan, PlanFindings& findings) {
  const Parallel& parallel = plan.parallel;
  if (!parallel.schedule->is_bidirectional() || !findings.is_sound(schedule)) return;
  const std::string& name = parallel.schedule->name;
  if (findings.is_sound(pipeline) && parallel.pipeline % 2 != 0)
    findings.reject({pipeline,
                     "schedule " + name + " needs an even number of stages, but pipeline is " +
                         text(parallel.pipeline),
                     "use pipeline " + text(parallel.pipeline + 1)});
  if (findings.is_sound(zero_stage) && parallel.zero_stage >= 2)
    findings.reject({zero_stage,
                     parallel.zero_stage == 3
                         ? "zero_stage 3 is not modelled where two stages hold each part of the "
                           "model, as under schedule " +
                               name
                         : "zero_stage 2 reduces the gradients of each microbatch, which the two "
                           "stages with a copy of them would do in different orders under "
                           "schedule " +
                               name,
                     "use zero_stage 0 or 1"});
  if (findings.is_sound(overlap_gradient_reduce) && parallel.overlap_gradient_reduce)
    findings.reject({overlap_gradient_reduce,
                     "the gradients of schedule " + name +
                         " are reduced at the end: two stages hold each of them",
                     "write false, or leave it out"});
}

void check_chunks(const PlanInputs& plan, PlanFindings& findings) {
  if (!findings.are_sound({chunks, pipeline, stage_layers, layers, layers_at_the_ends})) return;
  const auto [stages, positions] = layer_split(plan);
  if (!positions.empty()) return;
  const int v = plan.parallel.virtual_pipeline;
  const auto uneven = std::ranges::find_if(stages, [v](int in_stage) { return in_stage % v != 0; });
  if (uneven == stages.end()) return;
  findings.reject({chunks,
                   count_text(*uneven, "layer") +
                       (*uneven == plan.model.layers ? "" : " of a stage") +
                       (*uneven == 1 ? " does" : " do") + " not divide into " + text(v) + " chunks",
                   "use a divisor of " + text(*uneven) +
                       (plan.parallel.stage_layers.empty() ? "" : ", or leave stage_layers out")});
}

/// Gathers of stages meet messages, and those of a ring: only what is gathered once an iteration is simulated.
void check_shards(const PlanInputs& plan, PlanFindings& findings) {
  const Parallel& parallel = plan.parallel;
  if (parallel.pipeline == 1 || !parallel.gathers_in_passes()) return;
  if (!findings.are_sound({zero_stage, pipeline, reshard_after_forward})) return;
  findings.reject({reshard_after_forward,
                   "with pipeline " + text(parallel.pipeline) +
                       ", gathering the parameters of zero_stage 3 for every microbatch is not "
                       "modelled",
                   "write false, or leave it out: they are gathered once an iteration",
                   {zero_stage, reshard_after_forward}});
}

void check_sharding_group(const PlanInputs& plan, PlanFindings& findings) {
  const int group = plan.parallel.zero_group;
  if (group == 1 && findings.is_sound(zero_group))
    return findings.reject(
        {zero_group, "a zero_group of one replica shards nothing", "use zero_stage 0"});
  if (group > 0 && plan.parallel.zero_stage == 3 && plan.parallel.pipeline > 1 &&
      findings.are_sound({zero_group, zero_stage, pipeline}))
    return findings.reject({zero_group,
                            "zero_group with zero_stage 3 is for plans without stages, but "
                            "pipeline is " +
                                text(plan.parallel.pipeline),
                            "leave it out, or use zero_stage 1"});
  if (group > 0 && plan.parallel.schedule->is_bidirectional() &&
      findings.are_sound({zero_group, schedule}))
    return findings.reject({zero_group,
                            "under schedule " + plan.parallel.schedule->name +
                                " states are shared out among all ranks of the two stages that "
                                "hold them",
                            "leave it out"});
  if (group == 0 || !findings.are_sound({zero_group, data}) ||
      plan.parallel.replicas() % group == 0)
    return;
  findings.reject(
      {zero_group,
       "zero_group " + text(group) + " does not divide the " +
           count_text(plan.parallel.replicas(), "replica"),
       plan.parallel.context > 1 ? "use a divisor of data * context" : "use a divisor of data"});
}

void check_recipe(const PlanInputs& plan, PlanFindings& findings) {
  const Training& training = plan.training;
  if (training.fp8_recipe == Fp8Recipe::tensor ||
      !findings.are_sound({fp8_recipe, "/training/precision", "/software/row_cast_efficiency"}))
    return;
  const bool is_mx = training.fp8_recipe == Fp8Recipe::mx;
  if (training.precision != (is_mx ? Precision::mxfp8 : Precision::fp8))
    findings.reject(
        {fp8_recipe,
         std::string("fp8_recipe \"") + name_of(training.fp8_recipe) + "\" is for precision fp8",
         "leave it out"});
  else if (training.scales_rows() && !plan.software.row_cast_efficiency)
    findings.reject({fp8_recipe,
                     "software " + plan.software.name +
                         " does not say what casts with a scale for each row attain "
                         "(row_cast_efficiency)",
                     "write \"fp8_recipe\": \"tensor\", or use software torchtitan-2025"});
}

/// Rejects keys about experts for a model that has none.
void check_dense(const PlanInputs& plan, PlanFindings& findings) {
  for (const auto& [key, degree, name] :
       {std::tuple{expert, plan.parallel.expert, "expert "},
        std::tuple{expert_tensor, plan.parallel.expert_tensor, "expert_tensor "}})
    if (degree > 1 && findings.is_sound(key))
      findings.reject({key,
                       name + text(degree) + " needs a model with experts, and this one has none",
                       "write 1, or leave it out"});
}

void check_expert_sizes(const PlanInputs& plan, PlanFindings& findings) {
  const Transformer::Experts& moe = *plan.model.moe;
  const Parallel& parallel = plan.parallel;
  if (findings.is_sound(expert) && moe.experts % parallel.expert != 0)
    findings.reject({expert,
                     "expert " + text(parallel.expert) + " does not divide the model's " +
                         count_text(moe.experts, "expert"),
                     "use a divisor of " + text(moe.experts)});
  if (findings.is_sound(expert_tensor) && moe.ffn_hidden % parallel.expert_tensor != 0)
    findings.reject({expert_tensor,
                     "expert_tensor " + text(parallel.expert_tensor) + " does not divide the " +
                         text(moe.ffn_hidden) + " columns of an expert",
                     "use a divisor of " + text(moe.ffn_hidden)});
  if (findings.is_sound(tensor) && moe.shared_ffn_hidden % parallel.tensor != 0)
    findings.reject({tensor,
                     "tensor " + text(parallel.tensor) + " does not divide the " +
                         text(moe.shared_ffn_hidden) + " columns of the shared experts",
                     "use a divisor of " + text(moe.shared_ffn_hidden)});
}

void check_muon(const PlanInputs& plan, PlanFindings& findings) {
  const Training& training = plan.training;
  if (training.optimizer != Optimizer::muon || !findings.is_sound(optimizer)) return;
  const auto is_wide = [](MomentType type) {
    return type != MomentType::fp8 && type != MomentType::int8;
  };
  for (const auto& [key, type] : {std::pair{first_moment, training.first_moment},
                                  std::pair{second_moment, training.second_moment}})
    if (!is_wide(type) && findings.is_sound(key))
      findings.reject(
          {key, "Muon's momentum, and the moments of what Adam steps beside it, have 16 or 32 bits",
           "write \"fp32\" or \"bf16\""});
  if (plan.parallel.zero_stage > 1 && findings.is_sound(zero_stage))
    findings.reject({optimizer,
                     "Muon steps whole matrices, which zero_stage " +
                         text(plan.parallel.zero_stage) + " cuts among replicas",
                     "use zero_stage 0 or 1",
                     {optimizer, zero_stage}});
  if (training.optimizer_offload > 0 && findings.is_sound(optimizer_offload))
    findings.reject({optimizer_offload, "a host steps Adam or SGD, not Muon",
                     R"(write "optimizer": "adam", or leave it out)"});
}

void check_main_parameters(const PlanInputs& plan, PlanFindings& findings) {
  const MainParameters main = plan.training.main_parameters;
  if (main == MainParameters::profile || !findings.are_sound({main_parameters, precision})) return;
  const Precision base = base_precision(plan.training.precision);
  const bool is_narrow = main == MainParameters::fp32_remainder || main == MainParameters::fp16;
  if (element_size(base) == element_size(Precision::fp32))
    return findings.reject(
        {main_parameters,
         std::string("weights of precision ") + name_of(base) + " are their own main parameters",
         "leave it out"});
  if (main == MainParameters::fp32_remainder && base != Precision::bf16)
    return findings.reject({main_parameters,
                            "a remainder completes bf16 weights, but precision is " +
                                std::string(name_of(plan.training.precision)),
                            R"(write "fp32" or "fp16")"});
  const StateBytes& states =
      base == Precision::fp16 ? plan.software.states_fp16 : plan.software.states_bf16;
  if (is_narrow && states.weights > element_size(base) / Bytes{1})
    findings.reject({main_parameters,
                     "software " + plan.software.name +
                         " keeps fp32 weights and casts them for the passes: there is no copy "
                         "beside them",
                     R"(leave it out, or write "none" for pure 16-bit training)"});
}

/// The feature of model or precision that this version does not simulate with adapters; empty: none.
std::string why_no_adapters(const PlanInputs& plan) {
  if (plan.model.mla) return "latent attention";
  if (plan.model.mtp_layers > 0) return "multi-token prediction";
  if (plan.training.scales_rows()) return "products in fp8 with a scale for each row";
  const std::vector<int> stages = layer_split(plan).stages;
  if (std::ranges::find(stages, 0) != stages.end()) return "stages without layers";
  return {};
}

}  // namespace

bool PlanFindings::are_sound(std::initializer_list<std::string_view> pointers) const {
  return std::ranges::all_of(pointers,
                             [this](std::string_view pointer) { return is_sound(pointer); });
}

bool RejectionList::is_sound(std::string_view pointer) const {
  return std::ranges::none_of(rejections_, [&](const PlanRejection& each) {
    return each.spoils.empty() ? each.key == pointer
                               : std::ranges::find(each.spoils, pointer) != each.spoils.end();
  });
}

void RejectionList::reject(PlanRejection rejection) { rejections_.push_back(std::move(rejection)); }

const std::vector<std::string>& product_pointers() {
  static const std::vector<std::string> pointers{tensor, context, pipeline, data, "/nodes"};
  return pointers;
}

void check_tensor(const PlanInputs& plan, PlanFindings& findings) {
  const int t = plan.parallel.tensor;
  const auto must_divide = [&](int amount, const std::string& counted,
                               std::initializer_list<std::string_view> amounts) {
    if (amount % t == 0 || !findings.is_sound(tensor) || !findings.are_sound(amounts)) return;
    findings.reject({tensor, "tensor " + text(t) + " does not divide the model's " + counted,
                     "use a divisor of " + text(amount)});
  };
  const Transformer& model = plan.model;
  must_divide(model.heads, count_text(model.heads, "head"), {"/model/heads"});
  if (model.kv_heads != model.heads && t % model.kv_heads != 0)
    must_divide(model.kv_heads, count_text(model.kv_heads, "key/value head"),
                {"/model/kv_heads", "/model/heads"});
  if (model.expert_layers(0, model.layers) == model.layers) return;  // none has this network
  must_divide(model.ffn_hidden, count_text(model.ffn_hidden, "MLP column") + " (ffn_hidden)",
              {"/model/ffn_hidden", "/model/hidden"});
}

void check_experts(const PlanInputs& plan, PlanFindings& findings) {
  if (!plan.model.moe) return check_dense(plan, findings);
  check_expert_sizes(plan, findings);
  const Parallel& parallel = plan.parallel;
  if (findings.are_sound({tensor, sequence_parallel}) && parallel.tensor > 1 &&
      !parallel.sequence_parallel)
    findings.reject({sequence_parallel,
                     "with tensor " + text(parallel.tensor) +
                         ", experts need tokens that are split over the tensor group",
                     R"(write "sequence_parallel": true)"});
  if (findings.is_sound(zero_group) && parallel.zero_group > 0)
    findings.reject({zero_group, "states of experts are shared out among all ranks that hold them",
                     "leave zero_group out"});
  if (!findings.are_sound({expert, expert_tensor, tensor})) return;
  const std::int64_t degree = std::int64_t{parallel.expert} * parallel.expert_tensor;
  const std::string product = "expert * expert_tensor = " + text(parallel.expert) + " * " +
                              text(parallel.expert_tensor) + " = " + text(degree);
  if (!findings.is_sound(data) || parallel.data < 1) return;
  const std::int64_t ranks = parallel.ranks_of_stage();
  if (ranks % degree != 0)
    findings.reject({expert,
                     product + " does not divide the " + count_text(ranks, "rank") +
                         (parallel.context > 1 ? " of a stage (data * context * tensor)"
                                               : " of a stage (data * tensor)"),
                     "use a product that divides " + text(ranks),
                     {expert, expert_tensor}});
}

void check_recompute(const PlanInputs& plan, PlanFindings& findings) {
  const RecomputedModules& modules = plan.training.recompute_modules;
  if (plan.training.recompute != Recompute::selective || !findings.is_sound(recompute_modules))
    return;
  if (plan.software.recomputed_unit == RecomputedUnit::operations) {
    if (modules != RecomputedModules::of_selective())
      findings.reject({recompute_modules, "this software recomputes operations, not modules",
                       "leave recompute_modules out"});
    return;
  }
  for (const RecomputedModule module : RecomputedModules::all) {
    if (modules.has(module) && module == RecomputedModule::norms && !plan.model.mla &&
        !plan.model.moe)
      return findings.reject({recompute_modules,
                              "norms of a model without experts and latent attention are part of "
                              "the products behind them",
                              "leave \"norms\" out"});
    const bool is_latent = module == RecomputedModule::up_projection,
               is_of_experts = module == RecomputedModule::expert_activation ||
                               module == RecomputedModule::experts ||
                               module == RecomputedModule::shared_experts;
    if (!modules.has(module)) continue;
    if ((is_latent && !plan.model.mla) || (is_of_experts && !plan.model.moe))
      return findings.reject({recompute_modules,
                              std::string("the model has no \"") + name_of(module) +
                                  "\" to recompute: it has no " +
                                  (is_latent ? "latent attention" : "experts"),
                              "leave it out"});
  }
}

void check_states(const PlanInputs& plan, PlanFindings& findings) {
  const Training& training = plan.training;
  check_muon(plan, findings);
  check_main_parameters(plan, findings);
  if (training.optimizer == Optimizer::sgd && training.second_moment != MomentType::fp32 &&
      training.main_parameters != MainParameters::none &&
      findings.are_sound({optimizer, first_moment, second_moment}))
    findings.reject({second_moment, "SGD has one moment, whose type is exp_avg_dtype",
                     "leave exp_avg_sq_dtype out"});
  if (training.overlap_optimizer_offload && training.optimizer_offload == 0 &&
      findings.are_sound({overlap_offload, optimizer_offload}))
    findings.reject({overlap_offload, "no optimizer states are offloaded",
                     "say optimizer_offload_fraction, or leave it out"});
  if (training.activation_offload > 0 && plan.parallel.schedule->overlaps_passes &&
      findings.are_sound({activation_offload, schedule}))
    findings.reject({activation_offload,
                     "offloading activations is not modelled where passes run at once, as under "
                     "schedule " +
                         plan.parallel.schedule->name,
                     "leave it out"});
}

void check_adapters(const PlanInputs& plan, PlanFindings& findings) {
  const Training& training = plan.training;
  const Lora& lora = training.lora;
  if (!findings.is_sound(lora_rank)) return;
  if (!lora.is_used()) {
    if (lora.frozen_type != FrozenType::as_passes && findings.is_sound(frozen_type))
      findings.reject({frozen_type, "no weights are frozen: lora_rank is 0",
                       "write \"lora_rank\": 16, or leave it out"});
    if (lora.dropout > 0 && findings.is_sound(lora_dropout))
      findings.reject({lora_dropout, "there are no adapters: lora_rank is 0",
                       "write \"lora_rank\": 16, or leave it out"});
    return;
  }
  const std::string why = findings.are_sound({"/model", precision, pipeline, stage_layers,
                                              layers_at_the_ends, edge_layers})
                              ? why_no_adapters(plan)
                              : "";
  if (!why.empty())
    return findings.reject({lora_rank, "adapters are not modelled for " + why, "leave it out"});
  if (lora.rank >= plan.model.hidden && findings.is_sound("/model/hidden"))
    findings.reject({lora_rank,
                     "lora_rank " + text(lora.rank) + " is no less than the hidden size " +
                         text(plan.model.hidden),
                     "usual ranks are 8 to 256"});
  else if (lora.rank % plan.parallel.tensor != 0 && findings.is_sound(tensor))
    findings.reject(
        {lora_rank,
         "tensor " + text(plan.parallel.tensor) + " does not divide lora_rank " + text(lora.rank),
         "use a multiple of " + text(plan.parallel.tensor)});
  if (plan.model.moe &&
      (lora.has(LoraTarget::gate_proj) || lora.has(LoraTarget::up_proj) ||
       lora.has(LoraTarget::down_proj)) &&
      findings.are_sound({lora_targets, "/model"}))
    findings.reject({lora_targets, "adapters of experts are not modelled",
                     R"(write some of "q_proj", "k_proj", "v_proj", "o_proj")"});
  if (lora.has(LoraTarget::gate_proj) && !plan.model.gated_mlp &&
      findings.are_sound({lora_targets, "/model/gated_mlp"}))
    findings.reject({lora_targets, "the model's MLP has no gate_proj: it is not gated",
                     "leave \"gate_proj\" out"});
  if (training.optimizer == Optimizer::muon && findings.is_sound(optimizer))
    findings.reject({optimizer, "adapters are stepped by Adam or SGD", R"(write "adam")"});
  if (lora.frozen_type != FrozenType::nf4 || !findings.is_sound(frozen_type)) return;
  if (is_quantized(training.precision) && findings.is_sound(precision))
    findings.reject({frozen_type,
                     std::string("weights in nf4 are cast to 16 bits for their products, not to ") +
                         name_of(training.precision),
                     R"(use precision "bf16")"});
  else if (plan.model.moe && findings.is_sound("/model"))
    findings.reject({frozen_type, "experts in nf4 are not modelled", "leave it out"});
}

std::string product_text(const std::vector<Factor>& factors, bool with_result) {
  std::string names, sizes;
  std::int64_t product = 1;
  for (const auto& [name, size] : factors) {
    const char* const times = names.empty() ? "" : " * ";
    names += times + std::string(name);
    sizes += times + text(size);
    product *= size;
  }
  return names + " = " + sizes + (with_result ? " = " + text(product) : "");
}

std::vector<Factor> factors_of_replica(const Parallel& parallel) {
  std::vector<Factor> factors{{"tensor", parallel.tensor}};
  for (const AxisName axis : cut_axes(parallel))
    factors.push_back({name_of(axis), parallel.size(axis)});
  factors.push_back({"pipeline", parallel.pipeline});
  return factors;
}

std::string product_text(const Parallel& parallel, bool with_result) {
  std::vector<Factor> factors = factors_of_replica(parallel);
  factors.push_back({"data", parallel.data});
  return product_text(factors, with_result);
}

LayerSplit layer_split(const PlanInputs& plan) {
  const std::vector<int>& stages = plan.parallel.stage_layers;
  const bool by_part = plan.parallel.schedule->is_bidirectional() &&
                       static_cast<int>(stages.size()) == plan.parallel.pipeline;
  if (by_part && plan.parallel.virtual_pipeline == 2)
    return split_of(stages, chunk_map_of(plan.parallel));
  if (!stages.empty()) return {stages, plan.parallel.position_layers};
  if (const ChunkMap map = chunk_map_of(plan.parallel);
      plan.software.stages_by_cost && map.num_positions() == plan.parallel.pipeline)
    return split_of(stages_by_cost(plan.model, plan.parallel), map);
  return default_layer_split(plan.model.layers, plan.parallel,
                             plan.software.embedding_and_head_as_layers);
}

void check_even_stages(const PlanInputs& plan, PlanFindings& findings) {
  if (!findings.are_sound({pipeline, layers, stage_layers, layers_at_the_ends, edge_layers}))
    return;
  const int stages = plan.parallel.pipeline;
  if (!layer_split(plan).stages.empty()) return;
  if (const EdgeLayers& edges = plan.parallel.edge_layers; edges != EdgeLayers{})
    return findings.reject({edge_layers,
                            count_text(plan.model.layers, "layer") + " and the " +
                                text(edges.embedding + edges.loss) +
                                " that embedding and loss count for do not divide by pipeline " +
                                text(stages) + " times virtual_pipeline " +
                                text(plan.parallel.virtual_pipeline) + ", or an end has fewer",
                            "change edge_layers, or say stage_layers"});
  const int all = plan.model.layers;
  int below = stages, above = stages;
  while (below > 1 && all % below != 0) --below;
  while (above < all && all % above != 0) ++above;
  findings.reject({pipeline,
                   count_text(all, "layer") + (all == 1 ? " does" : " do") +
                       " not divide by pipeline " + text(stages),
                   "use pipeline " + text(below) +
                       (above <= all && all % above == 0 ? " or " + text(above) : "") +
                       ", or say stage_layers"});
}

void check_context(const PlanInputs& plan, PlanFindings& findings) {
  const int c = plan.parallel.context;
  if (c == 1 || !findings.is_sound(context)) return;
  const auto reject = [&](const std::string& why, const std::string& suggestion) {
    findings.reject({context, "context " + text(c) + " " + why, suggestion});
  };
  const Transformer& model = plan.model;
  const bool ring = plan.parallel.context_method == ContextMethod::ring;
  const int parts = ring ? 2 * c : c;
  if (findings.is_sound("/model/sequence") && model.sequence % parts != 0)
    reject("does not cut sequences of " + count_text(model.sequence, "token") + " into " +
               text(parts) + " parts",
           ring && model.sequence % 2 != 0
               ? "write an even sequence"
               : "use a divisor of " + text(model.sequence / (ring ? 2 : 1)));
  if (ring && plan.training.attention == Attention::standard)
    return reject("goes round in a ring only with flash attention",
                  R"(write "attention": "flash", or "context_method": "all_to_all")");
  const int heads = std::min(model.heads, model.kv_heads);
  if (!ring && findings.are_sound({tensor, "/model/heads", "/model/kv_heads"}) &&
      heads % (plan.parallel.tensor * c) != 0)
    reject("times tensor " + text(plan.parallel.tensor) + " does not divide the " +
               count_text(heads, "head") + " of keys and values",
           R"(write "context_method": "ring")");
}

void check_pairs(const PlanInputs& plan, PlanFindings& findings) {
  check_chunked_schedule(plan, findings);
  check_sends(plan, findings);
  check_bidirectional(plan, findings);
  check_shards(plan, findings);
}

/// CONTRACT: with `nodes` given, a product above nodes * GPUs is an error; a plan smaller than one
/// node uses that node's first GPUs; otherwise the two must be equal.
void check_product(const PlanInputs& plan, const ClusterShape& cluster, PlanFindings& findings) {
  if (!findings.are_sound({tensor, pipeline, data, context, "/nodes"})) return;
  const Parallel& parallel = plan.parallel;
  const std::int64_t ranks = parallel.num_ranks();
  const int gpus = std::accumulate(cluster.gpus_by_node.begin(), cluster.gpus_by_node.end(), 0);
  const bool part_of_one_node = cluster.gpus_by_node.size() == 1 && ranks < gpus;
  if (ranks == gpus || part_of_one_node) return;
  std::string suggestion;
  const std::int64_t of_replica = parallel.ranks_of_replica();
  if (gpus % of_replica == 0) {
    suggestion = "data " + text(gpus / of_replica) + " would use them all";
  } else if (ranks > gpus) {
    suggestion = "use more nodes or smaller tensor, pipeline or data";
  } else {
    suggestion = "the product must equal the GPUs of the nodes, or be less than one node";
  }
  findings.reject(
      {"/parallel",
       product_text(parallel) + ", but " + count_text(cluster.gpus_by_node.size(), "node") +
           (cluster.gpus_by_node.size() == 1 ? " has " : " have ") + count_text(gpus, "GPU"),
       suggestion, product_pointers()});
}

void check_work(const PlanInputs& plan, PlanFindings& findings) {
  check_stage_layers(plan, findings);
  check_batch(plan, findings);
  check_size(plan, findings);
  check_microbatch_groups(plan, findings);
  check_orders(plan, findings);
  check_chunks(plan, findings);
  check_sharding_group(plan, findings);
  check_recipe(plan, findings);
  // A stack that keeps what stands between its operations runs each as a kernel of its own.
  const KeptCopies& copies = plan.software.copies;
  const bool is_eager = copies.keeps_gate && copies.keeps_norms;
  if (!plan.training.compile && !plan.software.eager_layer_traffic && !is_eager &&
      findings.are_sound({compile, "/software/eager_layer_traffic"}))
    findings.reject({compile,
                     "software " + plan.software.name +
                         " does not say what its layers move without torch.compile "
                         "(eager_layer_traffic)",
                     "leave it out, or use software torchtitan-2025"});
  // Only what is split along the sequence is gathered and scattered.
  if (plan.parallel.async_tensor_parallel && !plan.parallel.sequence_parallel &&
      findings.are_sound({async_tensor_parallel, sequence_parallel}))
    findings.reject({async_tensor_parallel, "async_tensor_parallel needs sequence_parallel",
                     R"(write "sequence_parallel": true)"});
}

void check_compression(const Compression& compression, const Parallel& parallel,
                       PlanFindings& findings) {
  const std::string stages = "/compression/data_gradients/stages";
  const std::vector<int>& listed = compression.gradient_stages.listed;
  const auto beyond =
      std::ranges::find_if(listed, [&](int stage) { return stage >= parallel.pipeline; });
  if (beyond != listed.end() && findings.are_sound({stages, pipeline}))
    findings.reject(
        {stages, "there is no stage " + text(*beyond) + ": pipeline is " + text(parallel.pipeline),
         "stages count from 0"});
  const std::optional<Compressor>& c = compression.data_gradients;
  const std::string place = "/compression/data_gradients/codec";
  if (!c || !c->codec->sends_factors() || parallel.zero_stage < 2) return;
  if (!findings.are_sound({place, zero_stage})) return;
  findings.reject({place,
                   std::string(c->codec->name()) +
                       " all-reduces its factors and needs whole gradients on every replica, "
                       "but zero_stage " +
                       text(parallel.zero_stage) + " shards them",
                   "use zero_stage 0 or 1, or another codec"});
}

}  // namespace windtunnel
