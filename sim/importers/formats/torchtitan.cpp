// Configurations of torchtitan up to 0.2, in TOML.
#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/file_io.hpp"
#include "core/option_error.hpp"
#include "core/text_list.hpp"
#include "core/utf8.hpp"
#include "importers/launch_scenario.hpp"
#include "report/json_object.hpp"

namespace windtunnel::formats {
namespace {

Imported import_torchtitan(const ImportRequest& request, const Library& library) {
  LaunchSettings settings = read_toml_settings(read_source_or_stdin(request.inputs.front()));
  ImportRequest with_model = request;
  // "llama3-70b" of llama3 and 70B
  std::string shipped =
      launch_key(lower_case(settings.text("model.name") + "-" + settings.text("model.flavor")));
  if (shipped == "deepseek-v3-671b") shipped = "deepseek-v3";
  if (std::string& model = with_model.options.model;
      model.empty() && std::ranges::count(library.names("models"), shipped) > 0)
    model = shipped;
  const std::string family = launch_key(lower_case(settings.text("model.name"))) + "-",
                    flavor = settings.text("model.flavor");
  std::vector<std::string> known;  // flavours
  for (const std::string& name : library.names("models"))
    if (name.starts_with(family)) known.push_back(name.substr(family.size()));
  if (const LaunchSetting* const said = settings.find("model.flavor");
      with_model.options.model.empty() && !flavor.empty() && !known.empty())
    throw option_error("import", request.kind,
                       request.inputs.front().string() + ", line " + std::to_string(said->line) +
                           ": the flavor " + flavor + " of " + settings.text("model.name") +
                           " is not known (known are " + listed(known) + ")",
                       "write one of these, or give --model MODEL");
  const auto is_said = [&](const char* key, const char* value) {
    return settings.text(key).find(value) != std::string::npos;
  };
  const bool is_fp8 = is_said("model.converters", "float8") ||
                      is_said("float8.enable-float8-linear", "true") ||
                      is_said("model.converters", "quantize.linear.float8");
  const bool is_mx = is_said("model.converters", "mx");
  // Only converters that are on read their sections (ModelConvertersContainer of torchtitan/protocols/model_converter.py at v0.2.2).
  std::set<std::string> idle;
  std::erase_if(settings.settings, [&](const LaunchSetting& each) {
    for (const auto& [section, is_on] : {std::pair{"float8", is_fp8},
                                         {"quantize.linear.float8", is_fp8},
                                         {"mx", is_mx},
                                         {"quantize.linear.mx", is_mx}})
      if (!is_on && each.key.starts_with(std::string(section) + ".")) {
        idle.insert(std::string("[") + section + "]");
        return true;
      }
    return false;
  });
  LaunchScenario scenario(with_model, library, std::move(settings), detail::torchtitan_table);
  // Defaults of job_config.py.
  std::vector<std::string> assumed;
  for (const auto& [pointer, value, written] :
       {std::tuple{"/model/sequence", json_of(2048), "seq_len 2048"},
        {"/training/micro_batch", json_of(8), "local_batch_size 8"},
        {"/training/precision", JsonValue("bf16"), "mixed_precision_param bfloat16"},
        {"/training/recompute", JsonValue("selective"), "activation checkpointing selective"},
        {"/training/compile", JsonValue(false), "no compilation"}}) {
    if (!scenario.has(pointer)) assumed.emplace_back(written);
    scenario.set_default(pointer, value);
  }
  if (!assumed.empty())
    scenario.note("the file does not say, and torchtitan's defaults are taken: " +
                  joined(assumed, ", "));
  // pipeline_llm() in torchtitan/distributed/pipeline_parallel.py at 02ef790c: schedules of several stages have 2 of a rank.
  const bool has_chunks = scenario.is("/parallel/schedule", "interleaved_1f1b") ||
                          scenario.is("/parallel/schedule", "zero_bubble_v") ||
                          scenario.is("/parallel/schedule", "dualpipe_v");
  if (has_chunks && scenario.at("/parallel/pipeline", 1) > 1) {
    scenario.set_default("/parallel/virtual_pipeline", 2);
    if (scenario.number("parallelism.pipeline-parallel-layers-per-stage") > 0)
      scenario.warn(
          "pipeline_parallel_layers_per_stage is not read: 2 stages of a rank are assumed");
  }
  if (!idle.empty())
    scenario.note(listed(idle) + (idle.size() > 1 ? " have" : " has") +
                  " no effect: converters of [model] do not name it");
  const auto says = [&](const char* key, const char* value) {
    return scenario.text(key).find(value) != std::string::npos;
  };
  const bool has_model =
      scenario.text("compile.components").empty() || says("compile.components", "model");
  if (!has_model) {
    scenario.set("/training/compile", false);
    scenario.note("compile.components " + scenario.text("compile.components") +
                  ": the model is not compiled");
  }
  // maybe_enable_async_tp() in torchtitan/distributed/tensor_parallel.py at v0.2.2, and parallelize_llama() at v0.1.0, raise an error.
  const bool is_compiled =
      has_model && (says("compile.enable", "true") || says("training.compile", "true"));
  const bool has_tensor = scenario.at("/parallel/tensor", 1) > 1;
  if (const char* const async = "/parallel/async_tensor_parallel";
      scenario.has(async) && !(has_tensor && is_compiled)) {
    scenario.erase(async);
    if (has_tensor)
      scenario.warn(
          "torchtitan refuses enable_async_tensor_parallel without enable = true of [compile], and "
          "\"model\" in its components: it is left out here; set both in the file, or take it "
          "out");
  }
  // _maybe_compile() in torchtitan/components/loss.py at 00a388d; by default components has both (job_config.py).
  if (says("compile.enable", "true") &&
      (scenario.text("compile.components").empty() || says("compile.components", "loss")))
    scenario.set_from("compile.enable", "/training/cross_entropy", "fused");
  const int replicate = std::max(1, scenario.number("parallelism.data-parallel-replicate-degree"));
  int shard = std::max(scenario.number("parallelism.data-parallel-shard-degree"),
                       scenario.number("training.data-parallel-shard-degree"));
  // A degree of -1 is whatever is left.
  const int gpus = scenario.gpus(replicate * shard * scenario.gpus_of_replica());
  const int data = std::max(1, gpus / scenario.gpus_of_replica());
  if (shard == 0) shard = std::max(1, data / replicate);
  const int context = scenario.at("/parallel/context", 1);
  scenario.set("/parallel/zero_stage", shard * context > 1 ? 3 : 0);
  if (replicate > 1 && shard > 1)
    scenario.set_from("parallelism.data-parallel-replicate-degree", "/parallel/zero_group",
                      shard * context);
  if (scenario.at("/parallel/tensor", 1) > 1) scenario.set("/parallel/sequence_parallel", true);
  if (is_fp8) {
    scenario.set("/training/precision", "fp8");
    // components/float8.py: of a recipe with a name, and by default, gathers stay in 16 bits.
    const bool has_recipe =
        says("float8.recipe-name", "wise") || says("quantize.linear.float8.recipe-name", "wise");
    const bool gathers = says("float8.enable-fsdp-float8-all-gather", "true") ||
                         says("quantize.linear.float8.enable-fsdp-float8-all-gather", "true");
    if (gathers && has_recipe)
      scenario.warn(
          "enable_fsdp_float8_all_gather has no effect with recipe_name: gathers stay in bf16");
    scenario.set("/software/fp8_parameters", gathers && !has_recipe);
  }
  if (says("parallelism.disable-loss-parallel", "true"))
    scenario.set("/training/loss_parallel", false);
  if (is_mx) scenario.set("/training/precision", "mxfp8");
  // selective_ac_option: "op", or each so-manieth layer, whole; "2" by default.
  const std::string option = scenario.text("activation-checkpoint.selective-ac-option");
  const int every =
      option.empty() ? 2 : scenario.number("activation-checkpoint.selective-ac-option");
  if (every == 0 && option != "op")
    scenario.warn("selective_ac_option " + option +
                  " is neither op nor a number of layers; op is taken");
  if (scenario.is("/training/recompute", "selective") && every > 0) {
    scenario.set("/training/recompute", "full");
    scenario.set("/training/recompute_layers/every", every);
  }
  if (scenario.is("/training/recompute", "selective"))
    scenario.note(
        "selective activation checkpointing is that of Megatron's attention core; torchtitan's op "
        "list saves other tensors");
  // With a pipeline, local_batch_size is cut into microbatches of one sample; until 2024, into as many as stages (build_pipeline_schedule()).
  const int local = scenario.at("/training/micro_batch", 1);
  const int global = scenario.number("training.global-batch-size");
  scenario.set_from(global > 0 ? "training.global-batch-size" : "training.local-batch-size",
                    "/training/global_batch", global > 0 ? global : local * data);
  const int stages = scenario.at("/parallel/pipeline", 1);
  const int pieces = scenario.number("experimental.pipeline-parallel-microbatches");
  if (scenario.number("experimental.pipeline-parallel-degree") > 1)
    scenario.set("/training/micro_batch", std::max(1, local / (pieces > 0 ? pieces : stages)));
  else if (stages > 1)
    scenario.set(
        "/training/micro_batch",
        std::clamp(scenario.number("parallelism.pipeline-parallel-microbatch-size"), 1, local));
  return scenario.finish("torchtitan-2025", gpus);
}

}  // namespace

Importer torchtitan() {
  return {"torchtitan",
          "a configuration of torchtitan, to a scenario",
          "a TOML configuration of torchtitan (releases up to 0.2)",
          {"--base", "--gpus", "--model"},
          import_torchtitan};
}

}  // namespace windtunnel::formats
