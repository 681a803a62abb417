// Configurations of torchtitan up to 0.2, in TOML.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/file_io.hpp"
#include "core/utf8.hpp"
#include "importers/launch_scenario.hpp"
#include "report/json_object.hpp"

namespace windtunnel {
namespace {

/// Keys of torchtitan/config/job_config.py, torchtitan 0.1 and 0.2.
const std::vector<LaunchKey>& torchtitan_keys() {
  static const std::vector<LaunchKey> keys{
      {"training.seq-len", "/model/sequence"},
      {"training.local-batch-size", "/training/micro_batch"},
      {"training.batch-size", "/training/micro_batch"},
      {"parallelism.tensor-parallel-degree", "/parallel/tensor"},
      {"training.tensor-parallel-degree", "/parallel/tensor"},
      {"parallelism.pipeline-parallel-degree", "/parallel/pipeline"},
      {"experimental.pipeline-parallel-degree", "/parallel/pipeline"},
      {"parallelism.context-parallel-degree", "/parallel/context"},
      {"experimental.context-parallel-degree", "/parallel/context"},
      {"parallelism.expert-parallel-degree", "/parallel/expert"},
      {"parallelism.pipeline-parallel-schedule",
       "/parallel/schedule",
       {{"1F1B", R"("1f1b")"},
        {"Interleaved1F1B", R"("interleaved_1f1b")"},
        {"GPipe", R"("gpipe")"},
        {"ZBVZeroBubble", R"("zero_bubble_v")"},
        {"DualPipeV", R"("dualpipe_v")"}}},
      {"parallelism.enable-async-tensor-parallel",
       "/parallel/async_tensor_parallel",
       {{"true", "true"}, {"false", nullptr}}},
      {"experimental.enable-async-tensor-parallel",
       "/parallel/async_tensor_parallel",
       {{"true", "true"}, {"false", nullptr}}},
      {"parallelism.fsdp-reshard-after-forward",
       "/parallel/reshard_after_forward",
       {{"always", "true"}, {"never", "false"}, {"default", nullptr}}},
      {"activation-checkpoint.mode",
       "/training/recompute",
       {{"full", R"("full")"}, {"selective", R"("selective")"}, {"none", R"("none")"}}},
      {"compile.enable", "/training/compile", {{"true", "true"}, {"false", "false"}}},
      {"training.compile", "/training/compile", {{"true", "true"}, {"false", "false"}}},
      {"training.mixed-precision-param",
       "/training/precision",
       {{"float32", R"("fp32")"}, {"bfloat16", R"("bf16")"}}},
  };
  return keys;
}

/// Beginnings of keys that change no time, or that the importer reads itself.
const std::vector<std::string>& harmless_torchtitan_keys() {
  static const std::vector<std::string> beginnings{
      // clang-format off
      "activation-checkpoint.", "checkpoint.", "comm.", "compile.components", "debug.",
      "experimental.custom", "fault-tolerance.", "float8.", "job.", "lr-scheduler.",
      "memory-estimation.", "metrics.", "model.", "mx.", "optimizer.", "parallelism.data-parallel",
      "parallelism.disable-loss-parallel",
      "parallelism.pipeline-parallel-layers", "parallelism.pipeline-parallel-microbatch",
      "profiling.", "quantize.", "training.data", "training.data-parallel",
      "training.deterministic", "training.enable-cpu", "training.gc", "training.global-batch",
      "training.max-norm", "training.mixed-precision-reduce", "training.seed", "training.steps",
      "training.warmup", "validation."
      // clang-format on
  };
  return beginnings;
}

/// "llama3-70b" of llama3 and 70B.
std::string shipped_model(const Library& library, const LaunchSettings& settings) {
  std::string wanted =
      launch_key(lower_case(settings.text("model.name") + "-" + settings.text("model.flavor")));
  if (wanted == "deepseek-v3-671b") wanted = "deepseek-v3";
  const std::vector<std::string> names = library.names("models");
  return std::count(names.begin(), names.end(), wanted) > 0 ? wanted : "";
}

Imported import_torchtitan(const ImportRequest& request, const Library& library) {
  LaunchSettings settings = read_toml_settings(*read_source_or_stdin(request.inputs.front()));
  ImportRequest with_model = request;
  if (with_model.options.model.empty()) with_model.options.model = shipped_model(library, settings);
  LaunchScenario scenario(with_model, library, std::move(settings), torchtitan_keys(),
                          harmless_torchtitan_keys());
  // Defaults of job_config.py.
  for (const auto& [pointer, value] : {std::pair{"/model/sequence", json_of(2048)},
                                       {"/training/micro_batch", json_of(8)},
                                       {"/training/precision", JsonValue("bf16")},
                                       {"/training/recompute", JsonValue("selective")},
                                       {"/training/compile", JsonValue(false)}})
    if (!scenario.has(pointer)) scenario.set(pointer, value);
  const auto says = [&](const char* key, const char* value) {
    return scenario.settings().text(key).find(value) != std::string::npos;
  };
  const int replicate =
      std::max(1, scenario.settings().number("parallelism.data-parallel-replicate-degree"));
  int shard = std::max(scenario.settings().number("parallelism.data-parallel-shard-degree"),
                       scenario.settings().number("training.data-parallel-shard-degree"));
  // A degree of -1 is whatever is left.
  const int gpus = scenario.gpus(replicate * shard * scenario.gpus_of_replica());
  const int data = std::max(1, gpus / scenario.gpus_of_replica());
  if (shard == 0) shard = std::max(1, data / replicate);
  const int context = scenario.at("/parallel/context", 1);
  scenario.set("/parallel/zero_stage", json_of(shard * context > 1 ? 3 : 0));
  if (replicate > 1 && shard > 1) scenario.set("/parallel/zero_group", json_of(shard * context));
  if (scenario.at("/parallel/tensor", 1) > 1)
    scenario.set("/parallel/sequence_parallel", JsonValue(true));
  const bool is_fp8 = says("model.converters", "float8") ||
                      says("float8.enable-float8-linear", "true") ||
                      says("model.converters", "quantize.linear.float8");
  if (is_fp8) scenario.set("/training/precision", JsonValue("fp8"));
  if (says("parallelism.disable-loss-parallel", "true"))
    scenario.set("/training/loss_parallel", JsonValue(false));
  if (says("model.converters", "mx")) scenario.set("/training/precision", JsonValue("mxfp8"));
  // selective_ac_option: "op", or each so-manieth layer, whole.
  const int every = scenario.settings().number("activation-checkpoint.selective-ac-option");
  if (scenario.is("/training/recompute", "selective") && every > 0) {
    scenario.set("/training/recompute", JsonValue("full"));
    scenario.set("/training/recompute_layers/every", json_of(every));
  }
  if (scenario.is("/training/recompute", "selective"))
    scenario.note(
        "selective activation checkpointing is that of Megatron's attention core; torchtitan's op "
        "list saves other tensors");
  // With a pipeline, local_batch_size is cut into microbatches.
  const int local = scenario.at("/training/micro_batch", 1);
  const int global = scenario.settings().number("training.global-batch-size");
  scenario.set("/training/global_batch", json_of(global > 0 ? global : local * data));
  if (scenario.at("/parallel/pipeline", 1) > 1)
    scenario.set("/training/micro_batch",
                 json_of(std::clamp(
                     scenario.settings().number("parallelism.pipeline-parallel-microbatch-size"), 1,
                     local)));
  return scenario.finish("torchtitan-2025", gpus);
}

}  // namespace

namespace formats {
Importer torchtitan() {
  return {"torchtitan",
          "a configuration of torchtitan, to a scenario",
          "a TOML configuration of torchtitan (releases up to 0.2)",
          {"--base", "--gpus", "--model"},
          Importer::Files::one,
          Importer::Result::file,
          import_torchtitan};
}
}  // namespace formats

}  // namespace windtunnel
